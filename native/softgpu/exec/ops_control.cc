// Branches, calls, returns and ends.
#include <array>
#include <cstring>

#include "native/softgpu/exec/builtin.h"
#include "native/softgpu/exec/control.h"
#include "native/softgpu/exec/fault.h"
#include "native/softgpu/exec/lanes.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::Flow;
using ptx::FormalLayout;
using ptx::FunctionDecoder;
using ptx::Operand;
using ptx::Type;

/// Sends the lanes in m to `target`; the others of the group fall through.
void branchLanes(Exec& x, uint32_t m, uint32_t target) {
    if (m == x.mask) {
        jump(x, target);
    } else {
        x.leave(m, target);
        --x.fuel;
    }
}

void branchLoop(Exec& x, const Instr& in, uint32_t m) {
    branchLanes(x, m, in.aux);
}

void tableLoop(Exec& x, const Instr& in, uint32_t m) {
    const auto* index = x.from<uint32_t>(in.a);
    const uint32_t* targets = x.code->targets.data() + in.aux;
    while (m != 0) {
        auto lane = static_cast<unsigned>(std::countr_zero(m));
        if (index[lane] >= static_cast<uint64_t>(in.imm)) {
            x.fail(715, lane, in,
                   "branch index " + std::to_string(index[lane]) + " is beyond the table of " +
                       std::to_string(in.imm));
            return;
        }
        uint32_t target = targets[index[lane]];
        uint32_t together = 0;
        eachLane(m, [&](unsigned i) {
            together |= static_cast<uint32_t>(index[i] < static_cast<uint64_t>(in.imm) &&
                                              targets[index[i]] == target)
                        << i;
        });
        m &= ~together;
        if (together == x.mask) return jump(x, target);
        x.leave(together, target);
        --x.fuel;
    }
}

void exitLoop(Exec& x, const Instr&, uint32_t m) {
    endThreads(x, m);
}

void returnLoop(Exec& x, const Instr&, uint32_t m) {
    const auto* pcs = x.from<uint32_t>(kReturnPc);
    const auto* frames = x.from<uint32_t>(kReturnFrame);
    bool whole = m == x.mask;
    auto first = static_cast<unsigned>(std::countr_zero(m));
    uint32_t together = 0;
    eachLane(m, [&](unsigned i) {
        bool same = pcs[i] == pcs[first] && frames[i] == frames[first];
        together |= static_cast<uint32_t>(same) << i;
    });
    if (whole && together == m) {
        x.pc = pcs[first];
        x.setFrame(frames[first]);
        if (!x.alone) x.stop = 0;
        return;
    }
    x.leave(m, 0);
    eachLane(m, [&](unsigned i) {
        x.warp->pc[i] = pcs[i];
        x.warp->frame[i] = frames[i];
    });
}

/// Moves arguments or results of a call between the caller's and the callee's local memory.
/// The copies are [aux, aux + imm) of Code::copies.
void copyLoop(Exec& x, const Instr& in, uint32_t m) {
    const auto* base = x.from<uint32_t>(kLocalBase);
    eachLane(m, [&](unsigned i) {
        uint8_t* local = x.warp->local.data() + i * x.warp->localPerLane + base[i];
        for (int64_t k = 0; k < in.imm; ++k) {
            const Copy& copy = x.code->copies[in.aux + static_cast<size_t>(k)];
            std::memmove(local + copy.to, local + copy.from, copy.size);
        }
    });
}

/// Before a call: room in local memory for the callee's formals. `aux` is the caller's own size,
/// `imm` the formals'.
void reserveLoop(Exec& x, const Instr& in, uint32_t m) {
    const auto* base = x.from<uint32_t>(kLocalBase);
    uint32_t deepest = 0;
    eachLane(m, [&](unsigned i) { deepest = std::max(deepest, base[i]); });
    if (reserveLocal(x, uint64_t{deepest} + in.aux + static_cast<uint64_t>(in.imm))) return;
    x.fail(719, static_cast<unsigned>(std::countr_zero(m)), in,
           "call stack overflow: local memory is used up");
}

