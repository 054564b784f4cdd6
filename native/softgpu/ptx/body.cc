#include "native/softgpu/ptx/body.h"

#include <algorithm>
#include <unordered_map>

#include "native/softgpu/ptx/declare.h"

namespace juice::softgpu::ptx {
namespace {

constexpr size_t kMaxRegisters = 1 << 20;
constexpr int kMaxDepth = 64;
constexpr size_t kLocationsLookedAt = 64;

/// A declared register, or a range of them: %r<100> has prefix "%r" and count 100.
struct Range {
    uint32_t first = 0;
    uint32_t count = 0;  // 0: a single register whose name is the key
};

class Body {
  public:
    Body(Cursor& at, Function& function) : at_(at), function_(function) {}

    void parse() {
        for (const auto* formals : {&function_.returns, &function_.params}) {
            for (const Formal& formal : *formals) {
                if (formal.reg >= 0) outer_[formal.name] = {static_cast<uint32_t>(formal.reg), 0};
            }
        }
        scope(0, 0);
    }

  private:
    using Names = std::unordered_map<std::string_view, Range>;

    void scope(uint32_t parent, int depth) {
        uint32_t start = at_.line();
        if (depth > kMaxDepth) refuse(start, "scopes are nested too deeply");
        auto id = static_cast<uint32_t>(function_.scopeParents.size());
        function_.scopeParents.push_back(parent);
        scopes_.emplace_back();
        at_.expect('{');
        while (!at_.take('}')) {
            if (at_.done()) refuse(start, "this block has no end");
            statement(id, depth);
        }
        scopes_.pop_back();
    }

    void statement(uint32_t id, int depth) {
        const Token& token = at_.peek();
        if (token.is('{')) return scope(id, depth + 1);
        if (token.is(';')) {
            at_.next();
            return;
        }
        if (token.kind == Tok::dot) return directive(id);
        if (token.kind == Tok::word && at_.peek(1).is(':')) return label(id);
        instruction(id);
    }

    void directive(uint32_t id) {
        uint32_t line = at_.line();
        std::string_view word = at_.next().text;
        if (word == "reg") return registers();
        if (word == "loc") return location(line);
        if (word == "file") return skipLineOf(line);
        if (word == "section") {
            while (!at_.done() && !at_.peek().is('{')) at_.next();
            return at_.skipBlock();
        }
        if (word == "pragma") {
            while (!at_.done() && !at_.take(';')) at_.next();
            return;
        }
        Space space;
        if (word == "shared") {
            space = Space::shared;
        } else if (word == "local") {
            space = Space::local;
        } else if (word == "param") {
            space = Space::param;
        } else if (word == "global") {
            space = Space::global;
        } else if (word == "const") {
            space = Space::constant;
        } else {
            refuse(line, "." + std::string(word) + " is not expected in a function body");
        }
        for (Variable& variable : parseVariables(at_, space, false)) {
            variable.scope = id;
            function_.variables.push_back(std::move(variable));
        }
    }

    /// ".loc file line column", perhaps with ", function_name name, inlined_at file line column".
    void location(uint32_t line) {
        Location place = position();
        while (!at_.done() && at_.line() == line) {
            if (at_.next().text == "inlined_at") place.parent = known(position(), true);
        }
        location_ = known(place, false);
    }

    Location position() {
        Location place;
        for (uint32_t* part : {&place.file, &place.line, &place.column}) {
            *part = static_cast<uint32_t>(at_.size(UINT32_MAX));
        }
        return place;
    }

    /// The index of a place, which was named before or is new. Of the caller of an inlined function
    /// nothing but its position is given: it is the place that was last named with that position.
    int32_t known(const Location& place, bool anyParent) {
        auto& all = function_.locations;
        for (size_t back = 0; back < std::min(all.size(), kLocationsLookedAt); ++back) {
            const Location& one = all[all.size() - 1 - back];
            bool same = one.file == place.file && one.line == place.line &&
                        one.column == place.column && (anyParent || one.parent == place.parent);
            if (same) return static_cast<int32_t>(all.size() - 1 - back);
        }
        all.push_back(place);
        return static_cast<int32_t>(all.size() - 1);
    }

