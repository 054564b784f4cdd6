#include "native/softgpu/ptx/lexer.h"

#include <bit>
#include <charconv>
#include <string>

#include "native/softgpu/ptx/refusal.h"

namespace juice::softgpu::ptx {
namespace {

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}
bool isLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool isWordStart(char c) {
    return isLetter(c) || c == '_' || c == '$' || c == '%';
}
bool isWordPart(char c) {
    return isLetter(c) || isDigit(c) || c == '_' || c == '$';
}

class Lexer {
  public:
    explicit Lexer(std::string_view source) : source_(source) {}

    std::vector<Token> run() {
        tokens_.reserve(source_.size() / 4 + 1);
        while (skipBlank()) token();
        add(Tok::end, at_, at_);
        return std::move(tokens_);
    }

  private:
    char peek(size_t ahead = 0) const {
        return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
    }

    Token& add(Tok kind, size_t from, size_t to) {
        tokens_.push_back({kind, false, line_, source_.substr(from, to - from), 0});
        return tokens_.back();
    }

    /// Moves to the next token; false at the end. A NUL ends the text, as it does for the driver.
    bool skipBlank() {
        while (at_ < source_.size() && source_[at_] != '\0') {
            char c = source_[at_];
            if (c == '\n') {
                ++line_;
                ++at_;
            } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
                ++at_;
            } else if (c == '/' && peek(1) == '/') {
                skipLine();
            } else if (c == '/' && peek(1) == '*') {
                skipComment();
            } else if (c == '#') {
                skipLine();
            } else {
                return true;
            }
        }
        return false;
    }

    void skipLine() {
        while (at_ < source_.size() && source_[at_] != '\n') ++at_;
    }

    void skipComment() {
        uint32_t start = line_;
        at_ += 2;
        while (at_ < source_.size() && !(source_[at_] == '*' && peek(1) == '/')) {
            if (source_[at_] == '\n') ++line_;
            ++at_;
        }
        if (at_ >= source_.size()) refuse(start, "this comment has no end");
        at_ += 2;
    }

    void token() {
        size_t start = at_;
        char c = peek();
        if (isWordStart(c)) {
            ++at_;
            while (isWordPart(peek())) ++at_;
            add(Tok::word, start, at_);
        } else if (c == '.' && (isWordPart(peek(1)))) {
            dotWord();
        } else if (isDigit(c)) {
            number();
        } else if (c == '"') {
            string();
        } else if (std::string_view("{}()[]<>,;:@!|+-=*/&~^?.").find(c) != std::string_view::npos) {
            ++at_;
            add(Tok::punct, start, at_);
        } else {
            refuse(line_, "unexpected character (code " +
                              std::to_string(static_cast<unsigned char>(c)) + ")");
        }
    }

    void dotWord() {
        size_t start = ++at_;
        while (isWordPart(peek()) || (peek() == ':' && peek(1) == ':' && isWordPart(peek(2)))) {
            at_ += peek() == ':' ? 2 : 1;
        }
        add(Tok::dot, start, at_);
    }

    void string() {
        size_t start = ++at_;
        while (at_ < source_.size() && peek() != '"') {
            if (peek() == '\n') refuse(line_, "this string has no end");
            at_ += peek() == '\\' ? 2 : 1;
        }
        if (at_ >= source_.size()) refuse(line_, "this string has no end");
        add(Tok::string, start, at_);
        ++at_;
    }

    uint64_t digits(int base, size_t start) {
        uint64_t value = 0;
        const char* first = source_.data() + start;
        const char* last = source_.data() + at_;
        auto [end, failure] = std::from_chars(first, last, value, base);
        if (failure != std::errc() || end != last) {
            refuse(line_, "bad number " + std::string(source_.substr(start, at_ - start)));
        }
        return value;
    }

    void hexFloat(size_t length, bool single) {
        size_t start = at_;
        at_ += 2;
        size_t from = at_;
        while (isLetter(peek()) || isDigit(peek())) ++at_;
        if (at_ - from != length) refuse(line_, "bad floating-point literal");
        uint64_t bits = digits(16, from);
        Token& token = add(Tok::real, start, at_);
        token.single = single;
        token.bits = bits;
    }

    void number() {
        char next = peek(1) | 0x20;
        if (peek() == '0' && (next == 'f' || next == 'd')) {
            return hexFloat(next == 'f' ? 8 : 16, next == 'f');
        }
        size_t start = at_;
        int base = 10;
        if (peek() == '0' && next == 'x') {
            base = 16;
            at_ += 2;
        } else if (peek() == '0' && next == 'b') {
            base = 2;
            at_ += 2;
        } else if (peek() == '0' && isDigit(peek(1))) {
            base = 8;
        }
        size_t from = at_;
        while (isDigit(peek()) || (base == 16 && isLetter(peek()) && (peek() | 0x20) <= 'f')) ++at_;
        bool fraction = peek() == '.' && isDigit(peek(1));
        bool exponent = (peek() | 0x20) == 'e';
        if (base != 16 && base != 2 && (fraction || exponent)) return decimal(start);
        uint64_t value = digits(base, from);
        if (peek() == 'U') ++at_;
        add(Tok::integer, start, at_).bits = value;
    }

    void decimal(size_t start) {
        at_ = start;
        while (isDigit(peek()) || peek() == '.') ++at_;
        if ((peek() | 0x20) == 'e') {
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            while (isDigit(peek())) ++at_;
        }
        double value = 0;
        const char* last = source_.data() + at_;
        auto [end, failure] = std::from_chars(source_.data() + start, last, value);
        if (failure == std::errc::invalid_argument || end != last) {
            refuse(line_, "bad number " + std::string(source_.substr(start, at_ - start)));
        }
        add(Tok::real, start, at_).bits = std::bit_cast<uint64_t>(value);
    }

    std::string_view source_;
    size_t at_ = 0;
    uint32_t line_ = 1;
    std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(std::string_view source) {
    return Lexer(source).run();
}

}  // namespace juice::softgpu::ptx
