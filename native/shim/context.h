// Contexts: the primary one of each device, and those that a program makes.
#pragma once

#include "native/shim/objects.h"

namespace juice::shim {

/// The handle of a device's primary context, without activating it. Null when there is no address
/// space for handles.
Context* primaryContext(int ordinal);

/// A context has ended, or is about to: what the runtime keeps for it is destroyed, then everything
/// that it owned is forgotten.
void endContext(Context& context);

/// The context that a handle names; the thread's current one for null.
CUresult contextOf(CUcontext handle, Context*& context);

}  // namespace juice::shim
