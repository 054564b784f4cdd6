// Executable graphs: making, launching, changing.
#include <cstring>

#include "native/softgpu/driver/capture.h"
#include "native/softgpu/driver/graph_exec.h"
#include "native/softgpu/driver/graph_update.h"
#include "native/softgpu/driver/guard_graph.h"
#include "native/softgpu/driver/node_add.h"
#include "native/softgpu/driver/node_params.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

CUgraphExec handleOf(const std::shared_ptr<GraphExec>& exec) {
    return reinterpret_cast<CUgraphExec>(Registry<GraphExec>::instance().add(exec));
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags,
                     InstantiateFailure& failure) {
    failure = {CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
    return withGraph(handle, [&](Graph& graph) -> CUresult {
        if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::shared_ptr<GraphExec> exec;
        if (const CUresult failed = GraphExec::instantiate(graph, flags, exec, failure)) {
            return failed;
        }
        *out = handleOf(exec);
        return CUDA_SUCCESS;
    });
}

CUgraphNode nodeOf(const InstantiateFailure& failure) {
    return failure.node == nullptr ? nullptr : handleOf(*failure.node);
}

/// The oldest way: with a node and a text in case of failure.
CUresult instantiateLogged(CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log,
                           size_t size) {
    InstantiateFailure failure;
    const CUresult result = instantiate(out, graph, 0, failure);
    if (node != nullptr) *node = nodeOf(failure);
    if (log != nullptr && size > 0) {
        const bool structure = failure.result == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
        std::strncpy(log, structure ? "the graph has a cycle" : "", size);
        log[size - 1] = '\0';
    }
    return result;
}

CUresult upload(CUgraphExec handle, CUstream stream, DefaultStream meaning) {
    return withStream(stream, meaning, [&](Stream& on) {
        return withExec(handle, [&](GraphExec& exec) {
            exec.upload(on);
            return CUDA_SUCCESS;
        });
    });
}

CUresult instantiateWith(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters,
                         DefaultStream meaning) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    InstantiateFailure failure;
    const CUresult result = instantiate(out, graph, parameters->flags, failure);
    parameters->result_out = failure.result;
    parameters->hErrNode_out = nodeOf(failure);
    const bool uploads = (parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
    if (result != CUDA_SUCCESS || !uploads) return result;
    return upload(*out, parameters->hUploadStream, meaning);
}

/// In a captured stream the graph becomes a child graph node.
CUresult launch(CUgraphExec handle, CUstream stream, DefaultStream meaning) {
    // An H200 refuses to capture it.
    return withStream(stream, meaning, [&](Stream& on) {
        return withExec(handle, [&](GraphExec& exec) { return exec.launch(on); });
    });
}

/// Gives a node of an executable graph what `make(old, operation)` makes, if it may have that.
template <typename T, typename Make>
CUresult change(CUgraphExec handle, CUgraphNode original, CUgraphNodeType type, const Make& make) {
    return withExecNode(handle, original, [&](GraphExec& exec, Node& node) -> CUresult {
        if (node.type() != type) return CUDA_ERROR_INVALID_VALUE;
        OperationPtr operation;
        const auto& old = static_cast<const T&>(*node.operation);
        if (const CUresult failed = make(old, operation)) return failed;
        const auto verdict = replaceable(old, *operation, exec.flags());
        if (verdict != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
        node.operation = std::move(operation);
        return CUDA_SUCCESS;
    });
}

bool oneDimensional(const Operation& copy) {
    const Extent& extent = static_cast<const CopyOperation&>(copy).extent();
    return extent.width > 0 && extent.height == 1 && extent.depth == 1;
}

/// Only copies in one dimension can be exchanged.
CUresult exchangeCopy(const Operation& old, const CUDA_MEMCPY3D& parameters, CUcontext context,
                      OperationPtr& made) {
    if (const CUresult failed = operationFrom(parameters, context, made)) return failed;
    return oneDimensional(old) && oneDimensional(*made) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult exchangeFill(const CUDA_MEMSET_NODE_PARAMS& parameters, CUcontext context,
                      OperationPtr& made) {
    if (parameters.width == 0 || parameters.height == 0) return CUDA_ERROR_INVALID_VALUE;
    return operationFrom(parameters, context, made);
}

/// Makes a node's graph do what another graph of the same shape does.
CUresult exchangeChild(GraphExec& exec, const Node& node, CUgraph child) {
    const auto graph = find<Graph>(child);
    if (!graph || node.type() != CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
    CUgraphExecUpdateResultInfo info{};
    const CUresult failed = updateGraph(*node.embedded.front(), *graph, exec.flags(), info);
    return failed != CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// Only work of these kinds can be switched off.
bool switchable(const Node& node) {
    return node.type() == CU_GRAPH_NODE_TYPE_KERNEL || node.type() == CU_GRAPH_NODE_TYPE_MEMCPY ||
           node.type() == CU_GRAPH_NODE_TYPE_MEMSET;
}

}  // namespace

CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log,
                            size_t size) {
    return instantiateLogged(out, graph, node, log, size);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log,
                               size_t size) {
    return instantiateLogged(out, graph, node, log, size);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
    InstantiateFailure failure;
    return instantiate(out, graph, flags, failure);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    return instantiateWith(out, graph, parameters, kLegacy);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* out, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    return instantiateWith(out, graph, parameters, kPerThread);
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, unsigned long long* flags) {
    return withExec(handle, [&](GraphExec& exec) {
        if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *flags = exec.flags();
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
    return withExec(handle, [&](GraphExec&) {
        Registry<GraphExec>::instance().take(handle);
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
    return upload(exec, stream, kLegacy);
}
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
    return upload(exec, stream, kPerThread);
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    return launch(exec, stream, kLegacy);
}
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
    return launch(exec, stream, kPerThread);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph,
                              CUgraphExecUpdateResultInfo* info) {
    if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    return withExec(handle, [&](GraphExec& exec) -> CUresult {
        const auto from = find<Graph>(graph);
        return from ? exec.update(*from, *info) : CUDA_ERROR_INVALID_VALUE;
    });
}
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* node,
                           CUgraphExecUpdateResult* result) {
    CUgraphExecUpdateResultInfo info{};
    const CUresult code = cuGraphExecUpdate_v2(exec, graph, &info);
    if (node != nullptr) *node = info.errorNode;
    if (result != nullptr) *result = info.result;
    return code;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<KernelOperation>(exec, node, CU_GRAPH_NODE_TYPE_KERNEL,
                                   [&](const KernelOperation& old, OperationPtr& made) {
                                       return operationFrom(*parameters, old.attributes(), made);
                                   });
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS wide = widened(*parameters);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* parameters, CUcontext context) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<CopyOperation>(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY,
                                 [&](const CopyOperation& old, OperationPtr& made) {
                                     return exchangeCopy(old, *parameters, context, made);
                                 });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* parameters,
                                        CUcontext context) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<FillOperation>(exec, node, CU_GRAPH_NODE_TYPE_MEMSET,
                                 [&](const FillOperation&, OperationPtr& made) {
                                     return exchangeFill(*parameters, context, made);
                                 });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<HostOperation>(
        exec, node, CU_GRAPH_NODE_TYPE_HOST,
        [&](const auto&, OperationPtr& made) { return operationFrom(*parameters, made); });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode original,
                                            CUgraph child) {
    return withExecNode(handle, original, [&](GraphExec& exec, Node& node) {
        return exchangeChild(exec, node, child);
    });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
    return change<EventRecordOperation>(
        exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        [&](const auto&, OperationPtr& made) { return recordOperation(event, made); });
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
    return change<EventWaitOperation>(
        exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        [&](const auto&, OperationPtr& made) { return waitOperation(event, made); });
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return change<MemopOperation>(
        exec, node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        [&](const auto&, OperationPtr& made) { return operationFrom(*parameters, made); });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec handle, CUgraphNode original,
                                  CUgraphNodeParams* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (parameters->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        return cuGraphExecChildGraphNodeSetParams(handle, original, parameters->graph.graph);
    }
    return change<Operation>(handle, original, parameters->type,
                             [&](const Operation& old, OperationPtr& made) -> CUresult {
                                 if (const CUresult failed = operationFrom(*parameters, &old, made))
                                     return failed;
                                 const bool copies = parameters->type == CU_GRAPH_NODE_TYPE_MEMCPY;
                                 if (!copies || (oneDimensional(old) && oneDimensional(*made)))
                                     return CUDA_SUCCESS;
                                 return CUDA_ERROR_INVALID_VALUE;
                             });
}

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int enabled) {
    return withExecNode(handle, original, [&](GraphExec&, Node& node) {
        if (!switchable(node) || enabled > 1) return CUDA_ERROR_INVALID_VALUE;
        node.enabled = enabled != 0;
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int* enabled) {
    return withExecNode(handle, original, [&](GraphExec&, Node& node) {
        if (!switchable(node) || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *enabled = node.enabled ? 1 : 0;
        return CUDA_SUCCESS;
    });
}
