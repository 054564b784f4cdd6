#include "native/softgpu/ptx/parser.h"

#include <algorithm>

#include "native/softgpu/ptx/body.h"
#include "native/softgpu/ptx/declare.h"
#include "native/softgpu/ptx/units.h"

namespace juice::softgpu::ptx {
namespace {

class Parser {
  public:
    explicit Parser(std::string_view source) {
        module_.source = std::make_unique<std::string>(source);
    }

    Module parse() {
        if (module_.source->find(".version") == std::string::npos) notPtx();
        Cursor at(lex(*module_.source));
        header(at);
        while (!at.done()) {
            // Another unit, as a linker puts them behind each other.
            if (at.peek().isDot("version")) header(at);
            if (!at.done()) topLevel(at);
        }
        joinUnits(module_, units_, linkages_);
        return std::move(module_);
    }

  private:
    void header(Cursor& at) {
        if (!at.takeDot("version")) notPtx();
        uint32_t line = at.line();
        const Token& number = at.next();
        size_t dot = number.text.find('.');
        if (number.kind != Tok::real || number.text.size() > 6 || dot + 2 != number.text.size()) {
            refuse(line, "bad .version");
        }
        uint32_t version = 0;
        for (char c : number.text) {
            if (c != '.') version = version * 10 + (c - '0');
        }
        units_.push_back({module_.variables.size(), module_.functions.size(),
                          module_.aliases.size(), module_.files.size()});
        module_.version = std::max(module_.version, version);
        if (version > kNewestVersion) {
            throw Refusal{kUnsupportedVersion, "line " + std::to_string(line) + ": PTX ISA " +
                                                   std::string(number.text) +
                                                   " is newer than the software GPU knows (9.0)"};
        }
    }

    [[noreturn]] static void notPtx() {
        throw Refusal{kInvalidImage, "this is not PTX: it does not start with .version"};
    }

    void target(Cursor& at) {
        uint32_t line = at.line();
        do {
            std::string_view word = at.word();
            if (word.substr(0, 3) == "sm_") {
                uint32_t number = 0;
                for (char c : word.substr(3)) {
                    if (c < '0' || c > '9') break;
                    number = std::min(number * 10 + (c - '0'), 100000u);
                }
                module_.target = std::max(module_.target, number);
            } else if (word != "texmode_unified" && word != "texmode_independent" &&
                       word != "debug" && word != "map_f64_to_f32") {
                refuse(line, "unknown target " + std::string(word));
            }
        } while (at.take(','));
        if (module_.target > kNewestTarget) {
            refuse(line, "target sm_" + std::to_string(module_.target) +
                             " is newer than the software GPU (compute capability 9.0)");
        }
    }

    void topLevel(Cursor& at) {
        uint32_t line = at.line();
        if (at.take(';')) return;
        if (at.peek().kind != Tok::dot) refuse(line, "unexpected " + at.here());
        std::string_view word = at.next().text;
        if (word == "target") return target(at);
        if (word == "address_size") {
            if (at.integer() != 64) refuse(line, "only 64-bit addresses are supported");
            return;
        }
        if (word == "file") return file(at, line);
        if (word == "loc") {
            while (!at.done() && at.line() == line) at.next();
            return;
        }
        if (word == "section") {
            while (!at.done() && !at.peek().is('{')) at.next();
            return at.skipBlock();
        }
        if (word == "pragma") {
            while (!at.done() && !at.take(';')) at.next();
            return;
        }
        if (word == "alias") {
            std::string_view name = at.word();
            at.expect(',');
            module_.aliases.emplace_back(name, at.word());
            at.expect(';');
            return;
        }
        Linkage linkage;
        while (word == "visible" || word == "extern" || word == "weak" || word == "common") {
            linkage.isExtern |= word == "extern";
            linkage.isVisible |= word == "visible";
            linkage.isWeak |= word == "weak" || word == "common";
            if (at.peek().kind != Tok::dot) refuse(line, "expected a directive");
            word = at.next().text;
        }
        if (word == "entry") return function(at, true, linkage, line);
        if (word == "func") return function(at, false, linkage, line);
        if (word == "global") return variables(at, Space::global, linkage);
        if (word == "const") return variables(at, Space::constant, linkage);
        if (word == "shared") return variables(at, Space::shared, linkage);
        if (word == "local") return variables(at, Space::local, linkage);
        refuse(line, "." + std::string(word) + " is not supported by the software GPU");
    }

