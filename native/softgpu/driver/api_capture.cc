// Stream capture.
#include "native/softgpu/driver/capture.h"
#include "native/softgpu/driver/guard.h"
#include "native/softgpu/driver/guard_graph.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUresult begin(CUstream handle, CUstreamCaptureMode mode, DefaultStream meaning) {
    return askStream(handle, meaning,
                     [&](Stream& stream) { return beginCapture(stream, mode, nullptr, {}); });
}

CUresult beginTo(CUstream handle, CUgraph to, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                 size_t count, CUstreamCaptureMode mode, DefaultStream meaning) {
    return askStream(handle, meaning, [&](Stream& stream) {
        return withGraph(to, [&](Graph& graph) -> CUresult {
            std::vector<Edge> dependencies;
            if (const CUresult failed = edgesFrom(graph, nodes, data, count, dependencies)) {
                return failed;
            }
            if (graph.underCapture) return CUDA_ERROR_INVALID_VALUE;
            return beginCapture(stream, mode, graph.shared_from_this(), std::move(dependencies));
        });
    });
}

CUresult end(CUstream handle, CUgraph* graph, DefaultStream meaning) {
    return askStream(handle, meaning, [&](Stream& stream) { return endCapture(stream, graph); });
}

CUresult status(CUstream handle, CUstreamCaptureStatus* out, DefaultStream meaning) {
    return askStream(handle, meaning, [&](Stream& stream) -> CUresult {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        CaptureInfo info;
        if (const CUresult failed = captureInfo(stream, info)) return failed;
        *out = info.status;
        return CUDA_SUCCESS;
    });
}

/// Where the answers go; null for what is not asked.
struct Wanted {
    CUstreamCaptureStatus* status = nullptr;
    unsigned long long* id = nullptr;
    CUgraph* graph = nullptr;
    const CUgraphNode** dependencies = nullptr;
    const CUgraphEdgeData** edges = nullptr;
    size_t* count = nullptr;
};

template <typename T>
void tell(T* out, const T& value) {
    if (out != nullptr) *out = value;
}

/// Of a stream that captures nothing only the status is told; the other outputs stay as they are.
CUresult info(CUstream handle, const Wanted& wanted, DefaultStream meaning) {
    return askStream(handle, meaning, [&](Stream& stream) -> CUresult {
        if (wanted.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (wanted.edges != nullptr && wanted.dependencies == nullptr) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        CaptureInfo info;
        if (const CUresult failed = captureInfo(stream, info)) return failed;
        if (wanted.dependencies != nullptr && wanted.edges == nullptr && info.lossy) {
            return CUDA_ERROR_LOSSY_QUERY;
        }
        *wanted.status = info.status;
        if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
        tell(wanted.id, info.id);
        tell(wanted.graph, info.graph);
        tell(wanted.dependencies, info.dependencies);
        tell(wanted.edges, info.edges);
        tell(wanted.count, info.count);
        return CUDA_SUCCESS;
    });
}

CUresult update(CUstream handle, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                size_t count, unsigned flags, DefaultStream meaning) {
    return askStream(handle, meaning, [&](Stream& stream) -> CUresult {
        const std::lock_guard lock(graphLock());
        if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
        std::vector<Edge> dependencies;
        if (Graph* const graph = capturedGraph(stream)) {
            if (const CUresult failed = edgesFrom(*graph, nodes, data, count, dependencies)) {
                return failed;
            }
        }
        return updateCapture(stream, dependencies, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    });
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream stream) {
    return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, kLegacy);
}
CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
    return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, kPerThread);
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    return begin(stream, mode, kLegacy);
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
    return begin(stream, mode, kPerThread);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData* data, size_t count,
                                     CUstreamCaptureMode mode) {
    return beginTo(stream, graph, nodes, data, count, mode, kLegacy);
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                          const CUgraphEdgeData* data, size_t count,
                                          CUstreamCaptureMode mode) {
    return beginTo(stream, graph, nodes, data, count, mode, kPerThread);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
    return end(stream, graph, kLegacy);
}
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
    return end(stream, graph, kPerThread);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* out) {
    return status(stream, out, kLegacy);
}
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* out) {
    return status(stream, out, kPerThread);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status,
                                unsigned long long* id) {
    return info(stream, {status, id}, kLegacy);
}
CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus* status,
                                     unsigned long long* id) {
    return info(stream, {status, id}, kPerThread);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status,
                                   unsigned long long* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, size_t* count) {
    return info(stream, {status, id, graph, dependencies, nullptr, count}, kLegacy);
}
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status,
                                        unsigned long long* id, CUgraph* graph,
                                        const CUgraphNode** dependencies, size_t* count) {
    return info(stream, {status, id, graph, dependencies, nullptr, count}, kPerThread);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status,
                                   unsigned long long* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, const CUgraphEdgeData** edges,
                                   size_t* count) {
    return info(stream, {status, id, graph, dependencies, edges, count}, kLegacy);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus* status,
                                        unsigned long long* id, CUgraph* graph,
                                        const CUgraphNode** dependencies,
                                        const CUgraphEdgeData** edges, size_t* count) {
    return info(stream, {status, id, graph, dependencies, edges, count}, kPerThread);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, size_t count,
                                           unsigned int flags) {
    return update(stream, nodes, nullptr, count, flags, kLegacy);
}
CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode* nodes, size_t count,
                                                unsigned int flags) {
    return update(stream, nodes, nullptr, count, flags, kPerThread);
}
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                              const CUgraphEdgeData* data, size_t count,
                                              unsigned int flags) {
    return update(stream, nodes, data, count, flags, kLegacy);
}
CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode* nodes,
                                                   const CUgraphEdgeData* data, size_t count,
                                                   unsigned int flags) {
    return update(stream, nodes, data, count, flags, kPerThread);
}

/// A real driver takes any number for a mode.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return withDriver([&] {
        if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::swap(captureMode(), *mode);
        return CUDA_SUCCESS;
    });
}
