// Runs a program against the shim, a worker and the software GPU of the build folder that this
// stands in, without the control plane:
//   juice_site -- PROGRAM [ARGUMENT...]
// JUICE_SITE_DRIVER names another driver for the worker: libcuda.so.1 for a real GPU.
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "native/shim/test/site.h"

namespace {

/// <build>, of <build>/native/shim/test/juice_site.
std::string buildFolder() {
    char self[PATH_MAX] = {};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return ".";
    std::string path = self;
    for (int i = 0; i < 4; ++i) path.resize(path.rfind('/'));
    return path;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3 || std::strcmp(argv[1], "--") != 0) return 2;
    const std::string build = buildFolder();
    const char* const driver = std::getenv("JUICE_SITE_DRIVER");
    juice::shim::test::Site site({build + "/bin/juice-worker",
                                  driver != nullptr ? driver : build + "/softgpu/libcuda.so.1", 0,
                                  ""});
    const pid_t child = fork();
    if (child == 0) {
        setenv("JUICE_BROKER", site.socketPath().c_str(), 1);
        const char* const before = std::getenv("LD_LIBRARY_PATH");
        const std::string path =
            build + "/shim" + (before != nullptr ? std::string(":") + before : "");
        setenv("LD_LIBRARY_PATH", path.c_str(), 1);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
