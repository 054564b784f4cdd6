/** Names of CUDA's result codes, from the one table that the native code is generated from. */
import results from "../../native/idl/results.json" with { type: "json" }

const names: Record<string, ReadonlyArray<string>> = results

/** "CUDA_ERROR_ILLEGAL_ADDRESS" for 700; "CUDA_ERROR_<n>" for a code that the table does not know. */
export const cudaResultName = (code: number): string => names[String(code)]?.[0] ?? `CUDA_ERROR_${code}`
