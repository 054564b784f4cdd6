#include "native/softgpu/ptx/declare.h"

#include <bit>

namespace juice::softgpu::ptx {
namespace {

/// The part of a declaration before the name: alignment, attributes, vector width, type.
struct Head {
    uint32_t align = 0;
    unsigned lanes = 1;
    bool managed = false;
    Type type = Type::none;
};

Head parseHead(Cursor& at) {
    Head head;
    while (at.peek().kind == Tok::dot) {
        uint32_t line = at.line();
        std::string_view word = at.next().text;
        if (word == "align") {
            head.align = at.alignment();
        } else if (word == "v2" || word == "v4") {
            head.lanes = word[1] - '0';
        } else if (word == "ptr") {
            // .ptr .space .align N: a hint on what a kernel parameter points to.
            while (at.peek().kind == Tok::dot && typeOf(at.peek().text) == Type::none) {
                if (at.next().text == "align") at.alignment();
            }
        } else if (word == "attribute") {
            at.expect('(');
            if (at.peek().kind != Tok::dot) refuse(line, "expected an attribute");
            std::string_view attribute = at.next().text;
            if (attribute != "managed") {
                refuse(line, ".attribute(." + std::string(attribute) +
                                 ") is not supported by the software GPU");
            }
            head.managed = true;
            at.expect(')');
        } else if (Type type = typeOf(word); type != Type::none && head.type == Type::none) {
            head.type = type;
        } else if (word == "texref" || word == "samplerref" || word == "surfref") {
            refuse(line, "." + std::string(word) + " is not supported by the software GPU");
        } else {
            refuse(line, "." + std::string(word) + " is not expected in a declaration");
        }
    }
    if (head.type == Type::none) refuse(at.line(), "expected a type before " + at.here());
    if (sizeOf(head.type) == 0) refuse(at.line(), "predicates cannot be stored in memory");
    if (head.align == 0) head.align = sizeOf(head.type) * head.lanes;
    return head;
}

class Initialiser {
  public:
    Initialiser(Cursor& at, Variable& variable) : at_(at), variable_(variable) {}

    void parse() {
        element(0);
        if (variable_.unsized && !variable_.isExtern) {
            variable_.size = offset_;
            variable_.unsized = false;
        }
        if (offset_ > variable_.size) refuse(variable_.line, "too many initial values");
    }

  private:
    void element(int depth) {
        if (depth > 8) refuse(at_.line(), "initial values are nested too deeply");
        if (at_.take('{')) {
            while (!at_.take('}')) {
                element(depth + 1);
                if (!at_.take(',') && !at_.peek().is('}')) at_.expect('}');
            }
            return;
        }
        Init init;
        init.line = at_.line();
        init.size = sizeOf(variable_.type);
        init.offset = offset_;
        value(init);
        offset_ += init.size;
        if (offset_ > kMaxVariable) refuse(init.line, "too many initial values");
        if (init.bits != 0 || !init.symbol.empty()) variable_.init.push_back(init);
    }

    void value(Init& init) {
        const Token& token = at_.peek();
        if (token.kind == Tok::real) {
            init.bits = realBits(at_.next(), false);
        } else if (token.is('-') && at_.peek(1).kind == Tok::real) {
            at_.next();
            init.bits = realBits(at_.next(), true);
        } else if (token.kind == Tok::integer && at_.peek(1).is('(')) {
            // 0xFF00(symbol): the byte of the address that the mask selects.
            uint64_t mask = at_.next().bits;
            if (mask == 0) refuse(init.line, "an address mask must not be zero");
            init.shift = static_cast<unsigned>(std::countr_zero(mask)) & ~7u;
            at_.expect('(');
            address(init);
            at_.expect(')');
        } else if (token.kind == Tok::word) {
            address(init);
        } else {
            init.bits = static_cast<uint64_t>(at_.integer());
        }
    }

    uint64_t realBits(const Token& token, bool negative) {
        double value = token.single ? std::bit_cast<float>(static_cast<uint32_t>(token.bits))
                                    : std::bit_cast<double>(token.bits);
        if (negative) value = -value;
        if (variable_.type == Type::f64) {
            return token.single || negative ? std::bit_cast<uint64_t>(value) : token.bits;
        }
        if (variable_.type != Type::f32) return token.bits;
        if (token.single && !negative) return token.bits;
        return std::bit_cast<uint32_t>(static_cast<float>(value));
    }

    void address(Init& init) {
        std::string_view name = at_.word();
        if (name == "generic") {
            at_.expect('(');
            init.symbol = at_.word();
            if (at_.peek().is('+') || at_.peek().is('-')) init.bits = at_.integer();
            at_.expect(')');
        } else {
            init.symbol = name;
        }
        while (at_.peek().is('+') || at_.peek().is('-')) init.bits += at_.integer();
    }

    Cursor& at_;
    Variable& variable_;
    uint64_t offset_ = 0;
};

/// Array dimensions; returns the number of elements and sets `unsized` for a leading [].
uint64_t parseDimensions(Cursor& at, bool& unsized) {
    uint64_t count = 1;
    bool first = true;
    while (at.take('[')) {
        uint32_t line = at.line();
        if (at.take(']')) {
            if (!first) refuse(line, "only the first dimension may be left open");
            unsized = true;
        } else {
            uint64_t extent = at.size(kMaxVariable);
            at.expect(']');
            if (extent != 0 && count > kMaxVariable / extent) refuse(line, "array is too large");
            count *= extent;
        }
        first = false;
    }
    return count;
}

}  // namespace

std::vector<Variable> parseVariables(Cursor& at, Space space, bool isExtern) {
    Head head = parseHead(at);
    std::vector<Variable> variables;
    do {
        Variable variable;
        variable.line = at.line();
        variable.name = at.word();
        variable.space = space;
        variable.type = head.type;
        variable.align = head.align;
        variable.isExtern = isExtern;
        variable.managed = head.managed;
        uint64_t count = parseDimensions(at, variable.unsized);
        variable.size = variable.unsized ? 0 : count * sizeOf(head.type) * head.lanes;
        if (variable.size > kMaxVariable) refuse(variable.line, "array is too large");
        if (at.take('=')) Initialiser(at, variable).parse();
        variables.push_back(std::move(variable));
    } while (at.take(','));
    at.expect(';');
    return variables;
}

Formal parseFormal(Cursor& at) {
    Head head = parseHead(at);
    Formal formal;
    formal.line = at.line();
    formal.name = at.word();
    formal.type = head.type;
    formal.align = head.align;
    bool unsized = false;
    uint64_t count = parseDimensions(at, unsized);
    if (unsized) refuse(formal.line, "a parameter needs a size");
    formal.size = count * sizeOf(head.type) * head.lanes;
    if (formal.size > (1 << 20)) refuse(formal.line, "parameter is too large");
    return formal;
}

}  // namespace juice::softgpu::ptx
