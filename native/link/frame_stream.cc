#include "native/link/frame_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace juice {
namespace {

constexpr size_t kSegmentSize = 256u << 10;
constexpr size_t kBulkSegmentSize = 4u << 10;
constexpr size_t kReadAhead = 64u << 10;
constexpr size_t kChunkStart = wire::kHeaderSize + wire::kChunkHeader;

FrameStream::Got gotOf(ssize_t size) {
    if (size > 0) return FrameStream::Got::some;
    if (size == 0) return FrameStream::Got::closed;
    return errno == EAGAIN || errno == EINTR ? FrameStream::Got::nothing : FrameStream::Got::failed;
}

}  // namespace

/// Bytes that the frame being assembled needs, from its beginning.
size_t FrameStream::wanted() const {
    const size_t have = filled_ - parsed_;
    if (have < wire::kHeaderSize) return lane_ == 0 ? wire::kHeaderSize : kChunkStart;
    wire::Header header;
    std::memcpy(&header, segment_->bytes.get() + parsed_, sizeof header);
    if (header.kind == static_cast<uint8_t>(wire::Kind::chunk)) return kChunkStart;
    return wire::kHeaderSize + header.size;  // checked when the header was first complete
}

void FrameStream::makeRoom() {
    if (segment_ && parsed_ == filled_ && segment_.alone()) parsed_ = filled_ = 0;
    const size_t need = std::max(wanted(), lane_ == 0 ? kReadAhead : kChunkStart);
    if (segment_ && segment_->capacity - parsed_ >= need && filled_ < segment_->capacity) return;
    SegmentRef fresh(new Segment(std::max(need, lane_ == 0 ? kSegmentSize : kBulkSegmentSize)));
    const size_t have = filled_ - parsed_;
    if (have > 0) std::memcpy(fresh->bytes.get(), segment_->bytes.get() + parsed_, have);
    segment_ = std::move(fresh);
    parsed_ = 0;
    filled_ = have;
}

FrameStream::Got FrameStream::pump(int fd) {
    if (!sentence_.empty()) return Got::violation;
    if (chunkLeft_ > 0) return pumpChunk(fd);
    makeRoom();
    const size_t missing = wanted() - (filled_ - parsed_);
    const size_t room = segment_->capacity - filled_;
    const size_t most = lane_ == 0 ? std::min(room, std::max(missing, kReadAhead)) : missing;
    const ssize_t size = recv(fd, segment_->bytes.get() + filled_, most, MSG_DONTWAIT);
    const Got got = gotOf(size);
    if (got != Got::some) return got;
    filled_ += static_cast<size_t>(size);
    received_.fetch_add(static_cast<size_t>(size), std::memory_order_relaxed);
    return parse();
}

FrameStream::Got FrameStream::pumpChunk(int fd) {
    if (!sink_.beginWrite()) return wrong("a chunk of a transfer that has been withdrawn");
    const ssize_t size = recv(fd, chunk_, chunkLeft_, MSG_DONTWAIT);
    const Got got = gotOf(size);
    sink_.endWrite();
    if (got != Got::some) return got;
    received_.fetch_add(static_cast<size_t>(size), std::memory_order_relaxed);
    chunk_ += size;
    chunkLeft_ -= static_cast<size_t>(size);
    if (chunkLeft_ > 0) return Got::some;
    std::string violation = sink_.endChunk();
    return violation.empty() ? Got::some : wrong(std::move(violation));
}

FrameStream::Got FrameStream::feed(Bytes bytes) {
    received_.fetch_add(bytes.size(), std::memory_order_relaxed);
    while (!bytes.empty()) {
        if (!sentence_.empty()) return Got::violation;
        size_t size = 0;
        if (chunkLeft_ > 0) {
            size = std::min(bytes.size(), chunkLeft_);
            if (!writeChunk(bytes.data(), size)) return Got::violation;
        } else {
            makeRoom();
            size = std::min(bytes.size(), segment_->capacity - filled_);
            std::memcpy(segment_->bytes.get() + filled_, bytes.data(), size);
            filled_ += size;
            if (const Got got = parse(); got != Got::some) return got;
        }
        bytes = bytes.subspan(size);
    }
    return Got::some;
}

/// Copies into the chunk's target; false after a violation.
bool FrameStream::writeChunk(const uint8_t* from, size_t size) {
    if (!sink_.beginWrite()) {
        wrong("a chunk of a transfer that has been withdrawn");
        return false;
    }
    std::memcpy(chunk_, from, size);
    sink_.endWrite();
    chunk_ += size;
    chunkLeft_ -= size;
    if (chunkLeft_ > 0) return true;
    std::string violation = sink_.endChunk();
    if (!violation.empty()) wrong(std::move(violation));
    return sentence_.empty();
}

FrameStream::Got FrameStream::parse() {
    while (filled_ - parsed_ >= wire::kHeaderSize) {
        const uint8_t* at = segment_->bytes.get() + parsed_;
        const size_t have = filled_ - parsed_;
        wire::Header header;
        std::memcpy(&header, at, sizeof header);
        std::string violation = checkHeader(header, peer_, lane_);
        if (!violation.empty()) return wrong(std::move(violation));
        if (header.kind == static_cast<uint8_t>(wire::Kind::chunk)) {
            if (have < kChunkStart) break;
            ChunkHead head;
            std::memcpy(&head, at + wire::kHeaderSize, sizeof head);
            const size_t bytes = header.size - wire::kChunkHeader;
            chunk_ = nullptr;
            violation = sink_.beginChunk(header, head, bytes, chunk_);
            if (!violation.empty()) return wrong(std::move(violation));
            chunkLeft_ = bytes;
            const size_t here = std::min(bytes, have - kChunkStart);
            parsed_ += kChunkStart + here;
            if (here > 0 && !writeChunk(at + kChunkStart, here)) return Got::violation;
            continue;
        }
        const size_t whole = wire::kHeaderSize + header.size;
        if (have < whole) break;
        parsed_ += whole;
        violation = sink_.frame(header, {at + wire::kHeaderSize, header.size}, segment_);
        if (!violation.empty()) return wrong(std::move(violation));
    }
    return Got::some;
}

FrameStream::Got FrameStream::wrong(std::string sentence) {
    sentence_ = std::move(sentence);
    return Got::violation;
}

}  // namespace juice
