#include "native/softgpu/driver/graph_exec.h"

#include <algorithm>
#include <map>
#include <utility>

#include "native/gen/symbols.h"
#include "native/softgpu/driver/conditional.h"
#include "native/softgpu/driver/graph_memory.h"
#include "native/softgpu/driver/graph_update.h"

namespace juice::softgpu {
namespace {

constexpr unsigned long long kFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult checkFlags(unsigned long long flags) {
    if ((flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0) return CUDA_SUCCESS;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return juice_unsupported("instantiating a graph for launch from the device");
}

/// What may stand in the body of a conditional node, at any depth.
bool allowedInBody(CUgraphNodeType type) {
    switch (type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
        case CU_GRAPH_NODE_TYPE_EMPTY:
        case CU_GRAPH_NODE_TYPE_GRAPH:
        case CU_GRAPH_NODE_TYPE_MEMSET:
        case CU_GRAPH_NODE_TYPE_MEMCPY:
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return true;
        default:
            return false;
    }
}

/// The structure of a graph and of all in it.
CUresult checkStructure(const Graph& graph, bool body, InstantiateFailure& failure) {
    const auto fail = [&](CUgraphInstantiateResult result, Node* node) {
        failure = {result, node};
        return CUDA_ERROR_INVALID_VALUE;
    };
    const auto order = graph.ordered();
    for (const auto& node : graph.nodes()) {
        if (std::find(order.begin(), order.end(), node.get()) == order.end()) {
            return fail(CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node.get());
        }
        if (body && !allowedInBody(node->type())) {
            failure = {CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, node.get()};
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        const bool inBody = body || node->type() == CU_GRAPH_NODE_TYPE_CONDITIONAL;
        for (const auto& embedded : node->embedded) {
            if (const CUresult failed = checkStructure(*embedded, inBody, failure)) return failed;
        }
    }
    return CUDA_SUCCESS;
}

/// Has every condition of the graph its node?
bool allUsed(const Graph& graph) {
    return std::all_of(
        graph.conditions.begin(), graph.conditions.end(), [&](const auto& condition) {
            bool used = false;
            graph.visit([&](Node& node) {
                if (node.type() != CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
                const auto& its = static_cast<const ConditionalOperation&>(*node.operation);
                used = used || &its.condition() == condition.get();
            });
            return used;
        });
}

/// A launch of the graph as it is now.
std::shared_ptr<Plan> planFor(const Graph& graph) {
    auto plan = std::make_shared<Plan>();
    std::map<const Node*, uint32_t> index;
    for (const Node* const node : graph.ordered()) {
        Plan::Step step;
        step.context = node->operation->context();
        step.always = node->operation->always();
        step.before = static_cast<uint32_t>(node->dependencies.size());
        std::vector<std::shared_ptr<const Plan>> inside;
        for (const auto& embedded : node->embedded) inside.push_back(planFor(*embedded));
        if (!node->enabled) {
            // Only its place in the order counts.
        } else if (node->type() == CU_GRAPH_NODE_TYPE_GRAPH) {
            step.work = [child = inside.front()] { child->execute(); };
            step.mayBlock = true;
        } else if (node->type() == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            step.work =
                static_cast<const ConditionalOperation&>(*node->operation).over(std::move(inside));
        } else {
            step.work = node->operation->bind();
            step.mayBlock = node->operation->mayBlock();
        }
        const auto at = static_cast<uint32_t>(plan->steps.size());
        index[node] = at;
        for (const Edge& edge : node->dependencies) {
            plan->steps[index.at(edge.node)].next.push_back(at);
        }
        plan->steps.push_back(std::move(step));
    }
    return plan;
}

}  // namespace

CUresult GraphExec::instantiate(Graph& graph, unsigned long long flags,
                                std::shared_ptr<GraphExec>& made, InstantiateFailure& failure) {
    failure = {CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
    if (const CUresult failed = checkFlags(flags)) return failed;
    if (graph.underCapture) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult failed = checkStructure(graph, graph.role() == GraphRole::body, failure)) {
        return failed;
    }
    if (!allUsed(graph)) {
        failure.result = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
        return CUDA_ERROR_INVALID_VALUE;
    }
    const bool only = graph.holdsMemoryNodes() || graph.holds({CU_GRAPH_NODE_TYPE_CONDITIONAL});
    if (only && !graph.onlyExec.expired()) return CUDA_ERROR_INVALID_VALUE;
    made = std::shared_ptr<GraphExec>(new GraphExec(graph.clone(GraphRole::executable),
                                                    flags & ~CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
    if (only) graph.onlyExec = made;
    failure = {};
    return CUDA_SUCCESS;
}

CUresult GraphExec::launch(Stream& stream) {
    const bool freesItself = (flags_ & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    if (!mayLaunch(*graph_, freesItself)) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Plan> plan = planFor(*graph_);
    for (const auto& object : graph_->userObjects) plan->kept.push_back(object);
    Task task;
    task.work = [plan, conditions = graph_->conditions] {
        for (const auto& condition : conditions) condition->reset();
        plan->execute();
    };
    if (last_) task.after.push_back(last_);
    // Events that the graph records must come to their end even when the context has failed; its
    // other steps ask for themselves.
    task.always = true;
    last_ = stream.submit(std::move(task));
    return CUDA_SUCCESS;
}

void GraphExec::upload(Stream& stream) {
    Task task;
    if (last_) task.after.push_back(last_);
    last_ = stream.submit(std::move(task));
}

Node* GraphExec::find(const Node& original) const {
    Node* found = nullptr;
    graph_->visit([&](Node& node) {
        if (node.origin == original.id) found = &node;
    });
    return found;
}

CUresult GraphExec::update(const Graph& graph, CUgraphExecUpdateResultInfo& info) {
    if (const CUresult failed = updateGraph(*graph_, graph, flags_, info)) return failed;
    graph_->conditions = graph.conditions;
    graph_->userObjects = graph.userObjects;
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu
