#include "native/link/delta.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <new>

namespace juice::delta {
namespace {

constexpr uint64_t kWord = 8;
/// Memory is compared in blocks of this size before it is looked at word by word.
constexpr uint64_t kBlock = 4096;
constexpr uint32_t kMostWords = kBlock / kWord;
/// So many words that are the same cost less than the head of a further piece.
constexpr uint32_t kWorthBridging = 2;

uint64_t wordOf(uint64_t address) {
    return address & ~(kWord - 1);
}

/// Bit i: byte i is not zero.
uint8_t bytesSet(uint64_t value) {
    value |= value >> 4;
    value &= 0x0f0f'0f0f'0f0f'0f0f;
    value |= value >> 2;
    value |= value >> 1;
    value &= 0x0101'0101'0101'0101;
    return static_cast<uint8_t>(value * 0x0102'0408'1020'4080 >> 56);
}

/// The reverse: 0xff for each bit that is set.
constexpr auto kSpread = [] {
    std::array<uint64_t, 256> table{};
    for (unsigned mask = 0; mask < 256; ++mask)
        for (unsigned i = 0; i < 8; ++i)
            if ((mask >> i & 1) != 0) table[mask] |= uint64_t{0xff} << 8 * i;
    return table;
}();

uint64_t* at(uint64_t word) {
    return reinterpret_cast<uint64_t*>(word);
}

void write(uint64_t word, uint64_t bytes, uint64_t value) {
    if (bytes == ~uint64_t{0}) return __atomic_store_n(at(word), value, __ATOMIC_RELEASE);
    uint64_t old = __atomic_load_n(at(word), __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at(word), &old, (old & ~bytes) | (value & bytes), false,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

/// A piece that is growing.
class Run {
  public:
    explicit Run(Writer& out) : out_(out) {}
    ~Run() { end(); }

    void add(uint64_t word, uint8_t mask, uint64_t value) {
        if (count_ != 0) {
            const uint64_t gap = (word - begin_) / kWord - count_;
            if (gap > kWorthBridging || count_ + gap >= kMostWords)
                end();
            else
                for (uint64_t i = 0; i < gap; ++i) append(0, 0);
        }
        if (count_ == 0) begin_ = word;
        append(mask, value);
    }

  private:
    void append(uint8_t mask, uint64_t value) {
        masks_[count_] = mask;
        values_[count_++] = value;
    }
    void end() {
        if (count_ == 0) return;
        out_.put(begin_).put(count_).put(uint32_t{0});
        out_.raw(masks_.data(), count_);
        out_.raw(values_.data(), size_t{count_} * kWord);
        count_ = 0;
    }

    Writer& out_;
    uint64_t begin_ = 0;
    uint32_t count_ = 0;
    std::array<uint8_t, kMostWords> masks_;
    std::array<uint64_t, kMostWords> values_;
};

}  // namespace

bool next(Reader& patch, Piece& piece) {
    if (!patch.ok() || patch.done()) return false;
    piece.address = patch.get<uint64_t>();
    piece.words = patch.get<uint32_t>();
    const bool sound = patch.get<uint32_t>() == 0 && piece.address % kWord == 0 &&
                       piece.words != 0 && piece.words <= kMostWords &&
                       piece.address <= UINT64_MAX - kMostWords * kWord;
    if (!sound) patch.fail();
    piece.masks = patch.take(piece.words).data();
    piece.values = patch.take(size_t{piece.words} * kWord).data();
    return patch.ok();
}

Shadow::Shadow(uint64_t begin, uint64_t size)
    : begin_(begin), end_(begin + size), firstWord_(wordOf(begin)) {
    void* const memory = mmap(nullptr, end_ - firstWord_ + kWord, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    words_ = static_cast<uint64_t*>(memory);
}

Shadow::~Shadow() {
    munmap(words_, end_ - firstWord_ + kWord);
}

uint64_t Shadow::within(uint64_t word) const {
    uint64_t bytes = ~uint64_t{0};
    if (word < begin_) bytes &= bytes << 8 * (begin_ - word);
    if (word + kWord > end_) bytes &= ~uint64_t{0} >> 8 * (word + kWord - end_);
    return bytes;
}

uint64_t Shadow::collect(uint64_t from, uint64_t to, size_t limit, Writer& patch) {
    uint64_t word = wordOf(from);
    while (word < to) {
        const uint64_t stop = std::min((word & ~(kBlock - 1)) + kBlock, to);
        // The words at the ends of the range have neighbours that are not ours.
        const bool inside =
            word >= begin_ && wordOf(stop) + (stop % kWord != 0 ? kWord : 0) <= end_;
        if (inside && std::memcmp(at(word), &shadowOf(word), stop - word) == 0) {
            word = wordOf(stop + kWord - 1);
            continue;
        }
        {
            Run run(patch);
            for (; word < stop; word += kWord) {
                const uint64_t value = __atomic_load_n(at(word), __ATOMIC_ACQUIRE);
                uint64_t& shadow = shadowOf(word);
                const uint8_t mask = bytesSet((value ^ shadow) & within(word));
                if (mask == 0) continue;
                shadow = (shadow & ~kSpread[mask]) | (value & kSpread[mask]);
                run.add(word, mask, value);
            }
        }
        if (patch.size() >= limit) break;
    }
    return std::min(word, to);
}

void Shadow::apply(const Piece& piece) {
    for (uint32_t i = 0; i < piece.words; ++i) {
        const uint64_t word = piece.address + i * kWord;
        if (piece.masks[i] == 0 || word + kWord <= begin_ || word >= end_) continue;
        const uint64_t bytes = kSpread[piece.masks[i]] & within(word);
        const uint64_t value = piece.value(i);
        uint64_t& shadow = shadowOf(word);
        shadow = (shadow & ~bytes) | (value & bytes);
        write(word, bytes, value);
    }
}

}  // namespace juice::delta
