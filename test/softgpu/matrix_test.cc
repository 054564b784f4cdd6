// mma, wmma, ldmatrix, stmatrix, movmatrix. The values are small whole numbers, so that the order
// of a sum cannot matter: every result is exact.
#include <cstring>
#include <random>

#include "test/softgpu/narrow.h"
#include "test/softgpu/table.h"
#include "test/softgpu/warp.h"

namespace juice::truth {
namespace {

/// An element type of a matrix: its bits in a register, and the bits of a whole number.
struct ElementType {
    const char* name;
    unsigned bits;
    int least, most;  // of the numbers that the tests use

    uint32_t encode(int value) const {
        std::string n = name;
        if (n == "f16") return kBinary16.close(value);
        if (n == "bf16") return kBrain16.close(value);
        if (n == "e4m3") return kE4m3.close(value);
        if (n == "e5m2") return kE5m2.close(value);
        if (n == "tf32" || n == "f32")
            return static_cast<uint32_t>(bitsOf(static_cast<float>(value)));
        return bits == 32 ? static_cast<uint32_t>(value)
                          : static_cast<uint32_t>(value) & ((1u << bits) - 1);
    }
    double decode(uint32_t field) const {
        std::string n = name;
        if (n == "f16") return kBinary16.open(field);
        if (n == "f32") return double{valueOf<float>(field)};
        return static_cast<int32_t>(field);
    }
};
const ElementType kF16{"f16", 16, -4, 4}, kBf16{"bf16", 16, -4, 4}, kTf32{"tf32", 32, -9, 9},
    kF32{"f32", 32, -9, 9}, kS32{"s32", 32, -99, 99}, kU8{"u8", 8, 0, 255}, kS8{"s8", 8, -128, 127},
    kU4{"u4", 4, 0, 15}, kS4{"s4", 4, -8, 7}, kB1{"b1", 1, 0, 1}, kEight4{"e4m3", 8, -4, 4},
    kEight5{"e5m2", 8, -4, 4};

struct Matrix {
    unsigned rows, columns;
    std::vector<int> values;
    Matrix(unsigned r, unsigned c) : rows(r), columns(c), values(r * c) {}
    int& at(unsigned r, unsigned c) { return values[r * columns + c]; }
    int at(unsigned r, unsigned c) const { return values[r * columns + c]; }
};

Matrix random(unsigned rows, unsigned columns, const ElementType& type, unsigned seed) {
    std::mt19937 source(seed);
    Matrix matrix(rows, columns);
    auto range = static_cast<unsigned>(type.most - type.least + 1);
    for (int& value : matrix.values) value = type.least + static_cast<int>(source() % range);
    return matrix;
}

class MatrixProduct : public WarpTest {
  protected:
    /// d = a * b + c by the layouts of the manual: element e of a lane's part of a stands in row
    /// lane / 4 (and 8 below, for every other register of a matrix of 16 rows), and so on.
    void check(unsigned m, unsigned n, unsigned k, const ElementType& a, const ElementType& b,
               const ElementType& c, const std::string& middle = "", const std::string& after = "",
               const std::string& bits = "") const {
        const Matrix left = random(m, k, a, 1), right = random(k, n, b, 2),
                     start = random(m, n, c, 3);
        unsigned per = 32 / a.bits, perC = 32 / c.bits;
        unsigned inA = m * k / 32 / per, inB = k * n / 32 / per, inC = m * n / 32 / perC;
        WarpWords in;
        auto rowOfC = [](unsigned lane, unsigned e) { return lane / 4 + e / 2 * 8; };
        auto columnOfC = [](unsigned lane, unsigned e) { return lane % 4 * 2 + e % 2; };
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned reg = 0; reg < inA; ++reg) {
                unsigned row = lane / 4 + (m == 16 ? reg % 2 * 8 : 0);
                unsigned block = m == 16 ? reg / 2 : reg;
                uint32_t word = 0;
                for (unsigned e = 0; e < per; ++e) {
                    word |= a.encode(left.at(row, block * 4 * per + lane % 4 * per + e))
                            << (e * a.bits);
                }
                in[lane].push_back(word);
            }
            for (unsigned reg = 0; reg < inB; ++reg) {
                uint32_t word = 0;
                for (unsigned e = 0; e < per; ++e) {
                    word |= b.encode(right.at(reg * 4 * per + lane % 4 * per + e, lane / 4))
                            << (e * b.bits);
                }
                in[lane].push_back(word);
            }
            for (unsigned reg = 0; reg < inC; ++reg) {
                uint32_t word = 0;
                for (unsigned e = 0; e < perC; ++e) {
                    unsigned element = reg * perC + e;
                    word |= c.encode(start.at(rowOfC(lane, element), columnOfC(lane, element)))
                            << (e * c.bits);
                }
                in[lane].push_back(word);
            }
        }
        std::string shape =
            ".m" + std::to_string(m) + "n" + std::to_string(n) + "k" + std::to_string(k);
        std::string types = std::string(".") + c.name + "." + a.name + "." + b.name + "." + c.name;
        std::string text =
            "mma.sync.aligned" + shape + ".row.col" + middle + types + bits + after + " ";
        // f32 accumulators live in registers of that type.
        bool floats = std::string(c.name) == "f32";
        std::string body;
        std::string results = "%out", starts = "%in";
        if (floats) {
            body += ".reg .f32 %fd<4>, %fc<4>;\n";
            for (unsigned i = 0; i < inC; ++i) {
                body += "mov.b32 %fc" + std::to_string(i) + ", %in" +
                        std::to_string(inA + inB + i) + ";\n";
            }
        }
        body += text + group(floats ? "%fd" : "%out", 0, inC) + ", " + group("%in", 0, inA) + ", " +
                group("%in", inA, inB) + ", " +
                (floats ? group("%fc", 0, inC) : group("%in", inA + inB, inC)) + ";\n";
        for (unsigned i = 0; floats && i < inC; ++i) {
            body += "mov.b32 %out" + std::to_string(i) + ", %fd" + std::to_string(i) + ";\n";
        }
        const WarpWords out = runWarp(body, in, inC);
        bool bitwise = std::string(a.name) == "b1";
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned element = 0; element < inC * perC; ++element) {
                unsigned row = rowOfC(lane, element), column = columnOfC(lane, element);
                int64_t want = start.at(row, column);
                for (unsigned i = 0; i < k; ++i) {
                    int p = left.at(row, i), q = right.at(i, column);
                    want += bitwise ? (bits == ".and.popc" ? p & q : p ^ q) : p * q;
                }
                uint32_t word = out[lane][element / perC] >> (element % perC * c.bits);
                double got = c.decode(c.bits == 16 ? word & 0xffff : word);
                ASSERT_EQ(got, static_cast<double>(want))
                    << text << "row " << row << " column " << column;
            }
        }
    }
};

