// Memory that graphs allocate, and user objects that they keep.
#include <climits>

#include "native/softgpu/driver/graph_memory.h"
#include "native/softgpu/driver/guard_graph.h"
#include "native/softgpu/driver/user_object.h"

using namespace juice::softgpu;

namespace {

template <typename Body>
CUresult withUserObject(CUuserObject handle, unsigned count, const Body& body) {
    return withDriver([&]() -> CUresult {
        const auto object = find<UserObject>(handle);
        if (!object || count == 0 || count > INT_MAX) return CUDA_ERROR_INVALID_VALUE;
        return body(object);
    });
}

}  // namespace

CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams generic{};
    generic.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    generic.alloc = {parameters->poolProps, parameters->accessDescs, parameters->accessDescCount,
                     parameters->bytesize, 0};
    const CUresult result = cuGraphAddNode_v2(out, graph, dependencies, nullptr, count, &generic);
    if (result == CUDA_SUCCESS) parameters->dptr = generic.alloc.dptr;
    return result;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
    return withNodeOf<AllocOperation>(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                      [&](Node&, const AllocOperation& alloc) {
                                          if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
                                          *out = alloc.parameters();
                                          return CUDA_SUCCESS;
                                      });
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr address) {
    CUgraphNodeParams generic{};
    generic.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    generic.free.dptr = address;
    return cuGraphAddNode_v2(out, graph, dependencies, nullptr, count, &generic);
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* out) {
    return withNodeOf<FreeOperation>(handle, CU_GRAPH_NODE_TYPE_MEM_FREE,
                                     [&](Node&, const FreeOperation& free) {
                                         if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
                                         *out = free.allocation().address();
                                         return CUDA_SUCCESS;
                                     });
}

/// Memory of graphs goes with them; there is none to spare.
CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
    return withDevice(ordinal, [](Device&) { return CUDA_SUCCESS; });
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
    return withDevice(ordinal, [&](Device& device) {
        if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
        return graphMemoryAttribute(device, attribute, *static_cast<uint64_t*>(value));
    });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
    return withDevice(ordinal, [&](Device& device) {
        if (value == nullptr || *static_cast<uint64_t*>(value) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        return resetGraphMemoryAttribute(device, attribute);
    });
}

CUresult cuUserObjectCreate(CUuserObject* out, void* pointer, CUhostFn destroy,
                            unsigned int references, unsigned int flags) {
    return withDriver([&] {
        if (out == nullptr || destroy == nullptr || references == 0 || references > INT_MAX ||
            flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        auto object = std::make_shared<UserObject>(pointer, destroy, references);
        *out =
            reinterpret_cast<CUuserObject>(Registry<UserObject>::instance().add(std::move(object)));
        return CUDA_SUCCESS;
    });
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count) {
    return withUserObject(handle, count, [&](const std::shared_ptr<UserObject>& object) {
        object->retain(count);
        return CUDA_SUCCESS;
    });
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
    return withUserObject(handle, count, [&](const std::shared_ptr<UserObject>& object) {
        return object->release(count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject user, unsigned int count,
                                 unsigned int flags) {
    return withUserObject(user, count, [&](const std::shared_ptr<UserObject>& object) {
        return withGraph(handle, [&](Graph& graph) {
            if ((flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->retain(count);
            for (unsigned i = 0; i < count; ++i) {
                graph.userObjects.push_back(std::make_shared<UserReference>(object));
            }
            return CUDA_SUCCESS;
        });
    });
}

CUresult cuGraphReleaseUserObject(CUgraph handle, CUuserObject user, unsigned int count) {
    return withUserObject(user, count, [&](const std::shared_ptr<UserObject>& object) {
        return withGraph(handle, [&](Graph& graph) {
            auto& held = graph.userObjects;
            const auto is = [&](const auto& reference) {
                return reference->object() == object.get();
            };
            if (std::count_if(held.begin(), held.end(), is) < static_cast<int>(count)) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            for (unsigned i = 0; i < count; ++i) {
                held.erase(std::find_if(held.begin(), held.end(), is));
            }
            return CUDA_SUCCESS;
        });
    });
}
