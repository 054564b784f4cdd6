// juice-exec PPID -- PROGRAM ARG...: becomes PROGRAM, which dies with its parent.
//
// Node cannot set a parent-death signal on a child. This can: it survives exec, so that when
// `juice attach` or `juice soft` is killed with -9, its program goes too. PPID closes the race in
// which the parent died before the signal was set. Exit codes are a shell's: 127 not found, 126 not
// executable.
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
    if (argc < 4 || std::strcmp(argv[2], "--") != 0) {
        std::fprintf(stderr, "usage: juice-exec PPID -- PROGRAM [ARG...]\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != static_cast<pid_t>(std::strtol(argv[1], nullptr, 10))) {
        std::fprintf(stderr, "juice: the juice that started this program is gone\n");
        return 1;
    }
    // Node ignores SIGPIPE, and an ignored signal stays ignored across exec.
    std::signal(SIGPIPE, SIG_DFL);
    execvp(argv[3], argv + 3);
    const int error = errno;
    const bool missing = error == ENOENT || error == ENOTDIR;
    std::fprintf(stderr, "juice: cannot run %s: %s\n", argv[3],
                 missing ? "no such program (check its name and PATH)" : std::strerror(error));
    return missing ? 127 : 126;
}
