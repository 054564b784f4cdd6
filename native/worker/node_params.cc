#include "native/worker/node_params.h"

#include <algorithm>

namespace juice::worker {
namespace {

constexpr uint64_t kMaxOps = 256, kMaxAccess = 64;

CUcontext contextOf(Incoming& in) {
    const auto id = in.get<uint64_t>();
    if (id != 0) return static_cast<CUcontext>(in.object(ObjectKind::context, id));
    return in.worker().context() == nullptr ? nullptr : in.worker().context()->handle;
}

void readKernel(Incoming& in, NodeParams& out) {
    const auto call = custom::get<custom::Launch>(in.reader());
    if (call.paramBytes > custom::kMaxParamBytes || call.attributes != 0 || call.stream != 0)
        return in.reader().fail();
    const Bytes bytes = in.reader().take(call.paramBytes);
    out.buffer.assign(bytes.begin(), bytes.end());
    out.size = out.buffer.size();
    auto& kernel = out.params.kernel;
    // A kernel goes by either name.
    const Object* const object = in.worker().objects.find(call.function);
    if (object != nullptr && object->kind == ObjectKind::kernel)
        kernel.kern = static_cast<CUkernel>(object->handle);
    else
        kernel.func = in.callable(call.function);
    kernel.gridDimX = call.grid[0];
    kernel.gridDimY = call.grid[1];
    kernel.gridDimZ = call.grid[2];
    kernel.blockDimX = call.block[0];
    kernel.blockDimY = call.block[1];
    kernel.blockDimZ = call.block[2];
    kernel.sharedMemBytes = call.sharedBytes;
    kernel.ctx = in.worker().context() == nullptr ? nullptr : in.worker().context()->handle;
    if (out.size == 0) return;
    out.extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    out.extra[1] = out.buffer.data();
    out.extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    out.extra[3] = &out.size;
    out.extra[4] = CU_LAUNCH_PARAM_END;
    kernel.extra = out.extra;
}

/// The client's memory, host or device; nothing of the worker's own.
bool permitted(Incoming& in, uint64_t address, uint64_t size) {
    return in.worker().mirrors.holding(address, size) != nullptr ||
           in.worker().memory.accessible(address, size);
}

bool permittedSide(Incoming& in, const CUDA_MEMCPY3D& copy, CUmemorytype type, uint64_t base,
                   uint64_t skip, uint64_t pitch, uint64_t height) {
    if (type == CU_MEMORYTYPE_ARRAY) return false;
    uint64_t slice = 0, size = 0;
    const bool fits = !__builtin_mul_overflow(pitch, height, &slice) &&
                      !__builtin_mul_overflow(slice, copy.Depth, &size) && size < 1ull << 47;
    if (!fits || copy.WidthInBytes > 1ull << 47 || copy.Height == 0 || copy.Depth == 0)
        return false;
    size = (copy.Depth - 1) * slice + (copy.Height - 1) * pitch + copy.WidthInBytes;
    return size < 1ull << 47 && permitted(in, base + skip, size);
}

void readCopy(Incoming& in, NodeParams& out) {
    auto& params = out.params.memcpy;
    params.copyCtx = contextOf(in);
    CUDA_MEMCPY3D& copy = params.copyParams;
    in.reader().raw(&copy, sizeof copy);
    const uint64_t from =
        (copy.srcZ * copy.srcHeight + copy.srcY) * copy.srcPitch + copy.srcXInBytes;
    const uint64_t to = (copy.dstZ * copy.dstHeight + copy.dstY) * copy.dstPitch + copy.dstXInBytes;
    const uint64_t source = copy.srcMemoryType == CU_MEMORYTYPE_HOST
                                ? reinterpret_cast<uint64_t>(copy.srcHost)
                                : uint64_t{copy.srcDevice};
    const uint64_t target = copy.dstMemoryType == CU_MEMORYTYPE_HOST
                                ? reinterpret_cast<uint64_t>(copy.dstHost)
                                : uint64_t{copy.dstDevice};
    if (!permittedSide(in, copy, copy.srcMemoryType, source, from, copy.srcPitch, copy.srcHeight) ||
        !permittedSide(in, copy, copy.dstMemoryType, target, to, copy.dstPitch, copy.dstHeight))
        in.fail(CUDA_ERROR_INVALID_VALUE);
}

void readFill(Incoming& in, NodeParams& out) {
    const CUcontext context = contextOf(in);
    CUDA_MEMSET_NODE_PARAMS fill{};
    in.reader().raw(&fill, sizeof fill);
    uint64_t row = 0, rows = 0;
    const bool sane =
        !__builtin_mul_overflow(fill.width, uint64_t{fill.elementSize}, &row) &&
        !__builtin_mul_overflow(fill.height <= 1 ? row : fill.pitch, fill.height, &rows) &&
        permitted(in, fill.dst, fill.height <= 1 ? row : rows - fill.pitch + row);
    if (!sane) in.fail(CUDA_ERROR_INVALID_VALUE);
    out.params.memset = {fill.dst,   fill.pitch,  fill.value, fill.elementSize,
                         fill.width, fill.height, context};
}

void readOps(Incoming& in, NodeParams& out) {
    auto& params = out.params.memOp;
    params.ctx = contextOf(in);
    params.flags = in.get<uint32_t>();
    const auto count = in.get<uint32_t>();
    if (count > kMaxOps) return in.reader().fail();
    out.ops.resize(count);
    for (CUstreamBatchMemOpParams& op : out.ops) {
        in.reader().raw(&op, sizeof op);
        const bool wide = op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                          op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        const bool access = wide || op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                            op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32;
        if (access && !permitted(in, op.waitValue.address, wide ? 8 : 4))
            in.fail(CUDA_ERROR_INVALID_VALUE);
        if (!access && op.operation != CU_STREAM_MEM_OP_BARRIER) in.fail(CUDA_ERROR_INVALID_VALUE);
    }
    params.count = count;
    params.paramArray = out.ops.data();
}

void readAllocation(Incoming& in, NodeParams& out) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    in.reader().raw(&params, sizeof params);
    in.get<uint32_t>();
    const auto count = in.get<uint32_t>();
    if (count > kMaxAccess) return in.reader().fail();
    out.access.resize(count);
    for (CUmemAccessDesc& access : out.access) in.reader().raw(&access, sizeof access);
    params.accessDescs = count == 0 ? nullptr : out.access.data();
    params.accessDescCount = count;
    params.poolProps.win32SecurityAttributes = nullptr;
    params.dptr = 0;
    if (params.poolProps.handleTypes != 0) in.fail(CUDA_ERROR_NOT_SUPPORTED);
    if (!in.worker().memory.fits(params.bytesize)) in.fail(CUDA_ERROR_OUT_OF_MEMORY);
    std::memcpy(&out.params.alloc, &params, sizeof params);
}

uint64_t idOf(Incoming& in, ObjectKind kind, const void* handle) {
    return in.worker().objects.idOf(kind, handle);
}

void putContext(Incoming& in, CUcontext handle) {
    in.out().put(in.worker().contexts.idOf(handle));
}

CUresult putKernel(Incoming& in, CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    const DriverTable& driver = in.driver();
    if (const CUresult result = driver.cuGraphKernelNodeGetParams_v2(node, &kernel)) return result;
    custom::Launch call{};
    call.function = kernel.kern != nullptr ? idOf(in, ObjectKind::kernel, kernel.kern) : 0;
    if (call.function == 0) call.function = idOf(in, ObjectKind::function, kernel.func);
    if (call.function == 0) call.function = idOf(in, ObjectKind::kernel, kernel.func);
    std::vector<uint8_t> buffer;
    if (kernel.kernelParams != nullptr) {
        const auto info = [&](size_t i, size_t& offset, size_t& size) {
            return kernel.func != nullptr
                       ? driver.cuFuncGetParamInfo(kernel.func, i, &offset, &size)
                       : driver.cuKernelGetParamInfo(kernel.kern, i, &offset, &size);
        };
        size_t offset = 0, size = 0;
        for (size_t i = 0; info(i, offset, size) == CUDA_SUCCESS; ++i) {
            if (offset + size > custom::kMaxParamBytes) return CUDA_ERROR_UNKNOWN;
            buffer.resize(std::max(buffer.size(), offset + size));
            std::memcpy(buffer.data() + offset, kernel.kernelParams[i], size);
        }
    } else if (kernel.extra != nullptr) {
        const void* from = nullptr;
        size_t size = 0;
        for (void** at = kernel.extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
            if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) from = at[1];
            if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<size_t*>(at[1]);
        }
        if (size > custom::kMaxParamBytes) return CUDA_ERROR_UNKNOWN;
        const auto* const bytes = static_cast<const uint8_t*>(from);
        if (bytes != nullptr) buffer.assign(bytes, bytes + size);
    }
    const uint32_t grid[] = {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ};
    const uint32_t block[] = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ};
    std::memcpy(call.grid, grid, sizeof grid);
    std::memcpy(call.block, block, sizeof block);
    call.sharedBytes = kernel.sharedMemBytes;
    call.paramBytes = static_cast<uint32_t>(buffer.size());
    custom::put(in.out(), call);
    in.out().raw(buffer.data(), buffer.size());
    return CUDA_SUCCESS;
}

