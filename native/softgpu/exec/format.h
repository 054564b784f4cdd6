// printf as a kernel calls it: the format and a packed buffer of arguments, each aligned to its
// own size (int 4, everything else 8).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace juice::softgpu {

struct FormatSource {
    uint64_t address = 0;
    const uint8_t* data = nullptr;
    uint64_t bytes = 0;
};

/// Appends the text to `out`; `count` becomes the number of arguments, or -1 for a bad format.
/// `readText` fetches a %s argument. False if an argument cannot be read.
bool formatText(const std::string& format, const FormatSource& source, std::string& out,
                int32_t& count, const std::function<bool(uint64_t, std::string&)>& readText);

}  // namespace juice::softgpu
