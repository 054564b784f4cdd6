// The names of a module: where each variable lives and which function is which.
#pragma once

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "native/softgpu/engine.h"
#include "native/softgpu/exec/code.h"
#include "native/softgpu/ptx/ast.h"

namespace juice::softgpu::ptx {

/// Where the formals of a signature stand in a frame's local memory (or a kernel's parameter
/// buffer, which has no results): results first, then parameters, each at its alignment.
struct FormalLayout {
    std::vector<uint32_t> returns, params;  // offsets in bytes
    uint32_t size = 0;
};
FormalLayout layoutFormals(const std::vector<Formal>& returns, const std::vector<Formal>& params);

struct Symbol {
    Space space = Space::global;
    uint64_t address = 0;  // host address, or offset in its space
    bool dynamic = false;  // .extern .shared: address counts from the dynamic part
    const Variable* variable = nullptr;
};

class Symbols {
  public:
    /// Allocates and initialises the module's globals in code.globals, gives shared variables
    /// their offsets, numbers the functions and fills code.functions with their names.
    /// `managed` is asked where managed variables live; empty: among the others.
    Symbols(const Module& module, Code& code, std::vector<GlobalInfo>& globals,
            const PlaceManaged& managed);

    /// Module variables, and shared variables of functions by pointer; null if unknown.
    const Symbol* find(std::string_view name) const;
    uint64_t sharedOffset(const Variable& variable) const { return shared_.at(&variable); }

    /// The index of a function in Code::functions, or -1.
    int64_t function(std::string_view name) const;
    const Function& definition(size_t index) const { return *functions_[index]; }
    size_t functionCount() const { return functions_.size(); }
    uint64_t moduleShared() const { return moduleShared_; }

  private:
    void numberFunctions(const Module& module, Code& code);
    void placeGlobals(const Module& module, Code& code, std::vector<GlobalInfo>& globals,
                      const PlaceManaged& managed);
    void initialise(const Module& module, Code& code);
    void placeShared(const Module& module);

    std::unordered_map<std::string_view, Symbol> symbols_;
    std::unordered_set<const Variable*> initialised_;  // managed ones that had values before
    std::unordered_map<std::string_view, size_t> functionIndex_;
    std::vector<const Function*> functions_;
    std::unordered_map<const Variable*, uint64_t> shared_;
    uint64_t moduleShared_ = 0;
};

constexpr uint64_t alignUp(uint64_t value, uint64_t align) {
    return (value + align - 1) & ~(align - 1);
}

}  // namespace juice::softgpu::ptx
