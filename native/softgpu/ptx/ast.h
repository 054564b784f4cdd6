// What the parser makes of a PTX module: names resolved to scopes, nothing decoded yet. All
// string_views point into the source text, which the Module keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "native/softgpu/ptx/type.h"

namespace juice::softgpu::ptx {

enum class Space : uint8_t { generic, global, constant, shared, local, param };

struct Operand {
    enum class Kind : uint8_t {
        reg,      // reg
        integer,  // bits
        real,     // bits, an f64, or an f32 where `single`
        name,     // a symbol, label or special register (with its ".x")
        address,  // [items[0] + offset]
        vector,   // {items...}
        list,     // (items...)
        pair,     // items[0] | items[1]
        sink,     // _
    };
    Kind kind = Kind::sink;
    bool negated = false;  // !%p
    bool single = false;
    uint32_t reg = 0;
    uint64_t bits = 0;
    int64_t offset = 0;
    std::string_view name;
    std::vector<Operand> items;
};

/// A place in the source that PTX was made from, as .loc gives it. `parent` is the call, as a place
/// too, where a function was inlined; -1 if there is none.
struct Location {
    uint32_t file = 0, line = 0, column = 0;
    int32_t parent = -1;
};

struct Instruction {
    std::string_view whole;  // from the guard to the semicolon
    std::string_view op;
    std::vector<std::string_view> mods;
    std::vector<Operand> operands;
    int64_t guard = -1;  // register id of the predicate, or -1
    bool guardNegated = false;
    uint32_t scope = 0;
    uint32_t line = 0;
    int32_t location = -1;  // index into Function::locations

    /// "ld.global.u32": how the instruction is named in messages.
    std::string text() const;
};

/// One initial value of a module variable.
struct Init {
    size_t offset = 0;        // bytes from the variable's start
    unsigned size = 0;        // bytes
    uint64_t bits = 0;        // the value, or the addend where `symbol` is set
    std::string_view symbol;  // adds this symbol's address
    unsigned shift = 0;       // take the result's bits from here (byte-wise address initialisers)
    uint32_t line = 0;
};

struct Variable {
    std::string_view name;
    Space space = Space::global;
    Type type = Type::none;
    uint64_t size = 0;  // bytes; 0 for an unsized (dynamic) array
    uint32_t align = 1;
    bool isExtern = false;
    bool unsized = false;
    bool managed = false;
    uint32_t scope = 0;
    uint32_t line = 0;
    std::vector<Init> init;
};

struct Label {
    std::string_view name;
    uint32_t scope = 0;
    uint32_t target = 0;  // index into Function::code
};

/// A parameter or a return value: in param space, or (older ABI) a register.
struct Formal {
    std::string_view name;
    Type type = Type::none;
    uint64_t size = 0;
    uint32_t align = 1;
    int64_t reg = -1;  // register id where it is a .reg
    uint32_t line = 0;
};

/// ".callprototype", ".branchtargets" and ".calltargets" declarations.
struct TargetList {
    std::string_view name;
    uint32_t scope = 0;
    std::vector<std::string_view> labels;    // branch or call targets
    std::vector<Formal> returns, arguments;  // prototype
    bool prototype = false;
};

struct Function {
    std::string_view name;
    bool entry = false;
    bool defined = false;
    bool isExtern = false;
    uint32_t line = 0;
    std::vector<Formal> returns, params;
    std::vector<Type> registers;         // by register id
    std::vector<uint32_t> scopeParents;  // scope 0 is the body; its parent is itself
    std::vector<Variable> variables;
    std::vector<Label> labels;
    std::vector<TargetList> targets;
    std::vector<Instruction> code;
    std::vector<Location> locations;
    uint32_t maxThreads = 0;  // .maxntid or .reqntid product, 0 if not given
};

struct Module {
    std::unique_ptr<std::string> source;
    uint32_t version = 0;  // 90 for 9.0
    uint32_t target = 0;   // 90 for sm_90
    std::vector<Variable> variables;
    std::vector<std::unique_ptr<Function>> functions;
    std::vector<std::pair<std::string_view, std::string_view>> aliases;  // name, aliased function
    std::vector<std::pair<uint32_t, std::string_view>> files;            // of .loc: number, name
};

}  // namespace juice::softgpu::ptx
