/**
 * The typed door to native/addon: what Node cannot do by itself. The addon is loaded on first use, so that commands
 * which need nothing native start fast and work without it.
 */
import { createRequire } from "node:module"
import { NativeMissing } from "./errors.ts"
import type { NativeFiles } from "./files.ts"

/** A GPU as NVML knows it. */
export interface NvmlGpu {
  /** "GPU-…" */
  readonly uuid: string
  readonly name: string
  /** Bytes. */
  readonly memoryTotal: number
  readonly pciBusId: string
  /** "9.0" */
  readonly computeCapability: string
}

export interface Inventory {
  /** For people: "580.159.04". */
  readonly driverText: string
  /** The newest CUDA version that the driver speaks: 13000 for 13.0. */
  readonly driverVersion: number
  readonly gpus: ReadonlyArray<NvmlGpu>
}

export interface Listener {
  /** The port that it really listens on. */
  readonly port: number
  /** Stops accepting. Connections that were handed over are not touched. */
  close(): void
}

/** Figures of one worker, from memory that worker and host share: they outlive a killed worker. */
export interface WorkerUsage {
  /** Driver calls executed. */
  readonly calls: number
  /** From the client, all lanes. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** Kernels launched. */
  readonly launches: number
  /** Device memory in bytes, now and at its highest. */
  readonly memoryNow: number
  readonly memoryPeak: number
  readonly clientPid: number
  /** Sticky CUresult, 0 if none. */
  readonly lastError: number
  /** See Ending in control.ts. */
  readonly ending: number
}

export interface SpawnedWorker {
  readonly pid: number
  /**
   * Sends one control message. `fd`, when given, is passed along and belongs to the worker from here on: it is closed
   * here in any case. A worker that is gone takes no message; its onExit tells.
   */
  send(kind: number, payload: Buffer, fd?: number): void
  usage(): WorkerUsage
  kill(signal: number): void
  /** Closes the control channel and the usage page: a worker that still runs ends by that. Call it once, last. */
  close(): void
}

export interface ProcessWatch {
  stop(): void
}

export interface PeerCredentials {
  readonly pid: number
  readonly uid: number
  readonly gid: number
}

export interface Addon {
  /** All GPUs of this machine. Throws an Error with code "NVML_UNAVAILABLE" where there is no NVIDIA driver. */
  inventory(): Inventory
  /**
   * Listens for data-plane connections. Each is handed over once its 64-byte preface has been read (within 5 s, off
   * the main thread); only magic and version have been checked. The descriptor belongs to the callback. Throws with
   * the system's error code (EADDRINUSE and the like).
   */
  listen(
    options: { readonly host: string; readonly port: number },
    onPreface: (fd: number, preface: Buffer, peer: string) => void
  ): Listener
  closeFd(fd: number): void
  /**
   * Starts a worker: control channel on descriptor 3, usage page on 4, ends with its parent, stdin /dev/null, output
   * to our stderr. onExit comes once, after the last onMessage.
   */
  spawnWorker(
    options: { readonly path: string; readonly args: ReadonlyArray<string>; readonly env: Record<string, string> },
    onMessage: (kind: number, payload: Buffer) => void,
    onExit: (code: number | null, signal: number | null) => void
  ): SpawnedWorker
  /** Tells when a process of this machine ends, whoever its parent is. Throws with code "ESRCH" if it has already. */
  watchProcess(pid: number, onExit: () => void): ProcessWatch
  /** Who is at the other end of a Unix socket. */
  peerCredentials(fd: number): PeerCredentials
}

let loaded: { readonly path: string; readonly addon: Addon } | undefined

/** The addon; throws NativeMissing when it is not there or does not load. */
export const loadAddon = (files: NativeFiles): Addon => {
  if (loaded?.path === files.addon) return loaded.addon
  try {
    const addon = createRequire(import.meta.url)(files.addon) as Addon
    loaded = { path: files.addon, addon }
    return addon
  } catch (error) {
    throw new NativeMissing({ path: files.addon, detail: (error as Error).message.split("\n")[0]! })
  }
}
