// The nodes of graphs. Every kind of node travels as the one struct that describes them all.
#include <cstring>

#include "native/gen/cuda_api.h"
#include "native/gen/symbols.h"
#include "native/shim/arena.h"
#include "native/shim/graph_objects.h"
#include "native/shim/ranges.h"
#include "native/shim/send.h"

namespace juice::shim {
namespace {

CUresult enterGraph(Context*& context) {
    if (const CUresult result = enterContextless()) return result;
    context = thread().current();
    if (context != nullptr && !context->alive) context = nullptr;
    return CUDA_SUCCESS;
}

/// Memory that a graph allocates has its address from now on, wherever the graph is launched.
void noteAllocation(uint64_t address, size_t size, Context* context) {
    arena::placehold(address, size);
    Range range;
    range.begin = address;
    range.size = size;
    range.kind = Range::Kind::graph;
    range.context = context;
    ranges::add(range);
}

CUresult add(CUgraphNode* out, CUgraph handle, const CUgraphNode* nodes,
             const CUgraphEdgeData* data, size_t count, CUgraphNodeParams& params) {
    Context* context = nullptr;
    if (const CUresult result = enterGraph(context)) return result;
    const Graph* const graph = find<Graph>(handle);
    std::vector<custom::NodeEdge> edges;
    if (out == nullptr || graph == nullptr || !graphs::edgesFrom(nodes, data, count, edges))
        return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    custom::put(payload, custom::GraphAddNode{graph->number, edges.size()});
    for (const custom::NodeEdge& edge : edges) custom::put(payload, edge);
    if (const CUresult result = graphs::putParams(params, payload)) return result;
    Reply reply;
    const CUresult result =
        call(Op::juiceGraphAddNode, context, payload.view(), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    const auto number = in.get<uint64_t>(), more = in.get<uint64_t>();
    if (!in.done()) return CUDA_ERROR_UNKNOWN;
    const GraphNode* const node = graphs::nodeOf(number, graph->number);
    if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = static_cast<CUgraphNode>(handles::of(*node));
    if (params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        params.alloc.dptr = more;
        noteAllocation(more, params.alloc.bytesize, context);
    } else if (params.type == CU_GRAPH_NODE_TYPE_GRAPH) {
        graphs::graphOf(more, number);
    }
    return CUDA_SUCCESS;
}

CUresult set(CUgraphExec execHandle, bool ofExec, CUgraphNode handle,
             const CUgraphNodeParams& params) {
    Context* context = nullptr;
    if (const CUresult result = enterGraph(context)) return result;
    const GraphNode* const node = find<GraphNode>(handle);
    GraphExec* const exec = ofExec ? find<GraphExec>(execHandle) : nullptr;
    if (node == nullptr || (ofExec && exec == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    custom::put(payload, custom::GraphSetNode{exec == nullptr ? 0 : exec->number, node->number});
    if (const CUresult result = graphs::putParams(params, payload)) return result;
    Reply reply;
    const CUresult result =
        call(Op::juiceGraphSetNode, context, payload.view(), reply, Deferred::keep);
    if (result != CUDA_SUCCESS || exec == nullptr) return result;
    Reader in = reply.reader();
    const std::lock_guard lock(exec->mutex);
    return graphs::readFacts(in, exec->facts) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

/// A node's parameters, which must be of one of these types.
CUresult get(CUgraphNode handle, std::initializer_list<CUgraphNodeType> types,
             CUgraphNodeParams& out) {
    Context* context = nullptr;
    if (const CUresult result = enterGraph(context)) return result;
    GraphNode* const node = find<GraphNode>(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    const CUresult result =
        call(Op::juiceGraphGetNode, context, bytesOfCall(node->number), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    if (const CUresult bad = graphs::readParams(in, *node, out)) return bad;
    for (const CUgraphNodeType type : types)
        if (type == out.type) return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
}

CUgraphNodeParams ofType(CUgraphNodeType type) {
    CUgraphNodeParams params{};
    params.type = type;
    return params;
}

/// The older structs are the beginnings of the newest.
CUgraphNodeParams kernel(const CUDA_KERNEL_NODE_PARAMS_v1& from) {
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_KERNEL);
    std::memcpy(&params.kernel, &from, sizeof from);
    return params;
}
CUgraphNodeParams kernel(const CUDA_KERNEL_NODE_PARAMS& from) {
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_KERNEL);
    std::memcpy(&params.kernel, &from, sizeof from);
    return params;
}
CUgraphNodeParams copying(const CUDA_MEMCPY3D& from, CUcontext context) {
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_MEMCPY);
    params.memcpy.copyCtx = context;
    params.memcpy.copyParams = from;
    return params;
}
CUgraphNodeParams filling(const CUDA_MEMSET_NODE_PARAMS& from, CUcontext context) {
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_MEMSET);
    std::memcpy(&params.memset, &from, sizeof from);
    params.memset.ctx = context;
    return params;
}
CUgraphNodeParams calling(const CUDA_HOST_NODE_PARAMS& from) {
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_HOST);
    params.host.fn = from.fn;
    params.host.userData = from.userData;
    return params;
}
CUgraphNodeParams child(CUgraph graph) {
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_GRAPH);
    params.graph.graph = graph;
    return params;
}
CUgraphNodeParams event(CUgraphNodeType type, CUevent event) {
    CUgraphNodeParams params = ofType(type);
    params.eventRecord.event = event;
    return params;
}
CUgraphNodeParams operations(const CUDA_BATCH_MEM_OP_NODE_PARAMS& from) {
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    params.memOp = {from.ctx, from.count, from.paramArray, from.flags};
    return params;
}

/// Attributes whose values are plain data.
bool plain(CUkernelNodeAttrID attribute) {
    return attribute != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT &&
           attribute != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT &&
           attribute != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace custom = juice::custom;
using juice::Op;
using juice::Reply;
using juice::Writer;

#define JUICE_NEEDS(pointer)                                                        \
    if (const CUresult result = juice::shim::session::initialised()) return result; \
    if ((pointer) == nullptr) return CUDA_ERROR_INVALID_VALUE

CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                           const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData,
                           size_t numDependencies, CUgraphNodeParams* nodeParams) {
    JUICE_NEEDS(nodeParams);
    const CUresult result =
        add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, *nodeParams);
    if (result != CUDA_SUCCESS || nodeParams->type != CU_GRAPH_NODE_TYPE_GRAPH) return result;
    // The node has a copy, which is what the caller is told.
    return cuGraphChildGraphNodeGetGraph(*phGraphNode, &nodeParams->graph.graph);
}
CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        size_t numDependencies, CUgraphNodeParams* nodeParams) {
    return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
                             nodeParams);
}
CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
    JUICE_NEEDS(nodeParams);
    return set(nullptr, false, hNode, *nodeParams);
}
CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  CUgraphNodeParams* nodeParams) {
    JUICE_NEEDS(nodeParams);
    return set(hGraphExec, true, hNode, *nodeParams);
}

