// Instructions of one function to compact code.
//
// Each instruction family has a file exec/ops_*.cc with its handlers and the functions that choose
// among them; such a function gets a FunctionDecoder that stands on one instruction, takes the
// modifiers that it knows, asks for operands and emits. A modifier that nobody took, or an opcode
// that no table knows, refuses the module: nothing is executed half understood.
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/softgpu/exec/instr.h"
#include "native/softgpu/ptx/ast.h"
#include "native/softgpu/ptx/refusal.h"
#include "native/softgpu/ptx/symbols.h"

namespace juice::softgpu::ptx {

/// How control leaves an instruction, for the liveness analysis.
enum class Flow : uint8_t { next, branch, table, end };

/// What the allocator must know of an instruction beyond its operand fields.
struct Meta {
    uint16_t moreDefs = 0, moreUses = 0;  // at Instr::more: first the results, then the sources
    Flow flow = Flow::next;
};

/// Immediates of a whole program, each broadcast to a lane vector.
class Constants {
  public:
    /// The operand for `bits` in every lane of `width` bytes (or a predicate word for width 0).
    Ref of(uint64_t bits, unsigned width);
    AlignedBytes take() const;

  private:
    std::unordered_map<uint64_t, Ref> known_[5];
    std::vector<uint8_t> bytes_;
};

class FunctionDecoder {
  public:
    FunctionDecoder(const Function& function, const Symbols& symbols, Code& code,
                    Constants& constants);

    /// Appends the function's instructions to code.instrs and fills its FunctionCode.
    void decode(FunctionCode& result);

    // What the ops files use, about the instruction at hand:

    const Instruction& instruction() const { return *in_; }
    uint32_t line() const { return in_->line; }
    [[noreturn]] void refuse(const std::string& what) const;
    /// "... is not supported by the software GPU", with the instruction's text.
    [[noreturn]] void unsupported(const std::string& what = "") const;

    bool takeMod(std::string_view word);
    /// The one of `words` that stands there, or "" if none does.
    std::string_view takeOneOf(std::initializer_list<std::string_view> words);
    /// The next modifier that is a type.
    Type takeType();
    bool typeAhead() const;
    /// Refuses, with a message, what is not in `allowed`.
    Type takeTypeOf(std::initializer_list<Type> allowed);

    size_t operandCount() const { return in_->operands.size(); }
    void needOperands(size_t count) const;
    const Operand& operand(size_t i) const { return in_->operands.at(i); }

    /// A source operand as a lane vector of sizeOf(type) bytes; the register must be that wide.
    Ref source(const Operand& operand, Type type);
    Ref source(size_t i, Type type) { return source(operand(i), type); }
    /// The same, but a wider register will do: its low part counts.
    Ref narrowSource(const Operand& operand, Type type);
    Ref target(const Operand& operand, Type type);
    Ref target(size_t i, Type type) { return target(operand(i), type); }
    /// A predicate source; `negated` tells of a leading '!'.
    Ref predicate(const Operand& operand, bool& negated);
    /// A compile-time integer; refuses registers.
    int64_t immediate(const Operand& operand) const;
    bool isRegister(const Operand& operand) const { return operand.kind == Operand::Kind::reg; }
    Type registerType(const Operand& operand) const { return function_.registers[operand.reg]; }

    Ref constant(uint64_t bits, unsigned width) { return constants_.of(bits, width); }
    /// A fresh register.
    Ref temporary(Type type);
    Ref carry();

    /// What an address operand resolves to: a lane vector (32 or 64 bits wide) plus an offset in
    /// a space. `uniform`: the base is the constant `offset` alone.
    struct Address {
        Space space = Space::generic;
        Ref base = kNoRef;  // kNoRef where uniform
        bool wide = true;   // base holds 64-bit lanes
        int64_t offset = 0;
        bool uniform = false;
    };
    Address address(const Operand& operand, Space space);
    /// The space that ".param" of a load or store means here, by its operand.
    bool isLocalParam(const Operand& operand) const;

    /// Appends an instruction under the guard of the one at hand.
    Instr& emit(Handler run, Ref dst = kNoRef, Ref a = kNoRef, Ref b = kNoRef, Ref c = kNoRef);
    /// Gives the last emitted instruction further results and sources.
    void setMore(const std::vector<Ref>& defs, const std::vector<Ref>& uses);
    void setFlow(Flow flow) { metas_.back().flow = flow; }

    /// Makes the last emitted instruction's `aux` the label's place.
    void branchTo(const Operand& label);
    /// The same for a .branchtargets list: aux is the first entry in Code::targets, imm the count.
    void branchTable(const Operand& name);
    /// Makes the last emitted instruction a call: its `aux` will be our frame's size, its first
    /// further operand the function's index.
    void noteCall(int64_t function);
    const TargetList* targetList(std::string_view name) const;

    const Function& function() const { return function_; }
    const Symbols& symbols() const { return symbols_; }
    Code& code() { return code_; }
    uint32_t localBytes() const { return localBytes_; }
    /// Offset in local memory of a .param or .local variable of this function; refuses others.
    uint32_t localOffset(const Operand& name) const;
    uint64_t sizeOfParam(const Operand& name) const;
    bool isEntry() const { return function_.entry; }

  private:
    void decodeOne(const Instruction& in);
    void layoutLocals();
    const Variable* variable(std::string_view name, uint32_t scope) const;
    bool findLocal(std::string_view name, uint32_t& offset, uint64_t& size) const;
    uint32_t labelTarget(std::string_view name) const;
    Ref symbolValue(const Operand& operand, Type type);
    uint64_t immediateBits(const Operand& operand, Type type) const;
    void resolveBranches();
    void allocate(FunctionCode& result);

    struct Fixup {
        uint32_t instr;
        uint32_t label;  // index into function_.code
        bool table;      // a slot of Code::targets, not an instruction
    };

    const Function& function_;
    const Symbols& symbols_;
    Code& code_;
    Constants& constants_;
    const Instruction* in_ = nullptr;
    uint64_t taken_ = 0;         // bit n: modifier n is understood
    uint32_t base_ = 0;          // index of our first instruction in code_.instrs
    int32_t firstLocation_ = 0;  // and of our first place in code_.locations
    std::vector<Meta> metas_;
    std::vector<Type> registers_;  // declared ones, then temporaries
    int64_t carry_ = -1;
    std::vector<uint32_t> places_;  // by index into function_.code: our instruction
    std::vector<Fixup> fixups_;
    std::vector<uint32_t> calls_;
    std::unordered_map<std::string_view, uint32_t> formals_;  // local (or param) offsets
    std::unordered_map<std::string_view, uint64_t> formalSizes_;
    std::unordered_map<const Variable*, uint32_t> locals_;
    uint32_t localBytes_ = 0, paramBytes_ = 0;
};

/// Chooses handlers for one opcode.
using Decode = void (*)(FunctionDecoder&);
struct OpEntry {
    std::string_view name;
    Decode decode;
};
/// The decoder of an opcode, or null.
Decode findOp(std::string_view op);

}  // namespace juice::softgpu::ptx
