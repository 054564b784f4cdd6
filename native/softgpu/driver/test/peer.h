// A second process, to which commands are given.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <string>

namespace juice::softgpu {

class Peer {
  public:
    Peer() {
        int down[2], up[2];
        if (pipe(down) != 0 || pipe(up) != 0) return;
        process_ = fork();
        if (process_ == 0) {
            dup2(down[0], 0);
            dup2(up[1], 1);
            for (const int end : {down[0], down[1], up[0], up[1]}) close(end);
            execl(JUICE_IPC_PEER, JUICE_IPC_PEER, nullptr);
            _exit(127);
        }
        close(down[0]);
        close(up[1]);
        commands_ = fdopen(down[1], "w");
        answers_ = fdopen(up[0], "r");
    }
    ~Peer() {
        kill();
        std::fclose(commands_);
        std::fclose(answers_);
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    /// What it answers.
    std::string ask(const std::string& command) {
        std::fprintf(commands_, "%s\n", command.c_str());
        std::fflush(commands_);
        char line[512] = "nothing";
        if (std::fgets(line, sizeof(line), answers_) == nullptr) return "nothing";
        std::string text = line;
        while (!text.empty() && text.back() == '\n') text.pop_back();
        return text;
    }

    /// Dies at once, as from kill -9.
    void kill() {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        process_ = 0;
    }

  private:
    pid_t process_ = 0;
    FILE* commands_ = nullptr;
    FILE* answers_ = nullptr;
};

}  // namespace juice::softgpu
