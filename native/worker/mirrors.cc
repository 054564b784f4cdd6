#include "native/worker/mirrors.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "native/worker/layout.h"

namespace juice::worker {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAddressEnd = 1ull << 47;
/// Below it nothing is mirrored, so that a null pointer stays one, also where root might map it.
constexpr uint64_t kLowest = 1u << 16;

uint64_t pageBegin(uint64_t address) {
    return address & ~(kPage - 1);
}
uint64_t pageEnd(uint64_t address) {
    return (address + kPage - 1) & ~(kPage - 1);
}

}  // namespace

Mirrors::Mirrors(const DriverTable& driver)
    : driver_(driver), limit_(static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * kPage / 2) {}

CUresult Mirrors::allocate(uint64_t size, unsigned flags, uint8_t arena, uint32_t context,
                           Mirror*& out) {
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!fits(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    void* memory = nullptr;
    // Write-combined memory would make the worker's reads of it crawl, and gains nothing here.
    const CUresult result =
        driver_.cuMemHostAlloc(&memory, size, flags & ~CU_MEMHOSTALLOC_WRITECOMBINED);
    if (result != CUDA_SUCCESS) return result;
    const auto begin = reinterpret_cast<uint64_t>(memory);
    if (((arenasOf(begin) & arenasOf(begin + size - 1)) >> arena & 1) == 0) {
        driver_.cuMemFreeHost(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return add(begin, size, Mirror::Kind::pinned, context, out);
}

CUresult Mirrors::add(uint64_t begin, uint64_t size, Mirror::Kind kind, uint32_t context,
                      Mirror*& out) {
    auto mirror = std::make_shared<Mirror>();
    mirror->begin = begin;
    mirror->size = size;
    mirror->kind = kind;
    mirror->context = context;
    out = mirror.get();
    const std::lock_guard lock(mutex_);
    live_[begin] = std::move(mirror);
    held_ += size;
    return CUDA_SUCCESS;
}

CUresult Mirrors::allocateManaged(uint64_t size, uint8_t arena, uint32_t context, Mirror*& out) {
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!fits(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    // The driver's own, where this process may look at it while kernels run.
    CUdevice device = 0;
    int concurrent = 0;
    CUdeviceptr memory = 0;
    if (driver_.cuMemAllocManaged != nullptr && driver_.cuCtxGetDevice(&device) == CUDA_SUCCESS)
        driver_.cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                                     device);
    if (concurrent != 0 &&
        driver_.cuMemAllocManaged(&memory, size, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS) {
        if (((arenasOf(memory) & arenasOf(memory + size - 1)) >> arena & 1) != 0) {
            const CUresult result = add(memory, size, Mirror::Kind::managed, context, out);
            out->drivers = true;
            return result;
        }
        driver_.cuMemFree_v2(memory);
    }
    const CUresult result = allocate(size, CU_MEMHOSTALLOC_PORTABLE, arena, context, out);
    if (result == CUDA_SUCCESS) out->kind = Mirror::Kind::managed;
    return result;
}

Mirror* Mirrors::adopt(uint64_t address, uint64_t size, uint64_t owner, uint32_t context) {
    if (Mirror* const known = at(address)) return known;
    if (size == 0 || !fits(size)) return nullptr;
    Mirror* mirror = nullptr;
    add(address, size, Mirror::Kind::variable, context, mirror);
    mirror->owner = owner;
    return mirror;
}

std::vector<uint64_t> Mirrors::orphans(const std::function<bool(uint64_t)>& live) const {
    std::vector<uint64_t> out;
    for (const auto& [begin, mirror] : live_)
        if (mirror->kind == Mirror::Kind::variable && !live(mirror->owner)) out.push_back(begin);
    return out;
}

CUresult Mirrors::attach(uint64_t address, uint64_t size, unsigned flags, uint32_t context,
                         Mirror*& out) {
    out = nullptr;
    if (size == 0 || address == 0 || address >= kAddressEnd || size > kAddressEnd - address)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fits(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto next = live_.lower_bound(address);
    const bool overlaps =
        (next != live_.end() && next->first < address + size) ||
        (next != live_.begin() && std::prev(next)->first + std::prev(next)->second->size > address);
    if (overlaps) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    const uint64_t begin = pageBegin(address), end = pageEnd(address + size);
    if (begin < kLowest || !mapPages(begin, end)) return CUDA_SUCCESS;
    const CUresult result =
        driver_.cuMemHostRegister_v2(reinterpret_cast<void*>(address), size, flags);
    if (result != CUDA_SUCCESS) {
        unmapPages(begin, end);
        return result;
    }
    return add(address, size, Mirror::Kind::registered, context, out);
}

CUresult Mirrors::release(Mirror& mirror) {
    // Nobody writes there any more when it goes.
    const std::shared_ptr<Mirror> gone = take(mirror.begin);
    void* const memory = reinterpret_cast<void*>(gone->begin);
    CUresult result = CUDA_SUCCESS;
    if (gone->kind == Mirror::Kind::registered)
        result = driver_.cuMemHostUnregister(memory);
    else if (gone->drivers)
        result = driver_.cuMemFree_v2(gone->begin);
    else if (gone->kind != Mirror::Kind::variable)
        result = driver_.cuMemFreeHost(memory);
    unmap(*gone);
    return result;
}

void Mirrors::forget(uint64_t begin) {
    unmap(*take(begin));
}

std::shared_ptr<Mirror> Mirrors::take(uint64_t begin) {
    const std::lock_guard lock(mutex_);
    const auto it = live_.find(begin);
    std::shared_ptr<Mirror> mirror = std::move(it->second);
    live_.erase(it);
    held_ -= mirror->size;
    return mirror;
}

void Mirrors::unmap(const Mirror& mirror) {
    if (mirror.kind == Mirror::Kind::registered)
        unmapPages(pageBegin(mirror.begin), pageEnd(mirror.begin + mirror.size));
}

void Mirrors::removeOf(uint32_t context) {
    std::vector<uint64_t> gone;
    for (const auto& [begin, mirror] : live_)
        if (mirror->context == context) gone.push_back(begin);
    for (const uint64_t begin : gone) forget(begin);
}

void Mirrors::write(uint64_t address, Bytes bytes) const {
    const std::shared_lock lock(mutex_);
    if (!bytes.empty() && findHolding(address, bytes.size()) != nullptr)
        std::memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
}

bool Mirrors::leaving(uint32_t context) const {
    return std::any_of(live_.begin(), live_.end(), [context](const auto& entry) {
        return entry.second->context == context && entry.second->leaving.load() != 0;
    });
}

Mirror* Mirrors::at(uint64_t address) const {
    const auto it = live_.find(address);
    return it == live_.end() ? nullptr : it->second.get();
}

std::shared_ptr<Mirror> Mirrors::findHolding(uint64_t address, uint64_t size) const {
    const auto after = live_.upper_bound(address);
    if (after == live_.begin()) return nullptr;
    const auto& [begin, mirror] = *std::prev(after);
    const uint64_t offset = address - begin;
    return offset <= mirror->size && size <= mirror->size - offset ? mirror : nullptr;
}

template <typename Visit>
void Mirrors::eachGap(uint64_t begin, uint64_t end, Visit visit) const {
    uint64_t from = begin;
    for (const auto& [address, mirror] : live_) {
        if (mirror->kind != Mirror::Kind::registered) continue;
        const uint64_t otherBegin = pageBegin(address), otherEnd = pageEnd(address + mirror->size);
        if (otherEnd <= from) continue;
        if (otherBegin >= end) break;
        if (otherBegin > from) visit(from, otherBegin);
        from = otherEnd;
        if (from >= end) return;
    }
    if (from < end) visit(from, end);
}

bool Mirrors::mapPages(uint64_t begin, uint64_t end) {
    std::vector<std::pair<uint64_t, uint64_t>> done;
    bool whole = true;
    eachGap(begin, end, [&](uint64_t from, uint64_t to) {
        if (!whole) return;
        if (mapAt(from, to - from))
            done.emplace_back(from, to);
        else
            whole = false;
    });
    if (!whole)
        for (const auto& [from, to] : done) unmapAt(from, to - from);
    return whole;
}

void Mirrors::unmapPages(uint64_t begin, uint64_t end) {
    eachGap(begin, end, [](uint64_t from, uint64_t to) { unmapAt(from, to - from); });
}

}  // namespace juice::worker
