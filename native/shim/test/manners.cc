// A program that looks at its guest: what the shim does to the process that it lives in.
//   manners LIBCUDA SUBJECT
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "native/gen/driver_table.h"

namespace {

juice::DriverTable cu;

CUresult attach() {
    CUcontext context = nullptr;
    if (const CUresult result = cu.cuInit(0)) return result;
    if (const CUresult result = cu.cuDevicePrimaryCtxRetain(&context, 0)) return result;
    return cu.cuCtxSetCurrent(context);
}

/// Runs `body` in a forked child; its exit code.
template <typename Body>
int inChild(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int useMemory() {
    CUdeviceptr memory = 0;
    int value = 42, back = 0;
    if (const CUresult result = cu.cuMemAlloc_v2(&memory, 4)) return result;
    cu.cuMemcpyHtoD_v2(memory, &value, 4);
    cu.cuMemcpyDtoH_v2(&back, memory, 4);
    return back == 42 ? 0 : 998;
}

void forks() {
    std::printf("child of a fresh parent: %d\n", inChild([] {
                    const int result = attach();
                    return result != 0 ? result : useMemory();
                }));
    std::printf("parent: %d\n", attach());
    std::printf("child init: %d\n", inChild([] { return cu.cuInit(0); }));
    std::printf("child alloc: %d\n", inChild([] {
                    CUdeviceptr memory = 0;
                    return cu.cuMemAlloc_v2(&memory, 4);
                }));
    std::printf("child count: %d\n", inChild([] {
                    int count = 0;
                    return cu.cuDeviceGetCount(&count);
                }));
    std::printf("child sockets: %d\n", inChild([] {
                    int sockets = 0;
                    char target[64];
                    for (int fd = 0; fd < 4096; ++fd) {
                        const std::string path = "/proc/self/fd/" + std::to_string(fd);
                        const ssize_t n = readlink(path.c_str(), target, sizeof target - 1);
                        if (n > 0 && std::strncmp(target, "socket:", 7) == 0) ++sockets;
                    }
                    return sockets;
                }));
    std::printf("parent afterwards: %d\n", useMemory());
}

std::set<int> descriptors() {
    std::set<int> open;
    for (int fd = 0; fd < 4096; ++fd)
        if (fcntl(fd, F_GETFD) >= 0) open.insert(fd);
    return open;
}

/// Threads of the library let the program's signals be the program's; descriptors end at exec.
void resources() {
    const std::set<int> before = descriptors();
    attach();
    useMemory();
    int threads = 0, open = 0, added = 0, inherited = 0;
    for (const int fd : descriptors()) {
        if (before.contains(fd)) continue;
        ++added;
        if ((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) ++inherited;
    }
    DIR* tasks = opendir("/proc/self/task");
    while (const dirent* entry = readdir(tasks)) {
        if (entry->d_name[0] == '.' || std::atoi(entry->d_name) == getpid()) continue;
        ++threads;
        std::ifstream status("/proc/self/task/" + std::string(entry->d_name) + "/status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("SigBlk:")) {
                // All but those that cannot be blocked, and those that the C library keeps.
                const auto blocked = std::strtoull(line.c_str() + 7, nullptr, 16);
                constexpr auto kAll = ~0ull & ~(1ull << 8 | 1ull << 18 | 3ull << 31);
                if ((blocked & kAll) != kAll) ++open;
            }
    }
    closedir(tasks);
    std::printf("threads %s, taking signals %d, descriptors %s, inherited by exec %d\n",
                threads > 0 ? "some" : "none", open, added > 0 ? "some" : "none", inherited);
}

void refused() {
    std::printf("attach: %d\n", attach());
    std::printf("again: %d\n", attach());
    CUdeviceptr memory = 0;
    std::printf("alloc: %d\n", cu.cuMemAlloc_v2(&memory, 4));
}

/// Works until something fails, as a program whose host vanishes.
void untilItFails() {
    attach();
    std::printf("working\n");
    std::fflush(stdout);
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < 1'000'000 && result == CUDA_SUCCESS; ++i) result = cu.cuCtxSynchronize();
    CUdeviceptr memory = 0;
    CUresult other = CUDA_SUCCESS;
    std::thread([&] {
        CUcontext context = nullptr;
        cu.cuDevicePrimaryCtxRetain(&context, 0);
        cu.cuCtxSetCurrent(context);
        other = cu.cuMemAlloc_v2(&memory, 4);
    }).join();
    std::printf("failed with %d, another thread with %d\n", result, other);
}

/// Leaves with work posted and not waited for.
void leave() {
    attach();
    CUdeviceptr memory = 0;
    cu.cuMemAlloc_v2(&memory, 1 << 20);
    for (int i = 0; i < 100; ++i) cu.cuMemsetD8_v2(memory, 1, 1 << 20);
    std::printf("leaving\n");
    std::exit(7);
}

void nvml() {
    void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) {
        std::printf("%s\n", dlerror());
        return;
    }
    const auto find = [&]<typename F>(const char* name, F*& out) {
        out = reinterpret_cast<F*>(dlsym(library, name));
    };
    int (*init)() = nullptr;
    int (*count)(unsigned*) = nullptr;
    int (*byIndex)(unsigned, void**) = nullptr;
    int (*name)(void*, char*, unsigned) = nullptr;
    int (*uuid)(void*, char*, unsigned) = nullptr;
    int (*byUuid)(const char*, void**) = nullptr;
    int (*pci)(void*, void*) = nullptr;
    int (*byPci)(const char*, void**) = nullptr;
    int (*memory)(void*, unsigned long long*) = nullptr;
    int (*link)(void*, unsigned, int*) = nullptr;
    const char* (*errorText)(int) = nullptr;
    find("nvmlInit_v2", init);
    find("nvmlDeviceGetCount_v2", count);
    find("nvmlDeviceGetHandleByIndex_v2", byIndex);
    find("nvmlDeviceGetName", name);
    find("nvmlDeviceGetUUID", uuid);
    find("nvmlDeviceGetHandleByUUID", byUuid);
    find("nvmlDeviceGetPciInfo_v3", pci);
    find("nvmlDeviceGetHandleByPciBusId_v2", byPci);
    find("nvmlDeviceGetMemoryInfo", memory);
    find("nvmlDeviceGetNvLinkState", link);
    find("nvmlErrorString", errorText);
    unsigned devices = 0;
    void *device = nullptr, *again = nullptr;
    char text[96] = {}, busInfo[68] = {};
    unsigned long long bytes[3] = {};
    int up = 0;
    std::printf("before init: %s\n", errorText(count(&devices)));
    const int ready = init(), counted = count(&devices);
    std::printf("init %d count %d %u\n", ready, counted, devices);
    const int found = byIndex(0, &device), named = name(device, text, sizeof text);
    std::printf("handle %d name %d %s\n", found, named, text);
    std::printf("short name: %s\n", errorText(name(device, text, 3)));
    const int gotUuid = uuid(device, text, sizeof text), foundUuid = byUuid(text, &again);
    std::printf("uuid %d by uuid %d same %d\n", gotUuid, foundUuid, device == again);
    again = nullptr;
    const int gotPci = pci(device, busInfo), foundPci = byPci(busInfo + 36, &again);
    std::printf("pci %d by pci %d same %d\n", gotPci, foundPci, device == again);
    const int gotMemory = memory(device, bytes);
    std::printf("memory %d sane %d\n", gotMemory, bytes[0] > 0 && bytes[2] == 0);
    std::printf("nvlink: %s\n", errorText(link(device, 0, &up)));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::string error;
    if (!cu.load(argv[1], error)) {
        std::printf("%s\n", error.c_str());
        return 1;
    }
    const std::string subject = argv[2];
    if (subject == "fork") forks();
    if (subject == "resources") resources();
    if (subject == "refused") refused();
    if (subject == "until-it-fails") untilItFails();
    if (subject == "leave") leave();
    if (subject == "nvml") nvml();
}
