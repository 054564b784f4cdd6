#pragma once

/* The types of the CUDA driver ABI (13.0, x86-64 Linux), declared by ourselves so that nothing here
   needs NVIDIA's headers: opaque handles, integer enumerations, and structures by their layout.
   Usable from C11 and C++20. The prototypes that use them are generated into native/gen/cuda_api.h
   from native/idl. Where the toolkit is installed, native/abi/test holds all of it against cuda.h.
 */

#include <assert.h>

#include "native/abi/cuda_device_enums.h"
#include "native/abi/cuda_execution_enums.h"
#include "native/abi/cuda_execution_structs.h"
#include "native/abi/cuda_handles.h"
#include "native/abi/cuda_interop_enums.h"
#include "native/abi/cuda_interop_structs.h"
#include "native/abi/cuda_memory_enums.h"
#include "native/abi/cuda_memory_structs.h"
#include "native/abi/cuda_result.h"

/* Sizes and alignments as measured with the toolkit's compiler: a wrong field shows here first. */
#ifdef __cplusplus
#define JUICE_ALIGNOF alignof
#else
#define JUICE_ALIGNOF _Alignof
#endif
#define JUICE_LAYOUT(type, size, align) \
    static_assert(sizeof(type) == (size) && JUICE_ALIGNOF(type) == (align), #type)

JUICE_LAYOUT(CUlaunchConfig, 56, 8);
JUICE_LAYOUT(CUlaunchAttribute, 72, 8);
JUICE_LAYOUT(CUlaunchAttributeValue, 64, 8);
JUICE_LAYOUT(CUmemAllocationProp, 32, 8);
JUICE_LAYOUT(CUmemAccessDesc, 12, 4);
JUICE_LAYOUT(CUmemLocation, 8, 4);
JUICE_LAYOUT(CUDA_MEMCPY2D, 128, 8);
JUICE_LAYOUT(CUDA_MEMCPY3D, 200, 8);
JUICE_LAYOUT(CUDA_MEMCPY3D_PEER, 200, 8);
JUICE_LAYOUT(CUDA_KERNEL_NODE_PARAMS, 72, 8);
JUICE_LAYOUT(CUDA_MEMSET_NODE_PARAMS, 40, 8);
JUICE_LAYOUT(CUDA_HOST_NODE_PARAMS, 16, 8);
JUICE_LAYOUT(CUgraphNodeParams, 256, 8);
JUICE_LAYOUT(CUgraphEdgeData, 8, 1);
JUICE_LAYOUT(CUmemPoolProps, 88, 8);
JUICE_LAYOUT(CUmemPoolPtrExportData, 64, 1);
JUICE_LAYOUT(CUuuid, 16, 1);
JUICE_LAYOUT(CUipcMemHandle, 64, 1);
JUICE_LAYOUT(CUipcEventHandle, 64, 1);
JUICE_LAYOUT(CUtensorMap, 128, 128);
JUICE_LAYOUT(CUDA_RESOURCE_DESC, 144, 8);
JUICE_LAYOUT(CUDA_TEXTURE_DESC, 104, 4);
JUICE_LAYOUT(CUDA_RESOURCE_VIEW_DESC, 112, 8);
JUICE_LAYOUT(CUDA_ARRAY_DESCRIPTOR, 24, 8);
JUICE_LAYOUT(CUDA_ARRAY3D_DESCRIPTOR, 40, 8);
JUICE_LAYOUT(CUstreamBatchMemOpParams, 48, 8);
JUICE_LAYOUT(CUmulticastObjectProp, 32, 8);
JUICE_LAYOUT(CUdevResource, 144, 4);
JUICE_LAYOUT(CUexecAffinityParam, 8, 4);
JUICE_LAYOUT(CUctxCreateParams, 24, 8);
JUICE_LAYOUT(CUmemcpyAttributes, 24, 4);
JUICE_LAYOUT(CUDA_MEMCPY3D_BATCH_OP, 112, 8);
JUICE_LAYOUT(CUaccessPolicyWindow, 32, 8);
JUICE_LAYOUT(CUlibraryHostUniversalFunctionAndDataTable, 32, 8);
JUICE_LAYOUT(CUDA_GRAPH_INSTANTIATE_PARAMS, 32, 8);
JUICE_LAYOUT(CUgraphExecUpdateResultInfo, 24, 8);

#undef JUICE_LAYOUT
#undef JUICE_ALIGNOF
