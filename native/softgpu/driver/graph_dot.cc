#include "native/softgpu/driver/graph_dot.h"

#include <fstream>
#include <sstream>

#include "native/softgpu/driver/conditional.h"
#include "native/softgpu/driver/copy.h"
#include "native/softgpu/driver/graph_memory.h"
#include "native/softgpu/driver/launch.h"

namespace juice::softgpu {
namespace {

const char* nameOf(CUgraphNodeType type) {
    switch (type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return "KERNEL";
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return "MEMCPY";
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return "MEMSET";
        case CU_GRAPH_NODE_TYPE_HOST:
            return "HOST";
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return "GRAPH";
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return "WAIT_EVENT";
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return "EVENT_RECORD";
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            return "MEM_ALLOC";
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return "MEM_FREE";
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return "BATCH_MEM_OP";
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return "CONDITIONAL";
        default:
            return "EMPTY";
    }
}

const char* placeOf(CUmemorytype type) {
    switch (type) {
        case CU_MEMORYTYPE_HOST:
            return "host";
        case CU_MEMORYTYPE_ARRAY:
            return "array";
        case CU_MEMORYTYPE_UNIFIED:
            return "unified";
        default:
            return "device";
    }
}

/// Writes one graph, and what is in it, as nested clusters.
class Writer {
  public:
    explicit Writer(unsigned flags) : flags_(flags) {}

    std::string whole(const Graph& graph) {
        out_ << "digraph dot {\n";
        write(graph);
        out_ << "}\n";
        return out_.str();
    }

  private:
    bool asked(unsigned flag) const {
        return (flags_ & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
    }

    void write(const Graph& graph) {
        const unsigned number = graphs_++;
        out_ << "subgraph cluster_" << number << " {\nlabel=\"graph_" << number
             << "\" graph[style=\"dashed\"];\n";
        for (const auto& node : graph.nodes()) {
            out_ << "\"node_" << node->id << "\"[shape=\"box\" label=\"";
            label(*node);
            out_ << "\"];\n";
            for (const auto& inside : node->embedded) write(*inside);
        }
        for (const auto& node : graph.nodes()) {
            for (const Edge& edge : node->dependents) {
                out_ << "\"node_" << node->id << "\" -> \"node_" << edge.node->id << "\"";
                if (!isDefault(edge.data)) out_ << "[label=\"programmatic\"]";
                out_ << ";\n";
            }
        }
        out_ << "}\n";
    }

    void label(const Node& node) {
        out_ << node.id << "\\n" << nameOf(node.type());
        if (asked(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) out_ << "\\nnode " << &node;
        if (node.type() == CU_GRAPH_NODE_TYPE_KERNEL) {
            kernel(static_cast<const KernelOperation&>(*node.operation));
        } else if (node.type() == CU_GRAPH_NODE_TYPE_MEMCPY) {
            copy(static_cast<const CopyOperation&>(*node.operation).described());
        } else if (node.type() == CU_GRAPH_NODE_TYPE_MEMSET) {
            fill(static_cast<const FillOperation&>(*node.operation).described());
        } else if (node.type() == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
            alloc(static_cast<const AllocOperation&>(*node.operation).parameters());
        }
    }

    void kernel(const KernelOperation& launch) {
        out_ << "\\n" << launch.name();
        if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS)) return;
        const LaunchShape& shape = launch.shape();
        out_ << "\\n<<<(" << shape.grid.x << "," << shape.grid.y << "," << shape.grid.z << "),("
             << shape.block.x << "," << shape.block.y << "," << shape.block.z << "),"
             << shape.dynamicShared << ">>>";
    }

    void copy(const CUDA_MEMCPY3D& c) {
        out_ << "\\n" << placeOf(c.srcMemoryType) << " to " << placeOf(c.dstMemoryType);
        if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS)) return;
        out_ << "\\n" << c.WidthInBytes << " x " << c.Height << " x " << c.Depth;
    }

    void fill(const CUDA_MEMSET_NODE_PARAMS& f) {
        if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS)) return;
        out_ << "\\n0x" << std::hex << f.dst << std::dec << " = " << f.value << ", " << f.width
             << " x " << f.height << " of " << f.elementSize << " bytes";
    }

    void alloc(const CUDA_MEM_ALLOC_NODE_PARAMS& a) {
        if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS)) return;
        out_ << "\\n0x" << std::hex << a.dptr << std::dec << ", " << a.bytesize << " bytes";
    }

    const unsigned flags_;
    unsigned graphs_ = 0;
    std::ostringstream out_;
};

}  // namespace

std::string dotOf(const Graph& graph, unsigned flags) {
    return Writer(flags).whole(graph);
}

bool writeDot(const Graph& graph, const std::string& path, unsigned flags) {
    std::ofstream file(path);
    file << dotOf(graph, flags);
    file.flush();
    return file.good();
}

}  // namespace juice::softgpu
