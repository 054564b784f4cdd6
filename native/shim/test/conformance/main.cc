// Usage: conformance LIBCUDA [SECTION...]
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "native/shim/test/conformance/record.h"

using namespace juice::conformance;

namespace {

const Section* const kSections[] = {
    &kUninitialised, &kDevices,  &kContexts,  &kPrimary,   &kMemory,    &kHostMemory,
    &kCopies,        &kPointers, &kModules,   &kLibraries, &kFunctions, &kLaunches,
    &kStreams,       &kEvents,   &kOccupancy, &kPools,     &kSticky,
};

void runSection(const char* library, const Section& section) {
    juice::DriverTable cu{};
    std::string error;
    if (!cu.load(library, error)) {
        std::fprintf(stderr, "%s\n", error.c_str());
        std::exit(1);
    }
    Record record(section.name);
    section.run(cu, record);
    std::fflush(stdout);
    // Not exit(): a driver may do work at exit, which no section is about.
    _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: conformance LIBCUDA [SECTION...]\n");
        return 2;
    }
    bool ended = true;
    for (const Section* section : kSections) {
        bool wanted = argc == 2;
        for (int i = 2; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], section->name) == 0;
        if (!wanted) continue;
        const pid_t child = fork();
        if (child == 0) runSection(argv[1], *section);
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) {
            std::printf("%s.ended: signal %d\n", section->name, WTERMSIG(status));
            std::fflush(stdout);
            ended = false;
        }
    }
    return ended ? 0 : 1;
}
