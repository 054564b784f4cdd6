import { area, fn } from "./schema.ts"

export const captureArea = area("capture", "Stream capture.", [
  fn("CUresult cuStreamBeginCapture(CUstream hStream)", { perThread: "ptsz", class: "custom" }),
  fn("CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)", {
    perThread: "ptsz",
    class: "custom"
  }),
  fn(
    "CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData, size_t numDependencies, CUstreamCaptureMode mode)",
    { perThread: "ptsz", class: "custom" }
  ),
  fn("CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph)", { perThread: "ptsz", class: "custom" }),
  fn("CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus)", {
    perThread: "ptsz",
    class: "custom"
  }),
  fn(
    "CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, unsigned long long* id_out)",
    { perThread: "ptsz", class: "custom" }
  ),
  fn(
    "CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, unsigned long long* id_out, CUgraph* graph_out, const CUgraphNode** dependencies_out, size_t* numDependencies_out)",
    { perThread: "ptsz", class: "custom" }
  ),
  fn(
    "CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, unsigned long long* id_out, CUgraph* graph_out, const CUgraphNode** dependencies_out, const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out)",
    { perThread: "ptsz", class: "custom" }
  ),
  fn(
    "CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies, size_t numDependencies, unsigned int flags)",
    { perThread: "ptsz", class: "custom" }
  ),
  fn(
    "CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData, size_t numDependencies, unsigned int flags)",
    { perThread: "ptsz", class: "custom" }
  )
])
