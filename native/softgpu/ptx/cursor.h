// A place in the token stream, with the small questions that every part of the parser asks.
#pragma once

#include <string>
#include <vector>

#include "native/softgpu/ptx/lexer.h"
#include "native/softgpu/ptx/refusal.h"

namespace juice::softgpu::ptx {

class Cursor {
  public:
    explicit Cursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

    const Token& peek(size_t ahead = 0) const {
        return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
    }
    bool done() const { return peek().kind == Tok::end; }
    uint32_t line() const { return peek().line; }

    const Token& next() {
        const Token& token = peek();
        if (at_ + 1 < tokens_.size()) ++at_;
        return token;
    }

    /// The text of the token that was taken last.
    std::string_view last() const { return tokens_[at_ == 0 ? 0 : at_ - 1].text; }

    bool take(char c) {
        if (!peek().is(c)) return false;
        next();
        return true;
    }

    bool takeDot(std::string_view word) {
        if (!peek().isDot(word)) return false;
        next();
        return true;
    }

    void expect(char c) {
        if (!take(c)) refuse(line(), std::string("expected '") + c + "' before " + here());
    }

    std::string_view word() {
        if (peek().kind != Tok::word) refuse(line(), "expected a name before " + here());
        return next().text;
    }

    /// A plain integer with an optional sign.
    int64_t integer() {
        bool negative = take('-');
        if (!negative) take('+');
        if (peek().kind != Tok::integer) refuse(line(), "expected a number before " + here());
        uint64_t bits = next().bits;
        return static_cast<int64_t>(negative ? 0 - bits : bits);
    }

    uint64_t size(uint64_t limit) {
        uint32_t at = line();
        int64_t value = integer();
        if (value < 0 || static_cast<uint64_t>(value) > limit) refuse(at, "number out of range");
        return static_cast<uint64_t>(value);
    }

    uint32_t alignment() {
        uint32_t at = line();
        uint64_t value = size(1 << 20);
        if (value == 0 || (value & (value - 1))) refuse(at, "alignment is not a power of two");
        return static_cast<uint32_t>(value);
    }

    /// Steps over the rest of the present line (.loc, .file and the like have no terminator).
    void skipLine() {
        uint32_t at = line();
        while (!done() && line() == at) next();
    }

    /// Steps over a balanced { } block; stands before its opening brace.
    void skipBlock() {
        uint32_t start = line();
        expect('{');
        for (int depth = 1; depth > 0; next()) {
            if (done()) refuse(start, "this block has no end");
            if (peek().is('{')) ++depth;
            if (peek().is('}')) --depth;
        }
    }

    std::string here() const {
        const Token& token = peek();
        if (token.kind == Tok::end) return "the end of the text";
        std::string text(token.text);
        return token.kind == Tok::dot ? "." + text : "'" + text + "'";
    }

  private:
    std::vector<Token> tokens_;
    size_t at_ = 0;
};

}  // namespace juice::softgpu::ptx
