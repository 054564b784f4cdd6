#include "native/softgpu/driver/graph_update.h"

#include <map>
#include <optional>
#include <vector>

#include "native/softgpu/driver/conditional.h"
#include "native/softgpu/driver/copy.h"
#include "native/softgpu/driver/launch.h"
#include "native/softgpu/driver/memop.h"
#include "native/softgpu/driver/memory.h"

namespace juice::softgpu {
namespace {

constexpr CUgraphExecUpdateResult kSame = CU_GRAPH_EXEC_UPDATE_SUCCESS;
constexpr CUgraphExecUpdateResult kParameters = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;

int priorityOf(const KernelOperation& kernel) {
    const auto found = kernel.attributes().find(CU_LAUNCH_ATTRIBUTE_PRIORITY);
    return found == kernel.attributes().end() ? 0 : found->second.priority;
}

CUgraphExecUpdateResult replaceKernel(const KernelOperation& before, const KernelOperation& after,
                                      unsigned long long flags) {
    if (before.context() != after.context()) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    }
    if (before.shape().cooperative != after.shape().cooperative) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    }
    const bool priorities = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
    if (priorities && priorityOf(before) != priorityOf(after)) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    }
    return kSame;
}

/// Do both addresses lie in memory of one context, or both in the program's own?
bool sameHome(uint64_t before, uint64_t after) {
    const auto& space = AddressSpace::instance();
    const auto old = space.find(before);
    const auto now = space.find(after);
    // What was freed meanwhile cannot be compared, and does not matter any more.
    if (!old) return true;
    return now && now->context == old->context && isHostKind(now->kind) == isHostKind(old->kind);
}

CUgraphExecUpdateResult replaceCopy(const CopyOperation& before, const CopyOperation& after) {
    const CUDA_MEMCPY3D& old = before.described();
    const CUDA_MEMCPY3D& now = after.described();
    const bool same =
        old.srcMemoryType == now.srcMemoryType && old.dstMemoryType == now.dstMemoryType &&
        before.context() == after.context() && sameHome(before.to().address, after.to().address) &&
        sameHome(before.from().address, after.from().address);
    return same ? kSame : kParameters;
}

CUgraphExecUpdateResult replaceFill(const FillOperation& before, const FillOperation& after) {
    const CUDA_MEMSET_NODE_PARAMS& old = before.described();
    const CUDA_MEMSET_NODE_PARAMS& now = after.described();
    if (before.context() != after.context() || !sameHome(old.dst, now.dst)) return kParameters;
    if (old.height != now.height) return kParameters;
    if (old.height <= 1) return kSame;
    const bool same =
        old.width == now.width && old.elementSize == now.elementSize && old.pitch == now.pitch;
    return same ? kSame : kParameters;
}

