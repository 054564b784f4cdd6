// Module images: how long one is when all that is known is its address, what a fatbin holds, and
// which PTX of it fits a device. Shared by the shim (measures before it sends), the worker (checks
// what arrived, rebuilds a wrapper) and the software GPU (needs PTX text).
//
// The formats (little endian; offsets in bytes):
//   wrapper    24 bytes: u32 magic 0x466243b1, u32 version (1 or 2), pointer to a container,
//   pointer
//              to (version 2) a NULL-terminated array of pointers to further containers
//   container  16 bytes: u32 magic 0xba55ed50, u16 version, u16 header size, u64 size of what
//              follows the header: entries, back to back (entries.h)
//   cubin      ELF; the program headers usually stand behind the section headers
//   PTX        text that ends with a NUL byte
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace juice::image {

using Bytes = std::span<const uint8_t>;

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kContainerMagic = 0xba55ed50;
constexpr uint32_t kElfMagic = 0x464c457f;
/// No image is longer than this; a header that says so is taken for garbage.
constexpr uint64_t kMaxImageBytes = uint64_t{4} << 30;
/// No wrapper lists more further containers than this.
constexpr size_t kMaxParts = 1 << 16;

enum class Kind : uint8_t { wrapper = 1, container = 2, cubin = 3, ptx = 4 };

/// A measured image. `parts` are the bytes to send or to keep, in place (nothing is copied): of a
/// wrapper its container and then the further ones it lists; of every other kind exactly one, of
/// PTX including the terminating NUL.
struct Image {
    Kind kind = Kind::ptx;
    uint32_t wrapperVersion = 0;  // 1 or 2 for a wrapper, else 0
    std::vector<Bytes> parts;
};

/// Measures the image at a bare pointer, as cuModuleLoadData and cuLibraryLoadData get it. Reads as
/// far as the image's own headers say (the caller's memory, trusted as the real driver trusts it).
/// Empty when it is no image that CUDA knows: answer 200, CUDA_ERROR_INVALID_IMAGE.
std::optional<Image> measure(const void* image);

/// The same for bytes whose end is known, from a file or from the wire: never reads past them.
/// A wrapper holds pointers and is refused here. For PTX without its NUL the part is all the text.
std::optional<Image> measure(Bytes image);

/// A wrapper made anew around containers that live elsewhere (they must outlive it, 8-byte
/// aligned): what an executor gives to its driver when it got a wrapper's parts.
class Wrapper {
  public:
    Wrapper(uint32_t version, std::vector<Bytes> containers);
    Wrapper(const Wrapper&) = delete;
    Wrapper& operator=(const Wrapper&) = delete;
    /// The address to hand to cuLibraryLoadData or cuModuleLoadData.
    const void* get() const { return &header_; }

  private:
    struct Header {
        uint32_t magic, version;
        const void* data;
        const void* const* further;
    };
    std::vector<const void*> further_;
    Header header_;
};

}  // namespace juice::image
