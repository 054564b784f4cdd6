// PTX text to tokens. Comments, line markers and white space go; every token knows its line.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace juice::softgpu::ptx {

enum class Tok : uint8_t {
    end,
    word,     // add, %r1, $L__BB0_1, _Z3fooPi
    dot,      // .global, .u32, .L1::evict_last; the text is without its first dot
    integer,  // bits hold the value, two's complement
    real,     // bits hold an f64; `single` marks a 0f literal whose low 32 bits are an f32
    string,   // text is without the quotes
    punct,    // one character
};

struct Token {
    Tok kind = Tok::end;
    bool single = false;
    uint32_t line = 0;
    std::string_view text;
    uint64_t bits = 0;

    bool is(char c) const { return kind == Tok::punct && text[0] == c; }
    bool isDot(std::string_view word) const { return kind == Tok::dot && text == word; }
};

/// The last token is always Tok::end. Throws Refusal on a character that PTX has no use for.
std::vector<Token> lex(std::string_view source);

}  // namespace juice::softgpu::ptx
