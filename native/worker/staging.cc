#include "native/worker/staging.h"

#include <sys/mman.h>

#include <chrono>
#include <new>

namespace juice::worker {
namespace {

constexpr size_t kPieces = 32;
constexpr size_t kSmalls = 64;
constexpr size_t kSlotBytes = Staging::kSlots * wire::kChunkSize;
constexpr size_t kPieceBytes = kPieces * Staging::kPieceSize;
constexpr size_t kSize = kSlotBytes + kPieceBytes + kSmalls * wire::kInlineLimit;

}  // namespace

Staging::Staging() {
    void* mapped = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<char*>(mapped);
    for (size_t i = kPieces; i-- > 0;)
        pieces.free_.push_back(memory_ + kSlotBytes + i * kPieceSize);
    for (size_t i = kSmalls; i-- > 0;)
        smalls.free_.push_back(memory_ + kSlotBytes + kPieceBytes + i * wire::kInlineLimit);
}

void Staging::pin(const DriverTable& driver, CUcontext context) {
    if (pinnedIn_ != nullptr || driver.cuMemHostRegister_v2 == nullptr) return;
    if (driver.cuMemHostRegister_v2(memory_, kSize, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS)
        pinnedIn_ = context;
}

void Staging::unpin(const DriverTable& driver, CUcontext context) {
    if (pinnedIn_ != context) return;
    driver.cuMemHostUnregister(memory_);
    pinnedIn_ = nullptr;
}

std::vector<void*> Staging::slots() const {
    std::vector<void*> out(kSlots);
    for (size_t i = 0; i < kSlots; ++i) out[i] = memory_ + i * wire::kChunkSize;
    return out;
}

void* Staging::Pool::take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    void* piece = free_.back();
    free_.pop_back();
    return piece;
}

void* Staging::Pool::take(int micros) {
    std::unique_lock lock(mutex_);
    if (free_.empty()) freed_.wait_for(lock, std::chrono::microseconds(micros));
    if (free_.empty()) return nullptr;
    void* piece = free_.back();
    free_.pop_back();
    return piece;
}

void Staging::Pool::give(void* piece) {
    {
        const std::lock_guard lock(mutex_);
        free_.push_back(piece);
    }
    freed_.notify_one();
}

}  // namespace juice::worker
