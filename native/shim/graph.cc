// Graphs: made, looked at, changed; and the objects of the program that they keep alive.
#include <cstdio>
#include <cstring>

#include "native/gen/cuda_api.h"
#include "native/shim/graph_objects.h"
#include "native/shim/host_functions.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

/// Entries about graphs need no current context, but use the one that there is.
CUresult enterGraph(Context*& context) {
    if (const CUresult result = enterContextless()) return result;
    context = thread().current();
    if (context != nullptr && !context->alive) context = nullptr;
    return CUDA_SUCCESS;
}

/// Sends u64s and waits.
CUresult ask(Op op, std::initializer_list<uint64_t> values, Reply& reply) {
    Context* context = nullptr;
    if (const CUresult result = enterGraph(context)) return result;
    Writer payload;
    for (const uint64_t value : values) payload.put(value);
    return call(op, context, payload.view(), reply, Deferred::keep);
}
CUresult tell(Op op, std::initializer_list<uint64_t> values) {
    Reply reply;
    return ask(op, values, reply);
}

CUresult newGraph(Op op, uint64_t value, CUgraph* out) {
    Reply reply;
    if (const CUresult result = ask(op, {value}, reply)) return result;
    Reader in = reply.reader();
    const Graph* const graph = graphs::graphOf(in.get<uint64_t>(), 0);
    if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = static_cast<CUgraph>(handles::of(*graph));
    return CUDA_SUCCESS;
}

struct Listing {
    std::vector<CUgraphNode> from, to;
    std::vector<CUgraphEdgeData> data;
    bool lossy = false;
};

