// The kernels of a module or library: names and parameter layouts, as the driver tells them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "native/gen/driver_table.h"
#include "native/link/codec.h"

namespace juice::worker {

struct KernelEntry {
    std::string name;
    std::vector<std::pair<uint32_t, uint32_t>> params;  // offset, size in the parameter buffer
};
using KernelEntries = std::vector<KernelEntry>;

CUresult kernelsOf(const DriverTable& driver, CUmodule module, KernelEntries& out);
CUresult kernelsOf(const DriverTable& driver, CUlibrary library, KernelEntries& out);

/// A KernelPage (native/link/custom.h) of the kernels from index `from` on, as many as a Reply
/// takes.
void putKernelPage(Writer& out, const KernelEntries& kernels, size_t from);

}  // namespace juice::worker
