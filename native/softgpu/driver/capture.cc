#include "native/softgpu/driver/capture.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/event.h"
#include "native/softgpu/driver/launch.h"
#include "native/softgpu/driver/node_add.h"
#include "native/softgpu/driver/registry.h"

namespace juice::softgpu {

/// One capture sequence: from the begin on its origin to the end there.
class Capture {
  public:
    /// What the next node of a stream depends on; the arrays are what was last told of it.
    struct Member {
        std::vector<Edge> dependencies;
        std::vector<CUgraphNode> nodes;
        std::vector<CUgraphEdgeData> edges;
    };

    uint64_t id = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id thread;
    Stream* origin = nullptr;
    std::shared_ptr<Graph> graph;
    bool given = false;  // the graph is the program's own
    bool valid = true;
    bool ended = false;
    std::map<Stream*, Member> members;
    std::vector<Edge> left;  // where streams stood that were destroyed meanwhile

    bool touches(const Context& context) const {
        return std::any_of(members.begin(), members.end(), [&](const auto& member) {
            return &member.first->context() == &context;
        });
    }
    bool blocks(const Context& context) const {
        return std::any_of(members.begin(), members.end(), [&](const auto& member) {
            const Stream& stream = *member.first;
            return &stream.context() == &context && stream.kind() == StreamKind::blocking;
        });
    }
};

namespace {

/// The captures under way, and the streams in them. Under graphLock().
struct Captures {
    std::map<const Stream*, std::shared_ptr<Capture>> byStream;
    std::set<std::shared_ptr<Capture>> all;
    std::atomic<size_t> count{0};  // of all; read without the lock

