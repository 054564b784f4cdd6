// Functions of the program that streams and graphs call: they run here, on a thread of their own,
// while the worker's stream waits.
#pragma once

#include "native/link/client_link.h"
#include "native/shim/objects.h"

namespace juice::shim::host_functions {

/// On a thread of the link: something is due.
void arrived(const Callback& callback);

/// May a function that has not returned yet change pinned memory before work that is posted now
/// reads it?
bool outstanding();

/// Remembers a function for as long as the process lives, for graphs and user objects: its id, or 0
/// where there is no thread to call it. Then what was remembered; false for another id.
uint64_t keep(CUhostFn function, void* data);
bool kept(uint64_t id, CUhostFn& function, void*& data);
/// A graph stops at `gate` for the function.
void gate(uint64_t gate, uint64_t function);
/// A graph that calls functions is about to be launched: the token of its last callback. Until that
/// has come functions are outstanding.
uint64_t launching();
void launched();

}  // namespace juice::shim::host_functions