    void skipLineOf(uint32_t line) {
        while (!at_.done() && at_.line() == line) at_.next();
    }

    void registers() {
        uint32_t line = at_.line();
        if (at_.peek().kind != Tok::dot) refuse(line, "expected a register type");
        std::string_view word = at_.next().text;
        Type type = typeOf(word);
        if (type == Type::none) {
            refuse(line, ".reg ." + std::string(word) + " is not supported by the software GPU");
        }
        do {
            std::string_view name = at_.word();
            uint32_t count = 0;
            if (at_.take('<')) {
                count = static_cast<uint32_t>(at_.size(kMaxRegisters));
                at_.expect('>');
            }
            auto first = static_cast<uint32_t>(function_.registers.size());
            size_t total = first + (count == 0 ? 1 : count);
            if (total > kMaxRegisters) refuse(line, "too many registers");
            function_.registers.resize(total, type);
            scopes_.back()[name] = {first, count};
        } while (at_.take(','));
        at_.expect(';');
    }

    void label(uint32_t id) {
        uint32_t line = at_.line();
        std::string_view name = at_.word();
        at_.expect(':');
        if (at_.peek().kind == Tok::dot) {
            std::string_view word = at_.peek().text;
            if (word == "branchtargets" || word == "calltargets" || word == "callprototype") {
                at_.next();
                return targetList(name, id, word == "callprototype");
            }
        }
        for (const Label& other : function_.labels) {
            if (other.scope == id && other.name == name) {
                refuse(line, "label " + std::string(name) + " is defined twice");
            }
        }
        function_.labels.push_back({name, id, static_cast<uint32_t>(function_.code.size())});
    }

    void targetList(std::string_view name, uint32_t id, bool prototype) {
        TargetList list;
        list.name = name;
        list.scope = id;
        list.prototype = prototype;
        if (prototype) {
            if (at_.peek().is('(')) list.returns = formals();
            at_.word();  // the placeholder _
            if (at_.peek().is('(')) list.arguments = formals();
            at_.takeDot("noreturn");
        } else {
            do list.labels.push_back(at_.word());
            while (at_.take(','));
        }
        at_.expect(';');
        function_.targets.push_back(std::move(list));
    }

    std::vector<Formal> formals() {
        std::vector<Formal> list;
        at_.expect('(');
        while (!at_.take(')')) {
            if (!at_.takeDot("param")) refuse(at_.line(), "expected .param before " + at_.here());
            list.push_back(parseFormal(at_));
            if (!at_.take(',') && !at_.peek().is(')')) at_.expect(')');
        }
        return list;
    }

    void instruction(uint32_t id) {
        Instruction in;
        in.scope = id;
        in.location = location_;
        const char* start = at_.peek().text.data();
        if (at_.take('@')) {
            in.guardNegated = at_.take('!');
            uint32_t line = at_.line();
            std::string_view name = at_.word();
            in.guard = find(name);
            if (in.guard < 0 || function_.registers[in.guard] != Type::pred) {
                refuse(line, std::string(name) + " is not a predicate register");
            }
        }
        in.line = at_.line();
        in.op = at_.word();
        while (at_.peek().kind == Tok::dot) in.mods.push_back(at_.next().text);
        while (!at_.take(';')) {
            if (at_.done()) refuse(in.line, "this instruction has no end");
            in.operands.push_back(operand(0));
            if (!at_.take(',') && !at_.peek().is(';')) at_.expect(';');
        }
        in.whole = {start, static_cast<size_t>(at_.last().data() - start)};
        function_.code.push_back(std::move(in));
    }

    Operand operand(int depth) {
        Operand first = simple(depth);
        if (at_.take('|')) {
            Operand pair;
            pair.kind = Operand::Kind::pair;
            pair.items.push_back(std::move(first));
            pair.items.push_back(simple(depth));
            return pair;
        }
        return first;
    }

