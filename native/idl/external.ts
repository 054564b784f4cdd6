import { area, fn } from "./schema.ts"

export const externalArea = area("external", "Memory and semaphores of other processes and other interfaces.", [
  fn("CUresult cuIpcGetEventHandle(CUipcEventHandle* pHandle, CUevent event)", { class: "custom", mayBlock: true }),
  fn("CUresult cuIpcOpenEventHandle(CUevent* phEvent, CUipcEventHandle handle)", { class: "custom", mayBlock: true }),
  fn("CUresult cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr)", { class: "custom", mayBlock: true }),
  fn("CUresult cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags)", {
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags)", {
    class: "custom",
    mayBlock: true
  }),
  fn("CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)", { class: "custom", mayBlock: true }),
  fn(
    "CUresult cuImportExternalMemory(CUexternalMemory* extMem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* memHandleDesc)"
  ),
  fn(
    "CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* devPtr, CUexternalMemory extMem, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* bufferDesc)"
  ),
  fn(
    "CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray* mipmap, CUexternalMemory extMem, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* mipmapDesc)"
  ),
  fn("CUresult cuDestroyExternalMemory(CUexternalMemory extMem)"),
  fn(
    "CUresult cuImportExternalSemaphore(CUexternalSemaphore* extSem_out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* semHandleDesc)"
  ),
  fn(
    "CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore* extSemArray, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* paramsArray, unsigned int numExtSems, CUstream stream)",
    { perThread: "ptsz" }
  ),
  fn(
    "CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore* extSemArray, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* paramsArray, unsigned int numExtSems, CUstream stream)",
    { perThread: "ptsz" }
  ),
  fn("CUresult cuDestroyExternalSemaphore(CUexternalSemaphore extSem)"),
  fn(
    "CUresult cuGraphAddExternalSemaphoresSignalNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* nodeParams)"
  ),
  fn(
    "CUresult cuGraphExternalSemaphoresSignalNodeGetParams(CUgraphNode hNode, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* params_out)"
  ),
  fn(
    "CUresult cuGraphExternalSemaphoresSignalNodeSetParams(CUgraphNode hNode, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* nodeParams)"
  ),
  fn(
    "CUresult cuGraphAddExternalSemaphoresWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, const CUDA_EXT_SEM_WAIT_NODE_PARAMS* nodeParams)"
  ),
  fn(
    "CUresult cuGraphExternalSemaphoresWaitNodeGetParams(CUgraphNode hNode, CUDA_EXT_SEM_WAIT_NODE_PARAMS* params_out)"
  ),
  fn(
    "CUresult cuGraphExternalSemaphoresWaitNodeSetParams(CUgraphNode hNode, const CUDA_EXT_SEM_WAIT_NODE_PARAMS* nodeParams)"
  ),
  fn(
    "CUresult cuGraphExecExternalSemaphoresSignalNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* nodeParams)"
  ),
  fn(
    "CUresult cuGraphExecExternalSemaphoresWaitNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_EXT_SEM_WAIT_NODE_PARAMS* nodeParams)"
  )
])
