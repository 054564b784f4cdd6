/** The version of this Juice, as hosts, clients and routers name themselves. */
import type { Version } from "./events.ts"

export const VERSION: typeof Version.Type = "0.1.0"