    void join(const std::shared_ptr<Capture>& capture, Stream& stream,
              std::vector<Edge> dependencies) {
        byStream[&stream] = capture;
        capture->members[&stream].dependencies = std::move(dependencies);
    }
    /// The capture lets its graph go: events that were recorded in it may remember it for long.
    std::shared_ptr<Graph> end(const std::shared_ptr<Capture>& capture) {
        for (const auto& member : capture->members) byStream.erase(member.first);
        capture->members.clear();
        capture->ended = true;
        capture->graph->underCapture = false;
        all.erase(capture);
        count = all.size();
        return std::move(capture->graph);
    }
    /// Nobody can end it as it should be.
    void abandon(const std::shared_ptr<Capture>& capture) {
        capture->valid = false;
        const auto graph = end(capture);
        if (!capture->given) graph->retire();
    }
};

Captures& captures() {
    static auto* const all = new Captures;
    return *all;
}

std::shared_ptr<Capture> captureOf(const Stream& stream) {
    const auto found = captures().byStream.find(&stream);
    return found == captures().byStream.end() ? nullptr : found->second;
}

/// Invalidates the captures that `concerned(capture)` is true of; true when there was one.
template <typename Concerned>
bool invalidateIf(const Concerned& concerned) {
    bool any = false;
    for (const auto& capture : captures().all) {
        if (!concerned(*capture)) continue;
        capture->valid = false;
        any = true;
    }
    return any;
}

void addDependencies(std::vector<Edge>& to, const std::vector<Edge>& more) {
    for (const Edge& edge : more) {
        const auto same = [&](const Edge& e) { return e.node == edge.node; };
        if (std::none_of(to.begin(), to.end(), same)) to.push_back(edge);
    }
}

/// Of the nodes that an event stands for, those that are still in the graph.
std::vector<Edge> present(const CapturedPlace& place) {
    std::vector<Edge> edges;
    for (const Edge& edge : place.dependencies) {
        const auto node = Registry<Node>::instance().find(edge.node);
        if (node && &node->graph == place.capture->graph.get()) edges.push_back(edge);
    }
    return edges;
}

/// May a kernel begin before the kernels that it depends on have ended?
bool startsEarly(const Operation& operation) {
    if (operation.type() != CU_GRAPH_NODE_TYPE_KERNEL) return false;
    const auto& attributes = static_cast<const KernelOperation&>(operation).attributes();
    const auto found = attributes.find(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    return found != attributes.end() && found->second.programmaticStreamSerializationAllowed != 0;
}

/// CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
constexpr unsigned char kProgrammaticPort = 1;

CUresult append(Capture& capture, Capture::Member& member, OperationPtr operation) {
    if (!capture.valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (startsEarly(*operation)) {
        for (Edge& edge : member.dependencies) {
            if (edge.node->type() != CU_GRAPH_NODE_TYPE_KERNEL || !isDefault(edge.data)) continue;
            edge.data.from_port = kProgrammaticPort;
            edge.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        }
    }
    Node& node = capture.graph->add(std::move(operation), member.dependencies);
    member.dependencies = {{&node, {}}};
    return CUDA_SUCCESS;
}

/// Is every node that a stream of the capture stands at the origin's, or before it?
bool joined(const Capture& capture) {
    std::set<const Node*> reached;
    std::vector<const Node*> next;
    const auto reach = [&](const std::vector<Edge>& edges) {
        for (const Edge& edge : edges) {
            if (reached.insert(edge.node).second) next.push_back(edge.node);
        }
    };
    reach(capture.members.at(capture.origin).dependencies);
    while (!next.empty()) {
        const Node* const node = next.back();
        next.pop_back();
        reach(node->dependencies);
    }
    const auto all = [&](const std::vector<Edge>& edges) {
        return std::all_of(edges.begin(), edges.end(),
                           [&](const Edge& edge) { return reached.contains(edge.node); });
    };
    return all(capture.left) &&
           std::all_of(capture.members.begin(), capture.members.end(),
                       [&](const auto& m) { return all(m.second.dependencies); });
}

CUresult waitInCapture(Stream& stream, const CapturedPlace& place) {
    const auto own = captureOf(stream);
    const auto& other = place.capture;
    if (other->ended) {
        if (own) own->valid = false;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!other->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream.kind() == StreamKind::legacy) {
        other->valid = false;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!own) {
        captures().join(other, stream, present(place));
        return CUDA_SUCCESS;
    }
    if (own != other) {
        own->valid = other->valid = false;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    addDependencies(own->members.at(&stream).dependencies, present(place));
    return CUDA_SUCCESS;
}

}  // namespace

CUstreamCaptureMode& captureMode() {
    thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return mode;
}

bool isCapturing(const Stream& stream) {
    if (captures().count == 0) return false;
    const std::lock_guard lock(graphLock());
    return captureOf(stream) != nullptr;
}

CUresult submit(Stream& stream, OperationPtr operation) {
    if (captures().count != 0) {
        const std::lock_guard lock(graphLock());
        if (const auto capture = captureOf(stream)) {
            return append(*capture, capture->members.at(&stream), std::move(operation));
        }
    }
    const bool always = operation->always();
    stream.submit({operation->bind(), {}, always});
    return CUDA_SUCCESS;
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): a shared pointer holds the operation
}

CUresult refuseUse(Stream& stream) {
    if (captures().count == 0) return CUDA_SUCCESS;
    const std::lock_guard lock(graphLock());
    if (stream.kind() == StreamKind::legacy) {
        const bool blocked =
            invalidateIf([&](const Capture& c) { return c.blocks(stream.context()); });
        return blocked ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
    }
    const auto capture = captureOf(stream);
    return capture && !capture->valid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult refuseCaptured(Stream& stream) {
    if (captures().count == 0) return CUDA_SUCCESS;
    const std::lock_guard lock(graphLock());
    if (const CUresult refused = refuseUse(stream)) return refused;
    const auto capture = captureOf(stream);
    if (!capture) return CUDA_SUCCESS;
    capture->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuseSynchronize(const Context& context) {
    if (captures().count == 0) return CUDA_SUCCESS;
    const std::lock_guard lock(graphLock());
    const bool any = invalidateIf([&](const Capture& c) { return c.touches(context); });
    return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult refuseUnsafe() {
    if (captures().count == 0) return CUDA_SUCCESS;
    const CUstreamCaptureMode mode = captureMode();
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    const std::lock_guard lock(graphLock());
    const bool any = invalidateIf([&](const Capture& c) {
        if (c.thread == std::this_thread::get_id()) {
            return c.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        }
        return mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    });
    return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult refuseQuestion(const Event& event) {
    const auto place = event.captured();
    if (!place) return refuseUnsafe();
    const std::lock_guard lock(graphLock());
    if (!place->capture->ended) place->capture->valid = false;
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult recordEvent(Stream& stream, const std::shared_ptr<Event>& event, bool external) {
    const std::lock_guard lock(graphLock());
    if (const CUresult refused = refuseUse(stream)) return refused;
    const auto capture = captureOf(stream);
    if (!capture) {
        if (external) return CUDA_ERROR_INVALID_VALUE;
        event->record(stream);
        return CUDA_SUCCESS;
    }
    if (external) return submit(stream, std::make_shared<EventRecordOperation>(event));
    event->capture(std::make_shared<CapturedPlace>(
        CapturedPlace{capture, capture->members.at(&stream).dependencies}));
    return CUDA_SUCCESS;
}

CUresult waitEvent(Stream& stream, const std::shared_ptr<Event>& event, bool external) {
    const std::lock_guard lock(graphLock());
    if (const CUresult refused = refuseUse(stream)) return refused;
    const auto capture = captureOf(stream);
    if (external) {
        if (!capture) return CUDA_ERROR_INVALID_VALUE;
        return submit(stream, std::make_shared<EventWaitOperation>(event));
    }
    if (const auto place = event->captured()) return waitInCapture(stream, *place);
    Fence fence = event->last();
    if (!fence) return CUDA_SUCCESS;
    if (capture) {
        capture->valid = false;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    stream.submit({{}, {std::move(fence)}, false});
    return CUDA_SUCCESS;
}

CUresult beginCapture(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                      std::vector<Edge> dependencies) {
    const std::lock_guard lock(graphLock());
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream.kind() == StreamKind::legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (captureOf(stream)) return CUDA_ERROR_ILLEGAL_STATE;
    static uint64_t nextId = 1;
    auto capture = std::make_shared<Capture>();
    capture->id = nextId++;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = &stream;
    capture->given = graph != nullptr;
    capture->graph = capture->given ? std::move(graph) : Graph::create(GraphRole::own);
    capture->graph->underCapture = true;
    captures().all.insert(capture);
    captures().count = captures().all.size();
    captures().join(capture, stream, std::move(dependencies));
    return CUDA_SUCCESS;
}

CUresult endCapture(Stream& stream, CUgraph* graph) {
    const std::lock_guard lock(graphLock());
    const auto capture = captureOf(stream);
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (graph == nullptr && !capture->given) return CUDA_ERROR_INVALID_VALUE;
    if (capture->origin != &stream) {
        capture->valid = false;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    const bool sameThread = capture->thread == std::this_thread::get_id();
    if (!sameThread && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    CUresult result = CUDA_SUCCESS;
    if (!capture->valid) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (!joined(*capture)) {
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    const auto captured = captures().end(capture);
    if (graph != nullptr) *graph = result == CUDA_SUCCESS ? handleOf(*captured) : nullptr;
    if (result != CUDA_SUCCESS && !capture->given) captured->retire();
    return result;
}

CUresult captureInfo(Stream& stream, CaptureInfo& info) {
    const std::lock_guard lock(graphLock());
    if (stream.kind() == StreamKind::legacy) {
        const auto& all = captures().all;
        const bool blocked = std::any_of(
            all.begin(), all.end(), [&](const auto& c) { return c->blocks(stream.context()); });
        return blocked ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
    }
    const auto capture = captureOf(stream);
    if (!capture) return CUDA_SUCCESS;
    if (!capture->valid) {
        info.status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        return CUDA_SUCCESS;
    }
    auto& member = capture->members.at(&stream);
    member.nodes.clear();
    member.edges.clear();
    for (const Edge& edge : member.dependencies) {
        member.nodes.push_back(handleOf(*edge.node));
        member.edges.push_back(edge.data);
        info.lossy = info.lossy || !isDefault(edge.data);
    }
    info.status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    info.id = capture->id;
    info.graph = handleOf(*capture->graph);
    info.dependencies = member.nodes.data();
    info.edges = member.edges.data();
    info.count = member.nodes.size();
    return CUDA_SUCCESS;
}

Graph* capturedGraph(const Stream& stream) {
    const auto capture = captureOf(stream);
    return capture && capture->valid ? capture->graph.get() : nullptr;
}

CUresult updateCapture(Stream& stream, const std::vector<Edge>& dependencies, bool replace) {
    const auto capture = captureOf(stream);
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (!capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    auto& member = capture->members.at(&stream);
    if (replace) member.dependencies.clear();
    addDependencies(member.dependencies, dependencies);
    return CUDA_SUCCESS;
}

void captureForgets(const Node& node) {
    const auto is = [&](const Edge& edge) { return edge.node == &node; };
    for (const auto& capture : captures().all) {
        for (auto& member : capture->members) std::erase_if(member.second.dependencies, is);
        std::erase_if(capture->left, is);
    }
}

void captureForgets(const Stream& stream) {
    const std::lock_guard lock(graphLock());
    const auto capture = captureOf(stream);
    if (!capture) return;
    if (capture->origin == &stream) return captures().abandon(capture);
    const auto member = capture->members.find(const_cast<Stream*>(&stream));
    addDependencies(capture->left, member->second.dependencies);
    capture->members.erase(member);
    captures().byStream.erase(&stream);
}

void captureForgets(const Context& context) {
    const std::lock_guard lock(graphLock());
    const auto all = captures().all;
    for (const auto& capture : all) {
        if (capture->touches(context)) captures().abandon(capture);
    }
}

}  // namespace juice::softgpu
