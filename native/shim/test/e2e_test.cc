// Whole programs: shim, link, worker and software GPU.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "native/shim/test/site.h"

namespace juice::shim::test {
namespace {

const std::string kShim = std::string(JUICE_SHIM_DIR) + "/libcuda.so.1";

Site::Options softwareGpu() {
    return {JUICE_WORKER, JUICE_SOFTGPU, 0, ""};
}

struct Ended {
    int code = -1;  // or 1000 + the signal
    std::string out, err;
};

/// A program that is running, with its output going into files.
class Program {
  public:
    Program(std::vector<std::string> command, const std::string& broker,
            const std::map<std::string, std::string>& environment = {}) {
        char out[] = "/tmp/juice-out-XXXXXX", err[] = "/tmp/juice-err-XXXXXX";
        const int outFd = mkstemp(out), errFd = mkstemp(err);
        out_ = out;
        err_ = err;
        std::vector<char*> argv;
        for (std::string& word : command) argv.push_back(word.data());
        argv.push_back(nullptr);
        pid_ = fork();
        if (pid_ == 0) {
            dup2(outFd, 1);
            dup2(errFd, 2);
            close(outFd);
            close(errFd);
            unsetenv("JUICE_BROKER");
            if (!broker.empty()) setenv("JUICE_BROKER", broker.c_str(), 1);
            setenv("LD_LIBRARY_PATH", JUICE_SHIM_DIR, 1);
            for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
            execv(argv[0], argv.data());
            _exit(127);
        }
        close(outFd);
        close(errFd);
    }
    ~Program() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        unlink(out_.c_str());
        unlink(err_.c_str());
    }

    std::string output() const { return read(out_); }

    /// Waits for its end, for at most `seconds`.
    Ended wait(int seconds = 60) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
        int status = 0;
        while (waitpid(pid_, &status, WNOHANG) == 0) {
            if (std::chrono::steady_clock::now() > deadline) {
                ADD_FAILURE() << "the program hangs; so far: " << read(out_) << read(err_);
                return {};
            }
            usleep(5'000);
        }
        pid_ = -1;
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        return {code, read(out_), read(err_)};
    }