/// Calls function `index` for the lanes in m. `in.aux` is the caller's frame size, `in.imm` its
/// local size.
void enter(Exec& x, const Instr& in, uint32_t m, uint32_t index) {
    const FunctionCode& callee = x.code->functions[index];
    auto first = static_cast<unsigned>(std::countr_zero(m));
    if (!callee.defined) {
        return x.fail(715, first, in, "call of " + callee.name + ", which has no body");
    }
    uint32_t frame = x.frame + in.aux;
    uint32_t deepest = 0;
    eachLane(m, [&](unsigned i) { deepest = std::max(deepest, x.from<uint32_t>(kLocalBase)[i]); });
    uint64_t local = deepest + static_cast<uint64_t>(in.imm);
    if (!reserveFrame(x, frame, callee.frameBytes) || !reserveLocal(x, local + callee.localBytes)) {
        return x.fail(719, first, in, "call stack overflow");
    }
    auto* head = reinterpret_cast<uint32_t*>(x.warp->registers.data() + frame);
    eachLane(m, [&](unsigned i) {
        head[kReturnPc / 4 + i] = x.pc;
        head[kReturnFrame / 4 + i] = x.frame;
        head[kLocalBase / 4 + i] = x.from<uint32_t>(kLocalBase)[i] + static_cast<uint32_t>(in.imm);
    });
    // A recursion without end must let others have their turn just as a loop does.
    --x.fuel;
    if (m == x.mask) {
        x.pc = callee.entry;
        x.setFrame(frame);
        if (!x.alone || x.fuel <= 0) x.stop = 0;
        return;
    }
    x.leave(m, callee.entry);
    eachLane(m, [&](unsigned i) { x.warp->frame[i] = frame; });
}

void callLoop(Exec& x, const Instr& in, uint32_t m) {
    enter(x, in, m, *x.more(in));
}

void callIndirectLoop(Exec& x, const Instr& in, uint32_t m) {
    const auto* a = x.from<uint64_t>(in.a);
    auto first = static_cast<unsigned>(std::countr_zero(m));
    uint64_t target = a[first], offset = target - kFunctionWindow;
    if (offset % 16 != 0 || offset / 16 >= x.code->functions.size()) {
        return x.fail(718, first, in,
                      "call through the pointer " + hex(target) + ", which is no function's");
    }
    uint32_t together = 0;
    eachLane(m, [&](unsigned i) { together |= static_cast<uint32_t>(a[i] == target) << i; });
    // Lanes that call another function do so in their own turn, from this instruction.
    uint32_t rest = m & ~together;
    if (rest != 0) x.leave(rest, x.pc - 1);
    enter(x, in, together, static_cast<uint32_t>(offset / 16));
}

void trapLoop(Exec& x, const Instr& in, uint32_t m) {
    x.fault(719, m, in, "trap");
}

void pauseLoop(Exec& x, const Instr&, uint32_t) {
    // Let the others of this warp and block run: a sleeping thread usually waits for one.
    x.fuel -= kGroupQuantum / 16;
    if (x.fuel <= 0) x.stop = 0;
}

void decodeBranch(FunctionDecoder& d) {
    d.needOperands(1);
    d.takeMod("uni");
    d.emit(branchLoop);
    d.branchTo(d.operand(0));
    d.setFlow(Flow::branch);
}

void decodeTable(FunctionDecoder& d) {
    if (!d.takeMod("idx")) d.refuse("needs .idx");
    d.takeMod("uni");
    d.needOperands(2);
    Ref index = d.source(0, Type::u32);
    d.emit(tableLoop, kNoRef, index);
    d.branchTable(d.operand(1));
    d.setFlow(Flow::table);
}

void decodeExit(FunctionDecoder& d) {
    d.needOperands(0);
    d.emit(exitLoop);
    d.setFlow(Flow::end);
}

void decodeReturn(FunctionDecoder& d) {
    d.needOperands(0);
    d.takeMod("uni");
    d.emit(d.isEntry() ? exitLoop : returnLoop);
    d.setFlow(Flow::end);
}

void decodeTrap(FunctionDecoder& d) {
    d.needOperands(0);
    d.emit(trapLoop);
}

void decodeSleep(FunctionDecoder& d) {
    d.needOperands(1);
    d.takeTypeOf({Type::u32});
    d.source(0, Type::u32);
    d.emit(pauseLoop);
}

/// pmevent, and hints on what else the hardware might run meanwhile.
void decodeEvent(FunctionDecoder& d) {
    d.takeMod("mask");
    d.needOperands(1);
    d.immediate(d.operand(0));
}

/// Grids that depend on one another run one after the other here: there is nothing to wait for.
void decodeDependency(FunctionDecoder& d) {
    if (d.takeOneOf({"launch_dependents", "wait"}).empty()) d.refuse("needs an action");
    d.needOperands(0);
}

/// Registers are not scarce here.
void decodeRegisters(FunctionDecoder& d) {
    if (d.takeOneOf({"inc", "dec"}).empty()) d.refuse("needs .inc or .dec");
    d.takeMod("sync");
    d.takeMod("aligned");
    d.takeTypeOf({Type::u32});
    d.needOperands(1);
    d.immediate(d.operand(0));
}

struct Signature {
    FormalLayout layout;
    std::vector<uint64_t> returnSizes, paramSizes;
};

