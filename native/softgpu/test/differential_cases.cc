#include "native/softgpu/test/differential_cases.h"

namespace juice::softgpu::test {
namespace {

/// Registers that a snippet finds: three inputs as %rN words, %qN doublewords, %fN, %dN, %hN with
/// N = 1, 2, 3; and where its result must be: %r4, %q4, %f4, %d4, %h4 or %p4.
class Builder {
  public:
    void words(const std::string& op, const std::string& operands = "%r1, %r2") {
        add(op, op + " %r4, " + operands + "; cvt.u64.u32 %q4, %r4;", Match::exact);
    }
    void doublewords(const std::string& op, const std::string& operands = "%q1, %q2") {
        add(op, op + " %q4, " + operands + ";", Match::exact);
    }
    void shorts(const std::string& op, const std::string& operands = "%h1, %h2") {
        add(op, op + " %h4, " + operands + "; cvt.u64.u16 %q4, %h4;", Match::exact);
    }
    void singles(const std::string& op, const std::string& operands, Match match) {
        add(op, op + " %f4, " + operands + "; mov.b32 %r4, %f4; cvt.u64.u32 %q4, %r4;", match);
    }
    void doubles(const std::string& op, const std::string& operands, Match match) {
        add(op, op + " %d4, " + operands + "; mov.b64 %q4, %d4;", match);
    }
    void predicates(const std::string& op, const std::string& operands) {
        add(op, op + " %p4, " + operands + "; selp.u64 %q4, 1, 0, %p4;", Match::exact);
    }
    void add(const std::string& name, const std::string& body, Match match) {
        cases_.push_back({name, body, match});
    }
    std::vector<Case> take() { return std::move(cases_); }

