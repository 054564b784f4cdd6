#include "native/softgpu/ptx/allocate.h"

#include <algorithm>
#include <bit>

namespace juice::softgpu::ptx {
namespace {

/// A run of instructions that control enters only at its start and leaves only at its end.
struct BasicBlock {
    uint32_t begin = 0, end = 0;
    std::vector<uint32_t> next;
    std::vector<uint64_t> gen, kill, in, out;
};

struct Interval {
    uint32_t reg = 0;
    uint32_t begin = ~0u, end = 0;
};

class Liveness {
  public:
    Liveness(const Code& code, uint32_t base, const std::vector<Meta>& metas, size_t registers)
        : code_(code),
          base_(base),
          metas_(metas),
          count_(static_cast<uint32_t>(metas.size())),
          words_((registers + 63) / 64),
          intervals_(registers) {}

    std::vector<Interval> run() {
        split();
        for (BasicBlock& block : blocks_) local(block);
        solve();
        for (const BasicBlock& block : blocks_) stretch(block);
        for (size_t reg = 0; reg < intervals_.size(); ++reg) {
            intervals_[reg].reg = static_cast<uint32_t>(reg);
        }
        return std::move(intervals_);
    }

  private:
    const Instr& at(uint32_t i) const { return code_.instrs[base_ + i]; }

    template <class F>
    void successors(uint32_t i, F f) const {
        const Instr& in = at(i);
        Flow flow = metas_[i].flow;
        bool conditional = in.guard != kNoRef;
        if (flow == Flow::branch) f(in.aux - base_);
        if (flow == Flow::table) {
            for (int64_t k = 0; k < in.imm; ++k) f(code_.targets[in.aux + k] - base_);
        }
        if ((flow == Flow::next || conditional) && i + 1 < count_) f(i + 1);
    }

    void split() {
        std::vector<bool> leader(count_ + 1, false);
        leader[0] = true;
        for (uint32_t i = 0; i < count_; ++i) {
            if (metas_[i].flow == Flow::next) continue;
            leader[i + 1] = true;
            successors(i, [&](uint32_t to) { leader[to] = true; });
        }
        std::vector<uint32_t> blockAt(count_);
        for (uint32_t i = 0; i < count_; ++i) {
            if (leader[i]) {
                blocks_.push_back({});
                blocks_.back().begin = i;
            }
            blocks_.back().end = i + 1;
            blockAt[i] = static_cast<uint32_t>(blocks_.size() - 1);
        }
        for (BasicBlock& block : blocks_) {
            successors(block.end - 1, [&](uint32_t to) { block.next.push_back(blockAt[to]); });
        }
    }

    template <class F>
    void uses(uint32_t i, F f) const {
        const Instr& in = at(i);
        for (Ref ref : {in.a, in.b, in.c, in.guard}) {
            if (ref != kNoRef && !(ref & kConstant)) f(ref);
        }
        for (unsigned k = 0; k < metas_[i].moreUses; ++k) {
            Ref ref = code_.more[in.more + metas_[i].moreDefs + k];
            if (ref != kNoRef && !(ref & kConstant)) f(ref);
        }
    }

    template <class F>
    void defs(uint32_t i, F f) const {
        const Instr& in = at(i);
        if (in.dst != kNoRef) f(in.dst);
        for (unsigned k = 0; k < metas_[i].moreDefs; ++k) {
            Ref ref = code_.more[in.more + k];
            if (ref != kNoRef) f(ref);
        }
    }

    void local(BasicBlock& block) {
        for (auto* set : {&block.gen, &block.kill, &block.in, &block.out}) set->resize(words_);
        for (uint32_t i = block.end; i-- > block.begin;) {
            defs(i, [&](Ref reg) {
                touch(reg, i);
                if (at(i).guard != kNoRef) return;  // the other lanes keep the old value
                block.kill[reg / 64] |= 1ull << (reg % 64);
                block.gen[reg / 64] &= ~(1ull << (reg % 64));
            });
            uses(i, [&](Ref reg) {
                touch(reg, i);
                block.gen[reg / 64] |= 1ull << (reg % 64);
            });
        }
    }

    void solve() {
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t b = blocks_.size(); b-- > 0;) {
                BasicBlock& block = blocks_[b];
                for (size_t w = 0; w < words_; ++w) {
                    uint64_t out = 0;
                    for (uint32_t next : block.next) out |= blocks_[next].in[w];
                    uint64_t in = block.gen[w] | (out & ~block.kill[w]);
                    changed |= in != block.in[w];
                    block.out[w] = out;
                    block.in[w] = in;
                }
            }
        }
    }

    /// What is live across a block's border is live over the whole of that side.
    void stretch(const BasicBlock& block) {
        for (size_t w = 0; w < words_; ++w) {
            for (uint64_t bits = block.in[w]; bits != 0; bits &= bits - 1) {
                touch(static_cast<Ref>(w * 64 + std::countr_zero(bits)), block.begin);
            }
            for (uint64_t bits = block.out[w]; bits != 0; bits &= bits - 1) {
                touch(static_cast<Ref>(w * 64 + std::countr_zero(bits)), block.end);
            }
        }
    }

    void touch(Ref reg, uint32_t i) {
        Interval& interval = intervals_[reg];
        interval.begin = std::min(interval.begin, i);
        interval.end = std::max(interval.end, i);
    }

    const Code& code_;
    uint32_t base_;
    const std::vector<Meta>& metas_;
    uint32_t count_;
    size_t words_;
    std::vector<Interval> intervals_;
    std::vector<BasicBlock> blocks_;
};

unsigned slotBytes(Type type) {
    return type == Type::pred ? 4 : std::max(1u, sizeOf(type)) * kLanes;
}

}  // namespace

Allocation allocateSlots(const Code& code, uint32_t base, const std::vector<Meta>& metas,
                         const std::vector<Type>& registers) {
    std::vector<Interval> intervals = Liveness(code, base, metas, registers.size()).run();
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    Allocation allocation;
    allocation.slots.assign(registers.size(), 0);
    allocation.frameBytes = kFrameHead;
    // One pool per width, so that two live slots are the same or apart. A slot is free again after
    // the instruction that last reads it; a result may take the place of a source that dies there
    // only with the same width, and then cell for cell.
    struct Pool {
        std::vector<Ref> free;
        std::vector<std::pair<uint32_t, Ref>> active;  // heap by end
    };
    Pool pools[6];
    for (const Interval& interval : intervals) {
        if (interval.begin == ~0u) continue;
        Type type = registers[interval.reg];
        unsigned bytes = slotBytes(type);
        Pool& pool = pools[type == Type::pred ? 0 : std::bit_width(sizeOf(type))];
        while (!pool.active.empty() && pool.active.front().first < interval.begin) {
            std::pop_heap(pool.active.begin(), pool.active.end(), std::greater<>());
            pool.free.push_back(pool.active.back().second);
            pool.active.pop_back();
        }
        Ref slot;
        if (!pool.free.empty()) {
            slot = pool.free.back();
            pool.free.pop_back();
        } else if (type == Type::pred) {
            // Predicates are small: take a line's worth at once.
            slot = allocation.frameBytes;
            for (Ref next = slot + 60; next > slot; next -= 4) pool.free.push_back(next);
            allocation.frameBytes += 64;
        } else {
            slot = allocation.frameBytes;
            allocation.frameBytes += std::max(bytes, 64u);
        }
        allocation.slots[interval.reg] = slot;
        pool.active.emplace_back(interval.end, slot);
        std::push_heap(pool.active.begin(), pool.active.end(), std::greater<>());
    }
    return allocation;
}

}  // namespace juice::softgpu::ptx
