// Executable graphs: instantiated, updated, launched.
#include "native/gen/custom_handlers.h"
#include "native/worker/node_params.h"
#include "native/worker/transfer.h"

namespace juice::worker {
namespace {

std::shared_ptr<GraphExec> execNamed(Incoming& in, uint64_t number) {
    const auto found = in.worker().graphExecs.find(number);
    if (found != in.worker().graphExecs.end()) return found->second;
    in.fail(CUDA_ERROR_INVALID_VALUE);
    return nullptr;
}

void drop(Worker& worker, const GraphPlan& plan) {
    if (plan.clone != nullptr) worker.driver.cuGraphDestroy(plan.clone);
    for (const GraphStop& stop : plan.stops) worker.gates.givePair(stop.words);
}

/// A plan of the graph for this context.
CUresult planOf(Worker& worker, CUgraph graph, std::shared_ptr<GraphPlan>& out) {
    out = std::make_shared<GraphPlan>();
    const CUcontext context = worker.context() == nullptr ? nullptr : worker.context()->handle;
    GraphPlanner planner(worker.driver, worker.mirrors, worker.gates, context);
    const CUresult result = planner.plan(graph, *out);
    if (result != CUDA_SUCCESS) drop(worker, *out);
    return result;
}

/// The node that an executable graph knows as this one.
CUresult ownNode(Incoming& in, const GraphExec& exec, CUgraphNode& node) {
    if (exec.plan->clone == nullptr) return CUDA_SUCCESS;
    return in.driver().cuGraphNodeFindInClone(&node, node, exec.plan->clone);
}

}  // namespace

CUresult custom_cuGraphInstantiateWithParams(Incoming& in) {
    const auto number = in.get<uint64_t>();
    const auto graph = graphNamed<CUgraph>(in, GraphKind::graph, number);
    const auto flags = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (in.driver().cuGraphInstantiateWithParams == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const Blocking blocking(worker);
    auto exec = std::make_shared<GraphExec>();
    if (const CUresult result = planOf(worker, graph, exec->plan)) return result;
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    params.flags = flags;
    const CUgraph of = exec->plan->clone != nullptr ? exec->plan->clone : graph;
    const CUresult result = in.driver().cuGraphInstantiateWithParams(&exec->handle, of, &params);
    if (result != CUDA_SUCCESS) {
        // The answer tells more than the result, which a failed call's answer cannot.
        const uint64_t wrong = exec->plan->clone == nullptr && params.hErrNode_out != nullptr
                                   ? worker.graphs.of(GraphKind::node, params.hErrNode_out, number)
                                   : 0;
        drop(worker, *exec->plan);
        in.out().put(uint64_t{0}).put(wrong).put(static_cast<uint64_t>(params.result_out));
        in.out().put(static_cast<uint64_t>(result));
        return CUDA_SUCCESS;
    }
    exec->context = worker.context() == nullptr ? nullptr : worker.context()->handle;
    exec->contextId = in.header().context;
    const uint64_t name = worker.graphs.of(GraphKind::exec, exec->handle, 0);
    in.out().put(name).put(uint64_t{0}).put(static_cast<uint64_t>(params.result_out));
    exec->plan->put(in.out());
    worker.graphExecs[name] = std::move(exec);
    return CUDA_SUCCESS;
}

CUresult custom_cuGraphExecDestroy(Incoming& in) {
    const auto number = in.get<uint64_t>();
    const auto exec = execNamed(in, number);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (!exec->plan->stops.empty() || !exec->retired.empty()) {
        const Blocking blocking(worker);  // its stops are given back
        worker.graphRuns.drain();
    }
    const CUresult result = in.driver().cuGraphExecDestroy(exec->handle);
    if (result != CUDA_SUCCESS) return result;
    drop(worker, *exec->plan);
    for (const auto& plan : exec->retired) drop(worker, *plan);
    worker.graphs.forget(number);
    worker.graphExecs.erase(number);
    return CUDA_SUCCESS;
}

CUresult custom_cuGraphUpload(Incoming& in) {
    const auto exec = execNamed(in, in.get<uint64_t>());
    const CUstream stream = in.stream();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuGraphUpload == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return in.driver().cuGraphUpload(exec->handle, stream);
}

CUresult custom_cuGraphExecUpdate_v2(Incoming& in) {
    const auto exec = execNamed(in, in.get<uint64_t>());
    const auto number = in.get<uint64_t>();
    const auto graph = graphNamed<CUgraph>(in, GraphKind::graph, number);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (in.driver().cuGraphExecUpdate_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    std::shared_ptr<GraphPlan> plan;
    if (const CUresult result = planOf(worker, graph, plan)) return result;
    CUgraphExecUpdateResultInfo info{};
    const CUgraph of = plan->clone != nullptr ? plan->clone : graph;
    const CUresult result = in.driver().cuGraphExecUpdate_v2(exec->handle, of, &info);
    const auto name = [&](CUgraphNode node) {
        return plan->clone != nullptr ? 0 : worker.graphs.of(GraphKind::node, node, number);
    };
    in.out().put(static_cast<uint64_t>(result)).put(static_cast<uint64_t>(info.result));
    in.out().put(name(info.errorNode)).put(name(info.errorFromNode));
    if (result != CUDA_SUCCESS) {
        drop(worker, *plan);
        return CUDA_SUCCESS;
    }
    // Nodes are still named as those of the graph that it was made of.
    std::swap(plan->clone, exec->plan->clone);
    exec->retired.push_back(std::exchange(exec->plan, plan));
    exec->plan->put(in.out());
    return CUDA_SUCCESS;
}

CUresult custom_juiceGraphSetNode(Incoming& in) {
    const auto call = custom::get<custom::GraphSetNode>(in.reader());
    auto node = graphNamed<CUgraphNode>(in, GraphKind::node, call.node);
    const auto exec = call.exec == 0 ? nullptr : execNamed(in, call.exec);
    const auto params = readNodeParams(in);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const DriverTable& driver = in.driver();
    if (exec == nullptr) {
        if (driver.cuGraphNodeSetParams == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
        return driver.cuGraphNodeSetParams(node, &params->params);
    }
    // What it reads and writes would have to be found out anew, node by node.
    if (params->params.type == CU_GRAPH_NODE_TYPE_HOST ||
        params->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (driver.cuGraphExecNodeSetParams == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = ownNode(in, *exec, node);
    const bool copies = params->params.type == CU_GRAPH_NODE_TYPE_MEMCPY;
    const CUDA_MEMCPY3D& copy = params->params.memcpy.copyParams;
    const GraphPlanner planner(driver, in.worker().mirrors, in.worker().gates, exec->context);
    if (result == CUDA_SUCCESS && copies && !planner.mayChange(node, copy, *exec->plan))
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = driver.cuGraphExecNodeSetParams(exec->handle, node, &params->params);
    if (result != CUDA_SUCCESS) return result;
    if (copies) {
        // The stops and the clone are the new plan's now; launches under way keep the old spans.
        auto plan = std::make_shared<GraphPlan>(*exec->plan);
        planner.change(node, copy, *plan);
        exec->plan = plan;
    }
    exec->plan->put(in.out());
    return CUDA_SUCCESS;
}

CUresult custom_cuGraphNodeSetEnabled(Incoming& in) {
    const auto exec = execNamed(in, in.get<uint64_t>());
    auto node = graphNamed<CUgraphNode>(in, GraphKind::node);
    const auto enabled = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuGraphNodeSetEnabled == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (const CUresult result = ownNode(in, *exec, node)) return result;
    return in.driver().cuGraphNodeSetEnabled(exec->handle, node, static_cast<unsigned>(enabled));
}

CUresult custom_cuGraphNodeGetEnabled(Incoming& in) {
    const auto exec = execNamed(in, in.get<uint64_t>());
    auto node = graphNamed<CUgraphNode>(in, GraphKind::node);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuGraphNodeGetEnabled == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (const CUresult result = ownNode(in, *exec, node)) return result;
    unsigned enabled = 0;
    const CUresult result = in.driver().cuGraphNodeGetEnabled(exec->handle, node, &enabled);
    in.out().put(uint64_t{enabled});
    return result;
}

namespace {

/// Without stops: what the graph writes is sent when the stream has got behind it.
CUresult launchPlain(Incoming& in, const GraphExec& exec, CUstream stream,
                     const std::vector<uint64_t>& transfers) {
    Worker& worker = in.worker();
    const CUresult result = worker.driver.cuGraphLaunch(exec.handle, stream);
    if (result != CUDA_SUCCESS) return result;
    for (size_t i = 0; i < transfers.size(); ++i) {
        const custom::HostSpan& span = exec.plan->writes[i];
        auto mirror = worker.mirrors.holding(span.address, span.size);
        if (mirror != nullptr && span.size != 0 && transfers[i] != 0)
            sendFromMirror(worker, stream, std::move(mirror), span.address, span.size,
                           transfers[i]);
    }
    return CUDA_SUCCESS;
}

CUresult launchWithStops(Incoming& in, const std::shared_ptr<GraphExec>& exec, CUstream stream,
                         uint64_t token, std::vector<uint64_t> transfers) {
    Worker& worker = in.worker();
    const auto run = worker.graphRuns.start({exec, exec->plan, token, std::move(transfers), {}});
    const auto tell = [&worker, token](CUresult result) {
        worker.coherence.sendNow();
        worker.link.callback(token, result, static_cast<uint32_t>(custom::Called::launched));
    };
    const CUresult result = worker.driver.cuGraphLaunch(exec->handle, stream);
    if (result != CUDA_SUCCESS) {
        worker.graphRuns.finish(run, result);
        tell(result);
        return result;
    }
    const CUcontext context = worker.context()->handle;
    worker.completions.after(context, stream, true,
                             [&worker, run](CUresult done) { worker.graphRuns.finish(run, done); });
    worker.completions.tell(context, stream, tell);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult custom_cuGraphLaunch(Incoming& in) {
    const auto call = custom::get<custom::GraphLaunch>(in.reader());
    std::vector<uint64_t> transfers;
    if (call.transfers > in.reader().remaining() / sizeof(uint64_t)) in.reader().fail();
    for (uint64_t i = 0; i < call.transfers && in.reader().ok(); ++i)
        transfers.push_back(in.get<uint64_t>());
    const auto exec = execNamed(in, call.exec);
    const CUstream stream = in.stream(call.stream);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    Worker& worker = in.worker();
    if (worker.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    worker.usage.launches.fetch_add(1, std::memory_order_relaxed);
    if (worker.captures.capturing(stream)) {
        // A launch within a launch has nobody who watches its stops, nor takes what it writes.
        if (!exec->plan->stops.empty() || !exec->plan->writes.empty())
            return CUDA_ERROR_NOT_SUPPORTED;
        return in.driver().cuGraphLaunch(exec->handle, stream);
    }
    if (transfers.size() != exec->plan->writes.size()) return CUDA_ERROR_INVALID_VALUE;
    if (exec->plan->stops.empty()) return launchPlain(in, *exec, stream, transfers);
    return launchWithStops(in, exec, stream, call.token, std::move(transfers));
}

}  // namespace juice::worker
