/**
 * How the command line is parsed and how it explains itself: help that was asked for goes to stdout; wrong usage goes to
 * stderr as one sentence and the way to the help, so that `juice … --json | jq` never gets prose.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import type { HelpDoc } from "effect/cli/HelpDoc"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { VERSION } from "../protocol/version.ts"
import { print, tell } from "./output.ts"

/** As the built-in one, but -v stays free: it is `attach -v`. */
const Version: typeof GlobalFlag.Version = GlobalFlag.Action({
  flag: Flag.Boolean("version").pipe(Flag.withDescription("Show version information"), Flag.withDefault(false)),
  run: GlobalFlag.Version.run
})

const formatter = CliOutput.defaultFormatter({
  colors: process.stdout.isTTY === true && !process.env.NO_COLOR
})

/** The program that follows `attach` never reaches the parser, so the parser's usage line lacks it. */
const withProgram = (doc: HelpDoc, path: ReadonlyArray<string>): HelpDoc =>
  path.at(-1) === "attach" ? { ...doc, usage: `${path.join(" ")} [flags] [--] PROGRAM [ARGUMENT…]` } : doc

const presenter: CliOutput.Presenter = {
  present: (event) =>
    Effect.sync(() => {
      switch (event._tag) {
        case "Version":
          print(`juice ${VERSION}`)
          break
        case "Help":
          print(formatter.formatHelpDoc(withProgram(event.helpDoc, event.commandPath)))
          break
        case "InvalidInvocation":
          for (const error of event.errors) tell(error.message)
          tell(`see \`${event.commandPath.join(" ")} --help\``)
          break
      }
    })
}

const layer = Layer.mergeAll(
  // Only the services log, each with a logger of its own: the default one would write to stdout.
  Logger.layer([]),
  NodeServices.layer,
  CliOutput.layer(formatter),
  CliOutput.layerPresenter(presenter),
  CliConfig.layer({ builtIns: [GlobalFlag.Help, Version, GlobalFlag.Completions] })
)

/** Parses the words after `juice` and runs the subcommand that they name. */
export const runCommandLine = <Name extends string, Input, E, R, ContextInput>(
  command: Command.Command<Name, Input, ContextInput, E, R>,
  words: ReadonlyArray<string>
) => Command.runWith(command, { version: VERSION })(words).pipe(Effect.provide(layer))
