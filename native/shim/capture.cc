#include "native/shim/capture.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "native/gen/cuda_api.h"
#include "native/shim/graph_objects.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace capture {
namespace {

struct Capture {
    uint32_t thread = 0;  // that began it
    CUstreamCaptureMode mode{};
    uint64_t origin = 0;  // the stream that it was begun on, as it travels
};

struct State {
    std::mutex mutex;
    std::map<uint64_t, Capture> live;  // by id
    std::atomic<size_t> count{0};
    std::atomic<bool> doubtful{false};

    /// Under the lock.
    void counted() {
        count.store(live.size(), std::memory_order_release);
        if (live.empty()) doubtful.store(false);
    }
};
State& state() {
    static auto& one = *new State;
    return one;
}

/// The thread's own default stream is no object; its captures are kept with the thread.
uint64_t noted(uint64_t wire, const Stream* stream) {
    if (stream != nullptr) return stream->capture.load();
    return wire == kWirePerThread ? thread().capture : 0;
}

}  // namespace

bool any() {
    return state().count.load(std::memory_order_acquire) != 0;
}

bool lives(uint64_t id) {
    if (id == 0 || !any()) return false;
    const std::lock_guard lock(state().mutex);
    return state().live.contains(id);
}

uint64_t of(uint64_t wire, const Stream* stream) {
    if (!any()) return 0;
    const uint64_t id = noted(wire, stream);
    return lives(id) ? id : 0;
}

uint64_t of(uint64_t wire) {
    if (!any()) return 0;
    return of(wire, wire < kWireFirstStream ? nullptr : streamOfWire(wire));
}

void doubt() {
    if (any()) state().doubtful.store(true);
}

bool doubtful() {
    return state().doubtful.load(std::memory_order_relaxed);
}

void join(Stream* stream, uint64_t wire, uint64_t id) {
    if (!lives(id)) return;
    if (stream != nullptr)
        stream->capture.store(id);
    else if (wire == kWirePerThread)
        thread().capture = id;
}

