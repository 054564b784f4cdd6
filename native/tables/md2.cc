#include "native/tables/md2.h"

#include <algorithm>
#include <vector>

namespace juice::tables {
namespace {

constexpr size_t kBlock = 16;

/// The RFC's permutation of 0..255, "constructed from the digits of pi".
constexpr uint8_t kPi[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,
    243, 192, 199, 115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212,
    224, 22,  103, 66,  111, 24,  138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160,
    251, 245, 142, 187, 47,  238, 122, 169, 104, 121, 145, 21,  178, 7,   63,  148, 194, 16,  137,
    11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,  53,  62,  204, 231, 191, 247, 151,
    3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,  170, 198, 79,  184,
    56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,  100,
    113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246,
    28,  70,  97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249,
    206, 186, 197, 234, 38,  44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129,
    77,  82,  106, 220, 55,  200, 108, 193, 171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120,
    136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254, 59,  0,   29,  57,  242, 239, 183, 14,
    102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,  80,  180, 143, 237, 31,
    26,  219, 153, 141, 51,  159, 17,  131, 20,
};

}  // namespace

Digest md2(std::span<const uint8_t> message) {
    // Padded to whole blocks with n bytes of value n, then a checksum block.
    std::vector<uint8_t> input(message.begin(), message.end());
    const size_t padding = kBlock - input.size() % kBlock;
    input.insert(input.end(), padding, static_cast<uint8_t>(padding));

    std::array<uint8_t, kBlock> checksum{};
    uint8_t last = 0;
    for (size_t at = 0; at < input.size(); at += kBlock) {
        for (size_t i = 0; i < kBlock; ++i) {
            checksum[i] ^= kPi[input[at + i] ^ last];
            last = checksum[i];
        }
    }
    input.insert(input.end(), checksum.begin(), checksum.end());

    std::array<uint8_t, 3 * kBlock> state{};
    for (size_t at = 0; at < input.size(); at += kBlock) {
        for (size_t i = 0; i < kBlock; ++i) {
            state[kBlock + i] = input[at + i];
            state[2 * kBlock + i] = state[kBlock + i] ^ state[i];
        }
        uint8_t t = 0;
        for (unsigned round = 0; round < 18; ++round) {
            for (uint8_t& byte : state) t = byte ^= kPi[t];
            t = static_cast<uint8_t>(t + round);
        }
    }
    Digest digest;
    std::copy_n(state.begin(), digest.size(), digest.begin());
    return digest;
}

Digest hmacMd2(std::span<const uint8_t> key, std::span<const uint8_t> message) {
    std::array<uint8_t, kBlock> inner{}, outer{};
    std::copy_n(key.begin(), std::min(key.size(), kBlock), inner.begin());
    outer = inner;
    for (uint8_t& byte : inner) byte ^= 0x36;
    for (uint8_t& byte : outer) byte ^= 0x5c;

    std::vector<uint8_t> text(inner.begin(), inner.end());
    text.insert(text.end(), message.begin(), message.end());
    const Digest first = md2(text);
    text.assign(outer.begin(), outer.end());
    text.insert(text.end(), first.begin(), first.end());
    return md2(text);
}

}  // namespace juice::tables
