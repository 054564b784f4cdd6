// What a fatbin container holds, and which of its PTX texts a device may run.
//
// Entry header (little endian; offsets in bytes): 0 u16 kind · 4 u32 header size · 8 u64 payload
// size, padded to 8 (the next entry stands behind it) · 16 u32 compressed size, exact, 0 if stored
// · 24 u32 code version · 28 u32 SM number · 40 u64 flags · 56 u64 uncompressed size, 0 if stored.
#pragma once

#include <string>

#include "native/image/image.h"

namespace juice::image {

enum class EntryKind : uint16_t { ptx = 1, cubin = 2 };

constexpr uint64_t kEntryLz4 = 0x2000;
constexpr uint64_t kEntryZstd = 0x8000;
/// Code for exactly one architecture, as sm_90a.
constexpr uint64_t kEntryArchitectureSpecific = 0x100000;
/// Code for one family (same major number), as sm_100f.
constexpr uint64_t kEntryFamilySpecific = 0x200000;

/// Decompressed PTX is no longer than this (a header that says more is garbage or an attack).
constexpr uint64_t kMaxTextBytes = uint64_t{512} << 20;

/// One entry of a container; `payload` lies in the container, as stored there.
struct Entry {
    uint16_t kind = 0;  // an EntryKind, or one that we do not know
    uint32_t sm = 0;    // 90 for sm_90
    uint64_t flags = 0;
    uint64_t uncompressedSize = 0;  // 0 if stored
    Bytes payload;
};

/// All entries of a container, in order. Empty optional when a header contradicts the bounds.
std::optional<std::vector<Entry>> entries(Bytes container);

/// The entry's bytes, decompressed where needed. Empty optional when they do not decompress to
/// exactly what the header promises.
std::optional<std::string> unpack(const Entry& entry);

/// May a device of compute capability `sm` (90 for 9.0) compile this PTX entry?
bool runsOn(const Entry& entry, uint32_t sm);

enum class PtxStatus : uint8_t { found, none, corrupt };

/// The PTX for a device, out of a measured image of any kind.
/// found: `text` is it, without NUL. none: the image is sound but has no PTX that the device may
/// run (209, CUDA_ERROR_NO_BINARY_FOR_GPU). corrupt: 200, CUDA_ERROR_INVALID_IMAGE.
struct PtxChoice {
    PtxStatus status = PtxStatus::none;
    std::string text;
    uint32_t sm = 0;  // of the chosen entry; 0 for plain text
};

/// Among all parts' PTX entries the one with the highest SM number that is not above `sm`. Of a
/// wrapper with further containers (a program of several relocatable parts) the best of each part,
/// behind each other.
PtxChoice choosePtx(const Image& image, uint32_t sm);

}  // namespace juice::image