namespace {

struct Asked {
    uint64_t wire = 0;
    Stream* stream = nullptr;
    Context* context = nullptr;
};

CUresult streamOf(CUstream handle, bool perThread, Asked& asked) {
    if (const CUresult result = session::initialised()) return result;
    if (const CUresult result = wireStream(handle, perThread, asked.wire, &asked.stream))
        return result;
    if (asked.stream == nullptr) return enter(asked.context);
    asked.context = asked.stream->context;
    return session::sticky();
}

CUresult begin(CUstream handle, bool perThread, const custom::CaptureBegin& to,
               const std::vector<custom::NodeEdge>& edges) {
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    custom::CaptureBegin call = to;
    call.stream = asked.wire;
    call.dependencies = static_cast<uint32_t>(edges.size());
    Writer payload;
    custom::put(payload, call);
    for (const custom::NodeEdge& edge : edges) custom::put(payload, edge);
    Reply reply;
    // Before the first call that is to be captured; what was posted before it is not.
    const CUresult result = shim::call(Op::cuStreamBeginCapture_v2, asked.context, payload.view(),
                                       reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    const auto id = in.get<uint64_t>();
    if (!in.done()) return CUDA_ERROR_UNKNOWN;
    {
        const std::lock_guard lock(state().mutex);
        state().live[id] = {thread().number, static_cast<CUstreamCaptureMode>(call.mode),
                            asked.wire};
        state().counted();
    }
    join(asked.stream, asked.wire, id);
    return CUDA_SUCCESS;
}

CUresult beginToGraph(CUstream handle, bool perThread, CUgraph graph, const CUgraphNode* nodes,
                      const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode) {
    if (const CUresult result = session::initialised()) return result;
    custom::CaptureBegin call{0, 0, static_cast<uint32_t>(mode), 0};
    std::vector<custom::NodeEdge> edges;
    const Graph* const found = find<Graph>(graph);
    if (found == nullptr || !graphs::edgesFrom(nodes, data, count, edges))
        return CUDA_ERROR_INVALID_VALUE;
    call.graph = found->number;
    return begin(handle, perThread, call, edges);
}

CUresult end(CUstream handle, bool perThread, CUgraph* out) {
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t id = of(asked.wire, asked.stream);
    if (id != 0) {
        const std::lock_guard lock(state().mutex);
        const Capture& capture = state().live[id];
        if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.origin == asked.wire &&
            capture.thread != thread().number)
            return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    Reply reply;
    const CUresult result = shim::call(Op::cuStreamEndCapture, asked.context,
                                       bytesOfCall(asked.wire), reply, Deferred::keep);
    if (id != 0 && result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD &&
        result != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) {
        const std::lock_guard lock(state().mutex);
        state().live.erase(id);
        state().counted();
    }
    *out = nullptr;
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    const auto number = in.get<uint64_t>();
    // A call that was to be captured and failed: the graph is not what the program thinks.
    if (const CUresult failed = std::exchange(thread().deferred, CUDA_SUCCESS)) {
        Reply ignored;
        shim::call(Op::cuGraphDestroy, asked.context, bytesOfCall(number), ignored, Deferred::keep);
        return failed;
    }
    Graph* const graph = graphs::graphOf(number, 0);
    if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = static_cast<CUgraph>(handles::of(*graph));
    return CUDA_SUCCESS;
}

/// What the worker's driver says of the stream.
CUresult ask(const Asked& asked, custom::CaptureInfo& info, std::vector<custom::NodeEdge>& edges) {
    Reply reply;
    const CUresult result = shim::call(Op::cuStreamGetCaptureInfo_v3, asked.context,
                                       bytesOfCall(asked.wire), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    info = custom::get<custom::CaptureInfo>(in);
    for (uint32_t i = 0; i < info.dependencies && in.ok(); ++i)
        edges.push_back(custom::get<custom::NodeEdge>(in));
    return in.done() ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

/// Where answers go; null for what is not asked.
struct Wanted {
    CUstreamCaptureStatus* status = nullptr;
    unsigned long long* id = nullptr;
    CUgraph* graph = nullptr;
    const CUgraphNode** nodes = nullptr;
    const CUgraphEdgeData** data = nullptr;
    size_t* count = nullptr;
};

CUresult info(CUstream handle, bool perThread, const Wanted& wanted) {
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    if (wanted.status == nullptr || (wanted.data != nullptr && wanted.nodes == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t id = of(asked.wire, asked.stream);
    // The legacy stream may be forbidden by captures of others.
    const bool known = !doubtful() && (asked.wire != kWireLegacy || !any());
    if (id == 0 && known) {
        *wanted.status = CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    }
    const bool deep = wanted.graph != nullptr || wanted.nodes != nullptr || wanted.count != nullptr;
    if (known && !deep) {
        *wanted.status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        if (wanted.id != nullptr) *wanted.id = id;
        return CUDA_SUCCESS;
    }
    custom::CaptureInfo told{};
    std::vector<custom::NodeEdge> edges;
    if (const CUresult result = ask(asked, told, edges)) return result;
    *wanted.status = static_cast<CUstreamCaptureStatus>(told.status);
    if (told.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (wanted.id != nullptr) *wanted.id = told.id;
    if (wanted.graph != nullptr) {
        Graph* const graph = graphs::graphOf(told.graph, 0);
        if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        *wanted.graph = static_cast<CUgraph>(handles::of(*graph));
    }
    // Valid until the thread asks again.
    std::vector<CUgraphNode>& nodes = thread().capturedNodes;
    std::vector<CUgraphEdgeData>& data = thread().capturedEdges;
    if (!graphs::handlesOf(edges, told.graph, nodes, data)) return CUDA_ERROR_OUT_OF_MEMORY;
    const bool lossy = std::any_of(edges.begin(), edges.end(), graphs::hasData);
    if (wanted.nodes != nullptr && wanted.data == nullptr && lossy) return CUDA_ERROR_LOSSY_QUERY;
    if (wanted.nodes != nullptr) *wanted.nodes = nodes.data();
    if (wanted.data != nullptr) *wanted.data = data.data();
    if (wanted.count != nullptr) *wanted.count = nodes.size();
    return CUDA_SUCCESS;
}

CUresult update(CUstream handle, bool perThread, const CUgraphNode* nodes,
                const CUgraphEdgeData* data, size_t count, unsigned flags) {
    Asked asked;
    if (const CUresult result = streamOf(handle, perThread, asked)) return result;
    std::vector<custom::NodeEdge> edges;
    if (!graphs::edgesFrom(nodes, data, count, edges)) return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    custom::put(payload,
                custom::CaptureUpdate{asked.wire, flags, static_cast<uint32_t>(edges.size())});
    for (const custom::NodeEdge& edge : edges) custom::put(payload, edge);
    Reply reply;
    return shim::call(Op::cuStreamUpdateCaptureDependencies_v2, asked.context, payload.view(),
                      reply);
}

}  // namespace
}  // namespace capture
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;
namespace custom = juice::custom;
using juice::Op;

// Each entry twice: with the legacy default stream, and with the thread's own.
#define JUICE_CAPTURE(suffix, perThread)                                                           \
    CUresult cuStreamBeginCapture##suffix(CUstream hStream) {                                      \
        return capture::begin(hStream, perThread, {}, {});                                         \
    }                                                                                              \
    CUresult cuStreamBeginCapture_v2##suffix(CUstream hStream, CUstreamCaptureMode mode) {         \
        return capture::begin(hStream, perThread, {0, 0, static_cast<uint32_t>(mode), 0}, {});     \
    }                                                                                              \
    CUresult cuStreamBeginCaptureToGraph##suffix(                                                  \
        CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,                         \
        const CUgraphEdgeData* dependencyData, size_t numDependencies, CUstreamCaptureMode mode) { \
        return capture::beginToGraph(hStream, perThread, hGraph, dependencies, dependencyData,     \
                                     numDependencies, mode);                                       \
    }                                                                                              \
    CUresult cuStreamEndCapture##suffix(CUstream hStream, CUgraph* phGraph) {                      \
        return capture::end(hStream, perThread, phGraph);                                          \
    }                                                                                              \
    CUresult cuStreamIsCapturing##suffix(CUstream hStream, CUstreamCaptureStatus* status) {        \
        return capture::info(hStream, perThread, {status});                                        \
    }                                                                                              \
    CUresult cuStreamGetCaptureInfo##suffix(CUstream hStream, CUstreamCaptureStatus* status,       \
                                            unsigned long long* id_out) {                          \
        return capture::info(hStream, perThread, {status, id_out});                                \
    }                                                                                              \
    CUresult cuStreamGetCaptureInfo_v2##suffix(                                                    \
        CUstream hStream, CUstreamCaptureStatus* status, unsigned long long* id_out,               \
        CUgraph* graph_out, const CUgraphNode** dependencies_out, size_t* numDependencies_out) {   \
        return capture::info(                                                                      \
            hStream, perThread,                                                                    \
            {status, id_out, graph_out, dependencies_out, nullptr, numDependencies_out});          \
    }                                                                                              \
    CUresult cuStreamGetCaptureInfo_v3##suffix(                                                    \
        CUstream hStream, CUstreamCaptureStatus* status, unsigned long long* id_out,               \
        CUgraph* graph_out, const CUgraphNode** dependencies_out,                                  \
        const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out) {                       \
        return capture::info(                                                                      \
            hStream, perThread,                                                                    \
            {status, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out});     \
    }                                                                                              \
    CUresult cuStreamUpdateCaptureDependencies##suffix(CUstream hStream, CUgraphNode* nodes,       \
                                                       size_t count, unsigned int flags) {         \
        return capture::update(hStream, perThread, nodes, nullptr, count, flags);                  \
    }                                                                                              \
    CUresult cuStreamUpdateCaptureDependencies_v2##suffix(CUstream hStream, CUgraphNode* nodes,    \
                                                          const CUgraphEdgeData* data,             \
                                                          size_t count, unsigned int flags) {      \
        return capture::update(hStream, perThread, nodes, data, count, flags);                     \
    }

JUICE_CAPTURE(, false)
JUICE_CAPTURE(_ptsz, true)

/// A thread that has never told the worker is in the global mode there as well.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    if (const CUresult result = session::initialised()) return result;
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const int before = thread().captureMode;
    const auto now = static_cast<int>(*mode);
    *mode = static_cast<CUstreamCaptureMode>(before);
    thread().captureMode = now;
    if (now == before || session::link() == nullptr) return CUDA_SUCCESS;
    // No answer is needed, whatever captures.
    session::link()->post(static_cast<uint16_t>(Op::juiceCaptureMode), thread().number, 0,
                          bytesOfCall(custom::CaptureMode{static_cast<uint64_t>(now)}));
    return CUDA_SUCCESS;
}