CUresult putOps(Incoming& in, CUgraphNode node) {
    CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
    const CUresult result = in.driver().cuGraphBatchMemOpNodeGetParams(node, &params);
    if (result != CUDA_SUCCESS) return result;
    putContext(in, params.ctx);
    in.out().put(uint32_t{params.flags}).put(uint32_t{params.count});
    in.out().raw(params.paramArray, params.count * sizeof *params.paramArray);
    return CUDA_SUCCESS;
}

CUresult putAllocation(Incoming& in, CUgraphNode node) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    const CUresult result = in.driver().cuGraphMemAllocNodeGetParams(node, &params);
    if (result != CUDA_SUCCESS) return result;
    const auto count = static_cast<uint32_t>(std::min<size_t>(params.accessDescCount, kMaxAccess));
    CUDA_MEM_ALLOC_NODE_PARAMS plain = params;
    plain.accessDescs = nullptr;
    in.out().raw(&plain, sizeof plain);
    in.out().put(uint32_t{0}).put(count);
    in.out().raw(params.accessDescs, count * sizeof *params.accessDescs);
    return CUDA_SUCCESS;
}

}  // namespace

Edges readEdges(Incoming& in, uint64_t count) {
    Edges out;
    if (count > in.reader().remaining() / sizeof(custom::NodeEdge)) {
        in.reader().fail();
        return out;
    }
    for (uint64_t i = 0; i < count; ++i) {
        const auto edge = custom::get<custom::NodeEdge>(in.reader());
        out.nodes.push_back(graphNamed<CUgraphNode>(in, GraphKind::node, edge.node));
        std::memcpy(&out.data.emplace_back(), edge.data, sizeof edge.data);
    }
    return out;
}

