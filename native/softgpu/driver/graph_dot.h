// Graphs as text for people, in the DOT language.
#pragma once

#include <string>

#include "native/softgpu/driver/graph.h"

namespace juice::softgpu {

/// `flags`: CUgraphDebugDot_flags.
std::string dotOf(const Graph& graph, unsigned flags);
/// False when the file cannot be written.
bool writeDot(const Graph& graph, const std::string& path, unsigned flags);

}  // namespace juice::softgpu
