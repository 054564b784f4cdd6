// f16 and bf16 arithmetic, single and packed.
#include "test/softgpu/narrow.h"
#include "test/softgpu/rounding.h"
#include "test/softgpu/table.h"

namespace juice::truth {
namespace {

using H = uint16_t;
using U = uint32_t;

/// A packed instruction's reference: the single one's in both halves.
template <class F>
auto inPairs(F single) {
    return [single](U a, U b, U c) -> U {
        auto part = [](U pair, int half) { return static_cast<H>(pair >> (16 * half)); };
        return single(part(a, 0), part(b, 0), part(c, 0)) |
               static_cast<U>(single(part(a, 1), part(b, 1), part(c, 1))) << 16;
    };
}

/// One type's part of every test. Values pass through double, which is exact for sums and products
/// of two such numbers and wide enough for the sum of a product.
struct Kind {
    const char* name;
    Narrow format;

    double open(H bits) const { return format.open(bits); }
    H close(double value) const { return format.close(value); }
    bool isNan(H bits) const { return std::isnan(open(bits)); }
};
const Kind kHalf{"f16", kBinary16};
const Kind kBrain{"bf16", kBrain16};

class Half : public TableTest {
  protected:
    /// Runs an instruction singly and in pairs: `%0` to `%3` stand for its operands.
    template <class F>
    void check(const Kind& kind, const std::string& head, int sources, const Rows& rows, F single) {
        auto text = [&](const char* type, char bank) {
            std::string body = head + "." + type;
            for (int i = 0; i <= sources; ++i) {
                body += std::string(i == 0 ? " %" : ", %") + bank + std::to_string(i == 0 ? 4 : i);
            }
            return body + ";";
        };
        // A NaN in a half has one encoding; elsewhere its bits must not matter.
        auto reference = [=](H a, H b, H c) -> H { return single(a, b, c); };
        expectEach(text(kind.name, 'h'), rows, reference);
        expectEach(text((std::string(kind.name) + "x2").c_str(), 'r'), rows, inPairs(reference));
    }

