/** The subcommands of `juice`: their flags, help and examples. What they do stands in commands/. */

import * as Config from "effect/Config"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { commonFlags, jsonFlag, numberFlag, switchFlag, textFlag } from "./flags.ts"
import type { Outcome } from "./outcome.ts"
import { settingName } from "./settings.ts"

export interface JuiceOptions {
  /** What `juice attach` or `juice soft` is to run. */
  readonly program: ReadonlyArray<string>
  readonly onOutcome: (outcome: Outcome) => void
}

const optionalText = (table: string, name: string, description: string, metavar: string) =>
  textFlag(table, name, { description, metavar }).pipe(Flag.optional)

const fraction = (table: string, name: string, description: string) =>
  Flag.Finite(name).pipe(
    Flag.withDescription(description),
    Flag.withMetavar("PART"),
    Flag.withFallbackConfig(Config.Finite(settingName(table, name))),
    Flag.optional
  )

const verbose = Flag.Boolean("verbose").pipe(
  Flag.withAlias("v"),
  Flag.withDescription("say what happens, on stderr"),
  Flag.withDefault(false)
)

/** Flags of a host, whoever starts it; `table` is the command whose settings they fall back on. */
const hostFlags = (table: string, gpus: string, drainSeconds: number) => ({
  gpus: textFlag(table, "gpus", {
    description: `auto (real ones, else one software GPU), all, none, soft:N, or UUIDs (default ${gpus})`,
    metavar: "WHICH"
  }).pipe(Flag.withDefault(gpus)),
  name: optionalText(table, "name", "the host's name in the site (default: this machine's)", "NAME"),
  dataDir: optionalText(table, "data-dir", "where its state is kept (default under ~/.local/state/juice)", "DIR"),
  dataPort: numberFlag(table, "data-port", {
    description: "the port that programs' GPU calls come in on (default 0: a free one)",
    metavar: "PORT"
  }).pipe(Flag.withDefault(0)),
  dataAddress: textFlag(table, "data-address", {
    description: "the address to listen on (default 127.0.0.1)",
    metavar: "ADDRESS"
  }).pipe(Flag.withDefault("127.0.0.1")),
  advertise: optionalText(table, "advertise", "the address that clients are told (default: the one above)", "ADDRESS"),
  insecurePlaintext: switchFlag(
    table,
    "insecure-plaintext",
    "allow an address beyond this machine although the data is not encrypted yet"
  ),
  pool: numberFlag(table, "pool", { description: "ready workers for each GPU (default 1)" }).pipe(Flag.withDefault(1)),
  label: optionalText(table, "label", "facts about this machine that sessions can ask for", "KEY=VALUE,…"),
  drainTimeout: numberFlag(table, "drain-timeout", {
    description: `how long sessions may finish when it is stopped (default ${drainSeconds})`,
    metavar: "SECONDS"
  }).pipe(Flag.withDefault(drainSeconds))
})

const attach = ({ onOutcome, program }: JuiceOptions) =>
  Command.make(
    "attach",
    {
      ...commonFlags,
      gpus: numberFlag("attach", "gpus", { description: "how many GPUs (default 1)" }).pipe(Flag.withDefault(1)),
      vram: optionalText("attach", "vram", "a share of each GPU with so much memory, instead of the whole GPU", "SIZE"),
      share: fraction("attach", "share", "a share of each GPU with this part of its memory, such as 0.25"),
      wait: numberFlag("attach", "wait", {
        description: "how long to wait for a free GPU (default 0: not at all)",
        metavar: "SECONDS"
      }).pipe(Flag.withDefault(0)),
      gpuModel: optionalText("attach", "gpu-model", "a part of the model's name, such as h200", "MODEL"),
      gpuUuid: optionalText("attach", "gpu-uuid", "these very GPUs", "UUID,…"),
      label: optionalText("attach", "label", "labels that the host must have", "KEY=VALUE,…"),
      verbose
    },
    (input) =>
      Effect.promise(() => import("./commands/attach.ts")).pipe(
        Effect.flatMap(({ runAttach }) => runAttach({ ...input, program })),
        Effect.map((exit) => onOutcome(exit.signal === null ? { code: exit.code } : { signal: exit.signal }))
      )
  ).pipe(
    Command.withDescription(
      [
        "Run a program with a GPU that is somewhere else.",
        "",
        "Everything from the program's name on is the program's own, flags included. Its streams, exit code and",
        "death by signal pass through. Exit codes of juice itself: 2 wrong usage, 69 no such site, 75 no GPU now",
        "(trying again may help), 126 not executable, 127 not found."
      ].join("\n  ")
    ),
    Command.withShortDescription("Run a program with a GPU that is somewhere else"),
    Command.withExamples([
      { command: "juice attach -- python3 train.py --epochs 3", description: "One whole GPU" },
      { command: "juice attach --vram 8G --wait 60 ./simulate", description: "8 GiB of one, waiting up to a minute" },
      { command: "juice attach --gpus 2 --gpu-model h200 -- ./bench", description: "Two GPUs of one model" }
    ])
  )

