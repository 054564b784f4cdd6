// What the sections of juice_replays share: the driver, kernels, and how they say what they saw.
// Every line must be the same on any driver, through Juice or not.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "native/gen/driver_table.h"

namespace juice::replays {

inline DriverTable cu;

/// Ends the program at a result that no section expects.
inline void check(CUresult result, const char* what) {
    if (result == CUDA_SUCCESS) return;
    std::printf("%s: error %d\n", what, result);
    std::exit(3);
}
#define PLAY(call) juice::replays::check(juice::replays::cu.call, #call)

constexpr unsigned kCount = 1024;
constexpr size_t kBytes = kCount * sizeof(unsigned);

/// In a primary context, with one module: step(p, n, add) makes p[i] = 3 * p[i] + add + i.
struct Stage {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction step = nullptr, fault = nullptr, spin = nullptr;

    Stage();
    CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) const;
    CUevent event() const;
    /// Pinned, filled with 0, 1, 2, ... from `first` on.
    unsigned* pinned(unsigned first) const;
    CUdeviceptr device() const;
    void launchStep(CUdeviceptr p, unsigned add, CUstream on) const;
};

/// What `step` does, here.
void stepHere(unsigned* p, unsigned add);
/// "name: ok", or the first place where the two differ.
void compare(const char* name, const unsigned* got, const unsigned* wanted);
inline void say(const char* name, int value) {
    std::printf("%s: %d\n", name, value);
}

void functionsInOrder();
void functionAsGate();
void functionsSayStatus();
void functionsAcrossStreams();
void functionsAfterFault();
void functionsAtTheEnd();

void capturedAndReplayed();
void forkedAndJoined();
void functionsInGraphs();
void builtByHand();
void updated();
void capturesForbid();
void userObjects();
void partsOfGraphs();

}  // namespace juice::replays
