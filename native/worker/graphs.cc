#include "native/worker/graphs.h"

#include <algorithm>
#include <set>

namespace juice::worker {
namespace {

std::vector<uint32_t> joined(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    std::vector<uint32_t> out;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
}

/// Memory from the first to behind the last byte of one side of a copy.
uint64_t extentOf(const CUDA_MEMCPY3D& copy, uint64_t pitch, uint64_t height) {
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return 0;
    return ((copy.Depth - 1) * height + copy.Height - 1) * pitch + copy.WidthInBytes;
}

}  // namespace

void graphFunction(void*) {}

uint64_t GraphNumbers::of(GraphKind kind, void* handle, uint64_t owner) {
    if (handle == nullptr) return 0;
    const auto [found, fresh] = numbers_.try_emplace({kind, handle}, last_ + 1);
    if (!fresh) return found->second;
    entries_[++last_] = {kind, handle, owner, {}};
    if (const auto of = entries_.find(owner); of != entries_.end())
        of->second.owned.push_back(last_);
    return last_;
}

void* GraphNumbers::find(GraphKind kind, uint64_t number) const {
    const auto found = entries_.find(number);
    return found == entries_.end() || found->second.kind != kind ? nullptr : found->second.handle;
}

uint64_t GraphNumbers::ownerOf(uint64_t number) const {
    const auto found = entries_.find(number);
    return found == entries_.end() ? 0 : found->second.owner;
}

void GraphNumbers::forget(uint64_t number) {
    std::vector<uint64_t> going{number};
    while (!going.empty()) {
        const auto found = entries_.find(going.back());
        going.pop_back();
        if (found == entries_.end()) continue;
        going.insert(going.end(), found->second.owned.begin(), found->second.owned.end());
        numbers_.erase({found->second.kind, found->second.handle});
        entries_.erase(found);
    }
}

void GraphPlan::put(Writer& out) const {
    out.put(static_cast<uint32_t>(reads.size())).put(static_cast<uint32_t>(writes.size()));
    out.put(static_cast<uint32_t>(stops.size())).put(uint32_t{0});
    for (const auto* spans : {&reads, &writes})
        for (const custom::HostSpan& span : *spans) custom::put(out, span);
    for (const GraphStop& stop : stops)
        custom::put(out, custom::GraphHost{stop.gate, stop.function});
}

CUresult GraphPlanner::nodesOf(CUgraph graph, std::vector<CUgraphNode>& out) const {
    size_t count = 0;
    CUresult result = driver_.cuGraphGetNodes(graph, nullptr, &count);
    out.resize(count);
    if (result == CUDA_SUCCESS && count != 0)
        result = driver_.cuGraphGetNodes(graph, out.data(), &count);
    return result;
}

CUresult GraphPlanner::countHosts(CUgraph graph, size_t& hosts) const {
    std::vector<CUgraphNode> nodes;
    if (const CUresult result = nodesOf(graph, nodes)) return result;
    for (CUgraphNode node : nodes) {
        CUgraphNodeType type{};
        if (const CUresult result = driver_.cuGraphNodeGetType(node, &type)) return result;
        if (type == CU_GRAPH_NODE_TYPE_HOST) ++hosts;
        if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
        CUgraph child = nullptr;
        if (const CUresult result = driver_.cuGraphChildGraphNodeGetGraph(node, &child))
            return result;
        if (const CUresult result = countHosts(child, hosts)) return result;
    }
    return CUDA_SUCCESS;
}

CUresult GraphPlanner::plan(CUgraph graph, GraphPlan& out) {
    size_t hosts = 0;
    if (const CUresult result = countHosts(graph, hosts)) return result;
    CUgraph of = graph;
    if (hosts != 0) {
        if (driver_.cuGraphAddBatchMemOpNode == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
        if (const CUresult result = driver_.cuGraphClone(&out.clone, graph)) return result;
        of = out.clone;
    }
    Writes all;
    return walk(of, {}, all, out);
}

CUresult GraphPlanner::walk(CUgraph graph, const Writes& before, Writes& all, GraphPlan& out) {
    std::vector<CUgraphNode> nodes;
    if (const CUresult result = nodesOf(graph, nodes)) return result;
    if (out.clone == nullptr) {  // then what comes before what does not matter
        for (CUgraphNode node : nodes) {
            Writes own;
            if (const CUresult result = look(node, before, own, out)) return result;
        }
        return CUDA_SUCCESS;
    }
    // In an order in which each comes after those that it depends on.
    std::map<CUgraphNode, Writes> done;  // written when the node has ended
    std::vector<CUgraphNode> left = nodes;
    std::vector<std::pair<CUgraphNode, Writes>> hosts;
    while (!left.empty()) {
        std::vector<CUgraphNode> later;
        for (CUgraphNode node : left) {
            size_t count = 0;
            CUresult result = driver_.cuGraphNodeGetDependencies_v2(node, nullptr, nullptr, &count);
            std::vector<CUgraphNode> from(count);
            std::vector<CUgraphEdgeData> data(count);
            if (result == CUDA_SUCCESS && count != 0)
                result =
                    driver_.cuGraphNodeGetDependencies_v2(node, from.data(), data.data(), &count);
            if (result != CUDA_SUCCESS) return result;
            Writes here = before;
            bool ready = true;
            for (CUgraphNode one : from) {
                const auto found = done.find(one);
                ready = ready && found != done.end();
                if (found != done.end()) here = joined(here, found->second);
            }
            if (!ready) {
                later.push_back(node);
                continue;
            }
            Writes own;
            CUgraphNodeType type{};
            result = driver_.cuGraphNodeGetType(node, &type);
            if (result == CUDA_SUCCESS) result = look(node, here, own, out);
            if (result != CUDA_SUCCESS) return result;
            if (type == CU_GRAPH_NODE_TYPE_HOST) hosts.emplace_back(node, here);
            all = joined(all, own);
            done[node] = joined(here, own);
        }
        if (later.size() == left.size()) return CUDA_ERROR_INVALID_VALUE;  // a cycle
        left = std::move(later);
    }
    for (const auto& [host, here] : hosts)
        if (const CUresult result = replace(graph, host, here, out)) return result;
    return CUDA_SUCCESS;
}

CUresult GraphPlanner::look(CUgraphNode node, const Writes& before, Writes& own, GraphPlan& out) {
    CUgraphNodeType type{};
    if (const CUresult result = driver_.cuGraphNodeGetType(node, &type)) return result;
    if (type == CU_GRAPH_NODE_TYPE_MEMCPY) return noteCopy(node, own, out);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_SUCCESS;
    CUgraph child = nullptr;
    if (const CUresult result = driver_.cuGraphChildGraphNodeGetGraph(node, &child)) return result;
    return walk(child, before, own, out);
}

void GraphPlanner::spansOf(const CUDA_MEMCPY3D& copy, custom::HostSpan& read,
                           custom::HostSpan& write) const {
    const auto find = [&](CUmemorytype type, const void* host, CUdeviceptr device, uint64_t skip,
                          uint64_t pitch, uint64_t height) -> custom::HostSpan {
        if (type == CU_MEMORYTYPE_ARRAY) return {};
        const uint64_t base =
            type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : uint64_t{device};
        const custom::HostSpan span{base + skip, extentOf(copy, pitch, height)};
        return mirrors_.holding(span.address, span.size) != nullptr ? span : custom::HostSpan{};
    };
    const uint64_t from =
        (copy.srcZ * copy.srcHeight + copy.srcY) * copy.srcPitch + copy.srcXInBytes;
    const uint64_t to = (copy.dstZ * copy.dstHeight + copy.dstY) * copy.dstPitch + copy.dstXInBytes;
    read =
        find(copy.srcMemoryType, copy.srcHost, copy.srcDevice, from, copy.srcPitch, copy.srcHeight);
    write =
        find(copy.dstMemoryType, copy.dstHost, copy.dstDevice, to, copy.dstPitch, copy.dstHeight);
}

CUresult GraphPlanner::noteCopy(CUgraphNode node, Writes& own, GraphPlan& out) const {
    CUDA_MEMCPY3D copy{};
    if (const CUresult result = driver_.cuGraphMemcpyNodeGetParams(node, &copy)) return result;
    custom::HostSpan read{}, write{};
    spansOf(copy, read, write);
    GraphPlan::Copy indices{GraphPlan::kNone, GraphPlan::kNone};
    if (read.size != 0) {
        indices.read = static_cast<uint32_t>(out.reads.size());
        out.reads.push_back(read);
    }
    if (write.size != 0) {
        indices.write = static_cast<uint32_t>(out.writes.size());
        own.push_back(indices.write);
        out.writes.push_back(write);
    }
    out.copies[node] = indices;
    return CUDA_SUCCESS;
}

bool GraphPlanner::mayChange(CUgraphNode node, const CUDA_MEMCPY3D& copy,
                             const GraphPlan& plan) const {
    custom::HostSpan read{}, write{};
    spansOf(copy, read, write);
    const auto found = plan.copies.find(node);
    // After an update the nodes go by other names.
    if (found == plan.copies.end())
        return plan.reads.empty() && plan.writes.empty() && read.size == 0 && write.size == 0;
    return write.size == 0 || found->second.write != GraphPlan::kNone || plan.stops.empty();
}

void GraphPlanner::change(CUgraphNode node, const CUDA_MEMCPY3D& copy, GraphPlan& plan) const {
    const auto found = plan.copies.find(node);
    if (found == plan.copies.end()) return;
    const auto set = [](uint32_t& index, const custom::HostSpan& span,
                        std::vector<custom::HostSpan>& spans) {
        if (index == GraphPlan::kNone && span.size == 0) return;
        if (index == GraphPlan::kNone) {
            index = static_cast<uint32_t>(spans.size());
            spans.push_back(span);
        }
        spans[index] = span;
    };
    custom::HostSpan read{}, write{};
    spansOf(copy, read, write);
    set(found->second.read, read, plan.reads);
    set(found->second.write, write, plan.writes);
}

CUresult GraphPlanner::replace(CUgraph graph, CUgraphNode host, const Writes& before,
                               GraphPlan& out) {
    CUDA_HOST_NODE_PARAMS params{};
    CUresult result = driver_.cuGraphHostNodeGetParams(host, &params);
    if (result != CUDA_SUCCESS) return result;
    GraphStop stop;
    stop.function = reinterpret_cast<uint64_t>(params.userData);
    stop.writesBefore = before;
    result = gates_.takePair(context_, stop.words);
    if (result != CUDA_SUCCESS) return result;
    stop.gate = stop.words.gate;
    CUstreamBatchMemOpParams ops[3]{};
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = stop.words.device;
    ops[0].writeValue.value = 1;
    ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = stop.words.device + sizeof(uint32_t);
    ops[1].waitValue.value = 1;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    ops[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[2].writeValue.address = stop.words.device + sizeof(uint32_t);
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
    batch.ctx = context_;
    batch.count = 3;
    batch.paramArray = ops;
    CUgraphNode node = nullptr;
    result = driver_.cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &batch);
    out.stops.push_back(std::move(stop));
    if (result != CUDA_SUCCESS) return result;
    const auto move = [&](auto list, bool incoming) {
        size_t count = 0;
        CUresult moved = list(host, nullptr, nullptr, &count);
        std::vector<CUgraphNode> others(count), own(count, node);
        std::vector<CUgraphEdgeData> data(count);
        if (moved == CUDA_SUCCESS && count != 0)
            moved = list(host, others.data(), data.data(), &count);
        if (moved != CUDA_SUCCESS || count == 0) return moved;
        return driver_.cuGraphAddDependencies_v2(graph, incoming ? others.data() : own.data(),
                                                 incoming ? own.data() : others.data(), data.data(),
                                                 count);
    };
    result = move(driver_.cuGraphNodeGetDependencies_v2, true);
    if (result == CUDA_SUCCESS) result = move(driver_.cuGraphNodeGetDependentNodes_v2, false);
    return result == CUDA_SUCCESS ? driver_.cuGraphDestroyNode(host) : result;
}

}  // namespace juice::worker
