// Memory that a client and its worker both hold at one address, and what has changed in it. Each
// end keeps a shadow: what the memory was when the two last agreed. What differs from the shadow
// has been changed here, and travels to the other end as a patch; of bytes that only the other end
// has changed nothing is said, so that two ends may change neighbours at the same time.
//
// A patch is a sequence of pieces: u64 address (a multiple of 8), u32 words, u32 0, `words` bytes
// of masks (bit i: byte i of the word has changed) and `words` words of eight bytes.
#pragma once

#include <cstdint>

#include "native/link/codec.h"

namespace juice::delta {

/// A run of words of a patch.
struct Piece {
    uint64_t address = 0;
    uint32_t words = 0;
    const uint8_t* masks = nullptr;
    const uint8_t* values = nullptr;

    uint64_t end() const { return address + uint64_t{words} * 8; }
    uint64_t value(uint32_t word) const {
        uint64_t out;
        std::memcpy(&out, values + size_t{word} * 8, sizeof out);
        return out;
    }
};

/// Reads the next piece; false at the end of the patch, or (then the reader is not ok) where it is
/// malformed.
bool next(Reader& patch, Piece& piece);

/// The shadow of one range of memory, zero at first. Its methods are called by one thread at a
/// time; the memory itself may be written by anybody meanwhile.
class Shadow {
  public:
    /// Throws std::bad_alloc.
    Shadow(uint64_t begin, uint64_t size);
    ~Shadow();
    Shadow(const Shadow&) = delete;
    Shadow& operator=(const Shadow&) = delete;

    uint64_t begin() const { return begin_; }
    uint64_t end() const { return end_; }

    /// Appends what differs between `from` and `to`, which lie in the range, to `patch`, until that
    /// has `limit` bytes or a little more; the shadow takes it over. Where to go on: `to` when all
    /// has been seen.
    uint64_t collect(uint64_t from, uint64_t to, size_t limit, Writer& patch);
    /// Writes the piece, as far as it lies in the range, into the memory and the shadow. A word is
    /// never seen half written, and what others write into its other bytes meanwhile stays.
    void apply(const Piece& piece);

  private:
    uint64_t& shadowOf(uint64_t word) { return words_[(word - firstWord_) / 8]; }
    /// All bytes of the word that belong to the range.
    uint64_t within(uint64_t word) const;

    const uint64_t begin_, end_;
    const uint64_t firstWord_;
    uint64_t* words_;
};

}  // namespace juice::delta
