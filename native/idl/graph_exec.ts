import { area, fn } from "./schema.ts"

export const graphExecArea = area("graph_exec", "Executable graphs: instantiation, launch, updates.", [
  fn(
    "CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags)", {
    class: "custom"
  }),
  fn(
    "CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams)",
    { perThread: "ptsz", class: "custom" }
  ),
  fn("CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, unsigned long long* flags)", { class: "custom" }),
  fn(
    "CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D* copyParams, CUcontext ctx)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)", {
    class: "custom"
  }),
  fn("CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)", {
    class: "custom"
  }),
  fn("CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)", {
    class: "custom"
  }),
  fn("CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)", { perThread: "ptsz", class: "custom" }),
  fn("CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)", { perThread: "ptsz", class: "custom" }),
  fn("CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)", { class: "custom" }),
  fn(
    "CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out, CUgraphExecUpdateResult* updateResult_out)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo* resultInfo)", {
    class: "custom"
  }),
  fn("CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams* nodeParams)", {
    class: "custom"
  }),
  fn(
    "CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer, size_t bufferSize)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer, size_t bufferSize)",
    { class: "custom" }
  )
])
