#include "native/softgpu/driver/graph_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "native/softgpu/driver/context.h"
#include "native/softgpu/driver/device.h"
#include "native/softgpu/driver/memory.h"

namespace juice::softgpu {
namespace {

struct Counter {
    uint64_t now = 0, most = 0;

    void change(int64_t by) {
        now += static_cast<uint64_t>(by);
        most = std::max(most, now);
    }
};

struct Counters {
    Counter used, reserved;
};

/// All of the process.
struct GraphMemory {
    std::mutex mutex;
    std::map<uint64_t, std::weak_ptr<GraphAllocation>> byAddress;
    std::map<int, Counters> counters;
};

GraphMemory& memory() {
    static auto* const all = new GraphMemory;
    return *all;
}

void count(const Context& context, Counter Counters::*counter, int64_t bytes) {
    const std::lock_guard lock(memory().mutex);
    (memory().counters[context.device().ordinal()].*counter).change(bytes);
}

}  // namespace

std::shared_ptr<GraphAllocation> GraphAllocation::create(Context& context, size_t size) {
    std::shared_ptr<GraphAllocation> made(new GraphAllocation(context, size));
    if (made->memory_.result() != CUDA_SUCCESS) return nullptr;
    const std::lock_guard lock(memory().mutex);
    memory().byAddress[made->address()] = made;
    return made;
}

GraphAllocation::GraphAllocation(Context& context, size_t size)
    : context_(context), memory_(context, size, MemoryKind::device), size_(size) {
    count(context_, &Counters::reserved, static_cast<int64_t>(size));
}

GraphAllocation::~GraphAllocation() {
    if (live_) memory_.abandon();
    setLive(false);
    count(context_, &Counters::reserved, -static_cast<int64_t>(size_));
    const std::lock_guard lock(memory().mutex);
    const auto found = memory().byAddress.find(address());
    // Another one may have the address by now, if the context was reset.
    if (found != memory().byAddress.end() && found->second.expired()) {
        memory().byAddress.erase(found);
    }
}

std::shared_ptr<GraphAllocation> GraphAllocation::find(uint64_t address) {
    const std::lock_guard lock(memory().mutex);
    const auto found = memory().byAddress.find(address);
    return found == memory().byAddress.end() ? nullptr : found->second.lock();
}

void GraphAllocation::setLive(bool live) {
    if (live_.exchange(live) == live) return;
    const auto bytes = static_cast<int64_t>(size_);
    count(context_, &Counters::used, live ? bytes : -bytes);
}

CUresult GraphAllocation::free() {
    if (!live_) return CUDA_ERROR_INVALID_VALUE;
    setLive(false);
    return context_.failure();
}

CUresult AllocOperation::make(CUDA_MEM_ALLOC_NODE_PARAMS& parameters,
                              std::shared_ptr<AllocOperation>& made) {
    const CUmemPoolProps& pool = parameters.poolProps;
    if (pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || parameters.bytesize == 0 ||
        pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
        pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Device* const device = deviceAt(pool.location.id);
    const size_t count = parameters.accessDescCount;
    if (device == nullptr || (count > 0 && parameters.accessDescs == nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; ++i) {
        const CUmemAccessDesc& access = parameters.accessDescs[i];
        if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            deviceAt(access.location.id) == nullptr ||
            access.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    // Memory of pools belongs to the device, which is to say its primary context.
    const auto current = ContextStack::ofThread().current();
    Context& context = current && &current->device() == device ? *current : device->primary();
    if (!context.active()) return CUDA_ERROR_INVALID_CONTEXT;
    auto alloc = std::make_shared<AllocOperation>();
    alloc->allocation_ = GraphAllocation::create(context, parameters.bytesize);
    if (!alloc->allocation_) return CUDA_ERROR_OUT_OF_MEMORY;
    parameters.dptr = alloc->allocation_->address();
    alloc->accesses_.assign(parameters.accessDescs, parameters.accessDescs + count);
    alloc->parameters_ = parameters;
    alloc->parameters_.accessDescs = count == 0 ? nullptr : alloc->accesses_.data();
    made = std::move(alloc);
    return CUDA_SUCCESS;
}

Work AllocOperation::bind() const {
    allocation_->setLive(true);
    return {};
}

CUresult FreeOperation::make(Graph& graph, CUdeviceptr address,
                             std::shared_ptr<FreeOperation>& made) {
    auto allocation = GraphAllocation::find(address);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    bool inside = false;
    graph.root().visit([&](Node& node) {
        if (node.type() != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return;
        const auto& alloc = static_cast<const AllocOperation&>(*node.operation);
        inside = inside || &alloc.allocation() == allocation.get();
    });
    if (allocation->freedInside || (inside && allocation->freedOutside)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    (inside ? allocation->freedInside : allocation->freedOutside) = true;
    made = std::make_shared<FreeOperation>();
    made->allocation_ = std::move(allocation);
    return CUDA_SUCCESS;
}

Work FreeOperation::bind() const {
    allocation_->setLive(false);
    return {};
}

bool mayLaunch(const Graph& graph, bool freesItself) {
    bool may = true;
    std::set<const GraphAllocation*> allocated;
    graph.visit([&](Node& node) {
        if (node.type() != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return;
        const auto& allocation = static_cast<const AllocOperation&>(*node.operation).allocation();
        allocated.insert(&allocation);
        if (allocation.live() && !freesItself) may = false;
    });
    graph.visit([&](Node& node) {
        if (node.type() != CU_GRAPH_NODE_TYPE_MEM_FREE) return;
        const auto& allocation = static_cast<const FreeOperation&>(*node.operation).allocation();
        if (!allocated.contains(&allocation) && !allocation.live()) may = false;
    });
    return may;
}

CUresult graphMemoryAttribute(const Device& device, CUgraphMem_attribute attribute,
                              uint64_t& value) {
    const std::lock_guard lock(memory().mutex);
    const Counters& counters = memory().counters[device.ordinal()];
    switch (attribute) {
        case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
            value = counters.used.now;
            return CUDA_SUCCESS;
        case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
            value = counters.used.most;
            return CUDA_SUCCESS;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
            value = counters.reserved.now;
            return CUDA_SUCCESS;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
            value = counters.reserved.most;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult resetGraphMemoryAttribute(const Device& device, CUgraphMem_attribute attribute) {
    const std::lock_guard lock(memory().mutex);
    Counters& counters = memory().counters[device.ordinal()];
    switch (attribute) {
        case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
            counters.used.most = counters.used.now;
            return CUDA_SUCCESS;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
            counters.reserved.most = counters.reserved.now;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace juice::softgpu