CUgraphExecUpdateResult replaceMemops(const MemopOperation& before, const MemopOperation& after) {
    const auto& old = before.parameters();
    const auto& now = after.parameters();
    if (before.context() != after.context() || old.size() != now.size()) return kParameters;
    for (size_t i = 0; i < old.size(); ++i) {
        if (old[i].operation != now[i].operation) return kParameters;
        const bool wait = old[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                          old[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        constexpr unsigned kFlush = CU_STREAM_WAIT_VALUE_FLUSH;
        if (wait && (old[i].waitValue.flags & kFlush) != (now[i].waitValue.flags & kFlush)) {
            return kParameters;
        }
    }
    return kSame;
}

CUgraphExecUpdateResult replaceConditional(const ConditionalOperation& before,
                                           const ConditionalOperation& after) {
    const bool same = before.kind() == after.kind() && before.size() == after.size() &&
                      before.context() == after.context();
    return same ? kSame : kParameters;
}

/// The nodes of two graphs, matched from the ends backwards along their edges.
class Pairing {
  public:
    Pairing(Graph& executable, const Graph& graph, CUgraphExecUpdateResultInfo& info)
        : executable_(executable), graph_(graph), info_(info) {}

    /// False, with the reason, when the shapes differ.
    bool match() {
        if (executable_.nodes().size() != graph_.nodes().size()) return differs(nullptr, nullptr);
        const auto ours = ends(executable_);
        const auto theirs = ends(graph_);
        if (ours.size() != theirs.size()) {
            return differs(theirs.empty() ? nullptr : theirs.back(), nullptr);
        }
        for (size_t i = 0; i < ours.size(); ++i) enter(ours[i], theirs[i]);
        for (size_t at = 0; at < pairs_.size(); ++at) {
            if (!matchDependencies(*pairs_[at].first, *pairs_[at].second)) return false;
        }
        return true;
    }

    /// Ours first.
    const std::vector<std::pair<Node*, Node*>>& pairs() const { return pairs_; }

  private:
    static std::vector<Node*> ends(const Graph& graph) {
        std::vector<Node*> found;
        for (const auto& node : graph.nodes()) {
            if (node->dependents.empty()) found.push_back(node.get());
        }
        return found;
    }

    void enter(Node* ours, Node* theirs) {
        pairs_.emplace_back(ours, theirs);
        theirsOf_[ours] = theirs;
        oursOf_[theirs] = ours;
    }

    bool matchDependencies(const Node& ours, Node& theirs) {
        if (ours.dependencies.size() != theirs.dependencies.size()) {
            return differs(&theirs, nullptr);
        }
        for (size_t i = 0; i < ours.dependencies.size(); ++i) {
            Node* const a = ours.dependencies[i].node;
            Node* const b = theirs.dependencies[i].node;
            const auto known = theirsOf_.find(a);
            const bool apart = known == theirsOf_.end() ? oursOf_.contains(b) : known->second != b;
            const bool data = ours.dependencies[i].data == theirs.dependencies[i].data;
            if (apart || !data) return differs(&theirs, b);
            if (known == theirsOf_.end()) enter(a, b);
        }
        return true;
    }

    bool differs(Node* node, Node* from) {
        info_.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        info_.errorNode = node == nullptr ? nullptr : handleOf(*node);
        info_.errorFromNode = from == nullptr ? nullptr : handleOf(*from);
        return false;
    }

    Graph& executable_;
    const Graph& graph_;
    CUgraphExecUpdateResultInfo& info_;
    std::vector<std::pair<Node*, Node*>> pairs_;
    std::map<Node*, Node*> theirsOf_, oursOf_;
};

/// Collects the pairs of two graphs and of all in them; false, with the reason, when one cannot be.
bool collect(Graph& executable, const Graph& graph, unsigned long long flags,
             CUgraphExecUpdateResultInfo& info, std::vector<std::pair<Node*, Node*>>& all) {
    Pairing pairing(executable, graph, info);
    if (!pairing.match()) return false;
    for (const auto& [ours, theirs] : pairing.pairs()) {
        info.errorNode = handleOf(*theirs);
        if (ours->type() != theirs->type()) {
            info.result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
            return false;
        }
        info.result = replaceable(*ours->operation, *theirs->operation, flags);
        if (info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return false;
        all.emplace_back(ours, theirs);
        for (size_t i = 0; i < ours->embedded.size(); ++i) {
            if (!collect(*ours->embedded[i], *theirs->embedded[i], flags, info, all)) return false;
        }
    }
    return true;
}

template <typename T>
const T& as(const Operation& operation) {
    return static_cast<const T&>(operation);
}

}  // namespace

CUgraphExecUpdateResult replaceable(const Operation& before, const Operation& after,
                                    unsigned long long flags) {
    switch (before.type()) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return replaceKernel(as<KernelOperation>(before), as<KernelOperation>(after), flags);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return replaceCopy(as<CopyOperation>(before), as<CopyOperation>(after));
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return replaceFill(as<FillOperation>(before), as<FillOperation>(after));
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return replaceMemops(as<MemopOperation>(before), as<MemopOperation>(after));
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return replaceConditional(as<ConditionalOperation>(before),
                                      as<ConditionalOperation>(after));
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return &before == &after ? kSame : CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
        default:
            return kSame;
    }
}

CUresult updateGraph(Graph& executable, const Graph& graph, unsigned long long flags,
                     CUgraphExecUpdateResultInfo& info) {
    info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
    std::vector<std::pair<Node*, Node*>> pairs;
    if (!collect(executable, graph, flags, info, pairs)) {
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (const auto& [ours, theirs] : pairs) ours->operation = theirs->operation;
    info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
    return CUDA_SUCCESS;
}

}  // namespace juice::softgpu
