#include "test/softgpu/warp.h"

namespace juice::truth {

std::string group(const std::string& bank, size_t first, size_t count) {
    std::string text = "{";
    for (size_t i = 0; i < count; ++i) {
        text += (i == 0 ? "" : ", ") + bank + std::to_string(first + i);
    }
    return text + "}";
}

WarpWords WarpTest::runWarp(const std::string& body, const WarpWords& in, size_t results,
                            std::vector<uint32_t>* data) const {
    const size_t words = in[0].size();
    std::string text =
        head() +
        ".visible .entry body(.param .u64 out, .param .u64 in, .param .u64 data)\n{\n"
        ".reg .b64 %to, %from, %data; .reg .b32 %lane;\n"
        ".shared .align 16 .b8 room[4096];\n"
        ".reg .b32 %in<" +
        std::to_string(words + 1) + ">; .reg .b32 %out<" + std::to_string(results + 1) +
        ">;\n"
        "ld.param.u64 %to, [out]; ld.param.u64 %from, [in];\n"
        "ld.param.u64 %data, [data]; mov.u32 %lane, %laneid;\n"
        "mad.wide.u32 %to, %lane, " +
        std::to_string(4 * results) +
        ", %to;\n"
        "mad.wide.u32 %from, %lane, " +
        std::to_string(4 * words) + ", %from;\n";
    for (size_t i = 0; i < words; ++i) {
        text +=
            "ld.global.u32 %in" + std::to_string(i) + ", [%from+" + std::to_string(4 * i) + "];\n";
    }
    text += "{\n" + body + "\n}\n";
    for (size_t i = 0; i < results; ++i) {
        text +=
            "st.global.u32 [%to+" + std::to_string(4 * i) + "], %out" + std::to_string(i) + ";\n";
    }
    WarpWords result;
    for (LaneWords& lane : result) lane.resize(results);
    Module module(text + "ret;\n}\n");
    if (!module.loaded()) {
        ADD_FAILURE() << "refused: " << body;
        return result;
    }
    std::vector<uint32_t> flat;
    for (const LaneWords& lane : in) flat.insert(flat.end(), lane.begin(), lane.end());
    Buffer<uint32_t> from(flat), to(32 * results);
    Buffer<uint32_t> more(data == nullptr ? std::vector<uint32_t>(1) : *data);
    EXPECT_OK(
        run(module.function("body"), {1}, {32}, 0, to.address(), from.address(), more.address()))
        << body;
    if (data != nullptr) *data = more.read();
    const std::vector<uint32_t> all = to.read();
    for (size_t lane = 0; lane < 32; ++lane) {
        for (size_t i = 0; i < results; ++i) result[lane][i] = all[lane * results + i];
    }
    return result;
}

WarpWords WarpTest::runLanes(const std::string& body, size_t results,
                             std::vector<uint32_t>* data) const {
    WarpWords in;
    for (uint32_t lane = 0; lane < 32; ++lane) in[lane] = {lane};
    return runWarp(body, in, results, data);
}

}  // namespace juice::truth
