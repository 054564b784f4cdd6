// Just enough PNG to look at a result: 8-bit RGB, stored (uncompressed) deflate blocks.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace png {

inline uint32_t crc(const std::string& data) {
    uint32_t c = 0xffffffffu;
    for (const unsigned char byte : data) {
        c ^= byte;
        for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

inline std::string big(uint32_t value) {
    return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
            static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string chunk(const std::string& type, const std::string& data) {
    return big(static_cast<uint32_t>(data.size())) + type + data + big(crc(type + data));
}

// `rgb` holds width * height * 3 bytes, rows from the top. False when the file cannot be written.
inline bool write(const char* path, int width, int height, const std::vector<uint8_t>& rgb) {
    std::string raw;
    for (int y = 0; y < height; ++y) {
        raw += '\0';  // filter: none
        raw.append(reinterpret_cast<const char*>(rgb.data()) + size_t(y) * width * 3,
                   size_t(width) * 3);
    }
    uint32_t a = 1, b = 0;
    for (const unsigned char byte : raw) {
        a = (a + byte) % 65521;
        b = (b + a) % 65521;
    }
    std::string zlib = "\x78\x01";
    for (size_t at = 0; at < raw.size(); at += 65535) {
        const size_t size = std::min<size_t>(65535, raw.size() - at);
        zlib += at + size == raw.size() ? '\x01' : '\0';
        zlib += static_cast<char>(size);
        zlib += static_cast<char>(size >> 8);
        zlib += static_cast<char>(~size);
        zlib += static_cast<char>(~size >> 8);
        zlib.append(raw, at, size);
    }
    zlib += big(b << 16 | a);
    std::string header = big(width) + big(height);
    header += std::string("\x08\x02\x00\x00\x00", 5);
    const std::string file = std::string("\x89PNG\r\n\x1a\n") + chunk("IHDR", header) +
                             chunk("IDAT", zlib) + chunk("IEND", "");
    std::FILE* out = std::fopen(path, "wb");
    if (out == nullptr) return false;
    const bool written = std::fwrite(file.data(), 1, file.size(), out) == file.size();
    return std::fclose(out) == 0 && written;
}

}  // namespace png