    Operand simple(int depth) {
        if (depth > 4) refuse(at_.line(), "operands are nested too deeply");
        Operand result;
        const Token& token = at_.peek();
        if (at_.take('!')) {
            result = simple(depth + 1);
            result.negated = !result.negated;
            return result;
        }
        if (token.is('{')) return sequence('{', '}', Operand::Kind::vector, depth);
        if (token.is('(')) return sequence('(', ')', Operand::Kind::list, depth);
        if (token.is('[')) return address(depth);
        if (token.kind == Tok::word) return named();
        if (token.kind == Tok::real || (token.is('-') && at_.peek(1).kind == Tok::real)) {
            bool negative = at_.take('-');
            const Token& real = at_.next();
            result.kind = Operand::Kind::real;
            result.single = real.single;
            result.bits = real.bits;
            if (negative) result.bits ^= real.single ? 1ull << 31 : 1ull << 63;
            return result;
        }
        result.kind = Operand::Kind::integer;
        if (at_.take('~')) {
            result.bits = ~static_cast<uint64_t>(at_.integer());
        } else {
            result.bits = static_cast<uint64_t>(at_.integer());
        }
        return result;
    }

    Operand sequence(char open, char close, Operand::Kind kind, int depth) {
        Operand result;
        result.kind = kind;
        at_.expect(open);
        while (!at_.take(close)) {
            if (at_.done()) refuse(at_.line(), "this operand list has no end");
            result.items.push_back(operand(depth + 1));
            if (!at_.take(',') && !at_.peek().is(close)) at_.expect(close);
        }
        return result;
    }

    Operand address(int depth) {
        Operand result;
        result.kind = Operand::Kind::address;
        at_.expect('[');
        result.items.push_back(simple(depth + 1));
        while (at_.peek().is('+') || at_.peek().is('-')) {
            bool negative = at_.take('-');
            if (!negative) at_.take('+');
            int64_t value = at_.integer();
            result.offset += static_cast<int64_t>(negative ? 0 - static_cast<uint64_t>(value)
                                                           : static_cast<uint64_t>(value));
        }
        // Textures, surfaces and tensors have their coordinates inside: [texture, {x, y}].
        while (at_.take(',')) result.items.push_back(operand(depth + 1));
        at_.expect(']');
        return result;
    }

    Operand named() {
        Operand result;
        std::string_view name = at_.word();
        if (name == "_") return result;
        int64_t reg = find(name);
        if (reg >= 0) {
            result.kind = Operand::Kind::reg;
            result.reg = static_cast<uint32_t>(reg);
            if (at_.peek().kind == Tok::dot) {
                refuse(at_.line(), "vector registers are not supported by the software GPU");
            }
            return result;
        }
        result.kind = Operand::Kind::name;
        if (name[0] == '%' && at_.peek().kind == Tok::dot) {
            // %tid.x: the component belongs to the name.
            const Token& part = at_.next();
            const char* end = part.text.data() + part.text.size();
            name = {name.data(), static_cast<size_t>(end - name.data())};
        }
        result.name = name;
        if (at_.peek().is('+') || at_.peek().is('-')) result.offset = at_.integer();
        return result;
    }

    int64_t find(std::string_view name) const {
        for (size_t i = scopes_.size(); i-- > 0;) {
            int64_t found = findIn(scopes_[i], name);
            if (found >= 0) return found;
        }
        return findIn(outer_, name);
    }

    static int64_t findIn(const Names& names, std::string_view name) {
        auto exact = names.find(name);
        if (exact != names.end() && exact->second.count == 0) return exact->second.first;
        // Split "%r12" at every place where the rest is a number without leading zeros.
        uint64_t number = 0, unit = 1;
        for (size_t split = name.size(); split-- > 1 && name.size() - split < 8;) {
            char c = name[split];
            if (c < '0' || c > '9') break;
            number += (c - '0') * unit;
            unit *= 10;
            if (c == '0' && split + 1 < name.size()) continue;
            auto range = names.find(name.substr(0, split));
            if (range != names.end() && number < range->second.count) {
                return range->second.first + static_cast<int64_t>(number);
            }
        }
        return -1;
    }

    Cursor& at_;
    Function& function_;
    Names outer_;
    std::vector<Names> scopes_;
    int32_t location_ = -1;  // of the instructions that follow
};

}  // namespace

void parseBody(Cursor& at, Function& function) {
    Body(at, function).parse();
}

}  // namespace juice::softgpu::ptx
