// Another process for the tests of what passes between processes. It takes one command a line and
// answers each with one line: the result code, and what else there is.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

#include "native/gen/cuda_api.h"

namespace {

template <typename Handle>
std::string text(const Handle& handle) {
    std::string digits;
    for (const char c : handle.reserved) {
        char two[3];
        std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned char>(c));
        digits += two;
    }
    return digits;
}

template <typename Handle>
Handle handleOf(const std::string& digits) {
    Handle handle{};
    for (size_t i = 0; i < sizeof(handle.reserved) && 2 * i + 1 < digits.size(); ++i) {
        handle.reserved[i] = static_cast<char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
    }
    return handle;
}

/// Runs until the word at its address is not 0.
constexpr char kSpin[] = R"(
.version 9.0
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 word)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [word];
$L_again:
    ld.volatile.u32 %r1, [%rd1];
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra $L_again;
    ret;
}
)";

class Peer {
  public:
    Peer() {
        CUcontext context = nullptr;
        cuInit(0);
        cuDevicePrimaryCtxRetain(&context, 0);
        cuCtxSetCurrent(context);
        CUmodule module = nullptr;
        cuModuleLoadData(&module, kSpin);
        cuModuleGetFunction(&spin_, module, "spin");
        void* gate = nullptr;
        cuMemHostAlloc(&gate, sizeof(*gate_), 0);
        gate_ = static_cast<volatile unsigned*>(gate);
    }

    std::string answer(std::istringstream& in) {
        std::string command;
        in >> command;
        if (command == "export") {
            size_t size = 0;
            in >> size;
            const int made = cuMemAlloc_v2(&memory_, size);
            CUipcMemHandle handle{};
            const int got = cuIpcGetMemHandle(&handle, memory_);
            return code(made != 0 ? made : got) + " " + text(handle);
        }
        if (command == "open") {
            std::string digits;
            in >> digits;
            return code(cuIpcOpenMemHandle_v2(&memory_, handleOf<CUipcMemHandle>(digits),
                                              CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        }
        if (command == "close") return code(cuIpcCloseMemHandle(memory_));
        if (command == "free") return code(cuMemFree_v2(memory_));
        if (command == "write") {
            size_t offset = 0;
            unsigned value = 0;
            in >> offset >> value;
            return code(cuMemcpyHtoD_v2(memory_ + offset, &value, sizeof(value)));
        }
        if (command == "read") {
            size_t offset = 0;
            unsigned value = 0;
            in >> offset;
            const int result = cuMemcpyDtoH_v2(&value, memory_ + offset, sizeof(value));
            return code(result) + " " + std::to_string(value);
        }
        if (command == "event") {
            cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
            CUipcEventHandle handle{};
            const int result = cuIpcGetEventHandle(&handle, event_);
            return code(result) + " " + text(handle);
        }
        if (command == "openEvent") {
            std::string digits;
            in >> digits;
            return code(cuIpcOpenEventHandle(&event_, handleOf<CUipcEventHandle>(digits)));
        }
        // Descriptors come with the process, numbered.
        if (command == "importPool") {
            intptr_t file = 0;
            std::string digits;
            in >> file >> digits;
            CUmemoryPool pool = nullptr;
            auto data = handleOf<CUmemPoolPtrExportData>(digits);
            const int made = cuMemPoolImportFromShareableHandle(
                &pool, reinterpret_cast<void*>(file), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
            const int got = cuMemPoolImportPointer(&memory_, pool, &data);
            return code(made != 0 ? made : got);
        }
        if (command == "importPhysical") {
            intptr_t file = 0;
            size_t size = 0;
            in >> file >> size;
            CUmemGenericAllocationHandle handle = 0;
            const int made = cuMemImportFromShareableHandle(
                &handle, reinterpret_cast<void*>(file), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
            const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
            cuMemAddressReserve(&memory_, size, 0, 0, 0);
            const int mapped = cuMemMap(memory_, size, 0, handle, 0);
            const int allowed = cuMemSetAccess(memory_, size, &access, 1);
            return code(made != 0 ? made : mapped != 0 ? mapped : allowed);
        }
        if (command == "busy") {
            *gate_ = 0;
            auto address = reinterpret_cast<CUdeviceptr>(gate_);
            void* parameters[] = {&address};
            return code(cuLaunchKernel(spin_, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        }
        if (command == "idle") {
            *gate_ = 1;
            return code(cuCtxSynchronize());
        }
        if (command == "record") return code(cuEventRecord(event_, nullptr));
        if (command == "query") return code(cuEventQuery(event_));
        return "unknown";
    }

  private:
    static std::string code(int result) { return std::to_string(result); }

    CUdeviceptr memory_ = 0;
    CUevent event_ = nullptr;
    CUfunction spin_ = nullptr;
    volatile unsigned* gate_ = nullptr;
};

}  // namespace

int main() {
    Peer peer;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        std::cout << peer.answer(in) << std::endl;
    }
}