TEST_F(MatrixProduct, OfHalves) {
    NEEDS(80);
    for (unsigned k : {8u, 16u}) {
        check(16, 8, k, kF16, kF16, kF32);
        check(16, 8, k, kF16, kF16, kF16);
        check(16, 8, k, kBf16, kBf16, kF32);
    }
}

TEST_F(MatrixProduct, OfTf32) {
    NEEDS(80);
    check(16, 8, 4, kTf32, kTf32, kF32);
    check(16, 8, 8, kTf32, kTf32, kF32);
}

TEST_F(MatrixProduct, OfBytes) {
    NEEDS(80);
    for (const ElementType& a : {kU8, kS8}) {
        for (const ElementType& b : {kU8, kS8}) {
            check(8, 8, 16, a, b, kS32);
            check(16, 8, 16, a, b, kS32);
            check(16, 8, 32, a, b, kS32);
            check(16, 8, 32, a, b, kS32, ".satfinite");
        }
    }
}

TEST_F(MatrixProduct, OfFourBits) {
    NEEDS(80);
    check(8, 8, 32, kS4, kS4, kS32);
    check(16, 8, 32, kU4, kS4, kS32);
    check(16, 8, 64, kS4, kU4, kS32);
}

TEST_F(MatrixProduct, OfBits) {
    NEEDS(80);
    for (const char* combine : {".xor.popc", ".and.popc"}) {
        check(8, 8, 128, kB1, kB1, kS32, "", "", combine);
        check(16, 8, 128, kB1, kB1, kS32, "", "", combine);
        check(16, 8, 256, kB1, kB1, kS32, "", "", combine);
    }
}

TEST_F(MatrixProduct, OfEightBitFloats) {
    NEEDS(89);
    check(16, 8, 32, kEight4, kEight4, kF32);
    check(16, 8, 32, kEight5, kEight4, kF32);
    check(16, 8, 32, kEight5, kEight5, kF32);
}