Signature signatureOf(const std::vector<ptx::Formal>& returns,
                      const std::vector<ptx::Formal>& params) {
    Signature signature{ptx::layoutFormals(returns, params), {}, {}};
    for (const ptx::Formal& formal : returns) signature.returnSizes.push_back(formal.size);
    for (const ptx::Formal& formal : params) signature.paramSizes.push_back(formal.size);
    return signature;
}

/// Emits the copies between the variables that a call names and the callee's formals.
void emitCopies(FunctionDecoder& d, const Operand* list, const std::vector<uint32_t>& offsets,
                const std::vector<uint64_t>& sizes, bool toCallee) {
    size_t count = list == nullptr ? 0 : list->items.size();
    if (count != offsets.size()) {
        d.refuse("the call passes " + std::to_string(count) + " values, the function has " +
                 std::to_string(offsets.size()));
    }
    if (count == 0) return;
    auto first = static_cast<uint32_t>(d.code().copies.size());
    for (size_t i = 0; i < count; ++i) {
        uint32_t mine = d.localOffset(list->items[i]);
        uint32_t theirs = d.localBytes() + offsets[i];
        if (d.sizeOfParam(list->items[i]) != sizes[i]) d.refuse("argument sizes differ");
        auto size = static_cast<uint32_t>(sizes[i]);
        d.code().copies.push_back(toCallee ? Copy{mine, theirs, size} : Copy{theirs, mine, size});
    }
    Instr& in = d.emit(copyLoop);
    in.aux = first;
    in.imm = static_cast<int64_t>(count);
}

/// call (results), target, (arguments), prototype: results, arguments and prototype may be absent.
void decodeCall(FunctionDecoder& d) {
    d.takeMod("uni");
    size_t at = 0;
    const Operand *results = nullptr, *arguments = nullptr, *prototype = nullptr;
    auto peek = [&](Operand::Kind kind) {
        return at < d.operandCount() && d.operand(at).kind == kind;
    };
    if (peek(Operand::Kind::list)) results = &d.operand(at++);
    if (at >= d.operandCount()) d.refuse("needs a function");
    const Operand& target = d.operand(at++);
    if (peek(Operand::Kind::list)) arguments = &d.operand(at++);
    if (peek(Operand::Kind::name)) prototype = &d.operand(at++);
    if (at != d.operandCount()) d.refuse("too many operands");

    Signature signature;
    Ref pointer = kNoRef;
    int64_t index = -1;
    Handler builtin = nullptr;
    if (target.kind == Operand::Kind::reg) {
        const ptx::TargetList* list = prototype ? d.targetList(prototype->name) : nullptr;
        if (list == nullptr || !list->prototype) d.refuse("needs a .callprototype");
        signature = signatureOf(list->returns, list->arguments);
        pointer = d.source(target, Type::u64);
    } else if (target.kind == Operand::Kind::name) {
        index = d.symbols().function(target.name);
        if (index < 0) d.refuse("unknown function " + std::string(target.name));
        const ptx::Function& callee = d.symbols().definition(static_cast<size_t>(index));
        if (callee.entry) d.refuse("kernels cannot be called");
        if (!callee.defined) {
            builtin = findBuiltin(target.name);
            if (builtin == nullptr) {
                d.unsupported("extern function " + std::string(target.name));
            }
        }
        signature = signatureOf(callee.returns, callee.params);
    } else {
        d.refuse("needs a function");
    }

    Instr& reserve = d.emit(reserveLoop);
    reserve.aux = d.localBytes();
    reserve.imm = signature.layout.size;
    emitCopies(d, arguments, signature.layout.params, signature.paramSizes, true);
    if (builtin != nullptr) {
        d.emit(builtin).aux = d.localBytes();
    } else {
        Instr& call = d.emit(pointer == kNoRef ? callLoop : callIndirectLoop, kNoRef, pointer);
        call.imm = d.localBytes();
        d.noteCall(index);
    }
    emitCopies(d, results, signature.layout.returns, signature.returnSizes, false);
}

constexpr std::array<ptx::OpEntry, 11> kOps{{
    {"bra", decodeBranch},
    {"brx", decodeTable},
    {"call", decodeCall},
    {"ret", decodeReturn},
    {"exit", decodeExit},
    {"trap", decodeTrap},
    {"brkpt", decodeTrap},
    {"nanosleep", decodeSleep},
    {"pmevent", decodeEvent},
    {"griddepcontrol", decodeDependency},
    {"setmaxnreg", decodeRegisters},
}};

}  // namespace

bool isBranch(const Instr& in) {
    return in.run == branchLoop;
}

std::span<const ptx::OpEntry> controlOps() {
    return kOps;
}

}  // namespace juice::softgpu