  private:
    std::vector<Case> cases_;
};

void integers(Builder& b) {
    for (const char* type : {"u32", "s32", "u64", "s64", "u16", "s16"}) {
        std::string t = type;
        auto two = [&](const std::string& op) {
            if (t.ends_with("32"))
                b.words(op + "." + t);
            else if (t.ends_with("64"))
                b.doublewords(op + "." + t);
            else
                b.shorts(op + "." + t);
        };
        for (const char* op : {"add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"})
            two(op);
    }
    for (const char* type : {"u32", "s32"}) {
        std::string t = type;
        b.words("mad.lo." + t, "%r1, %r2, %r3");
        b.words("mad.hi." + t, "%r1, %r2, %r3");
        b.words("sad." + t, "%r1, %r2, %r3");
        b.words("mul24.lo." + t);
        b.words("mul24.hi." + t);
        b.words("bfe." + t, "%r1, %r2, %r3");
        b.words("bfind." + t, "%r1");
        b.words("bfind.shiftamt." + t, "%r1");
        b.words("shr." + t);
        b.words("dp4a." + t + "." + t, "%r1, %r2, %r3");
        b.words("dp2a.lo." + t + "." + t, "%r1, %r2, %r3");
        b.words("dp2a.hi." + t + "." + t, "%r1, %r2, %r3");
        b.doublewords("mul.wide." + t, "%r1, %r2");
        b.doublewords("mad.wide." + t, "%r1, %r2, %q3");
    }
    b.words("add.sat.s32");
    b.words("sub.sat.s32");
    b.words("mad.hi.sat.s32", "%r1, %r2, %r3");
    for (const char* op : {"and", "or", "xor"}) {
        b.words(op + std::string(".b32"));
        b.doublewords(op + std::string(".b64"));
    }
    for (const char* op :
         {"not.b32", "cnot.b32", "abs.s32", "neg.s32", "popc.b32", "clz.b32", "brev.b32"}) {
        b.words(op, "%r1");
    }
    for (const char* op : {"not.b64", "abs.s64", "neg.s64", "brev.b64"}) b.doublewords(op, "%q1");
    b.words("popc.b64", "%q1");
    b.words("clz.b64", "%q1");
    b.words("shl.b32");
    b.doublewords("shl.b64", "%q1, %r2");
    b.doublewords("shr.u64", "%q1, %r2");
    b.doublewords("shr.s64", "%q1, %r2");
    b.doublewords("bfe.u64", "%q1, %r2, %r3");
    b.doublewords("bfe.s64", "%q1, %r2, %r3");
    b.words("bfi.b32", "%r1, %r2, %r3, %r1");
    b.doublewords("bfi.b64", "%q1, %q2, %r3, %r1");
    for (const char* mode : {"l.wrap", "l.clamp", "r.wrap", "r.clamp"}) {
        b.words("shf." + std::string(mode) + ".b32", "%r1, %r2, %r3");
    }
    b.words("prmt.b32", "%r1, %r2, %r3");
    for (const char* mode : {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) {
        b.words("prmt.b32." + std::string(mode), "%r1, %r2, %r3");
    }
    for (const char* table : {"0x96", "0xe8", "0xca", "0x1b", "0x7e"}) {
        b.words("lop3.b32", std::string("%r1, %r2, %r3, ") + table);
    }
    b.words("vabsdiff4.u32.u32.u32", "%r1, %r2, %r3");
    b.words("vabsdiff4.u32.s32.s32.add", "%r1, %r2, %r3");
    b.words("vabsdiff2.u32.s32.s32", "%r1, %r2, %r3");
    b.add("add.cc",
          "add.cc.u32 %r4, %r1, %r2; addc.cc.u32 %r5, %r2, %r3; addc.u32 %r6, 0, 0;"
          "mov.b64 %q4, {%r4, %r5}; xor.b32 %r6, %r6, %r4; mov.b64 %q4, {%r6, %r5};",
          Match::exact);
    b.add("sub.cc",
          "sub.cc.u32 %r4, %r1, %r2; subc.cc.u32 %r5, %r2, %r3; subc.u32 %r6, 0, 0;"
          "xor.b32 %r6, %r6, %r4; mov.b64 %q4, {%r6, %r5};",
          Match::exact);
    b.add("add.cc then subc",
          "add.cc.u32 %r4, %r1, %r2; subc.u32 %r5, %r3, %r1; mov.b64 %q4, {%r4, %r5};",
          Match::exact);
    b.add("mad.cc",
          "mad.lo.cc.u32 %r4, %r1, %r2, %r3; madc.hi.u32 %r5, %r1, %r2, %r3;"
          "mov.b64 %q4, {%r4, %r5};",
          Match::exact);
    b.add("sub.cc then addc",
          "sub.cc.u32 %r4, %r1, %r2; addc.u32 %r5, 0, 0;"
          "mov.b64 %q4, {%r4, %r5};",
          Match::exact);
    for (const char* op : {"eq", "ne", "lt", "le", "gt", "ge"}) {
        b.predicates("setp." + std::string(op) + ".s32", "%r1, %r2");
        b.predicates("setp." + std::string(op) + ".u64", "%q1, %q2");
    }
}

void singles(Builder& b) {
    for (const char* rounding : {"rn", "rz", "rm", "rp"}) {
        std::string r = std::string(".") + rounding;
        for (const char* ftz : {"", ".ftz"}) {
            std::string suffix = r + ftz + ".f32";
            b.singles("add" + suffix, "%f1, %f2", Match::exact);
            b.singles("sub" + suffix, "%f1, %f2", Match::exact);
            b.singles("mul" + suffix, "%f1, %f2", Match::exact);
            b.singles("fma" + suffix, "%f1, %f2, %f3", Match::exact);
            b.singles("div" + suffix, "%f1, %f2", Match::exact);
            b.singles("rcp" + suffix, "%f1", Match::exact);
            b.singles("sqrt" + suffix, "%f1", Match::exact);
        }
        b.singles("cvt" + r + ".f32.f64", "%d1", Match::exact);
        b.singles("cvt" + r + ".f32.s32", "%r1", Match::exact);
        b.singles("cvt" + r + ".f32.u64", "%q1", Match::exact);
        b.singles("cvt" + r + ".f32.s64", "%q1", Match::exact);
    }
    b.singles("add.sat.f32", "%f1, %f2", Match::exact);
    b.singles("mul.ftz.sat.f32", "%f1, %f2", Match::exact);
    b.singles("fma.rn.sat.f32", "%f1, %f2, %f3", Match::exact);
    for (const char* op : {"min", "max"}) {
        for (const char* mode : {"", ".ftz", ".NaN"}) {
            b.singles(std::string(op) + mode + ".f32", "%f1, %f2", Match::exact);
        }
    }
    for (const char* op : {"abs", "neg"}) {
        b.singles(std::string(op) + ".f32", "%f1", Match::exact);
        b.singles(std::string(op) + ".ftz.f32", "%f1", Match::exact);
    }
    b.singles("copysign.f32", "%f1, %f2", Match::exact);
    b.singles("div.approx.f32", "%f1, %f2", Match::near);
    b.singles("div.full.f32", "%f1, %f2", Match::near);
    b.singles("lg2.approx.f32", "%f1", Match::logarithm);
    b.singles("lg2.approx.ftz.f32", "%f1", Match::logarithm);
    for (const char* op : {"rcp", "sqrt", "rsqrt"}) {
        b.singles(std::string(op) + ".approx.f32", "%f1", Match::near);
        b.singles(std::string(op) + ".approx.ftz.f32", "%f1", Match::near);
    }
    b.singles("ex2.approx.f32", "%f1", Match::near);
    b.singles("ex2.approx.ftz.f32", "%f1", Match::near);
    b.singles("tanh.approx.f32", "%f1", Match::coarse);
    b.add("sin.approx",
          "and.b32 %r1, %r1, 0xbfffffff; mov.b32 %f1, %r1; sin.approx.f32 %f4, %f1;"
          "mov.b32 %r4, %f4; cvt.u64.u32 %q4, %r4;",
          Match::absolute);
    b.add("cos.approx",
          "and.b32 %r1, %r1, 0xbfffffff; mov.b32 %f1, %r1; cos.approx.f32 %f4, %f1;"
          "mov.b32 %r4, %f4; cvt.u64.u32 %q4, %r4;",
          Match::absolute);
    for (const char* op : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu",
                           "geu", "num", "nan"}) {
        b.predicates("setp." + std::string(op) + ".f32", "%f1, %f2");
        b.predicates("setp." + std::string(op) + ".ftz.f32", "%f1, %f2");
        b.predicates("setp." + std::string(op) + ".f64", "%d1, %d2");
    }
    for (const char* test : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}) {
        b.predicates("testp." + std::string(test) + ".f32", "%f1");
        b.predicates("testp." + std::string(test) + ".f64", "%d1");
    }
    b.singles("cvt.sat.f32.f32", "%f1", Match::exact);
    b.singles("cvt.ftz.f32.f32", "%f1", Match::exact);
    for (const char* mode : {"rni", "rzi", "rmi", "rpi"}) {
        std::string r = std::string("cvt.") + mode;
        b.singles(r + ".f32.f32", "%f1", Match::exact);
        b.singles(r + ".ftz.f32.f32", "%f1", Match::exact);
        b.doubles(r + ".f64.f64", "%d1", Match::exact);
        for (const char* from : {"f32", "f64"}) {
            std::string source = from == std::string("f32") ? "%f1" : "%d1";
            for (const char* to : {"s32", "u32"}) b.words(r + "." + to + "." + from, source);
            for (const char* to : {"s64", "u64"}) b.doublewords(r + "." + to + "." + from, source);
            for (const char* to : {"s16", "u16", "u8"}) b.shorts(r + "." + to + "." + from, source);
        }
    }
}

void doubles(Builder& b) {
    for (const char* rounding : {"rn", "rz", "rm", "rp"}) {
        std::string suffix = std::string(".") + rounding + ".f64";
        b.doubles("add" + suffix, "%d1, %d2", Match::exact);
        b.doubles("sub" + suffix, "%d1, %d2", Match::exact);
        b.doubles("mul" + suffix, "%d1, %d2", Match::exact);
        b.doubles("fma" + suffix, "%d1, %d2, %d3", Match::exact);
        b.doubles("div" + suffix, "%d1, %d2", Match::exact);
        b.doubles("rcp" + suffix, "%d1", Match::exact);
        b.doubles("sqrt" + suffix, "%d1", Match::exact);
        b.doubles("cvt." + std::string(rounding) + ".f64.s64", "%q1", Match::exact);
        b.doubles("cvt." + std::string(rounding) + ".f64.u64", "%q1", Match::exact);
    }
    b.doubles("min.f64", "%d1, %d2", Match::exact);
    b.doubles("max.f64", "%d1, %d2", Match::exact);
    b.doubles("abs.f64", "%d1", Match::exact);
    b.doubles("neg.f64", "%d1", Match::exact);
    b.doubles("cvt.f64.f32", "%f1", Match::exact);
    b.doubles("rcp.approx.ftz.f64", "%d1", Match::coarse);
    b.doubles("rsqrt.approx.ftz.f64", "%d1", Match::coarse);
    b.doubles("rsqrt.approx.f64", "%d1", Match::coarse);
}

void halves(Builder& b) {
    for (const char* type : {"f16", "bf16"}) {
        std::string t = type;
        for (const char* op : {"add", "sub", "mul"}) b.shorts(std::string(op) + ".rn." + t);
        b.shorts("fma.rn." + t, "%h1, %h2, %h3");
        b.shorts("fma.rn.relu." + t, "%h1, %h2, %h3");
        for (const char* op : {"min", "max", "min.NaN", "max.NaN"})
            b.shorts(std::string(op) + "." + t);
        b.words("fma.rn." + t + "x2", "%r1, %r2, %r3");
        b.words("add.rn." + t + "x2");
        b.shorts("neg." + t, "%h1");
        b.shorts("abs." + t, "%h1");
        for (const char* rounding : {"rn", "rz"}) {
            b.shorts("cvt." + std::string(rounding) + "." + t + ".f32", "%f1");
            b.shorts("cvt." + std::string(rounding) + ".relu." + t + ".f32", "%f1");
            b.words("cvt." + std::string(rounding) + "." + t + "x2.f32", "%f1, %f2");
        }
        b.singles("cvt.f32." + t, "%h1", Match::exact);
        b.predicates("setp.lt." + t, "%h1, %h2");
        b.predicates("setp.neu." + t, "%h1, %h2");
        b.words("set.le.u32." + t + "x2");
        b.words("set.gt." + t + "x2." + t + "x2");
        for (const char* mode : {"rni", "rzi", "rmi", "rpi"}) {
            b.words("cvt." + std::string(mode) + ".s32." + t, "%h1");
            b.shorts("cvt." + std::string(mode) + "." + t + "." + t, "%h1");
        }
        b.shorts("cvt.rn." + t + ".s32", "%r1");
        b.shorts("cvt.rn." + t + ".u64", "%q1");
    }
    b.words("neg.f16x2", "%r1");
    b.words("abs.bf16x2", "%r1");
    for (const char* op : {"ex2.approx.ftz.bf16", "ex2.approx.f16", "tanh.approx.f16"}) {
        b.add(op, std::string(op) + " %h4, %h1; cvt.u64.u16 %q4, %h4;", Match::lastBit);
    }
    b.shorts("add.ftz.f16");
    b.shorts("mul.sat.f16");
    b.shorts("fma.rn.ftz.sat.f16", "%h1, %h2, %h3");
    b.shorts("cvt.rn.f16.f64", "%d1");
    b.shorts("cvt.rm.f16.f64", "%d1");
}

void integerConversions(Builder& b) {
    for (const char* sat : {"", ".sat"}) {
        std::string head = std::string("cvt") + sat;
        for (const char* to : {"u8", "s8", "u16", "s16"}) {
            for (const char* from : {"s32", "u32"}) b.shorts(head + "." + to + "." + from, "%r1");
            for (const char* from : {"s64", "u64"}) b.shorts(head + "." + to + "." + from, "%q1");
        }
        for (const char* to : {"u32", "s32"}) {
            for (const char* from : {"s64", "u64"}) b.words(head + "." + to + "." + from, "%q1");
            for (const char* from : {"s8", "u8", "s16", "u16"}) {
                bool clamps = to == std::string("u32") && from[0] == 's';
                if (*sat == 0 || clamps) b.words(head + "." + to + "." + from, "%h1");
            }
        }
        for (const char* to : {"u64", "s64"}) {
            for (const char* from : {"s32", "u32", "s8", "u8"}) {
                bool clamps = to == std::string("u64") && from[0] == 's';
                if (*sat == 0 || clamps) {
                    b.doublewords(head + "." + to + "." + from, from[1] == '8' ? "%h1" : "%r1");
                }
            }
        }
    }
}

}  // namespace

std::vector<Case> differentialCases() {
    Builder builder;
    integers(builder);
    singles(builder);
    doubles(builder);
    halves(builder);
    integerConversions(builder);
    return builder.take();
}

}  // namespace juice::softgpu::test
