// Executable graphs. A launch is posted; with it goes what the graph reads of pinned memory, and
// what it writes there comes back when it is done: see docs/architecture.md, Graphs.
#include <cstring>

#include "native/gen/cuda_api.h"
#include "native/gen/symbols.h"
#include "native/shim/capture.h"
#include "native/shim/coherence.h"
#include "native/shim/copy.h"
#include "native/shim/deliveries.h"
#include "native/shim/graph_objects.h"
#include "native/shim/host_functions.h"
#include "native/shim/ranges.h"
#include "native/shim/send.h"
#include "native/shim/shadows.h"

namespace juice::shim {
namespace {

constexpr unsigned long long kDeviceLaunch = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
constexpr unsigned long long kUpload = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;

CUresult upload(CUgraphExec handle, CUstream stream, bool perThread) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const GraphExec* const exec = find<GraphExec>(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t wire = 0;
    if (const CUresult result = wireStream(stream, perThread, wire)) return result;
    Writer payload;
    payload.put(exec->number).put(wire);
    return post(Op::cuGraphUpload, context, payload.view(), wire);
}

/// The functions that a graph calls are known by their gates from now on.
void take(GraphExec& exec, GraphFacts facts) {
    const std::lock_guard lock(exec.mutex);
    for (const custom::GraphHost& one : facts.functions)
        host_functions::gate(one.gate, one.function);
    exec.facts = std::move(facts);
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS& params,
                     bool perThread) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    const Graph* const graph = find<Graph>(handle);
    if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((params.flags & kDeviceLaunch) != 0)
        return juice_unsupported("a graph that the device launches");
    Writer payload;
    payload.put(graph->number).put(uint64_t{params.flags & ~kUpload});
    Reply reply;
    const CUresult result =
        call(Op::cuGraphInstantiateWithParams, context, payload.view(), reply, Deferred::keep);
    params.hErrNode_out = nullptr;
    params.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    const auto number = in.get<uint64_t>(), wrong = in.get<uint64_t>();
    params.result_out = static_cast<CUgraphInstantiateResult>(in.get<uint64_t>());
    if (number == 0) {
        if (const GraphNode* const node = graphs::nodeOf(wrong, graph->number))
            params.hErrNode_out = static_cast<CUgraphNode>(handles::of(*node));
        return static_cast<CUresult>(in.get<uint64_t>());
    }
    GraphFacts facts;
    if (!graphs::readFacts(in, facts)) return CUDA_ERROR_UNKNOWN;
    GraphExec* const exec = Recycler<GraphExec>::get().take();
    exec->kind = ObjectKind::graphExec;
    exec->number = number;
    exec->flags = params.flags;
    exec->context = context;
    take(*exec, std::move(facts));
    if (handles::mint(*exec) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = static_cast<CUgraphExec>(handles::of(*exec));
    return (params.flags & kUpload) == 0 ? CUDA_SUCCESS
                                         : upload(*out, params.hUploadStream, perThread);
}

CUresult instantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags,
                              CUgraphNode* wrong = nullptr) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    params.flags = flags;
    const CUresult result = instantiate(out, graph, params, false);
    if (wrong != nullptr) *wrong = params.hErrNode_out;
    return result;
}

CUresult instantiateWithLog(CUgraphExec* out, CUgraph graph, CUgraphNode* wrong, char* log,
                            size_t size) {
    if (const CUresult result = session::initialised()) return result;
    if (log != nullptr && size != 0) log[0] = '\0';
    return instantiateWithFlags(out, graph, 0, wrong);
}

/// Such memory is kept the same by other means.
bool isCoherent(const custom::HostSpan& span) {
    const auto range = ranges::find(span.address);
    return range && range->coherent;
}

