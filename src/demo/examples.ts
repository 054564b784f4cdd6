/**
 * The CUDA C++ programs of examples/, as examples/programs.json lists them, and which of them are expected to be missing
 * something: there, and nowhere else, so that a test notices when it has come.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { examplesDirectory } from "./site.ts"

/** What a program runs on: the software GPU's driver, or a driver through `juice attach`. */
export type Driver = "softgpu" | "attach"

export interface Missing {
  readonly program: string
  readonly on: Driver
  /** A pattern of what the program says, on either stream. */
  readonly error: string
  readonly why: string
}

interface Programs {
  readonly programs: ReadonlyArray<{ readonly name: string; readonly flags?: string }>
  readonly missing: ReadonlyArray<Missing>
}

const programs = (): Programs =>
  JSON.parse(readFileSync(join(examplesDirectory(), "programs.json"), "utf8")) as Programs

/** Their names; NAME_static and so on are the builds of each. */
export const cudaExamples = (): ReadonlyArray<string> => programs().programs.map(({ name }) => name)

/** What the first of these drivers that lacks it is expected to say. */
export const missingOn = (name: string, ...drivers: ReadonlyArray<Driver>): Missing | undefined => {
  const { missing } = programs()
  return drivers
    .map((driver) => missing.find(({ on, program }) => program === name && on === driver))
    .find((found) => found !== undefined)
}
