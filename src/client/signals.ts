/**
 * Signals to `juice attach`: caught from before the program starts until after it has ended, so that none is lost and
 * none kills us before the program.
 *
 * With a terminal, Ctrl-C and Ctrl-\ reach the whole foreground group, the program included; it must not get them
 * twice. Without one nobody else would deliver them.
 */
import { closeSync, openSync } from "node:fs"
import { constants } from "node:os"

const FROM_KEYBOARD = ["SIGINT", "SIGQUIT"] as const
const FORWARDED = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const

/** Whether this process has a controlling terminal. */
export const hasTerminal = (): boolean => {
  try {
    closeSync(openSync("/dev/tty", "r"))
    return true
  } catch {
    return false
  }
}

/** Calls `react` for every signal that a program would want to know of; the returned function stops that. */
export const catchSignals = (react: (signal: NodeJS.Signals) => void): (() => void) => {
  const signals = [...FROM_KEYBOARD, ...FORWARDED]
  for (const signal of signals) process.on(signal, react)
  return () => {
    for (const signal of signals) process.removeListener(signal, react)
  }
}

/**
 * Calls `before` ahead of being stopped by Ctrl-Z, then stops; the returned function ends that. The default action
 * would stop us without a word, and a silent broker is taken for a dead one.
 */
export const beforeStop = (before: (stop: () => void) => void): (() => void) => {
  const onStop = () => before(() => process.kill(process.pid, "SIGSTOP"))
  process.on("SIGTSTP", onStop)
  return () => process.removeListener("SIGTSTP", onStop)
}

/** Whether the program gets this signal from us. */
export const isForwarded = (signal: NodeJS.Signals, terminal: boolean): boolean =>
  !terminal || !(FROM_KEYBOARD as ReadonlyArray<string>).includes(signal)

/** 130 for SIGINT: what a shell makes of a death by signal. */
export const signalExitCode = (signal: NodeJS.Signals): number => 128 + constants.signals[signal]

/** Ends this process by the signal that ended the program, so that whoever waits for us sees the same death. */
export const dieBy = (signal: NodeJS.Signals): void => {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  // Reached only where the signal is ignored or has not been delivered yet.
  setTimeout(() => process.exit(signalExitCode(signal)), 500)
}
