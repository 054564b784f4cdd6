// The first page of a file that is exported: what the rest of it is.
#pragma once

#include <optional>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/settings.h"

namespace juice::softgpu {

class Device;

struct FileLabel {
    enum class Content : uint64_t { physical = 0x4d56475347534a01, pool = 0x4d56475347534a02 };

    Content content = Content::physical;
    uint64_t size = 0;  // of physical memory
    Uuid device{};      // where its location is one
    CUmemLocation location{};
    CUmemAllocationHandleType handleTypes = CU_MEM_HANDLE_TYPE_NONE;

    static constexpr uint64_t kBytes = 4096;

    /// For memory at a location of this process.
    FileLabel(Content what, size_t bytes, const CUmemLocation& where,
              CUmemAllocationHandleType types);

    bool write(int file) const;
    /// Empty when the file is none of that content. The location is this process's: 101 for a
    /// device that it does not see.
    static CUresult read(int file, Content content, std::optional<FileLabel>& label);

  private:
    FileLabel() = default;
};

}  // namespace juice::softgpu
