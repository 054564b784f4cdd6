/**
 * Where the native files are: the shim that programs load, the worker, the launcher, the software GPU and the addon.
 */
import { existsSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { NativeMissing } from "./errors.ts"

export interface NativeFiles {
  readonly directory: string
  /** The directory for the program's library path: libcuda.so.1, libcuda.so and libnvidia-ml.so.1. */
  readonly shimDirectory: string
  readonly softGpuDriver: string
  readonly worker: string
  /** `juice-exec PPID -- program …`: the program ends with its parent. */
  readonly launcher: string
  readonly addon: string
}

const filesIn = (directory: string): NativeFiles => ({
  directory,
  shimDirectory: join(directory, "shim"),
  softGpuDriver: join(directory, "softgpu", "libcuda.so.1"),
  worker: join(directory, "bin", "juice-worker"),
  launcher: join(directory, "bin", "juice-exec"),
  addon: join(directory, "juice.node")
})

/** Folders that hold this code: the sources' or the bundle's own, and those above. */
const ancestors = (): Array<string> => {
  const found: Array<string> = []
  for (let at = dirname(fileURLToPath(import.meta.url)); !found.includes(at); at = dirname(at)) found.push(at)
  return found
}

/** JUICE_NATIVE_DIR, else build/release of the package, else native beside an unpacked bundle. */
export const findNativeFiles = (env: NodeJS.ProcessEnv = process.env): NativeFiles => {
  const named = env.JUICE_NATIVE_DIR
  if (named !== undefined && named !== "") return filesIn(resolve(named))
  const roots = ancestors()
  for (const root of roots) {
    for (const place of ["build/release", "native"]) {
      const directory = join(root, place)
      if (existsSync(join(directory, "juice.node")) || existsSync(join(directory, "bin", "juice-worker"))) {
        return filesIn(directory)
      }
    }
  }
  const root = roots.find((folder) => existsSync(join(folder, "package.json"))) ?? process.cwd()
  return filesIn(join(root, "build/release"))
}

/** Throws NativeMissing for the first of these files that is not there. */
export const requireFiles = (...paths: ReadonlyArray<string>): void => {
  const missing = paths.find((path) => !existsSync(path))
  if (missing !== undefined) throw new NativeMissing({ path: missing })
}
