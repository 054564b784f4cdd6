// The nodes of graphs, type by type: adding, asking, changing.
#include "native/gen/symbols.h"
#include "native/softgpu/driver/guard_graph.h"
#include "native/softgpu/driver/node_add.h"
#include "native/softgpu/driver/node_params.h"

using namespace juice::softgpu;

namespace {

/// Where a new node goes.
struct Place {
    CUgraphNode* out;
    CUgraph graph;
    const CUgraphNode* dependencies;
    size_t count;
};

/// Adds a node whose operation `make(operation)` makes.
template <typename Make>
CUresult add(const Place& place, const Make& make) {
    return withGraph(place.graph, [&](Graph& graph) -> CUresult {
        std::vector<Edge> edges;
        if (place.out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult failed =
                edgesFrom(graph, place.dependencies, nullptr, place.count, edges)) {
            return failed;
        }
        OperationPtr operation;
        if (const CUresult failed = make(operation)) return failed;
        *place.out = handleOf(graph.add(std::move(operation), edges));
        return CUDA_SUCCESS;
    });
}

/// Gives a node of the type the operation that `make(old, operation)` makes.
template <typename T, typename Make>
CUresult change(CUgraphNode handle, CUgraphNodeType type, const Make& make) {
    return withNodeOf<T>(handle, type, [&](Node& node, const T& old) -> CUresult {
        OperationPtr operation;
        if (const CUresult failed = make(old, operation)) return failed;
        node.operation = std::move(operation);
        return CUDA_SUCCESS;
    });
}

/// Tells what `of(operation)` says of a node of the type.
template <typename T, typename Out, typename Of>
CUresult tell(CUgraphNode handle, CUgraphNodeType type, Out* out, const Of& of) {
    return withNodeOf<T>(handle, type, [&](Node&, const T& operation) {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *out = of(operation);
        return CUDA_SUCCESS;
    });
}

CUcontext handleOfContext(const Operation& operation) {
    return handleOf(*operation.context());
}

}  // namespace

// Kernels.

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add({out, graph, dependencies, count},
               [&](OperationPtr& made) { return operationFrom(*parameters, {}, made); });
}
CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS wide = widened(*parameters);
    return cuGraphAddKernelNode_v2(out, graph, dependencies, count, &wide);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
    return tell<KernelOperation>(node, CU_GRAPH_NODE_TYPE_KERNEL, out, parametersOf);
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
    return tell<KernelOperation>(node, CU_GRAPH_NODE_TYPE_KERNEL, out,
                                 [](const auto& kernel) { return narrowed(parametersOf(kernel)); });
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                       const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<KernelOperation>(node, CU_GRAPH_NODE_TYPE_KERNEL,
                                   [&](const KernelOperation& old, OperationPtr& made) {
                                       return operationFrom(*parameters, old.attributes(), made);
                                   });
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node,
                                    const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS wide = widened(*parameters);
    return cuGraphKernelNodeSetParams_v2(node, &wide);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
    return withNodeOf<KernelOperation>(
        from, CU_GRAPH_NODE_TYPE_KERNEL, [&](Node&, const KernelOperation& source) {
            return change<KernelOperation>(
                to, CU_GRAPH_NODE_TYPE_KERNEL,
                [&](const KernelOperation& old, OperationPtr& made) -> CUresult {
                    if (old.context() != source.context()) return CUDA_ERROR_INVALID_VALUE;
                    std::shared_ptr<KernelOperation> changed;
                    const CUresult failed = old.with(source.attributes(), changed);
                    made = std::move(changed);
                    return failed;
                });
        });
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       CUkernelNodeAttrValue* out) {
    return withNodeOf<KernelOperation>(
        node, CU_GRAPH_NODE_TYPE_KERNEL, [&](Node&, const KernelOperation& kernel) {
            return out == nullptr ? CUDA_ERROR_INVALID_VALUE : kernel.attribute(attribute, *out);
        });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<KernelOperation>(node, CU_GRAPH_NODE_TYPE_KERNEL,
                                   [&](const KernelOperation& old, OperationPtr& made) {
                                       std::shared_ptr<KernelOperation> changed;
                                       const CUresult failed = old.with(attribute, *value, changed);
                                       made = std::move(changed);
                                       return failed;
                                   });
}

// Copies.

CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMCPY3D* parameters, CUcontext context) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add({out, graph, dependencies, count},
               [&](OperationPtr& made) { return operationFrom(*parameters, context, made); });
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
    return tell<CopyOperation>(node, CU_GRAPH_NODE_TYPE_MEMCPY, out,
                               [](const CopyOperation& copy) { return copy.described(); });
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<CopyOperation>(node, CU_GRAPH_NODE_TYPE_MEMCPY,
                                 [&](const CopyOperation& old, OperationPtr& made) {
                                     return operationFrom(*parameters, handleOfContext(old), made);
                                 });
}

// Fills.

CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters,
                              CUcontext context) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add({out, graph, dependencies, count},
               [&](OperationPtr& made) { return operationFrom(*parameters, context, made); });
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
    return tell<FillOperation>(node, CU_GRAPH_NODE_TYPE_MEMSET, out,
                               [](const FillOperation& fill) { return fill.described(); });
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<FillOperation>(node, CU_GRAPH_NODE_TYPE_MEMSET,
                                 [&](const FillOperation& old, OperationPtr& made) {
                                     return operationFrom(*parameters, handleOfContext(old), made);
                                 });
}

// Host functions.

CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add({out, graph, dependencies, count},
               [&](OperationPtr& made) { return operationFrom(*parameters, made); });
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
    return tell<HostOperation>(node, CU_GRAPH_NODE_TYPE_HOST, out,
                               [](const HostOperation& host) { return host.call(); });
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<HostOperation>(
        node, CU_GRAPH_NODE_TYPE_HOST,
        [&](const HostOperation&, OperationPtr& made) { return operationFrom(*parameters, made); });
}

// Nothing.

CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count) {
    return add({out, graph, dependencies, count}, [](OperationPtr& made) {
        made = std::make_shared<EmptyOperation>();
        return CUDA_SUCCESS;
    });
}

// Events.

CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                   size_t count, CUevent event) {
    return add({out, graph, dependencies, count},
               [&](OperationPtr& made) { return recordOperation(event, made); });
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* out) {
    return tell<EventRecordOperation>(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out,
                                      [](const auto& record) { return record.event(); });
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
    return change<EventRecordOperation>(
        node, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        [&](const auto&, OperationPtr& made) { return recordOperation(event, made); });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUevent event) {
    return add({out, graph, dependencies, count},
               [&](OperationPtr& made) { return waitOperation(event, made); });
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* out) {
    return tell<EventWaitOperation>(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out,
                                    [](const auto& wait) { return wait.event(); });
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
    return change<EventWaitOperation>(
        node, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        [&](const auto&, OperationPtr& made) { return waitOperation(event, made); });
}

// Operations on words in memory.

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add({out, graph, dependencies, count},
               [&](OperationPtr& made) { return operationFrom(*parameters, made); });
}
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* out) {
    return tell<MemopOperation>(
        node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, out, [](const MemopOperation& memops) {
            const auto& array = memops.parameters();
            return CUDA_BATCH_MEM_OP_NODE_PARAMS{
                handleOfContext(memops), static_cast<unsigned>(array.size()),
                const_cast<CUstreamBatchMemOpParams*>(array.data()), memops.flags()};
        });
}
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<MemopOperation>(
        node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        [&](const auto&, OperationPtr& made) { return operationFrom(*parameters, made); });
}

// Graphs in graphs.

CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child) {
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
    parameters.graph.graph = child;
    return cuGraphAddNode_v2(out, graph, dependencies, nullptr, count, &parameters);
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* out) {
    return withNode(handle, [&](Node& node) {
        if (out == nullptr || node.type() != CU_GRAPH_NODE_TYPE_GRAPH) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *out = handleOf(*node.embedded.front());
        return CUDA_SUCCESS;
    });
}

// Any.

CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* data, size_t count,
                           CUgraphNodeParams* parameters) {
    return withGraph(handle, [&](Graph& graph) -> CUresult {
        if (out == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::vector<Edge> edges;
        if (const CUresult failed = edgesFrom(graph, dependencies, data, count, edges)) {
            return failed;
        }
        Node* made = nullptr;
        if (const CUresult failed = addNode(graph, edges, *parameters, made)) return failed;
        *out = handleOf(*made);
        return CUDA_SUCCESS;
    });
}
CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraphNodeParams* parameters) {
    return cuGraphAddNode_v2(out, graph, dependencies, nullptr, count, parameters);
}

CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams* parameters) {
    return withNode(handle, [&](Node& node) -> CUresult {
        if (parameters == nullptr || parameters->type != node.type()) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        OperationPtr operation;
        if (const CUresult failed = operationFrom(*parameters, node.operation.get(), operation)) {
            return failed;
        }
        node.operation = std::move(operation);
        return CUDA_SUCCESS;
    });
}
