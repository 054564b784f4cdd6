import { area, fn } from "./schema.ts"

export const eventArea = area("event", "Events.", [
  fn("CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags)", {
    class: "posted",
    args: { phEvent: "new event" }
  }),
  fn("CUresult cuEventRecord(CUevent hEvent, CUstream hStream)", { perThread: "ptsz", class: "posted" }),
  fn("CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)", {
    perThread: "ptsz",
    class: "posted"
  }),
  fn("CUresult cuEventQuery(CUevent hEvent)", { class: "waited", byHand: "worker" }),
  fn("CUresult cuEventSynchronize(CUevent hEvent)", { class: "waited", byHand: "worker", mayBlock: true }),
  fn("CUresult cuEventDestroy(CUevent hEvent)", { class: "posted", as: "cuEventDestroy_v2" }),
  fn("CUresult cuEventDestroy_v2(CUevent hEvent)", { class: "posted", args: { hEvent: "drop event" } }),
  fn("CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd)", {
    class: "waited",
    args: { pMilliseconds: "out" }
  }),
  fn("CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd)", {
    class: "waited",
    args: { pMilliseconds: "out" }
  })
])
