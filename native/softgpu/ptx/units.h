// Several PTX texts as one module, as a linker makes it: they follow each other in the source, each
// with its own .version. What is visible in one is what the others declare as extern; what is not
// visible is each one's own, even where the names are alike.
#pragma once

#include <vector>

#include "native/softgpu/ptx/ast.h"

namespace juice::softgpu::ptx {

/// What stands before a declaration at module scope.
struct Linkage {
    bool isExtern = false, isVisible = false, isWeak = false;

    /// Seen by its own unit only?
    bool isLocal() const { return !isExtern && !isVisible && !isWeak; }
};

/// Where the things of a unit begin in its module's lists.
struct Unit {
    size_t variables = 0, functions = 0, aliases = 0, files = 0;
};

/// How each of the module's variables and functions was declared, in the order of its lists.
struct Linkages {
    std::vector<Linkage> variables, functions;
};

/// Gives what is one unit's own a name of its own where another unit uses the same, and the files
/// of each unit numbers of their own; leaves one of the weak definitions of a name.
void joinUnits(Module& module, const std::vector<Unit>& units, const Linkages& linkages);

}  // namespace juice::softgpu::ptx