// Each kind of node in the struct of its own: added, set, and set in an executable graph.
#define JUICE_NODE(addName, setName, execName, Struct, make)                                    \
    CUresult addName(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, \
                     size_t numDependencies, const Struct* nodeParams) {                        \
        JUICE_NEEDS(nodeParams);                                                                \
        CUgraphNodeParams params = make(*nodeParams);                                           \
        return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, params);        \
    }                                                                                           \
    CUresult setName(CUgraphNode hNode, const Struct* nodeParams) {                             \
        JUICE_NEEDS(nodeParams);                                                                \
        return set(nullptr, false, hNode, make(*nodeParams));                                   \
    }                                                                                           \
    CUresult execName(CUgraphExec hGraphExec, CUgraphNode hNode, const Struct* nodeParams) {    \
        JUICE_NEEDS(nodeParams);                                                                \
        return set(hGraphExec, true, hNode, make(*nodeParams));                                 \
    }

JUICE_NODE(cuGraphAddKernelNode, cuGraphKernelNodeSetParams, cuGraphExecKernelNodeSetParams,
           CUDA_KERNEL_NODE_PARAMS_v1, kernel)
JUICE_NODE(cuGraphAddKernelNode_v2, cuGraphKernelNodeSetParams_v2,
           cuGraphExecKernelNodeSetParams_v2, CUDA_KERNEL_NODE_PARAMS, kernel)
JUICE_NODE(cuGraphAddHostNode, cuGraphHostNodeSetParams, cuGraphExecHostNodeSetParams,
           CUDA_HOST_NODE_PARAMS, calling)
