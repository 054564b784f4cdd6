// The part of FunctionDecoder that deals with names and addresses.
#include "native/softgpu/exec/ops.h"
#include "native/softgpu/ptx/decoder.h"

namespace juice::softgpu::ptx {
namespace {

constexpr uint64_t kMaxLocal = 1 << 24;

}  // namespace

void FunctionDecoder::layoutLocals() {
    FormalLayout layout = layoutFormals(function_.returns, function_.params);
    auto note = [&](const std::vector<Formal>& formals, const std::vector<uint32_t>& offsets) {
        for (size_t i = 0; i < formals.size(); ++i) {
            formals_[formals[i].name] = offsets[i];
            formalSizes_[formals[i].name] = formals[i].size;
        }
    };
    note(function_.returns, layout.returns);
    note(function_.params, layout.params);
    paramBytes_ = layout.size;
    // Scopes that follow each other share their memory: a scope's variables begin where those of
    // its parent end.
    size_t scopes = function_.scopeParents.size();
    std::vector<uint64_t> begin(scopes, 0), own(scopes, 0);
    std::vector<std::vector<const Variable*>> variables(scopes);
    for (const Variable& variable : function_.variables) {
        if (variable.space == Space::local || variable.space == Space::param) {
            variables[variable.scope].push_back(&variable);
        }
    }
    uint64_t total = function_.entry ? 0 : layout.size;
    uint64_t start = total;
    for (size_t scope = 0; scope < scopes; ++scope) {
        uint32_t parent = function_.scopeParents[scope];
        begin[scope] = scope == 0 ? start : begin[parent] + own[parent];
        uint64_t offset = begin[scope];
        for (const Variable* variable : variables[scope]) {
            offset = alignUp(offset, variable->align);
            locals_[variable] = static_cast<uint32_t>(offset);
            offset += variable->size;
            if (offset > kMaxLocal) ptx::refuse(variable->line, "too much local memory");
        }
        own[scope] = offset - begin[scope];
        total = std::max(total, offset);
    }
    localBytes_ = static_cast<uint32_t>(alignUp(total, 16));
}

const Variable* FunctionDecoder::variable(std::string_view name, uint32_t scope) const {
    for (;; scope = function_.scopeParents[scope]) {
        for (const Variable& one : function_.variables) {
            if (one.scope == scope && one.name == name) return &one;
        }
        if (scope == 0) return nullptr;
    }
}

bool FunctionDecoder::findLocal(std::string_view name, uint32_t& offset, uint64_t& size) const {
    if (const Variable* local = variable(name, in_->scope)) {
        auto found = locals_.find(local);
        if (found == locals_.end()) return false;
        offset = found->second;
        size = local->size;
        return true;
    }
    auto formal = formals_.find(name);
    if (function_.entry || formal == formals_.end()) return false;
    offset = formal->second;
    size = formalSizes_.at(name);
    return true;
}

uint32_t FunctionDecoder::localOffset(const Operand& name) const {
    uint32_t offset = 0;
    uint64_t size = 0;
    if (name.kind != Operand::Kind::name || !findLocal(name.name, offset, size)) {
        refuse("a .param variable of this function is wanted here");
    }
    return offset;
}

uint64_t FunctionDecoder::sizeOfParam(const Operand& name) const {
    uint32_t offset = 0;
    uint64_t size = 0;
    if (name.kind != Operand::Kind::name || !findLocal(name.name, offset, size)) {
        refuse("a .param variable of this function is wanted here");
    }
    return size;
}

bool FunctionDecoder::isLocalParam(const Operand& operand) const {
    if (!function_.entry) return true;
    const Operand& base = operand.items.at(0);
    uint32_t offset = 0;
    uint64_t size = 0;
    return base.kind == Operand::Kind::name && findLocal(base.name, offset, size);
}

/// The value of a name as an operand: its address within its space.
Ref FunctionDecoder::symbolValue(const Operand& operand, Type type) {
    if (type != Type::b32 && type != Type::u32 && type != Type::s32 && type != Type::b64 &&
        type != Type::u64 && type != Type::s64) {
        refuse(std::string(operand.name) + " is an address; ." + std::string(nameOf(type)) +
               " is wanted");
    }
    Operand wrapped;
    wrapped.kind = Operand::Kind::address;
    wrapped.offset = operand.offset;
    wrapped.items.push_back(operand);
    wrapped.items[0].offset = 0;
    Address place = address(wrapped, Space::generic);
    if (place.uniform) return constants_.of(static_cast<uint64_t>(place.offset), sizeOf(type));
    // Only known at run time (dynamic shared memory, a called function's local memory).
    Ref wide = place.base;
    if (place.offset != 0) {
        Ref sum = temporary(Type::b64);
        emit(addHandler(Type::u64), sum, wide,
             constants_.of(static_cast<uint64_t>(place.offset), 8));
        wide = sum;
    }
    if (sizeOf(type) == 8) return wide;
    Ref narrow = temporary(Type::b32);
    emit(resizeHandler(Type::b64, Type::b32), narrow, wide);
    return narrow;
}

FunctionDecoder::Address FunctionDecoder::address(const Operand& operand, Space space) {
    if (operand.kind != Operand::Kind::address) refuse("an address in [ ] is wanted here");
    const Operand& base = operand.items.at(0);
    Address result;
    result.space = space;
    result.offset = operand.offset;
    if (base.kind == Operand::Kind::reg) {
        Type held = registers_[base.reg];
        if (sizeOf(held) != 4 && sizeOf(held) != 8) refuse("an address register is 32 or 64 bits");
        result.base = base.reg;
        result.wide = sizeOf(held) == 8;
        return result;
    }
    if (base.kind == Operand::Kind::integer) {
        result.uniform = true;
        result.offset += static_cast<int64_t>(base.bits);
        return result;
    }
    if (base.kind != Operand::Kind::name) refuse("this is not an address");
    result.offset += base.offset;
    uint32_t local = 0;
    uint64_t size = 0;
    if (findLocal(base.name, local, size)) {
        result.offset += local;
        if (function_.entry) {
            result.uniform = true;
        } else {
            result.base = temporary(Type::b64);
            emit(localBaseHandler(), result.base);
        }
        return result;
    }
    if (auto formal = formals_.find(base.name); formal != formals_.end()) {
        result.uniform = true;
        result.offset += formal->second;
        return result;
    }
    if (const Variable* shared = variable(base.name, in_->scope)) {
        if (shared->space != Space::shared) {
            unsupported("." + std::string(shared->space == Space::global ? "global" : "const") +
                        " variables in functions");
        }
        result.uniform = true;
        result.offset += static_cast<int64_t>(symbols_.sharedOffset(*shared));
        return result;
    }
    if (const Symbol* symbol = symbols_.find(base.name)) {
        result.offset += static_cast<int64_t>(symbol->address);
        result.uniform = !symbol->dynamic;
        if (symbol->dynamic) {
            result.base = temporary(Type::b64);
            emit(dynamicSharedHandler(), result.base);
        }
        return result;
    }
    if (int64_t index = symbols_.function(base.name); index >= 0) {
        result.uniform = true;
        result.offset += static_cast<int64_t>(kFunctionWindow + static_cast<uint64_t>(index) * 16);
        return result;
    }
    refuse("unknown name " + std::string(base.name));
}

}  // namespace juice::softgpu::ptx
