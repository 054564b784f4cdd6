// What a CUDA driver answers to calls that a program may rightly or wrongly make, as lines
// "section.name: answer". The same program runs against a real driver, whose answers are kept in
// native/shim/test/data, and against the shim, which is held to them.
#pragma once

#include <cstdarg>
#include <cstdio>

#include "native/gen/driver_table.h"

namespace juice::conformance {

class Record {
  public:
    explicit Record(const char* section) : section_(section) {}
    /// The result of one call.
    void code(const char* name, int result) { line(name, "%d", result); }
    /// Whatever else is to be kept.
    void line(const char* name, const char* format, ...) __attribute__((format(printf, 3, 4))) {
        std::printf("%s.%s: ", section_, name);
        va_list arguments;
        va_start(arguments, format);
        std::vprintf(format, arguments);
        va_end(arguments);
        std::printf("\n");
        std::fflush(stdout);
    }

  private:
    const char* section_;
};

/// One group of questions. Each runs in a process of its own, so that an error that kills the
/// context, or the process, spoils only what follows it in the same section.
struct Section {
    const char* name;
    void (*run)(const DriverTable& cu, Record& record);
};

extern const Section kContexts, kPrimary, kDevices, kMemory, kHostMemory, kCopies, kPointers,
    kModules, kLibraries, kFunctions, kLaunches, kStreams, kEvents, kOccupancy, kPools, kSticky,
    kUninitialised;

/// Retains and sets the primary context of device 0.
CUcontext begin(const DriverTable& cu);

/// PTX with the kernels that the sections use (kernels.cc).
extern const char* const kPtx;

}  // namespace juice::conformance
