#include "native/image/entries.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>

#include "native/image/source.h"

namespace juice::image {
namespace {

constexpr uint64_t kMinEntryHeader = 64;
constexpr uint64_t kMinContainerHeader = 16;

std::optional<std::string> unpackLz4(const Entry& entry) {
    std::string text(entry.uncompressedSize, '\0');
    const int made =
        LZ4_decompress_safe(reinterpret_cast<const char*>(entry.payload.data()), text.data(),
                            static_cast<int>(entry.payload.size()), static_cast<int>(text.size()));
    if (made < 0 || static_cast<size_t>(made) != text.size()) return std::nullopt;
    return text;
}

std::optional<std::string> unpackZstd(const Entry& entry) {
    std::string text(entry.uncompressedSize, '\0');
    const size_t made =
        ZSTD_decompress(text.data(), text.size(), entry.payload.data(), entry.payload.size());
    if (ZSTD_isError(made) != 0 || made != text.size()) return std::nullopt;
    return text;
}

/// Text up to its first NUL: stored payloads are padded.
void cutAtNul(std::string& text) {
    const size_t end = text.find('\0');
    if (end != std::string::npos) text.resize(end);
}

}  // namespace

std::optional<std::vector<Entry>> entries(Bytes container) {
    const Source source{container.data(), container.size()};
    const auto magic = source.read<uint32_t>(0);
    const auto start = source.read<uint16_t>(6);
    const auto rest = source.read<uint64_t>(8);
    if (!magic || !rest || *magic != kContainerMagic || *start < kMinContainerHeader) {
        return std::nullopt;
    }
    if (!source.holds(*start, *rest)) return std::nullopt;

    std::vector<Entry> found;
    const uint64_t end = *start + *rest;
    // A tail too short for a header is padding.
    for (uint64_t at = *start; end - at >= kMinEntryHeader;) {
        const uint64_t headerSize = *source.read<uint32_t>(at + 4);
        const uint64_t payloadSize = *source.read<uint64_t>(at + 8);
        const uint64_t compressedSize = *source.read<uint32_t>(at + 16);
        const uint64_t room = end - at;
        if (headerSize < kMinEntryHeader || headerSize > room) return std::nullopt;
        if (payloadSize > room - headerSize || compressedSize > payloadSize) return std::nullopt;
        Entry entry;
        entry.kind = *source.read<uint16_t>(at);
        entry.sm = *source.read<uint32_t>(at + 28);
        entry.flags = *source.read<uint64_t>(at + 40);
        entry.uncompressedSize = *source.read<uint64_t>(at + 56);
        const bool compressed = (entry.flags & (kEntryLz4 | kEntryZstd)) != 0;
        entry.payload =
            container.subspan(at + headerSize, compressed ? compressedSize : payloadSize);
        found.push_back(entry);
        at += headerSize + payloadSize;
    }
    return found;
}

std::optional<std::string> unpack(const Entry& entry) {
    const bool lz4 = (entry.flags & kEntryLz4) != 0;
    const bool zstd = (entry.flags & kEntryZstd) != 0;
    if (!lz4 && !zstd) return std::string(entry.payload.begin(), entry.payload.end());
    if (entry.uncompressedSize > kMaxTextBytes || entry.payload.size() > kMaxTextBytes) {
        return std::nullopt;
    }
    return lz4 ? unpackLz4(entry) : unpackZstd(entry);
}

bool runsOn(const Entry& entry, uint32_t sm) {
    if ((entry.flags & kEntryArchitectureSpecific) != 0) return entry.sm == sm;
    if ((entry.flags & kEntryFamilySpecific) != 0) {
        return entry.sm / 10 == sm / 10 && entry.sm <= sm;
    }
    return entry.sm <= sm;
}

PtxChoice choosePtx(const Image& image, uint32_t sm) {
    PtxChoice choice;
    if (image.kind == Kind::cubin || image.parts.empty()) return choice;
    if (image.kind == Kind::ptx) {
        choice.status = PtxStatus::found;
        choice.text.assign(image.parts[0].begin(), image.parts[0].end());
        cutAtNul(choice.text);
        return choice;
    }

    // Alternatives for the same code, or, where there are several containers, one unit in each.
    const bool units = image.kind == Kind::wrapper && image.parts.size() > 1;
    std::vector<Entry> chosen;
    for (const Bytes part : image.parts) {
        const auto all = entries(part);
        if (!all) {
            choice.status = PtxStatus::corrupt;
            return choice;
        }
        std::optional<Entry> best;
        if (!units && !chosen.empty()) best = chosen.back();
        for (const Entry& entry : *all) {
            if (entry.kind != static_cast<uint16_t>(EntryKind::ptx) || !runsOn(entry, sm)) continue;
            if (!best || entry.sm > best->sm) best = entry;
        }
        if (!units) chosen.clear();
        if (best) chosen.push_back(*best);
    }
    for (const Entry& entry : chosen) {
        auto text = unpack(entry);
        if (!text) {
            choice.status = PtxStatus::corrupt;
            return choice;
        }
        cutAtNul(*text);
        choice.status = PtxStatus::found;
        if (!choice.text.empty()) choice.text += '\n';
        choice.text += *text;
        choice.sm = std::max(choice.sm, entry.sm);
    }
    return choice;
}

}  // namespace juice::image
