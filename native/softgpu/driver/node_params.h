// Operations from the parameters of graph nodes, and back.
#pragma once

#include "native/softgpu/driver/conditional.h"
#include "native/softgpu/driver/copy.h"
#include "native/softgpu/driver/graph.h"
#include "native/softgpu/driver/launch.h"
#include "native/softgpu/driver/memop.h"

namespace juice::softgpu {

// Each checks what a call with these parameters would check, and answers as it would.

/// `attributes`: those that the node has besides.
CUresult operationFrom(const CUDA_KERNEL_NODE_PARAMS& parameters, LaunchAttributes attributes,
                       OperationPtr& made);
CUresult operationFrom(const CUDA_MEMCPY3D& parameters, CUcontext context, OperationPtr& made);
CUresult operationFrom(const CUDA_MEMSET_NODE_PARAMS& parameters, CUcontext context,
                       OperationPtr& made);
CUresult operationFrom(const CUDA_HOST_NODE_PARAMS& parameters, OperationPtr& made);
CUresult operationFrom(const CUDA_BATCH_MEM_OP_NODE_PARAMS& parameters, OperationPtr& made);
CUresult recordOperation(CUevent event, OperationPtr& made);
CUresult waitOperation(CUevent event, OperationPtr& made);

/// From the parameters of the generic calls, for every type of node that holds no graph and no
/// memory. `old`: what the node did before, or null for a new one.
CUresult operationFrom(const CUgraphNodeParams& parameters, const Operation* old,
                       OperationPtr& made);

CUDA_KERNEL_NODE_PARAMS parametersOf(const KernelOperation& kernel);

/// The first version of the parameters of kernel nodes lacks the last two fields.
CUDA_KERNEL_NODE_PARAMS widened(const CUDA_KERNEL_NODE_PARAMS_v1& parameters);
CUDA_KERNEL_NODE_PARAMS_v1 narrowed(const CUDA_KERNEL_NODE_PARAMS& parameters);

}  // namespace juice::softgpu
