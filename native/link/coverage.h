// Which bytes of a transfer have been seen. Chunks come over several lanes in any order; what comes
// in order costs one interval a lane.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace juice {

class Coverage {
  public:
    /// Adds [offset, offset + size), size > 0 and without overflow. False, and nothing added, when
    /// any of it was there before.
    bool add(uint64_t offset, uint64_t size) {
        const uint64_t end = offset + size;
        auto next = spans_.lower_bound(offset);
        if (next != spans_.end() && next->first < end) return false;
        auto before = next == spans_.begin() ? spans_.end() : std::prev(next);
        if (before != spans_.end() && before->second > offset) return false;
        if (before != spans_.end() && before->second == offset)
            before->second = end;
        else
            before = spans_.emplace_hint(next, offset, end);
        if (next != spans_.end() && next->first == end) {
            before->second = next->second;
            spans_.erase(next);
        }
        seen_ += size;
        return true;
    }
    /// Bytes seen.
    uint64_t seen() const { return seen_; }
    /// Pieces that do not touch. A peer that scatters them wants our memory.
    size_t pieces() const { return spans_.size(); }

  private:
    std::map<uint64_t, uint64_t> spans_;  // begin -> end, disjoint and never touching
    uint64_t seen_ = 0;
};

}  // namespace juice