    /// ".file number "name"", perhaps with a time and a size.
    void file(Cursor& at, uint32_t line) {
        auto number = static_cast<uint32_t>(at.size(UINT32_MAX));
        if (at.peek().kind != Tok::string) refuse(line, "expected a file name");
        module_.files.emplace_back(number, at.next().text);
        while (!at.done() && at.line() == line) at.next();
    }

    void variables(Cursor& at, Space space, const Linkage& linkage) {
        if (space == Space::constant && at.peek().kind == Tok::punct && at.take('[')) {
            if (at.integer() != 0) refuse(at.line(), "only constant bank 0 is supported");
            at.expect(']');
        }
        for (Variable& variable : parseVariables(at, space, linkage.isExtern)) {
            linkages_.variables.push_back(linkage);
            module_.variables.push_back(std::move(variable));
        }
    }

    void function(Cursor& at, bool entry, const Linkage& linkage, uint32_t line) {
        auto made = std::make_unique<Function>();
        Function& function = *made;
        function.entry = entry;
        function.isExtern = linkage.isExtern;
        function.line = line;
        while (at.peek().isDot("attribute")) {
            refuse(at.line(), ".attribute on functions is not supported by the software GPU");
        }
        if (!entry && at.peek().is('(')) function.returns = formals(at, function);
        function.name = at.word();
        if (at.peek().is('(')) function.params = formals(at, function);
        while (at.peek().kind == Tok::dot) functionDirective(at, function);
        if (!at.take(';')) {
            function.defined = true;
            parseBody(at, function);
        }
        linkages_.functions.push_back(linkage);
        module_.functions.push_back(std::move(made));
    }

    std::vector<Formal> formals(Cursor& at, Function& function) {
        std::vector<Formal> list;
        at.expect('(');
        while (!at.take(')')) {
            bool reg = at.takeDot("reg");
            if (!reg && !at.takeDot("param")) {
                refuse(at.line(), "expected .param before " + at.here());
            }
            Formal formal = parseFormal(at);
            if (reg) {
                if (function.entry) refuse(formal.line, "a kernel's parameters are .param");
                if (formal.size != sizeOf(formal.type)) refuse(formal.line, "bad register");
                formal.reg = static_cast<int64_t>(function.registers.size());
                function.registers.push_back(formal.type);
            }
            list.push_back(formal);
            if (!at.take(',') && !at.peek().is(')')) at.expect(')');
        }
        return list;
    }

    void functionDirective(Cursor& at, Function& function) {
        uint32_t line = at.line();
        std::string_view word = at.next().text;
        if (word == "maxntid" || word == "reqntid") {
            uint64_t product = 1;
            do product = std::min<uint64_t>(product * at.size(1 << 16), 1 << 20);
            while (at.take(','));
            function.maxThreads = static_cast<uint32_t>(product);
        } else if (word == "minnctapersm" || word == "maxnreg" || word == "maxnctapersm") {
            at.integer();
        } else if (word == "pragma") {
            while (!at.done() && !at.take(';')) at.next();
        } else if (word != "noreturn" && word != "unified") {
            refuse(line, "." + std::string(word) + " is not supported by the software GPU");
        }
    }

    Module module_;
    std::vector<Unit> units_;
    Linkages linkages_;
};

}  // namespace

std::string Instruction::text() const {
    std::string all(op);
    for (std::string_view mod : mods) all.append(".").append(mod);
    return all;
}

Module parse(std::string_view source) {
    return Parser(source).parse();
}

}  // namespace juice::softgpu::ptx