JUICE_NODE(cuGraphAddBatchMemOpNode, cuGraphBatchMemOpNodeSetParams,
           cuGraphExecBatchMemOpNodeSetParams, CUDA_BATCH_MEM_OP_NODE_PARAMS, operations)

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
    JUICE_NEEDS(nodeParams);
    CUgraphNodeParams params;
    if (const CUresult result = get(hNode, {CU_GRAPH_NODE_TYPE_KERNEL}, params)) return result;
    std::memcpy(nodeParams, &params.kernel, sizeof *nodeParams);
    return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
    JUICE_NEEDS(nodeParams);
    CUgraphNodeParams params;
    if (const CUresult result = get(hNode, {CU_GRAPH_NODE_TYPE_KERNEL}, params)) return result;
    std::memcpy(nodeParams, &params.kernel, sizeof *nodeParams);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
    JUICE_NEEDS(copyParams);
    CUgraphNodeParams params = copying(*copyParams, ctx);
    return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, params);
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
    JUICE_NEEDS(nodeParams);
    CUgraphNodeParams params;
    if (const CUresult result = get(hNode, {CU_GRAPH_NODE_TYPE_MEMCPY}, params)) return result;
    *nodeParams = params.memcpy.copyParams;
    return CUDA_SUCCESS;
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
    JUICE_NEEDS(nodeParams);
    return set(nullptr, false, hNode, copying(*nodeParams, nullptr));
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
    JUICE_NEEDS(copyParams);
    return set(hGraphExec, true, hNode, copying(*copyParams, ctx));
}

CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
    JUICE_NEEDS(memsetParams);
    CUgraphNodeParams params = filling(*memsetParams, ctx);
    return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, params);
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
    JUICE_NEEDS(nodeParams);
    CUgraphNodeParams params;
    if (const CUresult result = get(hNode, {CU_GRAPH_NODE_TYPE_MEMSET}, params)) return result;
    std::memcpy(nodeParams, &params.memset, sizeof *nodeParams);
    return CUDA_SUCCESS;
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
    JUICE_NEEDS(nodeParams);
    return set(nullptr, false, hNode, filling(*nodeParams, nullptr));
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS* memsetParams,
                                        CUcontext ctx) {
    JUICE_NEEDS(memsetParams);
    return set(hGraphExec, true, hNode, filling(*memsetParams, ctx));
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
    JUICE_NEEDS(nodeParams);
    CUgraphNodeParams params;
    if (const CUresult result = get(hNode, {CU_GRAPH_NODE_TYPE_HOST}, params)) return result;
    *nodeParams = {params.host.fn, params.host.userData};
    return CUDA_SUCCESS;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                  const CUgraphNode* dependencies, size_t numDependencies,
                                  CUgraph childGraph) {
    CUgraphNodeParams params = child(childGraph);
    return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, params);
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
    JUICE_NEEDS(phGraph);
    CUgraphNodeParams params;
    if (const CUresult result = get(hNode, {CU_GRAPH_NODE_TYPE_GRAPH}, params)) return result;
    *phGraph = params.graph.graph;
    return CUDA_SUCCESS;
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            CUgraph childGraph) {
    return set(hGraphExec, true, hNode, child(childGraph));
}

CUresult cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                             const CUgraphNode* dependencies, size_t numDependencies) {
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_EMPTY);
    return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, params);
}

#define JUICE_EVENT_NODE(name, nodeType)                                                          \
    CUresult cuGraphAddEvent##name##Node(CUgraphNode* phGraphNode, CUgraph hGraph,                \
                                         const CUgraphNode* dependencies, size_t numDependencies, \
                                         CUevent hEvent) {                                        \
        CUgraphNodeParams params = event(nodeType, hEvent);                                       \
        return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, params);          \
    }                                                                                             \
    CUresult cuGraphEvent##name##NodeGetEvent(CUgraphNode hNode, CUevent* event_out) {            \
        JUICE_NEEDS(event_out);                                                                   \
        CUgraphNodeParams params;                                                                 \
        if (const CUresult result = get(hNode, {nodeType}, params)) return result;                \
        *event_out = params.eventRecord.event;                                                    \
        return CUDA_SUCCESS;                                                                      \
    }                                                                                             \
    CUresult cuGraphEvent##name##NodeSetEvent(CUgraphNode hNode, CUevent hEvent) {                \
        return set(nullptr, false, hNode, event(nodeType, hEvent));                               \
    }                                                                                             \
    CUresult cuGraphExecEvent##name##NodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,      \
                                                  CUevent hEvent) {                               \
        return set(hGraphExec, true, hNode, event(nodeType, hEvent));                             \
    }

