import { area, fn } from "./schema.ts"

export const eventArea = area("event", "Events.", [
  fn("CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags)", {
    class: "posted",
    byHand: "shim",
    args: { phEvent: "new event" }
  }),
  fn("CUresult cuEventRecord(CUevent hEvent, CUstream hStream)", {
    perThread: "ptsz",
    class: "posted",
    byHand: "shim"
  }),
  fn("CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)", {
    perThread: "ptsz",
    class: "posted",
    byHand: "shim"
  }),
  fn("CUresult cuEventQuery(CUevent hEvent)", { class: "custom" }),
  fn("CUresult cuEventSynchronize(CUevent hEvent)", { class: "custom", mayBlock: true }),
  fn("CUresult cuEventDestroy(CUevent hEvent)", { class: "custom" }),
  fn("CUresult cuEventDestroy_v2(CUevent hEvent)", {
    class: "posted",
    byHand: "shim",
    args: { hEvent: "drop event" }
  }),
  fn("CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd)", {
    class: "waited",
    byHand: "shim",
    args: { pMilliseconds: "out" }
  }),
  fn("CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd)", {
    class: "waited",
    byHand: "shim",
    args: { pMilliseconds: "out" }
  })
])