TEST_F(MatrixProduct, OfDoubles) {
    NEEDS(80);
    // m8n8k4: a in row lane / 4, column lane % 4; b the other way; c as everywhere.
    WarpWords in;
    auto a = [](unsigned r, unsigned c) { return static_cast<double>(r * 3 + c) - 7.5; };
    auto b = [](unsigned r, unsigned c) { return static_cast<double>(c * 2) - r * 0.25; };
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (double value : {a(lane / 4, lane % 4), b(lane % 4, lane / 4)}) {
            in[lane].push_back(static_cast<uint32_t>(bitsOf(value)));
            in[lane].push_back(static_cast<uint32_t>(bitsOf(value) >> 32));
        }
    }
    const WarpWords out = runWarp(
        ".reg .f64 %a, %b, %c<2>, %d<2>; mov.b64 %a, {%in0, %in1}; mov.b64 %b, {%in2, %in3};"
        "mov.f64 %c0, 1.0; mov.f64 %c1, 2.0;"
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%a}, {%b}, {%c0, %c1};"
        "mov.b64 {%out0, %out1}, %d0; mov.b64 {%out2, %out3}, %d1;",
        in, 4);
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned e = 0; e < 2; ++e) {
            double want = e + 1.0;
            for (unsigned k = 0; k < 4; ++k) want += a(lane / 4, k) * b(k, lane % 4 * 2 + e);
            uint64_t bits = uint64_t{out[lane][2 * e + 1]} << 32 | out[lane][2 * e];
            EXPECT_EQ(valueOf<double>(bits), want) << "lane " << lane;
        }
    }
}

TEST_F(MatrixProduct, LoadsAndStoresTilesOfSharedMemory) {
    // Every lane writes a row of 8 halves; matrix 0 is rows 0 to 7 and so on.
    const std::string fill =
        ".reg .b32 %at, %v, %i; .reg .pred %p; mov.u32 %at, room; mad.lo.u32 %at, %lane, 16, %at;"
        "mul.lo.u32 %v, %lane, 0x00080008; add.u32 %v, %v, 0x00010000;"  // halves 8 * row + column
        "st.shared.u32 [%at], %v; add.u32 %v, %v, 0x00020002; st.shared.u32 [%at+4], %v;"
        "add.u32 %v, %v, 0x00020002; st.shared.u32 [%at+8], %v; add.u32 %v, %v, 0x00020002;"
        "st.shared.u32 [%at+12], %v; bar.warp.sync -1;";
    auto half = [](unsigned matrix, unsigned row, unsigned column) {
        return matrix * 64 + row * 8 + column;
    };
    for (unsigned n : {1u, 2u, 4u}) {
        for (bool transposed : {false, true}) {
            const WarpWords out = runLanes(fill + "ldmatrix.sync.aligned.m8n8.x" +
                                               std::to_string(n) + (transposed ? ".trans" : "") +
                                               ".shared.b16 " + group("%out", 0, n) + ", [%at];",
                                           n);
            for (unsigned lane = 0; lane < 32; ++lane) {
                for (unsigned i = 0; i < n; ++i) {
                    unsigned row = lane / 4, column = lane % 4 * 2;
                    uint32_t low = transposed ? half(i, column, row) : half(i, row, column);
                    uint32_t high =
                        transposed ? half(i, column + 1, row) : half(i, row, column + 1);
                    EXPECT_EQ(out[lane][i], high << 16 | low) << "lane " << lane << " matrix " << i;
                }
            }
        }
    }
}

TEST_F(MatrixProduct, TransposesRegisters) {
    const WarpWords out = runLanes(
        ".reg .b32 %v; mul.lo.u32 %v, %in0, 0x00020002; add.u32 %v, %v, 0x00010000;"
        "movmatrix.sync.aligned.m8n8.trans.b16 %out0, %v;",
        1);
    for (unsigned lane = 0; lane < 32; ++lane) {
        unsigned row = lane / 4, column = lane % 4 * 2;
        EXPECT_EQ(out[lane][0], ((column + 1) * 8 + row) << 16 | (column * 8 + row)) << lane;
    }
}

TEST_F(MatrixProduct, StoresTilesToSharedMemory) {
    NEEDS(90);
    const WarpWords out = runLanes(
        ".reg .b32 %at, %v, %w; mov.u32 %at, room; mad.lo.u32 %at, %lane, 16, %at;"
        "mul.lo.u32 %v, %in0, 0x00020002; add.u32 %v, %v, 0x00010000; add.u32 %w, %v, 0x00400040;"
        "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%at], {%v, %w}; bar.warp.sync -1;"
        "mov.u32 %at, room; mad.lo.u32 %at, %lane, 8, %at;"
        "ld.shared.v2.u32 {%out0, %out1}, [%at];",
        2);
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < 2; ++i) {
            uint32_t first = lane * 4 + i * 2;
            EXPECT_EQ(out[lane][i], (first + 1) << 16 | first) << lane;
        }
    }
}