    static Rows numbers(const Kind& kind) {
        std::vector<H> values;
        for (double value :
             {0.0,     -0.0,     1.0,  -1.0,   1.5,    0.1,      -0.3,  3.0,   0.333,  100.0,
              65504.0, -65504.0, 3e38, 6.1e-5, 6.0e-5, -5.96e-8, 1e-38, 1e-40, 2048.0, 2049.0}) {
            values.push_back(kind.close(value));
        }
        values.push_back(kind.close(std::numeric_limits<double>::infinity()));
        values.push_back(kind.close(-std::numeric_limits<double>::infinity()));
        values.push_back(0x7fff);
        return joined(triples(values), randomRows(1000));
    }
};

TEST_F(Half, AddsMultipliesAndFusesBinary16) {
    const Kind& k = kHalf;
    const Rows rows = numbers(k);
    check(k, "add", 2, rows, [=](H a, H b, H) { return k.close(k.open(a) + k.open(b)); });
    check(k, "sub.rn", 2, rows, [=](H a, H b, H) { return k.close(k.open(a) - k.open(b)); });
    check(k, "mul", 2, rows, [=](H a, H b, H) { return k.close(k.open(a) * k.open(b)); });
    check(k, "fma.rn", 3, rows,
          [=](H a, H b, H c) { return k.format.closeSum(k.open(a) * k.open(b), k.open(c)); });
    check(k, "add.sat", 2, rows,
          [=](H a, H b, H) { return k.close(saturated(k.open(a) + k.open(b))); });
    check(k, "fma.rn.sat", 3, rows, [=](H a, H b, H c) {
        return k.close(saturated(k.open(k.format.closeSum(k.open(a) * k.open(b), k.open(c)))));
    });
    auto flush = [=](H bits) -> H { return (bits & 0x7c00) == 0 ? bits & 0x8000 : bits; };
    check(k, "add.ftz", 2, rows,
          [=](H a, H b, H) { return flush(k.close(k.open(flush(a)) + k.open(flush(b)))); });
    check(k, "abs.ftz", 1, rows,
          [=](H a, H, H) -> H { return k.isNan(a) ? 0x7fff : flush(a) & 0x7fff; });
    check(k, "neg.ftz", 1, rows,
          [=](H a, H, H) -> H { return k.isNan(a) ? 0x7fff : flush(a) ^ 0x8000; });
}

TEST_F(Half, FusesAboveZero) {
    NEEDS(80);
    for (const Kind& k : {kHalf, kBrain}) {
        check(k, "fma.rn.relu", 3, numbers(k), [=](H a, H b, H c) -> H {
            H sum = k.format.closeSum(k.open(a) * k.open(b), k.open(c));
            return k.isNan(sum) ? 0x7fff : k.open(sum) > 0 ? sum : 0;
        });
    }
}

TEST_F(Half, FusesBrain16) {
    NEEDS(80);
    const Kind& k = kBrain;
    check(k, "fma.rn", 3, numbers(k),
          [=](H a, H b, H c) { return k.format.closeSum(k.open(a) * k.open(b), k.open(c)); });
}

TEST_F(Half, AddsAndMultipliesBrain16) {
    NEEDS(90);
    const Kind& k = kBrain;
    const Rows rows = numbers(k);
    check(k, "add", 2, rows, [=](H a, H b, H) { return k.format.closeSum(k.open(a), k.open(b)); });
    check(k, "sub", 2, rows, [=](H a, H b, H) { return k.format.closeSum(k.open(a), -k.open(b)); });
    check(k, "mul", 2, rows, [=](H a, H b, H) { return k.close(k.open(a) * k.open(b)); });
}

TEST_F(Half, TakesExtremesAndSigns) {
    NEEDS(80);
    for (const Kind& k : {kHalf, kBrain}) {
        const Rows rows = numbers(k);
        auto least = [=](H a, H b, bool nan) -> H {
            if (k.isNan(a) || k.isNan(b)) {
                if (nan || (k.isNan(a) && k.isNan(b))) return 0x7fff;
                return k.isNan(a) ? b : a;
            }
            if (k.open(a) == k.open(b)) return a & 0x8000 ? a : b;
            return k.open(a) < k.open(b) ? a : b;
        };
        auto turned = [=](H a) -> H { return k.isNan(a) ? a : a ^ 0x8000; };
        check(k, "min", 2, rows, [=](H a, H b, H) { return least(a, b, false); });
        check(k, "min.NaN", 2, rows, [=](H a, H b, H) { return least(a, b, true); });
        check(k, "max", 2, rows,
              [=](H a, H b, H) { return turned(least(turned(a), turned(b), false)); });
        check(k, "max.NaN", 2, rows,
              [=](H a, H b, H) { return turned(least(turned(a), turned(b), true)); });
        check(k, "neg", 1, rows, [=](H a, H, H) -> H { return k.isNan(a) ? 0x7fff : a ^ 0x8000; });
        check(k, "abs", 1, rows, [=](H a, H, H) -> H { return k.isNan(a) ? 0x7fff : a & 0x7fff; });
    }
}

TEST_F(Half, TakesExtremesOfSizes) {
    NEEDS(86);
    for (const Kind& k : {kHalf, kBrain}) {
        check(k, "max.xorsign.abs", 2, numbers(k), [=](H a, H b, H) -> H {
            if (k.isNan(a) && k.isNan(b)) return 0x7fff;
            H p = a & 0x7fff, q = b & 0x7fff, sign = (a ^ b) & 0x8000;
            if (k.isNan(a)) return q | sign;
            if (k.isNan(b)) return p | sign;
            return (k.open(p) > k.open(q) ? p : q) | sign;
        });
    }
}

}  // namespace
}  // namespace juice::truth
