#include "native/softgpu/exec/standing.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "native/softgpu/exec/fault.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/memory.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

/// Instructions [begin, end) of the innermost loop around pc; begin == end if there is none.
struct Loop {
    uint32_t begin = 0, end = 0;
    bool operator<(const Loop& other) const {
        return begin != other.begin ? begin < other.begin : end < other.end;
    }
};

Loop loopAround(const Code& code, uint32_t pc) {
    const FunctionCode* function = code.functionAt(pc);
    Loop best{pc, pc};
    if (function == nullptr) return best;
    for (uint32_t i = pc; i < function->end; ++i) {
        const Instr& in = code.instrs[i];
        if (!isBranch(in) || in.aux > pc) continue;
        bool smaller = best.begin == best.end || i + 1 - in.aux < best.end - best.begin;
        if (smaller) best = {in.aux, i + 1};
    }
    return best;
}

/// The instruction at which a lane that waits does so: some are past it.
uint32_t waitsAt(const Warp& warp, unsigned lane) {
    bool past = (warp.blocked | warp.arrived) >> lane & 1;
    return warp.pc[lane] - (past && warp.pc[lane] > 0 ? 1 : 0);
}

std::string threads(uint64_t count) {
    return std::to_string(count) + (count == 1 ? " thread " : " threads ");
}

}  // namespace

void Standing::add(const Block& block) {
    for (const Warp& warp : block.warps) {
        uint32_t runnable = warp.runnable();
        eachLane(warp.live, [&](unsigned lane) {
            if (runnable >> lane & 1) {
                ++places_[warp.pc[lane]].running;
            } else {
                ++places_[waitsAt(warp, lane)].waiting;
            }
        });
    }
}

std::string Standing::describe(const Code& code) const {
    constexpr size_t kMostLines = 6;
    // The threads of one loop are one line, whichever of its instructions they are at.
    struct Line {
        uint64_t threads = 0;
        std::string text;
    };
    std::map<Loop, std::pair<uint64_t, uint32_t>> running;  // threads, first pc
    std::vector<Line> lines;
    for (const auto& [pc, threads] : places_) {
        if (threads.waiting != 0)
            lines.push_back({threads.waiting, "wait at " + placeOf(code, pc)});
        if (threads.running == 0) continue;
        auto [slot, fresh] = running.try_emplace(loopAround(code, pc), 0, pc);
        slot->second.first += threads.running;
    }
    for (const auto& [loop, found] : running) {
        std::string text = "are at " + placeOf(code, found.second);
        if (loop.begin != loop.end) {
            const std::string first = std::to_string(code.origins[loop.begin].line);
            const std::string last = std::to_string(code.origins[loop.end - 1].line);
            text = "loop in PTX lines ";
            text.append(first).append(" to ").append(last).append(", from ");
            text += placeOf(code, loop.begin);
        }
        lines.push_back({found.first, text});
    }
    std::stable_sort(lines.begin(), lines.end(),
                     [](const Line& a, const Line& b) { return a.threads > b.threads; });
    std::string text;
    for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) {
        text += "\n  " + threads(lines[i].threads) + lines[i].text;
    }
    return text;
}

bool spinsOn(const Block& block, const Code& code, uint64_t address) {
    bool any = false;
    for (const Warp& warp : block.warps) {
        for (uint32_t m = warp.runnable(); m != 0; m &= m - 1) {
            auto lane = static_cast<unsigned>(std::countr_zero(m));
            const Loop loop = loopAround(code, warp.pc[lane]);
            bool reads = false;
            for (uint32_t pc = loop.begin; pc < loop.end && !reads; ++pc) {
                const Instr& in = code.instrs[pc];
                if (std::string_view(attemptOf(code, pc)) != "read") continue;
                if (!(in.aux & kWideAddress) || (in.a & kConstant)) continue;
                const auto* base = reinterpret_cast<const uint64_t*>(warp.registers.data() +
                                                                     warp.frame[lane] + in.a);
                reads = base[lane] + static_cast<uint64_t>(in.imm) == address;
            }
            if (!reads) return false;
            any = true;
        }
    }
    return any;
}

}  // namespace juice::softgpu
