import { area, fn } from "./schema.ts"

export const eventArea = area("event", "Events.", [
  fn("CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags)"),
  fn("CUresult cuEventRecord(CUevent hEvent, CUstream hStream)", { perThread: "ptsz" }),
  fn("CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)", { perThread: "ptsz" }),
  fn("CUresult cuEventQuery(CUevent hEvent)"),
  fn("CUresult cuEventSynchronize(CUevent hEvent)"),
  fn("CUresult cuEventDestroy(CUevent hEvent)"),
  fn("CUresult cuEventDestroy_v2(CUevent hEvent)"),
  fn("CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd)"),
  fn("CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd)")
])