CUresult list(custom::GraphListed what, uint64_t of, uint64_t graph, Listing& out) {
    Reply reply;
    if (const CUresult result = ask(Op::juiceGraphList, {of, static_cast<uint64_t>(what)}, reply))
        return result;
    Reader in = reply.reader();
    const auto count = in.get<uint32_t>();
    in.get<uint32_t>();
    std::vector<custom::NodeEdge> from, to;
    for (uint32_t i = 0; i < count && in.ok(); ++i) {
        from.push_back(custom::get<custom::NodeEdge>(in));
        out.lossy = out.lossy || graphs::hasData(from.back());
        if (what == custom::GraphListed::edges) to.push_back(custom::get<custom::NodeEdge>(in));
    }
    if (!in.done()) return CUDA_ERROR_UNKNOWN;
    std::vector<CUgraphEdgeData> ignored;
    return graphs::handlesOf(from, graph, out.from, out.data) &&
                   graphs::handlesOf(to, graph, out.to, ignored)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

/// An array of capacity `*count`: what does not fit is left out, what is left over becomes null.
template <typename T>
void fill(const std::vector<T>& from, T* array, size_t capacity) {
    if (array == nullptr) return;
    for (size_t i = 0; i < capacity; ++i) array[i] = i < from.size() ? from[i] : T{};
}

/// Every listing of nodes: an array may be left out to learn their number.
CUresult listTo(custom::GraphListed what, uint64_t of, uint64_t graph, CUgraphNode* from,
                CUgraphNode* to, CUgraphEdgeData* data, bool mayLose, size_t* count) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool edges = what == custom::GraphListed::edges;
    if (edges && (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    Listing listing;
    if (const CUresult result = list(what, of, graph, listing)) return result;
    if (!mayLose && data == nullptr && listing.lossy && from != nullptr)
        return CUDA_ERROR_LOSSY_QUERY;
    const size_t capacity = *count, there = listing.from.size();
    if (from == nullptr) {
        *count = there;
        return CUDA_SUCCESS;
    }
    fill(listing.from, from, capacity);
    if (edges) fill(listing.to, to, capacity);
    fill(listing.data, data, capacity);
    *count = std::min(capacity, there);
    return CUDA_SUCCESS;
}

CUresult listGraph(custom::GraphListed what, CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                   CUgraphEdgeData* data, size_t* count) {
    if (const CUresult result = session::initialised()) return result;
    const Graph* const graph = find<Graph>(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return listTo(what, graph->number, graph->number, from, to, data,
                  what != custom::GraphListed::edges, count);
}

CUresult listNode(custom::GraphListed what, CUgraphNode handle, CUgraphNode* nodes,
                  CUgraphEdgeData* data, size_t* count) {
    if (const CUresult result = session::initialised()) return result;
    const GraphNode* const node = find<GraphNode>(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return listTo(what, node->number, node->graph, nodes, nullptr, data, false, count);
}

CUresult connect(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                 const CUgraphEdgeData* data, size_t count, bool remove) {
    Context* context = nullptr;
    if (const CUresult result = enterGraph(context)) return result;
    const Graph* const graph = find<Graph>(handle);
    std::vector<custom::NodeEdge> begins, ends;
    if (graph == nullptr || count > custom::kMaxListed / 2 ||
        !graphs::edgesFrom(from, data, count, begins) ||
        !graphs::edgesFrom(to, nullptr, count, ends))
        return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    custom::put(payload, custom::GraphConnect{graph->number, remove ? 1u : 0u,
                                              static_cast<uint32_t>(count)});
    for (size_t i = 0; i < count; ++i) {
        custom::put(payload, begins[i]);
        custom::put(payload, ends[i]);
    }
    Reply reply;
    return call(Op::juiceGraphConnect, context, payload.view(), reply, Deferred::keep);
}

CUresult ofUserObject(Op op, CUuserObject handle, unsigned count) {
    if (const CUresult result = session::initialised()) return result;
    const UserObject* const object = find<UserObject>(handle);
    if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    return tell(op, {object->number, count});
}

CUresult ofGraphAndObject(Op op, CUgraph graph, CUuserObject object, unsigned count,
                          unsigned flags) {
    if (const CUresult result = session::initialised()) return result;
    const Graph* const of = find<Graph>(graph);
    const UserObject* const kept = find<UserObject>(object);
    if (of == nullptr || kept == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    return tell(op, {of->number, kept->number, count, flags});
}

CUresult deviceOf(CUdevice device, uint64_t& ordinal) {
    if (const CUresult result = session::initialised()) return result;
    if (session::device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    ordinal = static_cast<uint64_t>(session::workerOrdinal(device));
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;
namespace custom = juice::custom;
using custom::GraphListed;
using juice::Op;
using juice::Reply;

CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
    if (const CUresult result = session::initialised()) return result;
    if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return newGraph(Op::cuGraphCreate, flags, phGraph);
}

CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
    if (const CUresult result = session::initialised()) return result;
    const Graph* const graph = find<Graph>(originalGraph);
    if (phGraphClone == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return newGraph(Op::cuGraphClone, graph->number, phGraphClone);
}

CUresult cuGraphDestroy(CUgraph hGraph) {
    if (const CUresult result = session::initialised()) return result;
    const Graph* const graph = find<Graph>(hGraph);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t number = graph->number;
    if (const CUresult result = tell(Op::cuGraphDestroy, {number})) return result;
    graphs::forgetGraph(number);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
    if (const CUresult result = session::initialised()) return result;
    const GraphNode* const node = find<GraphNode>(hNode);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t number = node->number;
    if (const CUresult result = tell(Op::cuGraphDestroyNode, {number})) return result;
    graphs::forgetNode(number);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode,
                                CUgraph hClonedGraph) {
    if (const CUresult result = session::initialised()) return result;
    const GraphNode* const node = find<GraphNode>(hOriginalNode);
    const Graph* const clone = find<Graph>(hClonedGraph);
    if (phNode == nullptr || node == nullptr || clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    if (const CUresult result =
            ask(Op::cuGraphNodeFindInClone, {node->number, clone->number}, reply))
        return result;
    juice::Reader in = reply.reader();
    const GraphNode* const found = graphs::nodeOf(in.get<uint64_t>(), clone->number);
    if (found == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *phNode = static_cast<CUgraphNode>(handles::of(*found));
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
    return listGraph(GraphListed::nodes, hGraph, nodes, nullptr, nullptr, numNodes);
}
CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
    return listGraph(GraphListed::roots, hGraph, rootNodes, nullptr, nullptr, numRootNodes);
}
CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges) {
    return listGraph(GraphListed::edges, hGraph, from, to, nullptr, numEdges);
}
CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edgeData, size_t* numEdges) {
    return listGraph(GraphListed::edges, hGraph, from, to, edgeData, numEdges);
}
CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies,
                                    size_t* numDependencies) {
    return listNode(GraphListed::dependencies, hNode, dependencies, nullptr, numDependencies);
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies,
                                       CUgraphEdgeData* edgeData, size_t* numDependencies) {
    return listNode(GraphListed::dependencies, hNode, dependencies, edgeData, numDependencies);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                      size_t* numDependentNodes) {
    return listNode(GraphListed::dependents, hNode, dependentNodes, nullptr, numDependentNodes);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                         CUgraphEdgeData* edgeData, size_t* numDependentNodes) {
    return listNode(GraphListed::dependents, hNode, dependentNodes, edgeData, numDependentNodes);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t numDependencies) {
    return connect(hGraph, from, to, nullptr, numDependencies, false);
}
CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edgeData, size_t numDependencies) {
    return connect(hGraph, from, to, edgeData, numDependencies, false);
}
CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t numDependencies) {
    return connect(hGraph, from, to, nullptr, numDependencies, true);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from,
                                      const CUgraphNode* to, const CUgraphEdgeData* edgeData,
                                      size_t numDependencies) {
    return connect(hGraph, from, to, edgeData, numDependencies, true);
}

/// The worker's driver writes, into a file there; the program's path is here.
CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags) {
    if (const CUresult result = session::initialised()) return result;
    const Graph* const graph = find<Graph>(hGraph);
    if (graph == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    if (const CUresult result = ask(Op::cuGraphDebugDotPrint, {graph->number, flags}, reply))
        return result;
    std::FILE* const file = std::fopen(path, "w");
    if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    const size_t written = std::fwrite(reply.payload.data(), 1, reply.payload.size(), file);
    const bool closed = std::fclose(file) == 0;
    return closed && written == reply.payload.size() ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy,
                            unsigned int initialRefcount, unsigned int flags) {
    Context* context = nullptr;
    if (const CUresult result = session::initialised()) return result;
    if (object_out == nullptr || destroy == nullptr || initialRefcount == 0 ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = enterGraph(context)) return result;
    const uint64_t id = host_functions::keep(destroy, ptr);
    if (id == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    Reply reply;
    const CUresult result =
        call(Op::cuUserObjectCreate, context,
             bytesOfCall(custom::UserObject{id, initialRefcount, flags}), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    UserObject* const object = Recycler<UserObject>::get().take();
    object->kind = ObjectKind::userObject;
    juice::Reader in = reply.reader();
    object->number = in.get<uint64_t>();
    if (handles::mint(*object) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *object_out = static_cast<CUuserObject>(handles::of(*object));
    return CUDA_SUCCESS;
}
CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
    return ofUserObject(Op::cuUserObjectRetain, object, count);
}
CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
    return ofUserObject(Op::cuUserObjectRelease, object, count);
}
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                 unsigned int flags) {
    return ofGraphAndObject(Op::cuGraphRetainUserObject, graph, object, count, flags);
}
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
    return ofGraphAndObject(Op::cuGraphReleaseUserObject, graph, object, count, 0);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
    uint64_t ordinal = 0;
    if (const CUresult result = deviceOf(device, ordinal)) return result;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    if (const CUresult result =
            ask(Op::cuDeviceGetGraphMemAttribute, {ordinal, static_cast<uint64_t>(attr)}, reply))
        return result;
    juice::Reader in = reply.reader();
    const auto got = in.get<uint64_t>();
    std::memcpy(value, &got, sizeof got);
    return CUDA_SUCCESS;
}
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
    uint64_t ordinal = 0, wanted = 0;
    if (const CUresult result = deviceOf(device, ordinal)) return result;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(&wanted, value, sizeof wanted);
    return tell(Op::cuDeviceSetGraphMemAttribute, {ordinal, static_cast<uint64_t>(attr), wanted});
}
CUresult cuDeviceGraphMemTrim(CUdevice device) {
    uint64_t ordinal = 0;
    if (const CUresult result = deviceOf(device, ordinal)) return result;
    return tell(Op::cuDeviceGraphMemTrim, {ordinal});
}
