// The parameters of graph nodes: packed for the worker, and unpacked into memory of the node's.
#include <cstring>

#include "native/gen/symbols.h"
#include "native/shim/coherence.h"
#include "native/shim/graph_objects.h"
#include "native/shim/host_functions.h"
#include "native/shim/ranges.h"
#include "native/shim/send.h"

namespace juice::shim::graphs {
namespace {

constexpr unsigned kMostOps = 256;

CUresult putContext(CUcontext handle, Writer& out) {
    if (handle == nullptr) {
        out.put(uint64_t{0});
        return CUDA_SUCCESS;
    }
    const Context* const context = find<Context>(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    out.put(context->id);
    return CUDA_SUCCESS;
}

CUresult putKernel(const CUDA_KERNEL_NODE_PARAMS_v3& kernel, Writer& out) {
    const void* const handle = kernel.func != nullptr ? static_cast<const void*>(kernel.func)
                                                      : static_cast<const void*>(kernel.kern);
    const Callable of = findCallable(handle);
    if (of.code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((kernel.kernelParams != nullptr) == (kernel.extra != nullptr) &&
        !of.code->parameters.empty())
        return CUDA_ERROR_INVALID_VALUE;
    const Code& code = *of.code;
    std::vector<uint8_t> buffer(code.parameterBytes);
    if (kernel.extra != nullptr) {
        const void* from = nullptr;
        size_t size = 0;
        for (void** at = kernel.extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
            if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER)
                from = at[1];
            else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
                size = *static_cast<const size_t*>(at[1]);
            else
                return CUDA_ERROR_INVALID_VALUE;
        }
        if (size > buffer.size() || (from == nullptr && size != 0)) return CUDA_ERROR_INVALID_VALUE;
        buffer.resize(size);
        if (size != 0) std::memcpy(buffer.data(), from, size);
    } else {
        for (size_t i = 0; i < code.parameters.size(); ++i) {
            if (kernel.kernelParams == nullptr || kernel.kernelParams[i] == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            std::memcpy(buffer.data() + code.parameters[i].offset, kernel.kernelParams[i],
                        code.parameters[i].size);
        }
    }
    // Memory that the kernel is told of is the same at both ends from now on.
    if (const CUresult result = coherence::see(thread().current(), buffer.data(), buffer.size()))
        return result;
    custom::Launch call{};
    call.function = of.object->id;
    const uint32_t grid[] = {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ};
    const uint32_t block[] = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ};
    std::memcpy(call.grid, grid, sizeof grid);
    std::memcpy(call.block, block, sizeof block);
    call.sharedBytes = kernel.sharedMemBytes;
    call.paramBytes = static_cast<uint32_t>(buffer.size());
    custom::put(out, call);
    out.raw(buffer.data(), buffer.size());
    return CUDA_SUCCESS;
}

/// Host memory of a node must have a mirror, which each launch reads and writes.
CUresult checkSide(CUmemorytype type, const void* host, CUdeviceptr device) {
    if (type == CU_MEMORYTYPE_ARRAY) return juice_unsupported("a graph's copy from or to an array");
    const uint64_t address =
        type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : uint64_t{device};
    if (address == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto range = ranges::find(address);
    if (range && (range->onDevice() || range->mirrored)) return CUDA_SUCCESS;
    if (!range && type == CU_MEMORYTYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    return juice_unsupported("a graph's copy from or to memory that is not pinned");
}

CUresult putCopy(const CUDA_MEMCPY_NODE_PARAMS& params, Writer& out) {
    const CUDA_MEMCPY3D& copy = params.copyParams;
    if (const CUresult result = putContext(params.copyCtx, out)) return result;
    if (const CUresult result = checkSide(copy.srcMemoryType, copy.srcHost, copy.srcDevice))
        return result;
    if (const CUresult result = checkSide(copy.dstMemoryType, copy.dstHost, copy.dstDevice))
        return result;
    out.raw(&copy, sizeof copy);
    return CUDA_SUCCESS;
}

CUresult putFill(const CUDA_MEMSET_NODE_PARAMS_v2& params, Writer& out) {
    if (const CUresult result = putContext(params.ctx, out)) return result;
    const CUDA_MEMSET_NODE_PARAMS fill{params.dst,         params.pitch, params.value,
                                       params.elementSize, params.width, params.height};
    out.raw(&fill, sizeof fill);
    return CUDA_SUCCESS;
}

CUresult putOps(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2& params, Writer& out) {
    if (params.count > kMostOps || (params.count != 0 && params.paramArray == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = putContext(params.ctx, out)) return result;
    out.put(uint32_t{params.flags}).put(uint32_t{params.count});
    out.raw(params.paramArray, params.count * sizeof *params.paramArray);
    return CUDA_SUCCESS;
}

CUresult putAllocation(const CUDA_MEM_ALLOC_NODE_PARAMS_v2& params, Writer& out) {
    constexpr size_t kMostAccess = 64;
    if (params.accessDescCount > kMostAccess ||
        (params.accessDescCount != 0 && params.accessDescs == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEM_ALLOC_NODE_PARAMS_v2 plain = params;
    plain.accessDescs = nullptr;
    plain.dptr = 0;
    const bool onDevice = plain.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (!onDevice || session::device(plain.poolProps.location.id) == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    plain.poolProps.location.id = session::workerOrdinal(plain.poolProps.location.id);
    out.raw(&plain, sizeof plain);
    out.put(uint32_t{0}).put(static_cast<uint32_t>(params.accessDescCount));
    for (size_t i = 0; i < params.accessDescCount; ++i) {
        CUmemAccessDesc access = params.accessDescs[i];
        if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            session::device(access.location.id) == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        access.location.id = session::workerOrdinal(access.location.id);
        out.raw(&access, sizeof access);
    }
    return CUDA_SUCCESS;
}

Object* liveOfId(uint64_t id) {
    return id == 0 ? nullptr : handles::findId(id);
}

bool readKernel(Reader& in, GraphNode& node, CUgraphNodeParams& out) {
    const auto call = custom::get<custom::Launch>(in);
    const Bytes bytes = in.take(call.paramBytes);
    node.buffer.assign(bytes.begin(), bytes.end());
    node.pointers.clear();
    auto& kernel = out.kernel;
    Object* const object = liveOfId(call.function);
    const Code* code = nullptr;
    if (object != nullptr && object->kind == ObjectKind::kernel) {
        code = static_cast<Kernel*>(object)->code;
        kernel.kern = static_cast<CUkernel>(handles::of(*object));
    } else if (object != nullptr && object->kind == ObjectKind::function) {
        code = static_cast<Function*>(object)->code;
        kernel.func = static_cast<CUfunction>(handles::of(*object));
    }
    kernel.gridDimX = call.grid[0];
    kernel.gridDimY = call.grid[1];
    kernel.gridDimZ = call.grid[2];
    kernel.blockDimX = call.block[0];
    kernel.blockDimY = call.block[1];
    kernel.blockDimZ = call.block[2];
    kernel.sharedMemBytes = call.sharedBytes;
    if (code != nullptr)
        for (const Parameter& one : code->parameters)
            if (one.offset + one.size <= node.buffer.size())
                node.pointers.push_back(node.buffer.data() + one.offset);
    kernel.kernelParams = node.pointers.empty() ? nullptr : node.pointers.data();
    return in.ok();
}

bool readOps(Reader& in, GraphNode& node, CUgraphNodeParams& out) {
    Object* const context = liveOfId(in.get<uint64_t>());
    out.memOp.ctx = context == nullptr ? nullptr : static_cast<CUcontext>(handles::of(*context));
    out.memOp.flags = in.get<uint32_t>();
    const auto count = in.get<uint32_t>();
    if (count > kMostOps) return false;
    node.ops.resize(count);
    for (CUstreamBatchMemOpParams& op : node.ops) in.raw(&op, sizeof op);
    out.memOp.count = count;
    out.memOp.paramArray = node.ops.data();
    return in.ok();
}

bool readAllocation(Reader& in, GraphNode& node, CUgraphNodeParams& out) {
    in.raw(&out.alloc, sizeof out.alloc);
    in.get<uint32_t>();
    const auto count = in.get<uint32_t>();
    node.access.clear();
    for (uint32_t i = 0; i < count && in.ok(); ++i) {
        in.raw(&node.access.emplace_back(), sizeof(CUmemAccessDesc));
        node.access.back().location.id = session::programOrdinal(node.access.back().location.id);
    }
    out.alloc.poolProps.location.id = session::programOrdinal(out.alloc.poolProps.location.id);
    out.alloc.accessDescs = node.access.empty() ? nullptr : node.access.data();
    out.alloc.accessDescCount = node.access.size();
    return in.ok();
}

}  // namespace

CUresult putParams(const CUgraphNodeParams& params, Writer& out) {
    out.put(static_cast<uint64_t>(params.type));
    switch (params.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return putKernel(params.kernel, out);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return putCopy(params.memcpy, out);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return putFill(params.memset, out);
        case CU_GRAPH_NODE_TYPE_HOST: {
            if (params.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
            const uint64_t id = host_functions::keep(params.host.fn, params.host.userData);
            out.put(id);
            return id == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        }
        case CU_GRAPH_NODE_TYPE_GRAPH: {
            const Graph* const graph = find<Graph>(params.graph.graph);
            if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
            if (params.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
                return juice_unsupported("a child graph that moves into its node");
            out.put(graph->number);
            return CUDA_SUCCESS;
        }
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
            Event* const event = find<Event>(params.eventRecord.event);
            if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
            if (params.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) event->inGraph = true;
            out.put(event->id);
            return CUDA_SUCCESS;
        }
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return putOps(params.memOp, out);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            return putAllocation(params.alloc, out);
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            out.put(uint64_t{params.free.dptr});
            return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_EMPTY:
            return CUDA_SUCCESS;
        default:
            return juice_unsupported("a graph node for semaphores or conditions");
    }
}

CUresult readParams(Reader& in, GraphNode& node, CUgraphNodeParams& out) {
    out = {};
    out.type = static_cast<CUgraphNodeType>(in.get<uint64_t>());
    bool good = true;
    switch (out.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            good = readKernel(in, node, out);
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            in.get<uint64_t>();
            in.raw(&out.memcpy.copyParams, sizeof out.memcpy.copyParams);
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            in.get<uint64_t>();
            CUDA_MEMSET_NODE_PARAMS fill{};
            in.raw(&fill, sizeof fill);
            std::memcpy(&out.memset, &fill, sizeof fill);
            break;
        }
        case CU_GRAPH_NODE_TYPE_HOST:
            good = host_functions::kept(in.get<uint64_t>(), out.host.fn, out.host.userData);
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH: {
            const Graph* const graph = graphOf(in.get<uint64_t>(), node.number);
            if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
            out.graph.graph = static_cast<CUgraph>(handles::of(*graph));
            break;
        }
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
            Object* const event = liveOfId(in.get<uint64_t>());
            if (event != nullptr) out.eventRecord.event = static_cast<CUevent>(handles::of(*event));
            break;
        }
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            good = readOps(in, node, out);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            good = readAllocation(in, node, out);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            out.free.dptr = in.get<uint64_t>();
            break;
        default:
            break;
    }
    return good && in.done() ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

}  // namespace juice::shim::graphs
