#include "native/worker/transfer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace juice::worker {
namespace {

constexpr int kPieceWaitMicros = 50;
/// A transfer whose stream is held up keeps no more pieces from others than these.
constexpr int kPiecesOfOne = 8;

/// An outgoing transfer in the making; shared by the thread that copies and the completions.
struct Outgoing {
    Worker& worker;
    uint64_t transfer, size;
    std::atomic<int> copying{0};
    std::atomic<int> error{0};
    // Touched by completions only, which come one at a time and, for one stream, in order.
    bool begun = false;
    uint64_t ordinal = 0;

    Outgoing(Worker& of, uint64_t name, uint64_t bytes) : worker(of), transfer(name), size(bytes) {}

    void copied(CUresult result, uint64_t offset, void* piece, size_t bytes) {
        if (result != CUDA_SUCCESS) {
            int none = 0;
            error.compare_exchange_strong(none, result);
        }
        // Once begun, all of it must be sent; what was not copied is the client's own old data.
        if (begun || error == 0) {
            if (!begun) ordinal = worker.link.beginSend(transfer, size);
            begun = true;
            worker.link.sendPiece(
                transfer, ordinal, offset, piece, bytes,
                [&staging = worker.staging, piece] { staging.pieces.give(piece); });
        } else {
            worker.staging.pieces.give(piece);
        }
        copying.fetch_sub(1, std::memory_order_release);
    }
};

void* takePiece(Worker& worker) {
    void* piece = worker.staging.pieces.take();
    while (piece == nullptr) {
        worker.completions.poll();
        piece = worker.staging.pieces.take(kPieceWaitMicros);
    }
    return piece;
}

/// Until no more than `left` pieces are being copied.
void waitFor(Worker& worker, const Outgoing& outgoing, int left) {
    const auto impatient = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    while (outgoing.copying.load(std::memory_order_acquire) > left) {
        worker.completions.poll();
        if (std::chrono::steady_clock::now() < impatient)
            __builtin_ia32_pause();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

}  // namespace

void receiveInto(Worker& worker, uint64_t transfer, uint64_t size, uint8_t* destination) {
    worker.link.receive(transfer, size, [&](uint64_t offset, void* slot, size_t bytes) {
        if (destination != nullptr) std::memcpy(destination + offset, slot, bytes);
        worker.link.release(slot);
    });
}

CUresult receiveToDevice(Worker& worker, CUstream stream, uint64_t destination, uint64_t transfer,
                         uint64_t size) {
    const CUcontext context = worker.context() == nullptr ? nullptr : worker.context()->handle;
    CUresult error =
        worker.memory.accessible(destination, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    worker.link.receive(transfer, size, [&](uint64_t offset, void* slot, size_t bytes) {
        if (error == CUDA_SUCCESS)
            error = worker.driver.cuMemcpyHtoDAsync_v2(destination + offset, slot, bytes, stream);
        if (error != CUDA_SUCCESS) return worker.link.release(slot);
        worker.completions.after(context, stream, false,
                                 [&link = worker.link, slot](CUresult) { link.release(slot); });
    });
    return error;
}

CUresult sendFromDevice(Worker& worker, CUcontext context, CUstream stream, uint64_t source,
                        uint64_t transfer, uint64_t size) {
    auto outgoing = std::make_shared<Outgoing>(worker, transfer, size);
    for (uint64_t offset = 0; offset < size; offset += Staging::kPieceSize) {
        const size_t bytes = std::min<uint64_t>(Staging::kPieceSize, size - offset);
        waitFor(worker, *outgoing, kPiecesOfOne - 1);
        void* const piece = takePiece(worker);
        outgoing->copying.fetch_add(1, std::memory_order_relaxed);
        CUresult result = static_cast<CUresult>(outgoing->error.load());
        if (result == CUDA_SUCCESS)
            result = worker.driver.cuMemcpyDtoHAsync_v2(piece, source + offset, bytes, stream);
        if (result != CUDA_SUCCESS) {
            // The copies before this one decide whether the transfer has begun.
            if (offset != 0) waitFor(worker, *outgoing, 1);
            outgoing->copied(result, offset, piece, bytes);
            if (!outgoing->begun) break;
            continue;
        }
        worker.completions.after(context, stream, false,
                                 [outgoing, offset, piece, bytes](CUresult copied) {
                                     outgoing->copied(copied, offset, piece, bytes);
                                 });
    }
    waitFor(worker, *outgoing, 0);
    return static_cast<CUresult>(outgoing->error.load());
}

void sendFromMirror(Worker& worker, CUstream stream, std::shared_ptr<Mirror> mirror,
                    uint64_t address, uint64_t size, uint64_t transfer) {
    mirror->leaving.fetch_add(1);
    worker.completions.after(worker.context()->handle, stream, true,
                             [&link = worker.link, mirror = std::move(mirror), address, size,
                              transfer](CUresult result) {
                                 if (result != CUDA_SUCCESS) {
                                     mirror->leaving.fetch_sub(1);
                                     return;
                                 }
                                 const uint64_t ordinal = link.beginSend(transfer, size);
                                 link.sendPiece(transfer, ordinal, 0,
                                                reinterpret_cast<const void*>(address), size,
                                                [mirror] { mirror->leaving.fetch_sub(1); });
                             });
}

}  // namespace juice::worker
