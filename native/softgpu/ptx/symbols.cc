#include "native/softgpu/ptx/symbols.h"

#include <cstring>

#include "native/softgpu/ptx/refusal.h"

namespace juice::softgpu::ptx {
namespace {

constexpr uint64_t kMaxGlobals = 1ull << 32;

}  // namespace

FormalLayout layoutFormals(const std::vector<Formal>& returns, const std::vector<Formal>& params) {
    FormalLayout layout;
    auto place = [&](const std::vector<Formal>& formals, std::vector<uint32_t>& offsets) {
        for (const Formal& formal : formals) {
            layout.size = static_cast<uint32_t>(alignUp(layout.size, formal.align));
            offsets.push_back(layout.size);
            layout.size += static_cast<uint32_t>(formal.size);
        }
    };
    place(returns, layout.returns);
    place(params, layout.params);
    return layout;
}

Symbols::Symbols(const Module& module, Code& code, std::vector<GlobalInfo>& globals,
                 const PlaceManaged& managed) {
    numberFunctions(module, code);
    placeGlobals(module, code, globals, managed);
    placeShared(module);
    initialise(module, code);
}

const Symbol* Symbols::find(std::string_view name) const {
    auto found = symbols_.find(name);
    return found == symbols_.end() ? nullptr : &found->second;
}

int64_t Symbols::function(std::string_view name) const {
    auto found = functionIndex_.find(name);
    return found == functionIndex_.end() ? -1 : static_cast<int64_t>(found->second);
}

void Symbols::numberFunctions(const Module& module, Code& code) {
    for (const auto& function : module.functions) {
        auto [slot, fresh] = functionIndex_.try_emplace(function->name, functions_.size());
        if (fresh) {
            functions_.push_back(function.get());
            code.functions.push_back({.name = std::string(function->name)});
        } else if (function->defined) {
            if (functions_[slot->second]->defined) {
                refuse(function->line, std::string(function->name) + " is defined twice");
            }
            functions_[slot->second] = function.get();
        }
    }
    for (const auto& [name, target] : module.aliases) {
        auto found = functionIndex_.find(target);
        if (found == functionIndex_.end()) {
            refuse(0, "alias " + std::string(name) + " of unknown " + std::string(target));
        }
        size_t index = found->second;
        functionIndex_[name] = index;
    }
}

void Symbols::placeGlobals(const Module& module, Code& code, std::vector<GlobalInfo>& globals,
                           const PlaceManaged& managed) {
    const auto elsewhere = [&](const Variable& variable) { return variable.managed && managed; };
    uint64_t total = 0;
    for (const Variable& variable : module.variables) {
        if (variable.space != Space::global && variable.space != Space::constant) continue;
        auto [slot, fresh] =
            symbols_.try_emplace(variable.name, Symbol{variable.space, 0, false, &variable});
        if (!fresh) {
            // An extern declaration, and then the definition.
            if (!variable.isExtern && slot->second.variable->isExtern) {
                slot->second.variable = &variable;
            } else if (!variable.isExtern) {
                refuse(variable.line, std::string(variable.name) + " is defined twice");
            }
        }
    }
    for (const Variable& variable : module.variables) {
        auto found = symbols_.find(variable.name);
        if (found == symbols_.end() || found->second.variable != &variable) continue;
        if (variable.isExtern) {
            refuse(variable.line, "extern variable " + std::string(variable.name) +
                                      " is not defined in this module");
        }
        if (elsewhere(variable)) {
            const ManagedPlace place =
                managed(std::string(variable.name), variable.size, variable.align);
            found->second.address = place.address;
            if (!place.fresh) initialised_.insert(&variable);
            continue;
        }
        total = alignUp(total, std::max<uint64_t>(variable.align, 16));
        found->second.address = total;
        total += variable.size;
        if (total > kMaxGlobals) refuse(variable.line, "the module's variables are too large");
    }
    code.globals = Pages(total);
    auto base = reinterpret_cast<uint64_t>(code.globals.data());
    for (const Variable& variable : module.variables) {
        auto found = symbols_.find(variable.name);
        if (found == symbols_.end() || found->second.variable != &variable) continue;
        if (!elsewhere(variable)) found->second.address += base;
        globals.push_back({std::string(variable.name), variable.size, variable.align,
                           variable.space == Space::constant, variable.managed,
                           found->second.address});
    }
}

void Symbols::initialise(const Module& module, Code& code) {
    for (const Variable& variable : module.variables) {
        if (variable.init.empty() || initialised_.contains(&variable)) continue;
        const Symbol* symbol = find(variable.name);
        if (symbol == nullptr || symbol->variable != &variable ||
            (symbol->space != Space::global && symbol->space != Space::constant)) {
            refuse(variable.line, "only .global and .const variables have initial values");
        }
        auto* bytes = reinterpret_cast<uint8_t*>(symbol->address);
        for (const Init& init : variable.init) {
            uint64_t value = init.bits;
            if (!init.symbol.empty()) {
                if (const Symbol* other = find(init.symbol)) {
                    value += other->address;
                } else if (int64_t index = function(init.symbol); index >= 0) {
                    value += kFunctionWindow + static_cast<uint64_t>(index) * 16;
                } else {
                    refuse(init.line, "unknown name " + std::string(init.symbol));
                }
                value >>= init.shift;
            }
            std::memcpy(bytes + init.offset, &value, std::min(init.size, 8u));
        }
    }
}

void Symbols::placeShared(const Module& module) {
    for (const Variable& variable : module.variables) {
        if (variable.space == Space::local) {
            refuse(variable.line, ".local variables at module scope are not supported");
        }
        if (variable.space != Space::shared) continue;
        if (variable.unsized) {
            symbols_[variable.name] = {Space::shared, 0, true, &variable};
            continue;
        }
        moduleShared_ = alignUp(moduleShared_, variable.align);
        symbols_[variable.name] = {Space::shared, moduleShared_, false, &variable};
        moduleShared_ += variable.size;
    }
    auto placeOf = [&](const Function& function, uint64_t& offset) {
        for (const Variable& variable : function.variables) {
            if (variable.space != Space::shared) continue;
            offset = alignUp(offset, variable.align);
            shared_[&variable] = offset;
            offset += variable.size;
        }
    };
    for (const Function* function : functions_) {
        if (!function->entry) placeOf(*function, moduleShared_);
    }
    for (const Function* function : functions_) {
        uint64_t offset = moduleShared_;
        if (function->entry) placeOf(*function, offset);
    }
}

}  // namespace juice::softgpu::ptx