const soft = ({ onOutcome, program }: JuiceOptions) =>
  Command.make(
    "soft",
    {
      gpus: numberFlag("soft", "gpus", { description: "how many software GPUs (default 1)" }).pipe(Flag.optional),
      memory: optionalText("soft", "memory", "the memory of each (default 1G)", "SIZE"),
      watchdog: numberFlag("soft", "watchdog", {
        description: "end a kernel that runs longer than this (0: never)",
        metavar: "SECONDS"
      }).pipe(Flag.optional)
    },
    (input) =>
      Effect.promise(() => import("./commands/soft.ts")).pipe(
        Effect.flatMap(({ runSoft }) => runSoft({ ...input, program })),
        Effect.map((exit) => onOutcome(exit.signal === null ? { code: exit.code } : { signal: exit.signal }))
      )
  ).pipe(
    Command.withDescription(
      [
        "Run a program on the software GPU: a CUDA driver that runs PTX on the CPU, in the program's own process.",
        "No site, no network, no GPU; for tests, debugging and laptops.",
        "",
        "Everything from the program's name on is the program's own, flags included. Its streams, exit code and",
        "death by signal pass through. Exit codes of juice itself: 2 wrong usage, 126 not executable, 127 not found."
      ].join("\n  ")
    ),
    Command.withShortDescription("Run a program on the software GPU, without a site"),
    Command.withExamples([
      { command: "juice soft -- ./vector_add", description: "One software GPU with 1 GiB" },
      { command: "juice soft --gpus 2 --memory 4G --watchdog 10 ./simulate", description: "Two, and no endless kernel" }
    ])
  )

const up = Command.make(
  "up",
  {
    site: commonFlags.site,
    port: numberFlag("up", "port", { description: "the port of NATS (default 4222)", metavar: "PORT" }).pipe(
      Flag.withDefault(4222)
    ),
    natsServer: optionalText("", "nats-server", "the nats-server program (default: the one on the PATH)", "PATH"),
    ...hostFlags("up", "auto", 0),
    json: jsonFlag
  },
  (input) =>
    Effect.flatMap(
      Effect.promise(() => import("./commands/up.ts")),
      ({ runUp }) => runUp(input)
    )
).pipe(
  Command.withDescription(
    "Start NATS, a router and a host together, in the foreground: a whole site on one machine. Ctrl-C stops all of it."
  ),
  Command.withShortDescription("Start a whole site on this machine: NATS, router and host"),
  Command.withExamples([
    { command: "juice up", description: "The GPUs of this machine, or a software GPU where it has none" },
    { command: "juice up --gpus soft:2 --port 14222", description: "Two software GPUs, NATS on another port" }
  ])
)

const host = Command.make("host", { ...commonFlags, ...hostFlags("host", "all", 300), json: jsonFlag }, (input) =>
  Effect.flatMap(
    Effect.promise(() => import("./commands/host.ts")),
    ({ runHostCommand }) => runHostCommand(input)
  )
).pipe(
  Command.withDescription(
    "Offer this machine's GPUs to a site. The first SIGTERM or Ctrl-C lets sessions finish, the second stops at once.\n  --json writes its log as JSON lines."
  ),
  Command.withShortDescription("Offer this machine's GPUs to a site"),
  Command.withExamples([
    { command: "juice host --nats nats://nats.example.org:4222", description: "All GPUs of this machine" },
    { command: "juice host --gpus soft:2 --name laptop", description: "Two software GPUs, under a name of its own" }
  ])
)

