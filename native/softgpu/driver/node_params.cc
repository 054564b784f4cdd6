#include "native/softgpu/driver/node_params.h"

#include <cstring>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/event.h"
#include "native/softgpu/driver/guard_graph.h"

namespace juice::softgpu {
namespace {

/// By its function, which knows its context, or by a kernel and a context.
CUresult functionOf(const CUDA_KERNEL_NODE_PARAMS& parameters, std::shared_ptr<Function>& found) {
    if ((found = find<Function>(parameters.func))) return CUDA_SUCCESS;
    const auto handle = parameters.func != nullptr ? parameters.func
                                                   : reinterpret_cast<CUfunction>(parameters.kern);
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto context = contextFor(parameters.func != nullptr ? nullptr : parameters.ctx);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    found = functionIn(*context, handle);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// `make(context, made)` in the context behind the handle.
template <typename T, typename Make>
CUresult within(CUcontext handle, OperationPtr& made, const Make& make) {
    const auto context = contextFor(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    std::shared_ptr<T> operation;
    const CUresult failed = make(*context, operation);
    made = std::move(operation);
    return failed;
}

}  // namespace

CUresult operationFrom(const CUDA_KERNEL_NODE_PARAMS& p, LaunchAttributes attributes,
                       OperationPtr& made) {
    std::shared_ptr<Function> function;
    if (const CUresult failed = functionOf(p, function)) return failed;
    LaunchShape shape{{p.gridDimX, p.gridDimY, p.gridDimZ},
                      {p.blockDimX, p.blockDimY, p.blockDimZ},
                      p.sharedMemBytes,
                      false,
                      {}};
    if (const CUresult failed = applyAttributes(attributes, shape)) return failed;
    std::shared_ptr<KernelOperation> kernel;
    const CUresult failed = KernelOperation::make(std::move(function), shape, std::move(attributes),
                                                  p.kernelParams, p.extra, kernel);
    made = std::move(kernel);
    return failed;
}

CUresult operationFrom(const CUDA_MEMCPY3D& parameters, CUcontext context, OperationPtr& made) {
    return within<CopyOperation>(context, made, [&](Context& of, auto& copy) {
        return CopyOperation::make(of, parameters, copy);
    });
}

CUresult operationFrom(const CUDA_MEMSET_NODE_PARAMS& parameters, CUcontext context,
                       OperationPtr& made) {
    return within<FillOperation>(context, made, [&](Context& of, auto& fill) {
        return FillOperation::make(of, parameters, fill);
    });
}

CUresult operationFrom(const CUDA_HOST_NODE_PARAMS& parameters, OperationPtr& made) {
    if (parameters.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    made = std::make_shared<HostOperation>(parameters);
    return CUDA_SUCCESS;
}

CUresult operationFrom(const CUDA_BATCH_MEM_OP_NODE_PARAMS& p, OperationPtr& made) {
    return within<MemopOperation>(p.ctx, made, [&](Context& of, auto& memops) {
        return MemopOperation::make(of, p.count, p.paramArray, p.flags, memops);
    });
}

CUresult recordOperation(CUevent event, OperationPtr& made) {
    auto found = find<Event>(event);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    made = std::make_shared<EventRecordOperation>(std::move(found));
    return CUDA_SUCCESS;
}

CUresult waitOperation(CUevent event, OperationPtr& made) {
    auto found = find<Event>(event);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    made = std::make_shared<EventWaitOperation>(std::move(found));
    return CUDA_SUCCESS;
}

CUresult operationFrom(const CUgraphNodeParams& p, const Operation* old, OperationPtr& made) {
    const auto contextOf = [&](CUcontext given) {
        const bool kept = given == nullptr && old != nullptr && old->context() != nullptr;
        return kept ? handleOf(*old->context()) : given;
    };
    switch (p.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3));
            CUDA_KERNEL_NODE_PARAMS kernel;
            std::memcpy(&kernel, &p.kernel, sizeof(kernel));
            const auto* before = static_cast<const KernelOperation*>(old);
            return operationFrom(
                kernel, before == nullptr ? LaunchAttributes{} : before->attributes(), made);
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            if (p.memcpy.flags != 0 || p.memcpy.reserved != 0) return CUDA_ERROR_INVALID_VALUE;
            return operationFrom(p.memcpy.copyParams, contextOf(p.memcpy.copyCtx), made);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return operationFrom(
                CUDA_MEMSET_NODE_PARAMS{p.memset.dst, p.memset.pitch, p.memset.value,
                                        p.memset.elementSize, p.memset.width, p.memset.height},
                contextOf(p.memset.ctx), made);
        case CU_GRAPH_NODE_TYPE_HOST:
            return operationFrom(CUDA_HOST_NODE_PARAMS{p.host.fn, p.host.userData}, made);
        case CU_GRAPH_NODE_TYPE_EMPTY:
            made = std::make_shared<EmptyOperation>();
            return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return waitOperation(p.eventWait.event, made);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return recordOperation(p.eventRecord.event, made);
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return operationFrom(
                CUDA_BATCH_MEM_OP_NODE_PARAMS{contextOf(p.memOp.ctx), p.memOp.count,
                                              p.memOp.paramArray, p.memOp.flags},
                made);
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
            return juice_unsupported("a graph node for external semaphores");
        case CU_GRAPH_NODE_TYPE_GRAPH:
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUDA_KERNEL_NODE_PARAMS parametersOf(const KernelOperation& kernel) {
    const LaunchShape& shape = kernel.shape();
    return {kernel.function(),
            shape.grid.x,
            shape.grid.y,
            shape.grid.z,
            shape.block.x,
            shape.block.y,
            shape.block.z,
            static_cast<unsigned>(shape.dynamicShared),
            kernel.parameters(),
            kernel.extra(),
            kernel.libraryKernel(),
            kernel.libraryKernel() == nullptr ? nullptr : handleOf(*kernel.context())};
}

CUDA_KERNEL_NODE_PARAMS widened(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
    return {p.func,      p.gridDimX,       p.gridDimY,     p.gridDimZ, p.blockDimX, p.blockDimY,
            p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra,    nullptr,     nullptr};
}

CUDA_KERNEL_NODE_PARAMS_v1 narrowed(const CUDA_KERNEL_NODE_PARAMS& p) {
    return {p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX,
            p.blockDimY, p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra};
}

}  // namespace juice::softgpu
