import { area, fn } from "./schema.ts"

export const graphNodeArea = area("graph_node", "The nodes of graphs, kind by kind.", [
  fn(
    "CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS* nodeParams)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams)", {
    class: "custom"
  }),
  fn("CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams)", {
    class: "custom"
  }),
  fn("CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams)", {
    class: "custom"
  }),
  fn("CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams)", {
    class: "custom"
  }),
  fn(
    "CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, const CUDA_MEMCPY3D* copyParams, CUcontext ctx)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams)", { class: "custom" }),
  fn("CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams)", { class: "custom" }),
  fn(
    "CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams)", {
    class: "custom"
  }),
  fn("CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams)", {
    class: "custom"
  }),
  fn(
    "CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, const CUDA_HOST_NODE_PARAMS* nodeParams)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams)", { class: "custom" }),
  fn("CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams)", {
    class: "custom"
  }),
  fn(
    "CUresult cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, CUgraph childGraph)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph)", { class: "custom" }),
  fn(
    "CUresult cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, CUevent event)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out)", { class: "custom" }),
  fn("CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)", { class: "custom" }),
  fn(
    "CUresult cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, CUevent event)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out)", { class: "custom" }),
  fn("CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)", { class: "custom" }),
  fn(
    "CUresult cuGraphAddBatchMemOpNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams_out)", {
    class: "custom"
  }),
  fn("CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams)", {
    class: "custom"
  }),
  fn(
    "CUresult cuGraphAddMemAllocNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS* params_out)", {
    class: "custom"
  }),
  fn(
    "CUresult cuGraphAddMemFreeNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, CUdeviceptr dptr)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr* dptr_out)", { class: "custom" }),
  fn("CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type)", { class: "custom" }),
  fn("CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies, size_t* numDependencies)", {
    class: "custom"
  }),
  fn(
    "CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies, CUgraphEdgeData* edgeData, size_t* numDependencies)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes, size_t* numDependentNodes)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes, CUgraphEdgeData* edgeData, size_t* numDependentNodes)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)", {
    class: "custom"
  }),
  fn("CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled)", {
    class: "custom"
  }),
  fn("CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)", { class: "custom" }),
  fn(
    "CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue* value_out)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue* value)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, CUgraphNodeParams* nodeParams)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData, size_t numDependencies, CUgraphNodeParams* nodeParams)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams)", { class: "custom" }),
  fn(
    "CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* pHandle_out, CUgraph hGraph, CUcontext ctx, unsigned int defaultLaunchValue, unsigned int flags)"
  )
])
