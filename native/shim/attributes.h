// Attributes of functions and kernels: asked once, kept, and changed here when the program changes
// them.
#pragma once

#include "native/shim/objects.h"

namespace juice::shim {

/// The code's attributes on a device, not necessarily known yet.
Attributes& attributesOn(Code& code, int device);

/// Asks the worker, without waiting, unless they are known or asked for.
void askAttributes(Code& code, const Object& object, const Context& context);

/// Makes them known; waits for the worker only when it has not answered yet.
CUresult knowAttributes(Code& code, const Object& object, const Context& context,
                        Attributes*& attributes);

}  // namespace juice::shim
