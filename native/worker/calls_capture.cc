// Stream capture.
#include "native/gen/custom_handlers.h"
#include "native/worker/node_params.h"
#include "native/worker/worker.h"

namespace juice::worker {

CUresult custom_juiceCaptureMode(Incoming& in) {
    const auto call = custom::get<custom::CaptureMode>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    in.worker().captures.setMode(in.header().thread, static_cast<CUstreamCaptureMode>(call.mode));
    return CUDA_SUCCESS;
}

CUresult custom_cuStreamBeginCapture_v2(Incoming& in) {
    const auto call = custom::get<custom::CaptureBegin>(in.reader());
    const Edges edges = readEdges(in, call.dependencies);
    const CUstream stream = in.stream(call.stream);
    const CUgraph graph =
        call.graph == 0 ? nullptr : graphNamed<CUgraph>(in, GraphKind::graph, call.graph);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    const DriverTable& driver = in.driver();
    const auto mode = static_cast<CUstreamCaptureMode>(call.mode);
    if (driver.cuStreamBeginCapture_v2 == nullptr || driver.cuStreamGetCaptureInfo_v2 == nullptr)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = CUDA_SUCCESS;
    if (call.graph == 0) {
        result = driver.cuStreamBeginCapture_v2(stream, mode);
    } else {
        if (driver.cuStreamBeginCaptureToGraph == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
        result = driver.cuStreamBeginCaptureToGraph(stream, graph, edges.nodes.data(),
                                                    edges.data.data(), edges.nodes.size(), mode);
    }
    if (result != CUDA_SUCCESS) return result;
    worker.captures.began(stream, in.header().context, in.header().thread, mode);
    CUstreamCaptureStatus status{};
    unsigned long long id = 0;
    result = driver.cuStreamGetCaptureInfo_v2(stream, &status, &id, nullptr, nullptr, nullptr);
    in.out().put(uint64_t{id});
    return result;
}

CUresult custom_cuStreamEndCapture(Incoming& in) {
    const CUstream stream = in.stream();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuStreamEndCapture == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    CUgraph graph = nullptr;
    const CUresult result = in.driver().cuStreamEndCapture(stream, &graph);
    in.worker().captures.look(stream);
    if (result != CUDA_SUCCESS) return result;
    in.out().put(in.worker().graphs.of(GraphKind::graph, graph, 0));
    return CUDA_SUCCESS;
}

CUresult custom_cuStreamGetCaptureInfo_v3(Incoming& in) {
    const CUstream stream = in.stream();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    const DriverTable& driver = in.driver();
    if (driver.cuStreamGetCaptureInfo_v3 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    CUstreamCaptureStatus status{};
    unsigned long long id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* data = nullptr;
    size_t count = 0;
    const CUresult result =
        driver.cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, &nodes, &data, &count);
    if (result != CUDA_SUCCESS) return result;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) count = 0;
    const uint64_t number =
        count == 0 && graph == nullptr ? 0 : worker.graphs.of(GraphKind::graph, graph, 0);
    custom::put(in.out(), custom::CaptureInfo{id, number, static_cast<uint32_t>(status),
                                              static_cast<uint32_t>(count)});
    for (size_t i = 0; i < count; ++i)
        putEdge(in, number, nodes[i], data == nullptr ? nullptr : data + i);
    return CUDA_SUCCESS;
}

CUresult custom_cuStreamUpdateCaptureDependencies_v2(Incoming& in) {
    const auto call = custom::get<custom::CaptureUpdate>(in.reader());
    Edges edges = readEdges(in, call.dependencies);
    const CUstream stream = in.stream(call.stream);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuStreamUpdateCaptureDependencies_v2 == nullptr)
        return CUDA_ERROR_NOT_SUPPORTED;
    return in.driver().cuStreamUpdateCaptureDependencies_v2(
        stream, edges.nodes.data(), edges.data.data(), edges.nodes.size(), call.flags);
}

}  // namespace juice::worker
