// Graphs: made, looked at, changed, described.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "native/gen/custom_handlers.h"
#include "native/worker/node_params.h"

namespace juice::worker {
namespace {

/// Forgets what the client knew of the graph.
void forgetGraph(Worker& worker, uint64_t number) {
    const auto [begin, end] = worker.graphMemory.equal_range(number);
    for (auto one = begin; one != end; ++one) worker.memory.graphIsGone(one->second);
    worker.graphMemory.erase(begin, end);
    worker.graphs.forget(number);
}

struct Listed {
    std::vector<CUgraphNode> from, to;
    std::vector<CUgraphEdgeData> data;
};

CUresult list(Incoming& in, const custom::GraphList& call, Listed& out) {
    const DriverTable& driver = in.driver();
    const auto what = static_cast<custom::GraphListed>(call.what);
    const bool ofNode = what >= custom::GraphListed::dependencies;
    const auto graph = ofNode ? nullptr : graphNamed<CUgraph>(in, GraphKind::graph, call.of);
    const auto node = ofNode ? graphNamed<CUgraphNode>(in, GraphKind::node, call.of) : nullptr;
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const auto ask = [&](size_t* count) -> CUresult {
        const bool all = *count != 0;
        CUgraphNode* const from = all ? out.from.data() : nullptr;
        CUgraphEdgeData* const data = all ? out.data.data() : nullptr;
        switch (what) {
            case custom::GraphListed::nodes:
                return driver.cuGraphGetNodes(graph, from, count);
            case custom::GraphListed::roots:
                return driver.cuGraphGetRootNodes(graph, from, count);
            case custom::GraphListed::edges:
                return driver.cuGraphGetEdges_v2(graph, from, all ? out.to.data() : nullptr, data,
                                                 count);
            case custom::GraphListed::dependencies:
                return driver.cuGraphNodeGetDependencies_v2(node, from, data, count);
            case custom::GraphListed::dependents:
                return driver.cuGraphNodeGetDependentNodes_v2(node, from, data, count);
        }
        return CUDA_ERROR_INVALID_VALUE;
    };
    size_t count = 0;
    CUresult result = ask(&count);
    if (count > custom::kMaxListed) return CUDA_ERROR_NOT_SUPPORTED;
    out.from.resize(count);
    out.to.resize(count);
    out.data.resize(count);
    if (result == CUDA_SUCCESS && count != 0) result = ask(&count);
    return result;
}

}  // namespace

CUresult custom_cuGraphCreate(Incoming& in) {
    const auto flags = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuGraphCreate == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    CUgraph graph = nullptr;
    const CUresult result = in.driver().cuGraphCreate(&graph, static_cast<unsigned>(flags));
    if (result == CUDA_SUCCESS) in.out().put(in.worker().graphs.of(GraphKind::graph, graph, 0));
    return result;
}

CUresult custom_cuGraphClone(Incoming& in) {
    const auto original = graphNamed<CUgraph>(in, GraphKind::graph);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    CUgraph graph = nullptr;
    const CUresult result = in.driver().cuGraphClone(&graph, original);
    if (result == CUDA_SUCCESS) in.out().put(in.worker().graphs.of(GraphKind::graph, graph, 0));
    return result;
}

CUresult custom_cuGraphDestroy(Incoming& in) {
    const auto number = in.get<uint64_t>();
    const auto graph = graphNamed<CUgraph>(in, GraphKind::graph, number);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const CUresult result = in.driver().cuGraphDestroy(graph);
    if (result == CUDA_SUCCESS) forgetGraph(in.worker(), number);
    return result;
}

CUresult custom_cuGraphDestroyNode(Incoming& in) {
    const auto number = in.get<uint64_t>();
    const auto node = graphNamed<CUgraphNode>(in, GraphKind::node, number);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const CUresult result = in.driver().cuGraphDestroyNode(node);
    if (result == CUDA_SUCCESS) in.worker().graphs.forget(number);
    return result;
}

CUresult custom_cuGraphNodeFindInClone(Incoming& in) {
    const auto node = graphNamed<CUgraphNode>(in, GraphKind::node);
    const auto number = in.get<uint64_t>();
    const auto clone = graphNamed<CUgraph>(in, GraphKind::graph, number);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    CUgraphNode found = nullptr;
    const CUresult result = in.driver().cuGraphNodeFindInClone(&found, node, clone);
    if (result == CUDA_SUCCESS) in.out().put(in.worker().graphs.of(GraphKind::node, found, number));
    return result;
}

/// The driver writes a file; the client wants it on its own disk.
CUresult custom_cuGraphDebugDotPrint(Incoming& in) {
    const auto graph = graphNamed<CUgraph>(in, GraphKind::graph);
    const auto flags = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuGraphDebugDotPrint == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    char directory[] = "/tmp/juice-dot-XXXXXX";
    if (mkdtemp(directory) == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    const std::string path = std::string(directory) + "/graph";
    CUresult result =
        in.driver().cuGraphDebugDotPrint(graph, path.c_str(), static_cast<unsigned>(flags));
    std::string text;
    {
        std::ifstream file(path);
        text.assign(std::istreambuf_iterator<char>(file), {});
    }
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
    if (text.size() > wire::kMaxPayload - sizeof(wire::ReplyHead)) return CUDA_ERROR_NOT_SUPPORTED;
    in.out().raw(text.data(), text.size());
    return result;
}

CUresult custom_juiceGraphList(Incoming& in) {
    const auto call = custom::get<custom::GraphList>(in.reader());
    Listed listed;
    if (const CUresult result = list(in, call, listed)) return result;
    GraphNumbers& graphs = in.worker().graphs;
    const bool ofGraph = static_cast<custom::GraphListed>(call.what) <= custom::GraphListed::edges;
    const uint64_t graph = ofGraph ? call.of : graphs.ownerOf(call.of);
    in.out().put(static_cast<uint32_t>(listed.from.size())).put(uint32_t{0});
    const bool pairs = static_cast<custom::GraphListed>(call.what) == custom::GraphListed::edges;
    for (size_t i = 0; i < listed.from.size(); ++i) {
        putEdge(in, graph, listed.from[i], &listed.data[i]);
        if (pairs) putEdge(in, graph, listed.to[i], nullptr);
    }
    return CUDA_SUCCESS;
}

CUresult custom_juiceGraphConnect(Incoming& in) {
    const auto call = custom::get<custom::GraphConnect>(in.reader());
    const Edges both = readEdges(in, uint64_t{call.count} * 2);
    const auto graph = graphNamed<CUgraph>(in, GraphKind::graph, call.graph);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    std::vector<CUgraphNode> from, to;
    std::vector<CUgraphEdgeData> data;
    for (size_t i = 0; i + 1 < both.nodes.size(); i += 2) {
        from.push_back(both.nodes[i]);
        data.push_back(both.data[i]);
        to.push_back(both.nodes[i + 1]);
    }
    const auto change = call.remove != 0 ? in.driver().cuGraphRemoveDependencies_v2
                                         : in.driver().cuGraphAddDependencies_v2;
    if (change == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return change(graph, from.data(), to.data(), data.data(), from.size());
}

CUresult custom_juiceGraphAddNode(Incoming& in) {
    const auto call = custom::get<custom::GraphAddNode>(in.reader());
    const Edges from = readEdges(in, call.dependencies);
    const auto graph = graphNamed<CUgraph>(in, GraphKind::graph, call.graph);
    const auto params = readNodeParams(in);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    const DriverTable& driver = in.driver();
    if (driver.cuGraphAddNode_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    CUgraphNode node = nullptr;
    const CUresult result = driver.cuGraphAddNode_v2(
        &node, graph, from.nodes.empty() ? nullptr : from.nodes.data(),
        from.nodes.empty() ? nullptr : from.data.data(), from.nodes.size(), &params->params);
    if (result != CUDA_SUCCESS) return result;
    Worker& worker = in.worker();
    const uint64_t number = worker.graphs.of(GraphKind::node, node, call.graph);
    uint64_t more = 0;
    if (params->params.type == CU_GRAPH_NODE_TYPE_GRAPH) {
        CUgraph child = nullptr;
        driver.cuGraphChildGraphNodeGetGraph(node, &child);
        more = worker.graphs.of(GraphKind::graph, child, number);
    } else if (params->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        more = params->params.alloc.dptr;
        worker.memory.add(more, params->params.alloc.bytesize, in.header().context,
                          Memory::Owner::graph);
        worker.graphMemory.emplace(call.graph, more);
    }
    in.out().put(number).put(more);
    return CUDA_SUCCESS;
}

CUresult custom_juiceGraphGetNode(Incoming& in) {
    const auto node = graphNamed<CUgraphNode>(in, GraphKind::node);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return putNodeParams(in, node);
}

CUresult custom_cuGraphNodeGetType(Incoming& in) {
    const auto node = graphNamed<CUgraphNode>(in, GraphKind::node);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    CUgraphNodeType type{};
    const CUresult result = in.driver().cuGraphNodeGetType(node, &type);
    in.out().put(static_cast<uint64_t>(type));
    return result;
}

CUresult custom_cuGraphKernelNodeGetAttribute(Incoming& in) {
    const auto node = graphNamed<CUgraphNode>(in, GraphKind::node);
    const auto attribute = static_cast<CUkernelNodeAttrID>(in.get<uint64_t>());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    CUkernelNodeAttrValue value{};
    if (in.driver().cuGraphKernelNodeGetAttribute == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const CUresult result = in.driver().cuGraphKernelNodeGetAttribute(node, attribute, &value);
    in.out().raw(&value, sizeof value);
    return result;
}

CUresult custom_cuGraphKernelNodeSetAttribute(Incoming& in) {
    const auto node = graphNamed<CUgraphNode>(in, GraphKind::node);
    const auto attribute = static_cast<CUkernelNodeAttrID>(in.get<uint64_t>());
    CUkernelNodeAttrValue value{};
    in.reader().raw(&value, sizeof value);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuGraphKernelNodeSetAttribute == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return in.driver().cuGraphKernelNodeSetAttribute(node, attribute, &value);
}

CUresult custom_cuGraphKernelNodeCopyAttributes(Incoming& in) {
    const auto to = graphNamed<CUgraphNode>(in, GraphKind::node);
    const auto from = graphNamed<CUgraphNode>(in, GraphKind::node);
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuGraphKernelNodeCopyAttributes == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return in.driver().cuGraphKernelNodeCopyAttributes(to, from);
}

namespace {

/// Tells the client of a user object's end, from whatever thread the driver takes for it.
struct Destroyed {
    ServerLink& link;
    uint64_t id;
};
void tellDestroyed(void* data) {
    const std::unique_ptr<Destroyed> destroyed(static_cast<Destroyed*>(data));
    destroyed->link.callback(destroyed->id, CUDA_SUCCESS,
                             static_cast<uint32_t>(custom::Called::userObject));
}

}  // namespace

CUresult custom_cuUserObjectCreate(Incoming& in) {
    const auto call = custom::get<custom::UserObject>(in.reader());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuUserObjectCreate == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    auto destroyed = std::unique_ptr<Destroyed>(new Destroyed{in.worker().link, call.destroyed});
    CUuserObject object = nullptr;
    const CUresult result = in.driver().cuUserObjectCreate(&object, destroyed.get(), tellDestroyed,
                                                           call.count, call.flags);
    if (result != CUDA_SUCCESS) return result;
    static_cast<void>(destroyed.release());  // the driver's, until it calls
    in.out().put(in.worker().graphs.of(GraphKind::userObject, object, 0));
    return CUDA_SUCCESS;
}

CUresult custom_cuUserObjectRetain(Incoming& in) {
    const auto object = graphNamed<CUuserObject>(in, GraphKind::userObject);
    const auto count = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return in.driver().cuUserObjectRetain(object, static_cast<unsigned>(count));
}

CUresult custom_cuUserObjectRelease(Incoming& in) {
    const auto object = graphNamed<CUuserObject>(in, GraphKind::userObject);
    const auto count = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return in.driver().cuUserObjectRelease(object, static_cast<unsigned>(count));
}

CUresult custom_cuGraphRetainUserObject(Incoming& in) {
    const auto graph = graphNamed<CUgraph>(in, GraphKind::graph);
    const auto object = graphNamed<CUuserObject>(in, GraphKind::userObject);
    const auto count = in.get<uint64_t>();
    const auto flags = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return in.driver().cuGraphRetainUserObject(graph, object, static_cast<unsigned>(count),
                                               static_cast<unsigned>(flags));
}

CUresult custom_cuGraphReleaseUserObject(Incoming& in) {
    const auto graph = graphNamed<CUgraph>(in, GraphKind::graph);
    const auto object = graphNamed<CUuserObject>(in, GraphKind::userObject);
    const auto count = in.get<uint64_t>();
    in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    return in.driver().cuGraphReleaseUserObject(graph, object, static_cast<unsigned>(count));
}

CUresult custom_cuDeviceGetGraphMemAttribute(Incoming& in) {
    const auto device = static_cast<CUdevice>(in.get<uint64_t>());
    const auto attribute = static_cast<CUgraphMem_attribute>(in.get<uint64_t>());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuDeviceGetGraphMemAttribute == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    uint64_t value = 0;
    const CUresult result = in.driver().cuDeviceGetGraphMemAttribute(device, attribute, &value);
    in.out().put(value);
    return result;
}

CUresult custom_cuDeviceSetGraphMemAttribute(Incoming& in) {
    const auto device = static_cast<CUdevice>(in.get<uint64_t>());
    const auto attribute = static_cast<CUgraphMem_attribute>(in.get<uint64_t>());
    auto value = in.get<uint64_t>();
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuDeviceSetGraphMemAttribute == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return in.driver().cuDeviceSetGraphMemAttribute(device, attribute, &value);
}

CUresult custom_cuDeviceGraphMemTrim(Incoming& in) {
    const auto device = static_cast<CUdevice>(in.get<uint64_t>());
    if (const CUresult bad = in.done(); bad != CUDA_SUCCESS) return bad;
    if (in.driver().cuDeviceGraphMemTrim == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return in.driver().cuDeviceGraphMemTrim(device);
}

}  // namespace juice::worker