/// The worker's mirrors get what the program has written; what functions write there later follows.
CUresult bringReads(const Context* context, const GraphFacts& facts, bool later) {
    for (const custom::HostSpan& span : facts.reads) {
        if (span.size == 0 || isCoherent(span)) continue;
        if (later)
            shadows::watch(span.address, span.size);
        else if (const CUresult result = pushMirror(context, span.address, span.size))
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult launch(CUgraphExec handle, CUstream streamHandle, bool perThread) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    GraphExec* const exec = find<GraphExec>(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    custom::GraphLaunch call{exec->number, 0, 0, 0};
    Stream* stream = nullptr;
    if (const CUresult result = wireStream(streamHandle, perThread, call.stream, &stream))
        return result;
    if (stream != nullptr) context = stream->context;
    GraphFacts facts;
    {
        const std::lock_guard lock(exec->mutex);
        facts = exec->facts;
    }
    // Waited for: drivers refuse it, and the capture with it.
    if (capture::of(call.stream, stream) != 0) {
        Reply reply;
        return shim::call(Op::cuGraphLaunch, context, bytesOfCall(call), reply, Deferred::keep);
    }
    // Two deliveries to one place could overtake each other.
    for (const custom::HostSpan& span : facts.writes)
        if (const CUresult result = deliveries::settle(span.address, span.size)) return result;
    if (const CUresult result = coherence::beforeWork(context)) return result;
    const bool calls = !facts.functions.empty();
    if (calls) call.token = host_functions::launching();
    if (const CUresult result = bringReads(context, facts, calls || host_functions::outstanding()))
        return result;
    Writer payload;
    call.transfers = facts.writes.size();
    custom::put(payload, call);
    for (const custom::HostSpan& span : facts.writes) {
        const uint64_t transfer =
            span.size == 0 || isCoherent(span)
                ? 0
                : session::link()->expect(reinterpret_cast<void*>(span.address), span.size);
        if (transfer != 0) {
            deliveries::add(span.address, span.size, transfer, context);
            shadows::aboutToReceive(span.address, span.size, transfer);
        }
        payload.put(transfer);
    }
    const CUresult result = post(Op::cuGraphLaunch, context, payload.view(), call.stream);
    if (result == CUDA_SUCCESS) return coherence::afterWork(context, call.stream);
    for (const custom::HostSpan& span : facts.writes) deliveries::cancel(span.address, span.size);
    if (calls && session::link()->broken()) host_functions::launched();
    return result;
}

CUresult update(CUgraphExec handle, CUgraph graphHandle, CUgraphExecUpdateResultInfo& info) {
    Context* context = nullptr;
    if (const CUresult result = enter(context)) return result;
    GraphExec* const exec = find<GraphExec>(handle);
    const Graph* const graph = find<Graph>(graphHandle);
    if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    payload.put(exec->number).put(graph->number);
    Reply reply;
    const CUresult result =
        call(Op::cuGraphExecUpdate_v2, context, payload.view(), reply, Deferred::keep);
    if (result != CUDA_SUCCESS) return result;
    Reader in = reply.reader();
    const auto updated = static_cast<CUresult>(in.get<uint64_t>());
    info.result = static_cast<CUgraphExecUpdateResult>(in.get<uint64_t>());
    const auto node = [&](uint64_t number) {
        const GraphNode* const named = graphs::nodeOf(number, graph->number);
        return named == nullptr ? nullptr : static_cast<CUgraphNode>(handles::of(*named));
    };
    info.errorNode = node(in.get<uint64_t>());
    info.errorFromNode = node(in.get<uint64_t>());
    if (updated != CUDA_SUCCESS) return updated;
    GraphFacts facts;
    if (!graphs::readFacts(in, facts)) return CUDA_ERROR_UNKNOWN;
    take(*exec, std::move(facts));
    return CUDA_SUCCESS;
}

CUresult enabledCall(Op op, CUgraphExec handle, CUgraphNode nodeHandle, const uint64_t* value,
                     Reply& reply) {
    Context* context = nullptr;
    if (const CUresult result = enterContextless()) return result;
    context = thread().current();
    const GraphExec* const exec = find<GraphExec>(handle);
    const GraphNode* const node = find<GraphNode>(nodeHandle);
    if (exec == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Writer payload;
    payload.put(exec->number).put(node->number);
    if (value != nullptr) payload.put(*value);
    return call(op, context, payload.view(), reply, Deferred::keep);
}

}  // namespace
}  // namespace juice::shim

using namespace juice::shim;  // NOLINT: every definition below is an entry point
namespace session = juice::shim::session;
using juice::Op;
using juice::Reply;

CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph,
                                     unsigned long long flags) {
    return instantiateWithFlags(phGraphExec, hGraph, flags);
}
CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                            char* logBuffer, size_t bufferSize) {
    return instantiateWithLog(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                               char* logBuffer, size_t bufferSize) {
    return instantiateWithLog(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
    if (const CUresult result = session::initialised()) return result;
    if (instantiateParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return instantiate(phGraphExec, hGraph, *instantiateParams, false);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
    if (const CUresult result = session::initialised()) return result;
    if (instantiateParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return instantiate(phGraphExec, hGraph, *instantiateParams, true);
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, unsigned long long* flags) {
    if (const CUresult result = session::initialised()) return result;
    const GraphExec* const exec = find<GraphExec>(hGraphExec);
    if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
    return upload(hGraphExec, hStream, false);
}
CUresult cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
    return upload(hGraphExec, hStream, true);
}
CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
    return launch(hGraphExec, hStream, false);
}
CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
    return launch(hGraphExec, hStream, true);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
    if (const CUresult result = session::initialised()) return result;
    if (const CUresult result = session::sticky()) return result;
    GraphExec* const exec = find<GraphExec>(hGraphExec);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = post(Op::cuGraphExecDestroy, exec->context, bytesOfCall(exec->number));
    handles::drop(*exec);
    Recycler<GraphExec>::get().give(exec);
    return result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo) {
    if (const CUresult result = session::initialised()) return result;
    if (resultInfo == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return update(hGraphExec, hGraph, *resultInfo);
}
CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                           CUgraphExecUpdateResult* updateResult_out) {
    CUgraphExecUpdateResultInfo info{};
    const CUresult result = update(hGraphExec, hGraph, info);
    if (hErrorNode_out != nullptr) *hErrorNode_out = info.errorNode;
    if (updateResult_out != nullptr) *updateResult_out = info.result;
    return result;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
    const uint64_t value = isEnabled;
    Reply reply;
    return enabledCall(Op::cuGraphNodeSetEnabled, hGraphExec, hNode, &value, reply);
}
CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled) {
    if (const CUresult result = session::initialised()) return result;
    if (isEnabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Reply reply;
    if (const CUresult result =
            enabledCall(Op::cuGraphNodeGetEnabled, hGraphExec, hNode, nullptr, reply))
        return result;
    juice::Reader in = reply.reader();
    *isEnabled = static_cast<unsigned>(in.get<uint64_t>());
    return CUDA_SUCCESS;
}
