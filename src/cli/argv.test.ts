import { assert, describe, it } from "vitest"
import { splitProgram } from "./argv.ts"

const split = (line: string) => {
  const { head, program } = splitProgram(line.split(" ").filter((word) => word !== ""))
  return [head.join(" "), program.join(" ")]
}

describe("the command line of what runs a program", () => {
  it("gives everything from the first operand on to the program", () => {
    assert.deepEqual(split("attach nvidia-smi -L --gpus 2"), ["attach", "nvidia-smi -L --gpus 2"])
    assert.deepEqual(split("attach -v --gpus 2 ./a --help"), ["attach -v --gpus 2", "./a --help"])
  })
  it("gives everything after -- to the program, a leading dash included", () => {
    assert.deepEqual(split("attach --wait 5 -- -odd --x"), ["attach --wait 5", "-odd --x"])
    assert.deepEqual(split("attach -- sh -c -- x"), ["attach", "sh -c -- x"])
  })
  it("knows which flags take the next word, and which carry their value", () => {
    assert.deepEqual(split("attach --vram 8G prog"), ["attach --vram 8G", "prog"])
    assert.deepEqual(split("attach --vram=8G prog 1"), ["attach --vram=8G", "prog 1"])
  })
  it("takes common flags before the subcommand too", () => {
    assert.deepEqual(split("--nats nats://x:4222 attach prog -q"), ["--nats nats://x:4222 attach", "prog -q"])
  })
  it("knows the flags of each command apart", () => {
    assert.deepEqual(split("soft --memory 2G prog --gpus 3"), ["soft --memory 2G", "prog --gpus 3"])
    assert.deepEqual(split("soft --gpus 2 -- -odd"), ["soft --gpus 2", "-odd"])
    assert.deepEqual(split("soft --vram 2G prog"), ["soft --vram", "2G prog"])
  })
  it("may have no program at all", () => {
    assert.deepEqual(split("attach --help"), ["attach --help", ""])
    assert.deepEqual(split("attach --"), ["attach", ""])
  })
  it("leaves other subcommands alone", () => {
    assert.deepEqual(split("hosts --json -- attach x"), ["hosts --json -- attach x", ""])
    assert.deepEqual(split("events --since attach"), ["events --since attach", ""])
  })
})