/// wmma: how a fragment is distributed is the device's affair, so only memory is looked at.
TEST_F(MatrixProduct, OfTilesInMemory) {
    struct Shape {
        unsigned m, n, k;
    };
    for (Shape shape : {Shape{16, 16, 16}, Shape{8, 32, 16}, Shape{32, 8, 16}}) {
        for (bool rowsA : {true, false}) {
            for (bool rowsB : {true, false}) {
                const Matrix a = random(shape.m, shape.k, kF16, 4),
                             b = random(shape.k, shape.n, kF16, 5);
                std::vector<uint16_t> halves;
                for (unsigned i = 0; i < shape.m * shape.k; ++i) {
                    unsigned r = rowsA ? i / shape.k : i % shape.m,
                             c = rowsA ? i % shape.k : i / shape.m;
                    halves.push_back(static_cast<uint16_t>(kF16.encode(a.at(r, c))));
                }
                for (unsigned i = 0; i < shape.k * shape.n; ++i) {
                    unsigned r = rowsB ? i / shape.n : i % shape.k,
                             c = rowsB ? i % shape.n : i / shape.k;
                    halves.push_back(static_cast<uint16_t>(kF16.encode(b.at(r, c))));
                }
                std::vector<uint32_t> data(halves.size() / 2 + shape.m * shape.n);
                std::memcpy(data.data(), halves.data(), halves.size() * 2);
                std::string name =
                    "m" + std::to_string(shape.m) + "n" + std::to_string(shape.n) + "k16";
                std::string la = rowsA ? "row" : "col", lb = rowsB ? "row" : "col";
                std::string body =
                    ".reg .b32 %a<8>, %b<8>, %half<4>; .reg .f32 %c<8>; .reg .b64 %p;"
                    "wmma.load.a.sync.aligned." +
                    la + "." + name + ".global.f16 " + group("%a", 0, 8) + ", [%data], " +
                    std::to_string(rowsA ? shape.k : shape.m) +
                    ";"
                    "add.u64 %p, %data, " +
                    std::to_string(shape.m * shape.k * 2) +
                    ";"
                    "wmma.load.b.sync.aligned." +
                    lb + "." + name + ".global.f16 " + group("%b", 0, 8) + ", [%p], " +
                    std::to_string(rowsB ? shape.n : shape.k) + ";";
                for (int i = 0; i < 8; ++i)
                    body += "mov.f32 %c" + std::to_string(i) + ", 0f40400000;";
                body += "wmma.mma.sync.aligned." + la + "." + lb + "." + name + ".f32.f32 " +
                        group("%c", 0, 8) + ", " + group("%a", 0, 8) + ", " + group("%b", 0, 8) +
                        ", " + group("%c", 0, 8) + ";" + "add.u64 %p, %data, " +
                        std::to_string(halves.size() * 2) + ";" + "wmma.store.d.sync.aligned.row." +
                        name + ".global.f32 [%p], " + group("%c", 0, 8) + ", " +
                        std::to_string(shape.n) + "; mov.u32 %out0, 0;";
                runLanes(body, 1, &data);
                for (unsigned r = 0; r < shape.m; ++r) {
                    for (unsigned c = 0; c < shape.n; ++c) {
                        int want = 3;
                        for (unsigned i = 0; i < shape.k; ++i) want += a.at(r, i) * b.at(i, c);
                        auto got = valueOf<float>(data[halves.size() / 2 + r * shape.n + c]);
                        ASSERT_EQ(got, static_cast<float>(want))
                            << name << la << lb << r << ' ' << c;
                    }
                }
            }
        }
    }
}

TEST_F(MatrixProduct, OfTilesOfBytesInMemory) {
    const Matrix a = random(16, 16, kS8, 6), b = random(16, 16, kS8, 7);
    std::vector<uint32_t> data(128 + 256);
    auto* bytes = reinterpret_cast<int8_t*>(data.data());
    for (unsigned i = 0; i < 256; ++i) {
        bytes[i] = static_cast<int8_t>(a.values[i]);
        bytes[256 + i] = static_cast<int8_t>(b.at(i % 16, i / 16));
    }
    runLanes(
        ".reg .b32 %a<2>, %b<2>, %c<8>; .reg .b64 %p;"
        "wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%a0, %a1}, [%data], 16;"
        "wmma.load.b.sync.aligned.col.m16n16k16.global.s8 {%b0, %b1}, [%data+256], 16;"
        "wmma.load.c.sync.aligned.row.m16n16k16.global.s32 " +
            group("%c", 0, 8) +
            ", [%data+512], 16;"
            "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 " +
            group("%c", 0, 8) + ", {%a0, %a1}, {%b0, %b1}, " + group("%c", 0, 8) +
            ";"
            "wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%data+512], " +
            group("%c", 0, 8) + ", 16; mov.u32 %out0, 0;",
        1, &data);
    for (unsigned r = 0; r < 16; ++r) {
        for (unsigned c = 0; c < 16; ++c) {
            int want = 0;
            for (unsigned i = 0; i < 16; ++i) want += a.at(r, i) * b.at(i, c);
            ASSERT_EQ(static_cast<int>(data[128 + r * 16 + c]), want) << r << ' ' << c;
        }
    }
}

}  // namespace
}  // namespace juice::truth