void putEdge(Incoming& in, uint64_t graph, CUgraphNode node, const CUgraphEdgeData* data) {
    custom::NodeEdge edge{in.worker().graphs.of(GraphKind::node, node, graph), {}};
    if (data != nullptr) std::memcpy(edge.data, data, sizeof edge.data);
    custom::put(in.out(), edge);
}

std::unique_ptr<NodeParams> readNodeParams(Incoming& in) {
    auto out = std::make_unique<NodeParams>();
    const auto type = static_cast<CUgraphNodeType>(in.get<uint64_t>());
    out->params.type = type;
    switch (type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            readKernel(in, *out);
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            readCopy(in, *out);
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET:
            readFill(in, *out);
            break;
        case CU_GRAPH_NODE_TYPE_HOST:
            out->params.host.fn = graphFunction;
            out->params.host.userData = reinterpret_cast<void*>(in.get<uint64_t>());
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            out->params.graph.graph = graphNamed<CUgraph>(in, GraphKind::graph);
            break;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            out->params.eventRecord.event = static_cast<CUevent>(in.handle(ObjectKind::event));
            break;
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            readOps(in, *out);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            readAllocation(in, *out);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            out->params.free.dptr = in.get<uint64_t>();
            break;
        case CU_GRAPH_NODE_TYPE_EMPTY:
            break;
        default:
            in.fail(CUDA_ERROR_NOT_SUPPORTED);
    }
    return out;
}

CUresult putNodeParams(Incoming& in, CUgraphNode node) {
    const DriverTable& driver = in.driver();
    CUgraphNodeType type{};
    CUresult result = driver.cuGraphNodeGetType(node, &type);
    if (result != CUDA_SUCCESS) return result;
    in.out().put(static_cast<uint64_t>(type));
    switch (type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return putKernel(in, node);
        case CU_GRAPH_NODE_TYPE_MEMCPY: {
            CUDA_MEMCPY3D copy{};
            result = driver.cuGraphMemcpyNodeGetParams(node, &copy);
            in.out().put(uint64_t{0}).raw(&copy, sizeof copy);
            return result;
        }
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS fill{};
            result = driver.cuGraphMemsetNodeGetParams(node, &fill);
            in.out().put(uint64_t{0}).raw(&fill, sizeof fill);
            return result;
        }
        case CU_GRAPH_NODE_TYPE_HOST: {
            CUDA_HOST_NODE_PARAMS host{};
            result = driver.cuGraphHostNodeGetParams(node, &host);
            in.out().address(host.userData);
            return result;
        }
        case CU_GRAPH_NODE_TYPE_GRAPH: {
            CUgraph child = nullptr;
            result = driver.cuGraphChildGraphNodeGetGraph(node, &child);
            if (result == CUDA_SUCCESS)
                in.out().put(in.worker().graphs.of(
                    GraphKind::graph, child, in.worker().graphs.of(GraphKind::node, node, 0)));
            return result;
        }
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
            CUevent event = nullptr;
            result = type == CU_GRAPH_NODE_TYPE_WAIT_EVENT
                         ? driver.cuGraphEventWaitNodeGetEvent(node, &event)
                         : driver.cuGraphEventRecordNodeGetEvent(node, &event);
            in.out().put(idOf(in, ObjectKind::event, event));
            return result;
        }
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return putOps(in, node);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            return putAllocation(in, node);
        case CU_GRAPH_NODE_TYPE_MEM_FREE: {
            CUdeviceptr address = 0;
            result = driver.cuGraphMemFreeNodeGetParams(node, &address);
            in.out().put(uint64_t{address});
            return result;
        }
        case CU_GRAPH_NODE_TYPE_EMPTY:
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

}  // namespace juice::worker
