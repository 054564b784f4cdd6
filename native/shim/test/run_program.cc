// Runs a program against the shim, a worker and the software GPU, without the control plane:
//   juice_site -- PROGRAM [ARGUMENT...]
// JUICE_SITE_DRIVER names another driver for the worker.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "native/shim/test/site.h"

int main(int argc, char** argv) {
    if (argc < 3 || std::strcmp(argv[1], "--") != 0) return 2;
    const char* const driver = std::getenv("JUICE_SITE_DRIVER");
    juice::shim::test::Site site({JUICE_WORKER, driver != nullptr ? driver : JUICE_SOFTGPU, 0, ""});
    const pid_t child = fork();
    if (child == 0) {
        setenv("JUICE_BROKER", site.socketPath().c_str(), 1);
        setenv("LD_LIBRARY_PATH", JUICE_SHIM_DIR, 1);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