JUICE_EVENT_NODE(Record, CU_GRAPH_NODE_TYPE_EVENT_RECORD)
JUICE_EVENT_NODE(Wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT)

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                        CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams_out) {
    JUICE_NEEDS(nodeParams_out);
    CUgraphNodeParams params;
    if (const CUresult result = get(hNode, {CU_GRAPH_NODE_TYPE_BATCH_MEM_OP}, params))
        return result;
    *nodeParams_out = {params.memOp.ctx, params.memOp.count, params.memOp.paramArray,
                       params.memOp.flags};
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                const CUgraphNode* dependencies, size_t numDependencies,
                                CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
    JUICE_NEEDS(nodeParams);
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    std::memcpy(&params.alloc, nodeParams, sizeof *nodeParams);
    const CUresult result =
        add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, params);
    if (result == CUDA_SUCCESS) nodeParams->dptr = params.alloc.dptr;
    return result;
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
    JUICE_NEEDS(params_out);
    CUgraphNodeParams params;
    if (const CUresult result = get(hNode, {CU_GRAPH_NODE_TYPE_MEM_ALLOC}, params)) return result;
    std::memcpy(params_out, &params.alloc, sizeof *params_out);
    return CUDA_SUCCESS;
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                               const CUgraphNode* dependencies, size_t numDependencies,
                               CUdeviceptr dptr) {
    CUgraphNodeParams params = ofType(CU_GRAPH_NODE_TYPE_MEM_FREE);
    params.free.dptr = dptr;
    return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, params);
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr* dptr_out) {
    JUICE_NEEDS(dptr_out);
    CUgraphNodeParams params;
    if (const CUresult result = get(hNode, {CU_GRAPH_NODE_TYPE_MEM_FREE}, params)) return result;
    *dptr_out = params.free.dptr;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
    JUICE_NEEDS(type);
    Context* context = nullptr;
    if (const CUresult result = enterGraph(context)) return result;
    const GraphNode* const node = find<GraphNode>(hNode);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    const CUresult result =
        call(Op::cuGraphNodeGetType, context, bytesOfCall(node->number), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    juice::Reader in = reply.reader();
    *type = static_cast<CUgraphNodeType>(in.get<uint64_t>());
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
    Context* context = nullptr;
    if (const CUresult result = enterGraph(context)) return result;
    const GraphNode *const to = find<GraphNode>(dst), *const from = find<GraphNode>(src);
    if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    payload.put(to->number).put(from->number);
    Reply reply;
    return call(Op::cuGraphKernelNodeCopyAttributes, context, payload.view(), reply,
                Deferred::keep);
}
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       CUkernelNodeAttrValue* value_out) {
    JUICE_NEEDS(value_out);
    Context* context = nullptr;
    if (const CUresult result = enterGraph(context)) return result;
    const GraphNode* const node = find<GraphNode>(hNode);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!plain(attr)) return juice_unsupported("a graph node's attribute that names an event");
    Writer payload;
    payload.put(node->number).put(static_cast<uint64_t>(attr));
    Reply reply;
    const CUresult result =
        call(Op::cuGraphKernelNodeGetAttribute, context, payload.view(), reply, Deferred::keep);
    if (result == CUDA_SUCCESS && reply.payload.size() == sizeof *value_out)
        std::memcpy(value_out, reply.payload.data(), sizeof *value_out);
    return result;
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       const CUkernelNodeAttrValue* value) {
    JUICE_NEEDS(value);
    Context* context = nullptr;
    if (const CUresult result = enterGraph(context)) return result;
    const GraphNode* const node = find<GraphNode>(hNode);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!plain(attr)) return juice_unsupported("a graph node's attribute that names an event");
    Writer payload;
    payload.put(node->number).put(static_cast<uint64_t>(attr)).raw(value, sizeof *value);
    Reply reply;
    return call(Op::cuGraphKernelNodeSetAttribute, context, payload.view(), reply, Deferred::keep);
}
