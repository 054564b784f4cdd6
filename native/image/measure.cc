#include <algorithm>

#include "native/image/image.h"
#include "native/image/source.h"

namespace juice::image {
namespace {

constexpr uint64_t kContainerHeader = 16;

struct ElfHeader {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, phoff, shoff;
    uint32_t flags;
    uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
static_assert(sizeof(ElfHeader) == 64);

struct ProgramHeader {
    uint32_t type, flags;
    uint64_t offset, vaddr, paddr, filesz, memsz, align;
};
static_assert(sizeof(ProgramHeader) == 56);

struct SectionHeader {
    uint32_t name, type;
    uint64_t flags, addr, offset, size;
    uint32_t link, info;
    uint64_t addralign, entsize;
};
static_assert(sizeof(SectionHeader) == 64);

constexpr uint8_t kElfClass64 = 2;
constexpr uint32_t kSectionNoBits = 8;

/// Grows `end` to cover [offset, offset + size). False when that leaves the source.
bool cover(const Source& source, uint64_t offset, uint64_t size, uint64_t& end) {
    if (!source.holds(offset, size)) return false;
    end = std::max(end, offset + size);
    return true;
}

std::optional<uint64_t> containerSize(const Source& source) {
    const auto headerSize = source.read<uint16_t>(6);
    const auto rest = source.read<uint64_t>(8);
    if (!headerSize || !rest || *headerSize < kContainerHeader) return std::nullopt;
    if (*rest > kMaxImageBytes || !source.holds(*headerSize, *rest)) return std::nullopt;
    return *headerSize + *rest;
}

/// The end of everything an ELF file's tables speak of: both header tables, all segments' and
/// sections' bytes. The tables alone are not enough, nor is either of them the last thing always.
std::optional<uint64_t> elfSize(const Source& source) {
    const auto header = source.read<ElfHeader>(0);
    if (!header || header->ident[4] != kElfClass64) return std::nullopt;
    uint64_t end = sizeof(ElfHeader);
    if (header->phnum > 0) {
        if (header->phentsize < sizeof(ProgramHeader)) return std::nullopt;
        const uint64_t table = uint64_t{header->phnum} * header->phentsize;
        if (!cover(source, header->phoff, table, end)) return std::nullopt;
        for (uint64_t i = 0; i < header->phnum; ++i) {
            const auto segment = source.read<ProgramHeader>(header->phoff + i * header->phentsize);
            if (!segment || !cover(source, segment->offset, segment->filesz, end)) {
                return std::nullopt;
            }
        }
    }
    if (header->shnum > 0) {
        if (header->shentsize < sizeof(SectionHeader)) return std::nullopt;
        const uint64_t table = uint64_t{header->shnum} * header->shentsize;
        if (!cover(source, header->shoff, table, end)) return std::nullopt;
        for (uint64_t i = 0; i < header->shnum; ++i) {
            const auto section = source.read<SectionHeader>(header->shoff + i * header->shentsize);
            if (!section) return std::nullopt;
            if (section->type == kSectionNoBits) continue;
            if (!cover(source, section->offset, section->size, end)) return std::nullopt;
        }
    }
    return end;
}

bool isSpace(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Where the first token of PTX text stands: white space and comments skipped. Stops at a NUL.
std::optional<uint64_t> skipComments(const Source& source) {
    uint64_t i = 0;
    const auto at = [&](uint64_t k) -> uint8_t { return k < source.limit ? source.at[k] : 0; };
    while (true) {
        while (isSpace(at(i))) ++i;
        if (at(i) != '/') return i;
        if (at(i + 1) == '/') {
            while (at(i) != '\n' && at(i) != 0) ++i;
        } else if (at(i + 1) == '*') {
            i += 2;
            while (!(at(i) == '*' && at(i + 1) == '/')) {
                if (at(i) == 0) return std::nullopt;
                ++i;
            }
            i += 2;
        } else {
            return std::nullopt;
        }
    }
}

/// PTX text begins with its .version directive; that is what tells it from arbitrary bytes.
std::optional<uint64_t> ptxSize(const Source& source, bool bounded) {
    static constexpr char kVersion[] = ".version";
    constexpr uint64_t kVersionBytes = sizeof(kVersion) - 1;
    const auto start = skipComments(source);
    if (!start) return std::nullopt;
    for (uint64_t i = 0; i < kVersionBytes; ++i) {
        if (source.read<uint8_t>(*start + i) != static_cast<uint8_t>(kVersion[i])) {
            return std::nullopt;
        }
    }
    for (uint64_t i = *start + kVersionBytes; i < source.limit; ++i) {
        if (source.at[i] == 0) return i + 1;
    }
    return bounded ? std::optional(source.limit) : std::nullopt;
}

std::optional<Image> measureFlat(const Source& source, bool bounded) {
    const auto sized = [&](Kind kind, std::optional<uint64_t> size) -> std::optional<Image> {
        if (!size || *size > kMaxImageBytes) return std::nullopt;
        return Image{kind, 0, {Bytes(source.at, *size)}};
    };
    // A bare pointer may lead to a text shorter than a magic number: read byte by byte.
    uint32_t magic = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const auto byte = source.read<uint8_t>(i);
        if (!byte || *byte == 0) break;
        magic |= uint32_t{*byte} << (8 * i);
    }
    if (magic == kContainerMagic) return sized(Kind::container, containerSize(source));
    if (magic == kElfMagic) return sized(Kind::cubin, elfSize(source));
    return sized(Kind::ptx, ptxSize(source, bounded));
}

std::optional<Bytes> containerAt(const void* pointer) {
    if (pointer == nullptr) return std::nullopt;
    const Source source{static_cast<const uint8_t*>(pointer), kMaxImageBytes};
    if (source.read<uint32_t>(0) != kContainerMagic) return std::nullopt;
    const auto size = containerSize(source);
    if (!size) return std::nullopt;
    return Bytes(source.at, *size);
}

std::optional<Image> measureWrapper(const Source& source) {
    Image image{Kind::wrapper, *source.read<uint32_t>(4), {}};
    if (image.wrapperVersion != 1 && image.wrapperVersion != 2) return std::nullopt;
    const auto first = containerAt(*source.read<const void*>(8));
    if (!first) return std::nullopt;
    image.parts.push_back(*first);
    // In version 1 the last field is a file name.
    const auto* further =
        image.wrapperVersion == 2 ? *source.read<const void* const*>(16) : nullptr;
    for (; further != nullptr && *further != nullptr; ++further) {
        const auto part = containerAt(*further);
        if (!part || image.parts.size() == kMaxParts) return std::nullopt;
        image.parts.push_back(*part);
    }
    return image;
}

}  // namespace

std::optional<Image> measure(const void* image) {
    if (image == nullptr) return std::nullopt;
    const Source source{static_cast<const uint8_t*>(image), kMaxImageBytes};
    static constexpr uint8_t kWrapperStart[] = {0xb1, 0x43, 0x62, 0x46};
    // Byte by byte: behind the first that differs, as in a text of one byte, there may be nothing.
    size_t same = 0;
    while (same < sizeof kWrapperStart && source.at[same] == kWrapperStart[same]) ++same;
    if (same == sizeof kWrapperStart) return measureWrapper(source);
    return measureFlat(source, false);
}

std::optional<Image> measure(Bytes image) {
    return measureFlat(Source{image.data(), image.size()}, true);
}

Wrapper::Wrapper(uint32_t version, std::vector<Bytes> containers) {
    for (size_t i = 1; i < containers.size(); ++i) further_.push_back(containers[i].data());
    further_.push_back(nullptr);
    header_.magic = kWrapperMagic;
    header_.version = version;
    header_.data = containers.empty() ? nullptr : containers[0].data();
    // An empty list is no list: that is how nvcc writes a wrapper with one container.
    header_.further = version == 2 && containers.size() > 1 ? further_.data() : nullptr;
}

}  // namespace juice::image