  private:
    static std::string read(const std::string& path) {
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        return text.str();
    }
    pid_t pid_ = -1;
    std::string out_, err_;
};

Ended manners(const std::string& subject, const std::string& broker,
              const std::map<std::string, std::string>& environment = {}) {
    return Program({JUICE_MANNERS, kShim, subject}, broker, environment).wait();
}

size_t lines(const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Answers by question; one question may be asked several times.
std::map<std::string, std::vector<std::string>> parse(std::istream& in) {
    std::map<std::string, std::vector<std::string>> answers;
    for (std::string line; std::getline(in, line);) {
        const auto colon = line.find(": ");
        if (colon != std::string::npos)
            answers[line.substr(0, colon)].push_back(line.substr(colon + 2));
    }
    return answers;
}

/// Where a difference to the real driver's answer is known, and why.
const std::set<std::string> kDifferent = {
    // Not supported, and said so.
    "libraries.unified_missing", "pointers.set_sync", "pointers.set_type", "pools.default",
    "pools.current", "pools.same", "pools.from_pool", "pools.free_plainly", "pools.pool_all_17",
    "pools.threshold", "pools.threshold_value", "pools.trim",
    // A real driver loads a library when it is first used; here it is loaded, and refused, at once.
    "libraries.bad_ptx", "libraries.garbage", "libraries.garbage_without_context",
    "libraries.attribute_without_context", "sticky.library_load",
    // What a destroyed context answers depends on what has taken its place in the driver.
    "contexts.destroy_again",
    // Properties of the software GPU, and calls that it lacks, with the answers that follow them.
    "contexts.peer_self", "functions.bounded", "functions.load", "events.synchronize",
    "launches.sync", "occupancy.cluster_size_value", "occupancy.clusters_value",
    "occupancy.potential_bounded_values", "occupancy.potential_dynamic_values",
    "occupancy.potential_limit_values", "occupancy.potential_shared_values",
    "occupancy.potential_values", "streams.attribute_priority", "streams.attribute_sync_policy",
    "streams.attribute_sync_policy_value", "streams.query_without_context"};

/// The same in strict mode, where a call that the software GPU lacks says so itself.
const std::set<std::string> kDifferentWhenStrict = {
    "events.create_interprocess",  "functions.set_policy",       "functions.set_cluster_width",
    "launches.ex_cluster",         "launches.extra_short",       "functions.cluster_width",
    "functions.get_cluster_width", "functions.set_non_portable", "streams.copy_attributes"};

void expectAnswersOfARealDriver(const std::map<std::string, std::string>& environment,
                                const std::set<std::string>& alsoDifferent) {
    Site site(softwareGpu());
    const Ended ended =
        Program({JUICE_CONFORMANCE, kShim}, site.socketPath(), environment).wait(120);
    EXPECT_EQ(ended.code, 0) << ended.err;
    std::istringstream got(ended.out);
    std::ifstream recorded(JUICE_ANSWERS);
    auto answers = parse(got);
    int compared = 0;
    for (const auto& [question, wanted] : parse(recorded)) {
        if (kDifferent.contains(question) || alsoDifferent.contains(question)) continue;
        EXPECT_EQ(answers[question], wanted) << question;
        ++compared;
    }
    EXPECT_GT(compared, 700);
}

TEST(Conformance, AnswersAreThoseOfARealDriver) {
    expectAnswersOfARealDriver({}, {});
}

TEST(Conformance, AnswersAreTheSameWhenEveryCallWaits) {
    expectAnswersOfARealDriver({{"JUICE_STRICT", "1"}}, kDifferentWhenStrict);
}

TEST(Programs, ComputeWhatTheyWould) {
    Site site(softwareGpu());
    int ran = 0;
    for (const char* name : {"saxpy_and_dot", "vector_add_static", "vector_add_shared",
                             "overlapped_streams_static", "faulting_kernel_static"}) {
        const std::string path = std::string(JUICE_EXAMPLES) + "/" + name;
        if (access(path.c_str(), X_OK) != 0) continue;
        const Ended ended = Program({path}, site.socketPath()).wait();
        EXPECT_EQ(ended.code, 0) << name << ": " << ended.out << ended.err;
        EXPECT_NE(ended.out.find(": ok"), std::string::npos) << ended.out;
        ++ran;
    }
    if (ran == 0) GTEST_SKIP() << "the examples are not built";
    EXPECT_EQ(site.workers(), ran);
    EXPECT_GT(site.launches(), 0u);
}

void expectHostMemoryShared(const std::map<std::string, std::string>& environment) {
    Site site(softwareGpu());
    const Ended ended = Program({JUICE_COHERENCE, kShim}, site.socketPath(), environment).wait(120);
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    EXPECT_EQ(ended.out.find("wrong"), std::string::npos) << ended.out;
    EXPECT_GT(lines(ended.out), 20u);
    EXPECT_EQ(ended.err, "");
}

TEST(Programs, ShareHostMemoryWithTheDevice) {
    expectHostMemoryShared({});
}

TEST(Programs, ShareHostMemoryWithTheDeviceWhenEveryCallWaits) {
    expectHostMemoryShared({{"JUICE_STRICT", "1"}});
}

TEST(Programs, PrintWhatTheirKernelsPrint) {
    Site site(softwareGpu());
    const Ended ended = Program({JUICE_COHERENCE, kShim, "prints"}, site.socketPath()).wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.out,
              "program says 1\nkernel says 2\nprogram says 3\nkernel says 4\nprogram says 5\n"
              "prints: right\n");
}

TEST(Programs, ReadWhyTheirKernelsFailed) {
    Site site(softwareGpu());
    const Ended ended = Program({JUICE_CONFORMANCE, kShim, "sticky"}, site.socketPath()).wait();
    EXPECT_NE(ended.err.find("juice softgpu: error 700"), std::string::npos) << ended.err;
}

/// Through Juice as on the software GPU itself, where every section ends in "ok" or the like.
void expectSame(const char* section, const std::map<std::string, std::string>& environment = {}) {
    Site site(softwareGpu());
    const Ended native = Program({JUICE_REPLAYS, JUICE_SOFTGPU, section}, "").wait(120);
    const Ended through =
        Program({JUICE_REPLAYS, kShim, section}, site.socketPath(), environment).wait(120);
    EXPECT_EQ(native.code, 0) << native.out << native.err;
    EXPECT_EQ(through.out, native.out) << through.err;
    EXPECT_EQ(through.code, 0) << through.err;
    EXPECT_EQ(native.out.find(" was due"), std::string::npos) << native.out;
}

TEST(Functions, AreCalledInTheOrderOfTheirStreamWithTheValuesOfTheMoment) {
    expectSame("functions_in_order");
    expectSame("functions_in_order", {{"JUICE_STRICT", "1"}});
    expectSame("functions_across_streams");
}

TEST(Functions, HoldTheirStreamUpUntilTheyReturn) {
    expectSame("function_as_gate");
}

TEST(Functions, HearTheStatusAndMayNotCallCuda) {
    expectSame("functions_say_status");
    expectSame("functions_after_fault");
}

TEST(Functions, ThatAreDueAtTheEndHangNothing) {
    expectSame("functions_at_the_end");
}

TEST(Graphs, ReadAtEachLaunchWhatMemoryHoldsThen) {
    expectSame("captured_and_replayed");
    expectSame("captured_and_replayed", {{"JUICE_STRICT", "1"}});
}

TEST(Graphs, CaptureStreamsThatForkAndJoin) {
    expectSame("forked_and_joined");
}

TEST(Graphs, CallTheirFunctionsAtEachLaunchInTheirPlace) {
    expectSame("functions_in_graphs");
    expectSame("functions_in_graphs", {{"JUICE_STRICT", "1"}});
}

TEST(Graphs, AreBuiltChangedAndUpdated) {
    expectSame("built_by_hand");
    expectSame("updated");
    expectSame("parts_of_graphs");
}

TEST(Graphs, ForbidWhatACaptureForbids) {
    expectSame("captures_forbid");
}

TEST(Graphs, DestroyTheirUserObjectsInTheProgram) {
    expectSame("user_objects");
}

TEST(Programs, WithoutJuiceHaveNoDevice) {
    const Ended ended = manners("refused", "");
    EXPECT_EQ(ended.out, "attach: 100\nagain: 100\nalloc: 3\n");
    EXPECT_NE(ended.err.find("juice attach -- program"), std::string::npos) << ended.err;
    EXPECT_EQ(lines(ended.err), 1u) << ended.err;
}

TEST(Programs, ThatAreRefusedAWorkerHearWhyOnce) {
    Site::Options options = softwareGpu();
    options.refusal = "the session has ended: its time limit was reached; attach again";
    Site site(options);
    const Ended ended = manners("refused", site.socketPath());
    EXPECT_EQ(ended.out, "attach: 46\nagain: 46\nalloc: 201\n");
    EXPECT_EQ(ended.err, "juice: " + options.refusal + "\n");
}

TEST(Programs, WhoseWorkerDiesGetAnErrorNotAHang) {
    Site site(softwareGpu());
    Program program({JUICE_MANNERS, kShim, "until-it-fails"}, site.socketPath());
    while (program.output().empty()) usleep(5'000);
    usleep(50'000);
    site.killWorkers();
    const Ended ended = program.wait(20);
    EXPECT_EQ(ended.out, "working\nfailed with 46, another thread with 46\n") << ended.err;
    EXPECT_EQ(lines(ended.err), 1u) << ended.err;
}

TEST(Programs, ForkAsCudaDefinesIt) {
    Site site(softwareGpu());
    const Ended ended = manners("fork", site.socketPath());
    EXPECT_EQ(ended.out,
              "child of a fresh parent: 0\n"
              "parent: 0\n"
              "child init: 3\n"
              "child alloc: 3\n"
              "child count: 3\n"
              "child sockets: 0\n"
              "parent afterwards: 0\n")
        << ended.err;
}

TEST(Programs, KeepTheirSignalsAndDescriptorsToThemselves) {
    Site site(softwareGpu());
    const Ended ended = manners("resources", site.socketPath());
    EXPECT_EQ(ended.out, "threads some, taking signals 0, descriptors some, inherited by exec 0\n");
}

TEST(Programs, LeaveWithTheirOwnExitCodeAtOnce) {
    Site site(softwareGpu());
    const Ended ended = manners("leave", site.socketPath());
    EXPECT_EQ(ended.code, 7);
    EXPECT_EQ(ended.err, "");
}

TEST(Programs, SeeTheDevicesThatTheyAskFor) {
    Site site(softwareGpu());
    const auto init = [&](const char* visible) {
        return Program({JUICE_CONFORMANCE, kShim, "devices"}, site.socketPath(),
                       {{"CUDA_VISIBLE_DEVICES", visible}})
            .wait()
            .out.substr(0, 17);
    };
    EXPECT_EQ(init("0"), "devices.init: 0\nd");
    EXPECT_EQ(init("5"), "devices.init: 100");
    EXPECT_EQ(init("0,0"), "devices.init: 101");
}

TEST(Nvml, ListsTheDevices) {
    Site site(softwareGpu());
    const Ended ended = manners("nvml", site.socketPath());
    EXPECT_EQ(ended.out,
              "before init: Uninitialized\n"
              "init 0 count 0 1\n"
              "handle 0 name 0 Juice Software GPU\n"
              "short name: Insufficient Size\n"
              "uuid 0 by uuid 0 same 1\n"
              "pci 0 by pci 0 same 1\n"
              "memory 0 sane 1\n"
              "nvlink: Not Supported\n");
    EXPECT_EQ(site.workers(), 0);  // listing devices costs none
}

}  // namespace
}  // namespace juice::shim::test