const router = Command.make("router", { ...commonFlags, json: jsonFlag }, (input) =>
  Effect.flatMap(
    Effect.promise(() => import("./commands/router.ts")),
    ({ runRouterCommand }) => runRouterCommand(input)
  )
).pipe(
  Command.withDescription(
    "Run a router: it places sessions on hosts and keeps the session log. Run several; one leads and the others\n  stand by. --json writes its log as JSON lines."
  ),
  Command.withShortDescription("Place sessions and keep the log"),
  Command.withExamples([
    { command: "juice router --nats nats://nats.example.org:4222", description: 'One replica of the site "local"' }
  ])
)

const hosts = Command.make(
  "hosts",
  {
    ...commonFlags,
    all: Flag.Boolean("all").pipe(Flag.withDescription("those that have left too"), Flag.withDefault(false)),
    json: jsonFlag
  },
  (input) =>
    Effect.flatMap(
      Effect.promise(() => import("./commands/hosts.ts")),
      ({ runHosts }) => runHosts(input)
    )
).pipe(
  Command.withDescription("List the hosts of a site, their GPUs, and what of them is free."),
  Command.withShortDescription("List GPU hosts and what is free"),
  Command.withExamples([
    { command: "juice hosts", description: "A table" },
    { command: "juice hosts --json | jq '.hosts[].gpus[].name'", description: "The names of all GPUs" }
  ])
)

const sessions = Command.make(
  "sessions",
  {
    ...commonFlags,
    all: Flag.Boolean("all").pipe(Flag.withDescription("those that have ended too"), Flag.withDefault(false)),
    limit: numberFlag("sessions", "limit", { description: "at most so many, newest first (default 50)" }).pipe(
      Flag.withDefault(50)
    ),
    json: jsonFlag
  },
  (input) =>
    Effect.flatMap(
      Effect.promise(() => import("./commands/sessions.ts")),
      ({ runSessions }) => runSessions(input)
    )
).pipe(
  Command.withDescription("List the sessions of a site: who has GPUs, and who waits for them."),
  Command.withShortDescription("List who has GPUs and who waits"),
  Command.withExamples([
    { command: "juice sessions", description: "Those that have not ended" },
    { command: "juice sessions --all --json | jq '.sessions[0].usage'", description: "What the last one used" }
  ])
)

const events = ({ onOutcome }: JuiceOptions) =>
  Command.make(
    "events",
    {
      ...commonFlags,
      follow: Flag.Boolean("follow").pipe(
        Flag.withAlias("f"),
        Flag.withDescription("go on with what comes"),
        Flag.withDefault(false)
      ),
      since: optionalText("events", "since", "how long ago (10m, 2h), a time, or a commit (#42)", "WHEN"),
      session: optionalText("events", "session", "of one session only: its id, or the end of it", "ID"),
      json: jsonFlag
    },
    (input) =>
      Effect.promise(() => import("./commands/events.ts")).pipe(
        Effect.flatMap(({ runEvents }) => runEvents(input)),
        Effect.flatMap((signal) => (signal === undefined ? Effect.void : Effect.sync(() => onOutcome({ signal }))))
      )
  ).pipe(
    Command.withDescription("Tell what the session log has recorded. --json prints one object a line."),
    Command.withShortDescription("Tell what the session log has recorded"),
    Command.withExamples([
      { command: "juice events --since 10m", description: "The last ten minutes, as a story" },
      { command: "juice events --follow --json", description: "Everything, one JSON object a line, without end" }
    ])
  )

/** The whole command. */
export const juice = (options: JuiceOptions) =>
  Command.make("juice").pipe(
    Command.withDescription(
      [
        "GPU-over-IP: an unmodified CUDA program runs on a GPU that is somewhere else.",
        "",
        "Settings: flags, then JUICE_* variables (JUICE_NATS or NATS_URL names the server), then",
        "~/.config/juice/config.toml. A flag --data-dir of `juice host` is JUICE_HOST_DATA_DIR, or data-dir in [host]."
      ].join("\n  ")
    ),
    Command.withSubcommands([
      { group: "RUN PROGRAMS", commands: [attach(options), soft(options)] },
      { group: "SERVE", commands: [up, host, router] },
      { group: "LOOK", commands: [hosts, sessions, events(options)] }
    ])
  )
