// State spaces, widths, vectors, atomics.
#include <numeric>

#include "native/softgpu/test/harness.h"

namespace juice::softgpu::test {
namespace {

using W = uint64_t;

std::vector<W> counted(size_t count) {
    std::vector<W> values(count);
    std::iota(values.begin(), values.end(), 1);
    return values;
}

TEST(Memory, extendsNarrowLoadsByTheirSign) {
    std::vector<W> in = {0x80, 0x7f, 0x8000, 0xffff, 0xdeadbeefcafe8001};
    auto check = [&](const std::string& load, auto want) {
        auto got = evaluate(load + " st.global.u64 [%rd1], %rd5;", in);
        for (size_t i = 0; i < in.size(); ++i)
            EXPECT_EQ(got[i], static_cast<W>(want(in[i]))) << load;
    };
    check("ld.global.u8 %rd5, [%rd2];", [](W v) { return static_cast<uint8_t>(v); });
    check("ld.global.s8 %rd5, [%rd2];", [](W v) { return int64_t{static_cast<int8_t>(v)}; });
    check("ld.global.s16 %rd5, [%rd2];", [](W v) { return int64_t{static_cast<int16_t>(v)}; });
    check("ld.global.s32 %rd5, [%rd2];", [](W v) { return int64_t{static_cast<int32_t>(v)}; });
    check("ld.global.u32 %rd5, [%rd2];", [](W v) { return static_cast<uint32_t>(v); });
    check("ld.global.s8 %r5, [%rd2]; cvt.u64.u32 %rd5, %r5;",
          [](W v) { return static_cast<uint32_t>(int32_t{static_cast<int8_t>(v)}); });
    check("ld.volatile.u64 %rd5, [%rd2];", [](W v) { return v; });
    check("ld.relaxed.gpu.global.L1::no_allocate.u64 %rd5, [%rd2];", [](W v) { return v; });
    check("ld.global.nc.L2::128B.u64 %rd5, [%rd2];", [](W v) { return v; });
}

TEST(Memory, takesWholeRowsWordByWord) {
    std::vector<W> in;
    for (W i = 0; i < 64; ++i) in.push_back(i * 0x9e3779b97f4a7c15);
    const auto* bytes = reinterpret_cast<const uint8_t*>(in.data());
    struct Width {
        const char* type;
        unsigned size;
        bool negative;
    };
    for (const Width& width : {Width{"u8", 1, false},
                               {"s8", 1, true},
                               {"u16", 2, false},
                               {"s16", 2, true},
                               {"u32", 4, false},
                               {"s32", 4, true},
                               {"u64", 8, false}}) {
        // The warp's lanes in one row, or its halves alike, or all at one place, or neither.
        for (unsigned span : {64u, 16u, 1u, 8u}) {
            const std::string size = std::to_string(width.size), type = width.type;
            auto got = evaluate("and.b32 %r2, %r1, " + std::to_string(span - 1) +
                                    "; ld.param.u64 %rd6, [in]; mul.wide.u32 %rd7, %r2, " + size +
                                    "; add.s64 %rd6, %rd6, %rd7; ld.global." + type +
                                    " %rd5, [%rd6]; st.global.u64 [%rd1], %rd5;",
                                in);
            for (size_t i = 0; i < 64; ++i) {
                W want = 0;
                std::memcpy(&want, bytes + i % span * width.size, width.size);
                unsigned shift = 64 - 8 * width.size;
                if (width.negative)
                    want = static_cast<W>(static_cast<int64_t>(want << shift) >> shift);
                ASSERT_EQ(got[i], want) << type << " " << span << " " << i;
            }
            // Narrow rows of results, too; of two that store to one place the higher lane wins.
            got = evaluate("ld.global.u64 %rd5, [%rd2]; and.b32 %r2, %r1, " +
                               std::to_string(span - 1) +
                               "; ld.param.u64 %rd6, [out]; mul.wide.u32 %rd7, %r2, " + size +
                               "; add.s64 %rd6, %rd6, %rd7; st.global." + type + " [%rd6], %rd5;",
                           std::vector<W>(in.begin(), in.begin() + 32));
            const unsigned written = std::min(span, 32u);
            for (unsigned i = 0; i < written; ++i) {
                W stored = 0;
                std::memcpy(&stored, reinterpret_cast<const uint8_t*>(got.data()) + i * width.size,
                            width.size);
                W mask = ~W{0} >> (64 - 8 * width.size);
                ASSERT_EQ(stored, in[32 - written + i] & mask) << type << " " << span << " " << i;
            }
        }
    }
}

TEST(Memory, reachesSharedMemoryThroughGenericAddressesInRowsAndNot) {
    const std::string kBody =
        ".shared .align 8 .b8 words[512]; mov.u64 %rd4, words; cvta.shared.u64 %rd5, %rd4;\n"
        "add.s64 %rd6, %rd5, %rd3; ld.global.u64 %rd7, [%rd2]; st.u64 [%rd6], %rd7; bar.sync 0;\n"
        "sub.s64 %rd8, %rd5, %rd3; ld.u64 %rd9, [%rd8+504]; st.global.u64 [%rd1], %rd9;";
    auto got = evaluate(kBody, counted(64));
    for (W i = 0; i < 64; ++i) EXPECT_EQ(got[i], 64 - i);
}

TEST(Memory, storesTheLowPartOfWiderRegisters) {
    auto got = evaluate(
        "mov.u64 %rd5, 0x1122334455667788; st.global.u64 [%rd1], -1;"
        "st.global.u8 [%rd1], %rd5; st.global.u16 [%rd1+4], %rd5;",
        {0});
    EXPECT_EQ(got[0], 0xffff7788ffffff88);
}

TEST(Memory, movesVectors) {
    auto got = evaluate(
        "ld.global.v4.u16 {%h1, %h2, %h3, %h4}, [%rd2];"
        "st.global.v4.u16 [%rd1], {%h4, %h3, %h2, %h1};",
        {0x4444333322221111});
    EXPECT_EQ(got[0], 0x1111222233334444);
    got = evaluate("ld.global.v2.u32 {%r2, _}, [%rd2]; st.global.v2.u32 [%rd1], {7, %r2};",
                   {0x2222222211111111});
    EXPECT_EQ(got[0], 0x1111111100000007);
}

TEST(Memory, packsAndUnpacksRegisters) {
    auto got = evaluate(
        "ld.global.u64 %rd4, [%rd2]; mov.b64 {%h1, %h2, %h3, %h4}, %rd4;"
        "mov.b64 %rd5, {%h2, %h1, %h4, %h3}; st.global.u64 [%rd1], %rd5;",
        {0x4444333322221111});
    EXPECT_EQ(got[0], 0x3333444411112222);
}

TEST(Memory, sharesWithinABlock) {
    auto got = evaluate(
        ".shared .align 8 .b8 words[512];\n"
        "ld.global.u64 %rd4, [%rd2]; mov.u32 %r2, words; shl.b32 %r3, %r1, 3;\n"
        "add.s32 %r4, %r2, %r3; st.shared.u64 [%r4], %rd4; bar.sync 0;\n"
        "mov.u32 %r5, 504; sub.s32 %r5, %r5, %r3; add.s32 %r5, %r5, %r2;\n"
        "ld.shared.u64 %rd5, [%r5]; st.global.u64 [%rd1], %rd5;",
        counted(64));
    for (W i = 0; i < 64; ++i) EXPECT_EQ(got[i], 64 - i);
}

TEST(Memory, reachesSharedAndLocalThroughGenericAddresses) {
    auto got = evaluate(
        ".shared .align 8 .b8 words[512]; .local .align 8 .b8 mine[64];\n"
        "ld.global.u64 %rd4, [%rd2]; mov.u64 %rd6, words; cvta.shared.u64 %rd7, %rd6;\n"
        "add.s64 %rd7, %rd7, %rd3; st.u64 [%rd7], %rd4; bar.sync 0;\n"
        "mov.u64 %rd8, mine; cvta.local.u64 %rd9, %rd8; ld.u64 %rd10, [%rd7];\n"
        "st.u64 [%rd9+8], %rd10; ld.local.u64 %rd5, [mine+8];\n"
        "isspacep.shared %p1, %rd7; isspacep.local %p2, %rd9; isspacep.global %p3, %rd2;\n"
        "isspacep.global %p4, %rd7; selp.u64 %rd11, 1000, 0, %p1;\n"
        "selp.u64 %rd12, 2000, 0, %p2; selp.u64 %rd13, 4000, 0, %p3;\n"
        "selp.u64 %rd14, 8000, 0, %p4; add.u64 %rd5, %rd5, %rd11; add.u64 %rd5, %rd5, %rd12;\n"
        "add.u64 %rd5, %rd5, %rd13; add.u64 %rd5, %rd5, %rd14; st.global.u64 [%rd1], %rd5;",
        counted(64));
    for (W i = 0; i < 64; ++i) EXPECT_EQ(got[i], i + 1 + 7000);
}

TEST(Memory, readsGlobalsConstantsAndAddressesOfGlobals) {
    const std::string globals =
        ".global .align 8 .u64 numbers[4] = {10, 20, 30, 40};\n"
        ".global .align 8 .u64 pointer = generic(numbers)+16;\n"
        ".const .align 4 .f32 half = 0f3F000000;\n"
        ".global .align 8 .b8 bytes[8] = {0xFF(numbers), 0xFF00(numbers), 0xFF0000(numbers), "
        "0xFF000000(numbers), 0xFF00000000(numbers), 0xFF0000000000(numbers), 0, 0};\n"
        ".global .align 4 .f32 pair[2] = {1.5, -2};\n";
    EXPECT_EQ(evaluate("ld.global.u64 %rd4, [pointer]; ld.u64 %rd5, [%rd4];"
                       "st.global.u64 [%rd1], %rd5;",
                       {0}, globals)[0],
              30u);
    EXPECT_EQ(evaluate("ld.const.u32 %rd5, [half]; st.global.u64 [%rd1], %rd5;", {0}, globals)[0],
              0x3f000000u);
    EXPECT_EQ(evaluate("ld.global.u64 %rd4, [bytes]; ld.u64 %rd5, [%rd4+8];"
                       "st.global.u64 [%rd1], %rd5;",
                       {0}, globals)[0],
              20u);
    EXPECT_EQ(evaluate("ld.global.u32 %rd5, [pair]; st.global.u64 [%rd1], %rd5;", {0}, globals)[0],
              0x3fc00000u);
}

TEST(Memory, describesGlobalsToTheDriver) {
    auto program = load(std::string(kHead) +
                        ".visible .global .align 16 .b8 table[24];\n.const .align 4 .u32 c = 7;\n");
    ASSERT_EQ(program->globals().size(), 2u);
    const GlobalInfo& table = program->globals()[0];
    EXPECT_EQ(table.name, "table");
    EXPECT_EQ(table.size, 24u);
    EXPECT_FALSE(table.constant);
    EXPECT_EQ(table.address % 16, 0u);
    const GlobalInfo& c = program->globals()[1];
    EXPECT_TRUE(c.constant);
    EXPECT_EQ(*reinterpret_cast<uint32_t*>(c.address), 7u);
}

TEST(Memory, describesKernelsToTheDriver) {
    auto program =
        load(std::string(kHead) +
             ".extern .shared .align 16 .b8 dynamic[];\n"
             ".visible .entry k(.param .u32 a, .param .align 8 .b8 b[20], .param .u64 c)\n"
             ".maxntid 128, 2, 1\n{ .shared .align 4 .b8 s[100]; .local .b8 l[40];\n"
             ".reg .b32 %r<4>; ret; }\n");
    const Kernel& kernel = *program->kernels().at(0);
    EXPECT_EQ(kernel.params.size(), 3u);
    EXPECT_EQ(kernel.params[1].offset, 8u);
    EXPECT_EQ(kernel.params[1].size, 20u);
    EXPECT_EQ(kernel.params[2].offset, 32u);
    EXPECT_EQ(kernel.paramBytes, 40u);
    EXPECT_EQ(kernel.staticShared, 100u);
    EXPECT_EQ(kernel.localBytes, 48u);
    EXPECT_EQ(kernel.maxThreads, 256u);
    EXPECT_EQ(kernel.ptxVersion, 90u);
}

TEST(Memory, placesDynamicSharedMemoryBehindTheStaticPart) {
    auto program = load(std::string(kHead) +
                        ".extern .shared .align 16 .b8 dynamic[];\n"
                        ".visible .entry k(.param .u64 out)\n"
                        "{ .shared .align 4 .b8 s[100]; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
                        "ld.param.u64 %rd1, [out]; mov.u32 %r1, dynamic; mov.u32 %r2, 77;\n"
                        "st.shared.u32 [dynamic+28], %r2; ld.shared.u32 %r3, [%r1+28];\n"
                        "st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r3; ret; }\n");
    TestMemory memory;
    auto* out = memory.allocate<uint32_t>(2);
    Launch launch = launchOf(*program, memory, {}, {}, out);
    launch.dynamicShared = 32;
    EXPECT_EQ(run(launch).curesult, 0);
    EXPECT_EQ(out[0], 112u);
    EXPECT_EQ(out[1], 77u);
    launch.dynamicShared = 28;
    EXPECT_EQ(run(launch).curesult, 700);
}

TEST(Memory, reservesSharedMemoryBehindTheKernelsOwn) {
    // A word of the kernel's own and a reserved one for each thread: neither may be the other.
    std::vector<uint64_t> in(32);
    for (size_t i = 0; i < in.size(); ++i) in[i] = 7 * i;
    const std::string kBody =
        ".shared .align 8 .b8 words[256];\n"
        "ld.global.u64 %rd4, [%rd2]; mov.u32 %r2, words; shl.b32 %r3, %r1, 3;\n"
        "add.s32 %r4, %r2, %r3; st.shared.u64 [%r4], %rd4; bar.sync 0;\n"
        "mov.u32 %r5, %reserved_smem_offset_1; add.s32 %r6, %r5, %r3;\n"
        "ld.shared.u64 %rd7, [%r6]; st.shared.u64 [%r6], -1; bar.sync 0;\n"
        "ld.shared.u64 %rd5, [%r4]; add.s64 %rd5, %rd5, %rd7;\n"
        "mov.u32 %r7, %reserved_smem_offset_end; sub.s32 %r7, %r7, %r5;\n"
        "cvt.u64.u32 %rd6, %r7; add.s64 %rd5, %rd5, %rd6; st.global.u64 [%rd1], %rd5;";
    const std::vector<uint64_t> out = evaluate(kBody, in);
    for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(out[i], 7 * i + 1024);
}

TEST(Memory, passesParametersByAddress) {
    auto program =
        load(std::string(kHead) +
             ".visible .entry k(.param .u64 out, .param .align 4 .b8 values[16])\n"
             "{ .reg .b32 %r<4>; .reg .b64 %rd<6>;\n"
             "ld.param.u64 %rd1, [out]; mov.b64 %rd2, values; ld.param.u32 %r1, [%rd2+8];\n"
             "cvta.param.u64 %rd3, %rd2; ld.u32 %r2, [%rd3+12];\n"
             "st.global.v2.u32 [%rd1], {%r1, %r2}; ret; }\n");
    TestMemory memory;
    struct Values {
        uint32_t v[4];
    } values{{1, 2, 3, 4}};
    auto* out = memory.allocate<uint32_t>(2);
    LaunchResult result = run(launchOf(*program, memory, {}, {}, out, values));
    ASSERT_EQ(result.curesult, 0) << result.report;
    EXPECT_EQ(out[0], 3u);
    EXPECT_EQ(out[1], 4u);
}

/// Every thread of a grid applies `op` to one place; returns the place and the sum of old values.
std::pair<W, W> atomics(const std::string& op, W initial, uint32_t blocks = 8) {
    auto program =
        load(std::string(kHead) +
             ".visible .entry k(.param .u64 place, .param .u64 olds)\n"
             "{ .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>; .reg .f64 %d<4>;\n"
             "ld.param.u64 %rd1, [place]; ld.param.u64 %rd2, [olds];\n"
             "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r1, %r2, 64, %r1;\n"
             "cvt.u64.u32 %rd3, %r1; mov.u64 %rd4, 0;\n" +
             op + "\nred.global.add.u64 [%rd2], %rd4; ret; }\n");
    TestMemory memory;
    auto* place = memory.allocate<W>(1, {initial});
    auto* olds = memory.allocate<W>(1);
    LaunchResult result = run(launchOf(*program, memory, {blocks}, {64}, place, olds));
    EXPECT_EQ(result.curesult, 0) << result.report;
    return {*place, *olds};
}

TEST(Atomics, updateOnePlaceFromAllBlocks) {
    constexpr W kThreads = 512;
    W sum = kThreads * (kThreads - 1) / 2;
    EXPECT_EQ(atomics("atom.global.add.u32 %r3, [%rd1], 1; cvt.u64.u32 %rd4, %r3;", 0),
              (std::pair{kThreads, sum}));
    EXPECT_EQ(atomics("red.global.add.u64 [%rd1], %rd3;", 5).first, sum + 5);
    EXPECT_EQ(atomics("atom.add.f32 %f1, [%rd1], 0f3F800000;", 0).first, 0x44000000u);
    EXPECT_EQ(atomics("red.add.f64 [%rd1], 0d3FF0000000000000;", 0).first, 0x4080000000000000u);
    EXPECT_EQ(atomics("atom.max.s32 %r3, [%rd1], %r1;", 0xffffffff80000000).first,
              0xffffffff000001ffu);
    EXPECT_EQ(atomics("atom.min.u64 %rd5, [%rd1], %rd3;", ~W{0}).first, 0u);
    EXPECT_EQ(atomics("atom.global.inc.u32 %r3, [%rd1], 99;", 0).first, 512u % 100);
    EXPECT_EQ(atomics("atom.global.dec.u32 %r3, [%rd1], 99;", 0).first, (100 - 512 % 100) % 100u);
    EXPECT_EQ(atomics("and.b32 %r4, %r1, 31; mov.u32 %r5, 1; shl.b32 %r4, %r5, %r4;"
                      "atom.or.b32 %r3, [%rd1], %r4;",
                      0)
                  .first,
              0xffffffffu);
    EXPECT_EQ(atomics("atom.xor.b64 %rd5, [%rd1], 7;", 1).first, 1u);
    // One thread wins a compare-and-swap; its old value is 3.
    EXPECT_EQ(atomics("atom.acq_rel.gpu.global.cas.b32 %r3, [%rd1], 3, 4;"
                      "cvt.u64.u32 %rd4, %r3;",
                      3),
              (std::pair<W, W>{4, 3 + 4 * (kThreads - 1)}));
}

TEST(Atomics, exchangeHandsEachValueOnOnce) {
    // Ends with one thread's value in place, all others and the first seen once.
    auto [place, olds] = atomics("atom.global.exch.b64 %rd4, [%rd1], %rd3;", 1000);
    EXPECT_EQ(place + olds, 512u * 511 / 2 + 1000);
}

TEST(Atomics, workInSharedMemory) {
    auto got = evaluate(
        ".shared .align 4 .b8 word[4]; mov.u32 %r2, 0; st.shared.u32 [word], %r2;"
        "bar.sync 0; atom.shared.add.u32 %r3, [word], 2; bar.sync 0;"
        "ld.shared.u32 %rd5, [word]; st.global.u64 [%rd1], %rd5;",
        counted(96));
    for (W value : got) EXPECT_EQ(value, 192u);
}

}  // namespace
}  // namespace juice::softgpu::test
