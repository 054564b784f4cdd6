#include "native/softgpu/ptx/decoder.h"

#include <bit>
#include <cstring>

#include "native/softgpu/exec/ops_tile.h"
#include "native/softgpu/ptx/allocate.h"

namespace juice::softgpu::ptx {

Ref Constants::of(uint64_t bits, unsigned width) {
    if (width > 8) throw Refusal{kInvalidPtx, "there are no immediates of 128 bits"};
    if (width > 0 && width < 8) bits &= (1ull << (8 * width)) - 1;
    auto& known = known_[width == 0 ? 0 : std::bit_width(width)];
    auto [slot, fresh] = known.try_emplace(bits, 0);
    if (!fresh) return slot->second;
    size_t offset = bytes_.size();
    if (offset > (kConstant >> 2)) throw Refusal{kInvalidPtx, "too many constants"};
    slot->second = static_cast<Ref>(offset) | kConstant;
    unsigned copies = width == 0 ? 1 : kLanes;
    unsigned step = width == 0 ? 4 : width;
    bytes_.resize(alignUp(offset + copies * step, 32));
    for (unsigned i = 0; i < copies; ++i) std::memcpy(&bytes_[offset + i * step], &bits, step);
    return slot->second;
}

AlignedBytes Constants::take() const {
    AlignedBytes bytes(bytes_.size());
    if (!bytes_.empty()) std::memcpy(bytes.data(), bytes_.data(), bytes_.size());
    return bytes;
}

FunctionDecoder::FunctionDecoder(const Function& function, const Symbols& symbols, Code& code,
                                 Constants& constants)
    : function_(function),
      symbols_(symbols),
      code_(code),
      constants_(constants),
      base_(static_cast<uint32_t>(code.instrs.size())),
      firstLocation_(static_cast<int32_t>(code.locations.size())),
      registers_(function.registers) {
    for (Location place : function.locations) {
        if (place.parent >= 0) place.parent += firstLocation_;
        code.locations.push_back({place.file, place.line, place.parent});
    }
    layoutLocals();
}

void FunctionDecoder::decode(FunctionCode& result) {
    places_.reserve(function_.code.size() + 1);
    for (const Instruction& in : function_.code) {
        places_.push_back(static_cast<uint32_t>(code_.instrs.size()));
        decodeOne(in);
    }
    // Falling off the end of a body returns, as ptxas makes it.
    places_.push_back(static_cast<uint32_t>(code_.instrs.size()));
    Instruction last;
    last.op = "ret";
    last.line = function_.code.empty() ? function_.line : function_.code.back().line;
    if (!function_.code.empty()) last.location = function_.code.back().location;
    decodeOne(last);
    resolveBranches();
    allocate(result);
}

void FunctionDecoder::decodeOne(const Instruction& in) {
    in_ = &in;
    taken_ = 0;
    if (in.mods.size() > 60) refuse("too many modifiers");
    Decode decode = findOp(in.op);
    if (decode == nullptr) unsupported();
    for (const Operand& operand : in.operands) {
        if (operand.kind == Operand::Kind::address && operand.items.size() > 1) {
            refuse("this address has coordinates");
        }
    }
    decode(*this);
    for (size_t i = 0; i < in.mods.size(); ++i) {
        if (!(taken_ >> i & 1)) unsupported("." + std::string(in.mods[i]) + " here");
    }
}

void FunctionDecoder::refuse(const std::string& what) const {
    ptx::refuse(in_->line, in_->text() + ": " + what);
}

void FunctionDecoder::unsupported(const std::string& what) const {
    ptx::refuse(in_->line, in_->text() + (what.empty() ? "" : ": " + what) +
                               " is not supported by the software GPU");
}

bool FunctionDecoder::takeMod(std::string_view word) {
    for (size_t i = 0; i < in_->mods.size(); ++i) {
        if (!(taken_ >> i & 1) && in_->mods[i] == word) {
            taken_ |= 1ull << i;
            return true;
        }
    }
    return false;
}

std::string_view FunctionDecoder::takeOneOf(std::initializer_list<std::string_view> words) {
    for (std::string_view word : words) {
        if (takeMod(word)) return word;
    }
    return {};
}

bool FunctionDecoder::typeAhead() const {
    for (size_t i = 0; i < in_->mods.size(); ++i) {
        if (!(taken_ >> i & 1) && typeOf(in_->mods[i]) != Type::none) return true;
    }
    return false;
}

Type FunctionDecoder::takeType() {
    for (size_t i = 0; i < in_->mods.size(); ++i) {
        if (taken_ >> i & 1) continue;
        Type type = typeOf(in_->mods[i]);
        if (type == Type::none) continue;
        taken_ |= 1ull << i;
        return type;
    }
    // A type that this file has no name for (tf32, e4m3x2, ...) or none at all.
    unsupported("an operand type other than the basic ones");
}

Type FunctionDecoder::takeTypeOf(std::initializer_list<Type> allowed) {
    Type type = takeType();
    for (Type one : allowed) {
        if (one == type) return type;
    }
    unsupported("." + std::string(nameOf(type)) + " here");
}

void FunctionDecoder::needOperands(size_t count) const {
    if (operandCount() != count) {
        refuse("expected " + std::to_string(count) + " operands, got " +
               std::to_string(operandCount()));
    }
}

Ref FunctionDecoder::source(const Operand& operand, Type type) {
    using Kind = Operand::Kind;
    if (operand.negated) refuse("'!' is not allowed here");
    switch (operand.kind) {
        case Kind::reg: {
            Type held = registers_[operand.reg];
            if ((held == Type::pred) != (type == Type::pred) || sizeOf(held) != sizeOf(type)) {
                refuse("a ." + std::string(nameOf(held)) + " register where ." +
                       std::string(nameOf(type)) + " is wanted");
            }
            return operand.reg;
        }
        case Kind::integer:
        case Kind::real:
            return constants_.of(immediateBits(operand, type), sizeOf(type));
        case Kind::name:
            if (isSpecial(operand.name)) return emitSpecial(*this, operand.name, type);
            return symbolValue(operand, type);
        default:
            refuse("a register or a number is wanted here");
    }
}

Ref FunctionDecoder::narrowSource(const Operand& operand, Type type) {
    if (operand.kind != Operand::Kind::reg) return source(operand, type);
    Type held = registers_[operand.reg];
    if (sizeOf(held) <= sizeOf(type)) return source(operand, type);
    Ref narrow = temporary(type);
    emit(resizeHandler(held, type), narrow, operand.reg);
    return narrow;
}

uint64_t FunctionDecoder::immediateBits(const Operand& operand, Type type) const {
    if (operand.kind == Operand::Kind::integer) {
        if (isFloat(type) && operand.bits != 0) refuse("an integer where a float is wanted");
        if (type == Type::pred) return operand.bits != 0 ? ~0ull : 0;
        return operand.bits;
    }
    double value = operand.single ? std::bit_cast<float>(static_cast<uint32_t>(operand.bits))
                                  : std::bit_cast<double>(operand.bits);
    switch (type) {
        case Type::f32:
        case Type::b32:
            return operand.single ? operand.bits
                                  : std::bit_cast<uint32_t>(static_cast<float>(value));
        case Type::f64:
        case Type::b64:
            return operand.single ? std::bit_cast<uint64_t>(value) : operand.bits;
        default:
            refuse("a floating-point number where ." + std::string(nameOf(type)) + " is wanted");
    }
}

Ref FunctionDecoder::target(const Operand& operand, Type type) {
    if (operand.kind == Operand::Kind::sink) return temporary(type);
    if (operand.kind != Operand::Kind::reg) refuse("the destination must be a register");
    return source(operand, type);
}

Ref FunctionDecoder::predicate(const Operand& operand, bool& negated) {
    negated = operand.negated;
    Operand plain = operand;
    plain.negated = false;
    return source(plain, Type::pred);
}

int64_t FunctionDecoder::immediate(const Operand& operand) const {
    if (operand.kind != Operand::Kind::integer) refuse("a constant integer is wanted here");
    return static_cast<int64_t>(operand.bits);
}

Ref FunctionDecoder::temporary(Type type) {
    registers_.push_back(bitsOf(type));
    return static_cast<Ref>(registers_.size() - 1);
}

Ref FunctionDecoder::carry() {
    if (carry_ < 0) carry_ = temporary(Type::pred);
    return static_cast<Ref>(carry_);
}

Instr& FunctionDecoder::emit(Handler run, Ref dst, Ref a, Ref b, Ref c) {
    Instr in;
    in.run = run;
    in.dst = dst;
    in.a = a;
    in.b = b;
    in.c = c;
    if (in_->guard >= 0) {
        in.guard = static_cast<Ref>(in_->guard);
        in.guardFlip = in_->guardNegated ? ~0u : 0;
    }
    code_.instrs.push_back(in);
    Origin origin{in_->line, 0, static_cast<uint32_t>(in_->whole.size()), -1};
    if (origin.bytes != 0) {
        origin.begin = static_cast<uint32_t>(in_->whole.data() - code_.source->data());
    }
    if (in_->location >= 0) origin.location = firstLocation_ + in_->location;
    code_.origins.push_back(origin);
    metas_.push_back({});
    if (code_.instrs.size() > (1u << 26)) refuse("the module is too large");
    return code_.instrs.back();
}

void FunctionDecoder::setMore(const std::vector<Ref>& defs, const std::vector<Ref>& uses) {
    code_.instrs.back().more = static_cast<uint32_t>(code_.more.size());
    code_.more.insert(code_.more.end(), defs.begin(), defs.end());
    code_.more.insert(code_.more.end(), uses.begin(), uses.end());
    metas_.back().moreDefs = static_cast<uint16_t>(defs.size());
    metas_.back().moreUses = static_cast<uint16_t>(uses.size());
}

uint32_t FunctionDecoder::labelTarget(std::string_view name) const {
    for (uint32_t scope = in_->scope;; scope = function_.scopeParents[scope]) {
        for (const Label& label : function_.labels) {
            if (label.scope == scope && label.name == name) return label.target;
        }
        if (scope == 0) break;
    }
    refuse("unknown label " + std::string(name));
}

const TargetList* FunctionDecoder::targetList(std::string_view name) const {
    for (uint32_t scope = in_->scope;; scope = function_.scopeParents[scope]) {
        for (const TargetList& list : function_.targets) {
            if (list.scope == scope && list.name == name) return &list;
        }
        if (scope == 0) return nullptr;
    }
}

void FunctionDecoder::branchTo(const Operand& label) {
    if (label.kind != Operand::Kind::name) refuse("a label is wanted here");
    auto instr = static_cast<uint32_t>(code_.instrs.size() - 1);
    fixups_.push_back({instr, labelTarget(label.name), false});
}

void FunctionDecoder::branchTable(const Operand& name) {
    const TargetList* list = name.kind == Operand::Kind::name ? targetList(name.name) : nullptr;
    if (list == nullptr || list->prototype) refuse("a .branchtargets list is wanted here");
    Instr& in = code_.instrs.back();
    in.aux = static_cast<uint32_t>(code_.targets.size());
    in.imm = static_cast<int64_t>(list->labels.size());
    for (std::string_view label : list->labels) {
        fixups_.push_back({static_cast<uint32_t>(code_.targets.size()), labelTarget(label), true});
        code_.targets.push_back(0);
    }
}

void FunctionDecoder::noteCall(int64_t function) {
    auto instr = static_cast<uint32_t>(code_.instrs.size() - 1);
    code_.instrs[instr].more = static_cast<uint32_t>(code_.more.size());
    code_.more.push_back(function < 0 ? kNoRef : static_cast<Ref>(function));
    calls_.push_back(instr);
}

void FunctionDecoder::resolveBranches() {
    for (const Fixup& fixup : fixups_) {
        uint32_t place = places_[fixup.label];
        if (fixup.table) {
            code_.targets[fixup.instr] = place;
        } else {
            code_.instrs[fixup.instr].aux = place;
        }
    }
}

void FunctionDecoder::allocate(FunctionCode& result) {
    Allocation allocation = allocateSlots(code_, base_, metas_, registers_);
    auto place = [&](Ref& ref) {
        if (ref != kNoRef && !(ref & kConstant)) ref = allocation.slots[ref];
    };
    for (size_t i = 0; i < metas_.size(); ++i) {
        Instr& in = code_.instrs[base_ + i];
        place(in.dst);
        place(in.a);
        place(in.b);
        place(in.c);
        place(in.guard);
        for (unsigned k = 0; k < metas_[i].moreDefs + metas_[i].moreUses; ++k) {
            place(code_.more[in.more + k]);
        }
    }
    for (uint32_t call : calls_) code_.instrs[call].aux = allocation.frameBytes;
    result.entry = base_;
    result.end = static_cast<uint32_t>(code_.instrs.size());
    result.frameBytes = allocation.frameBytes;
    result.localBytes = localBytes_;
    result.paramBytes = paramBytes_;
    result.defined = true;
}

Decode findOp(std::string_view op) {
    static const auto* table = [] {
        auto* made = new std::unordered_map<std::string_view, Decode>;
        for (auto family :
             {integerOps(),  bitOps(),     arithmeticOps(), floatOps(),   compareOps(), moveOps(),
              convertOps(),  memoryOps(),  atomicOps(),     controlOps(), barrierOps(), warpOps(),
              packedOps(),   permuteOps(), carryOps(),      selectOps(),  mmaOps(),     wmmaOps(),
              fragmentOps(), asyncOps(),   mbarrierOps()}) {
            for (const OpEntry& entry : family) made->emplace(entry.name, entry.decode);
        }
        return made;
    }();
    auto found = table->find(op);
    return found == table->end() ? nullptr : found->second;
}

}  // namespace juice::softgpu::ptx
