/** Errors of the native files: that they are missing, or do not work here. */
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"

export class NativeMissing extends Schema.TaggedError<NativeMissing>()("NativeMissing", {
  path: Schema.String,
  detail: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const detail = this.detail === undefined ? "" : ` (${this.detail})`
    return `the native part ${this.path} is missing or does not load${detail}: build it with \`npm run build\`, or say where it is with JUICE_NATIVE_DIR`
  }
  override get [Runtime.errorExitCode]() {
    return 70
  }
}
