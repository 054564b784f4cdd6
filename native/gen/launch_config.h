// CUlaunchConfig on the wire, for the calls that ask about a launch without launching:
//   u32 grid x, y, z, block x, y, z, shared bytes; u32 n; n times {u32 id, u32 0, 64 bytes value}
// The stream is left out, and so are attributes that name other objects: no answer depends on them.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/link/codec.h"

namespace juice {

constexpr uint32_t kMaxConfigAttributes = 32;

inline bool namesOtherObjects(CUlaunchAttributeID id) {
    return id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
           id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT ||
           id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
}

/// True when putConfig may read it.
inline bool validConfig(const CUlaunchConfig* config) {
    return config != nullptr && config->numAttrs <= kMaxConfigAttributes &&
           (config->numAttrs == 0 || config->attrs != nullptr);
}

/// `out` is anything with a chained put().
template <typename Out>
void putConfig(Out& out, const CUlaunchConfig& config) {
    out.put(config.gridDimX).put(config.gridDimY).put(config.gridDimZ);
    out.put(config.blockDimX).put(config.blockDimY).put(config.blockDimZ);
    out.put(config.sharedMemBytes);
    const auto sent = [](const CUlaunchAttribute& one) { return !namesOtherObjects(one.id); };
    const std::span<const CUlaunchAttribute> attributes(config.attrs, config.numAttrs);
    out.put(static_cast<uint32_t>(std::count_if(attributes.begin(), attributes.end(), sent)));
    for (const CUlaunchAttribute& one : attributes) {
        if (!sent(one)) continue;
        out.put(static_cast<uint32_t>(one.id)).put(uint32_t{0});
        uint64_t words[sizeof one.value / sizeof(uint64_t)];
        std::memcpy(words, &one.value, sizeof words);
        for (uint64_t word : words) out.put(word);
    }
}

/// A config that owns its attributes. Reads nothing past the payload; a malformed one fails `in`.
struct ReceivedConfig {
    explicit ReceivedConfig(Reader& in) {
        in.get(config.gridDimX);
        in.get(config.gridDimY);
        in.get(config.gridDimZ);
        in.get(config.blockDimX);
        in.get(config.blockDimY);
        in.get(config.blockDimZ);
        in.get(config.sharedMemBytes);
        const auto count = in.get<uint32_t>();
        if (count > kMaxConfigAttributes) {
            in.fail();
            return;
        }
        attributes.resize(count);
        for (CUlaunchAttribute& one : attributes) {
            one.id = static_cast<CUlaunchAttributeID>(in.get<uint32_t>());
            in.get<uint32_t>();
            in.raw(&one.value, sizeof one.value);
            if (namesOtherObjects(one.id)) in.fail();
        }
        config.attrs = attributes.data();
        config.numAttrs = count;
    }
    ReceivedConfig(const ReceivedConfig&) = delete;

    CUlaunchConfig config{};
    std::vector<CUlaunchAttribute> attributes;
};

}  // namespace juice
