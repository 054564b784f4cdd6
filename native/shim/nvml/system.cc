// NVML itself: start, end, versions, names of errors.
#include <array>

#include "native/shim/nvml/state.h"

using namespace juice::nvml;  // NOLINT: every definition below is an entry point

namespace {

struct ErrorText {
    int code;
    const char* text;
};
constexpr ErrorText kErrorTexts[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {17, "GPU access blocked by the operating system"},
    {18, "Driver/library version mismatch"},
    {19, "In use by another client"},
    {20, "Insufficient Memory"},
    {21, "No data"},
    {22, "vGPU ECC not supported"},
    {23, "Insufficient Resources"},
    {24, "Invalid Frequency"},
    {25, "Argument version mismatch"},
    {26, "Requested functionality has been deprecated"},
    {27, "System is not in ready state"},
    {28, "No supported GPUs were found"},
    {29, "Resource not in correct state to perform requested operation"},
    {30, "Reset type is not supported for given device"},
};

}  // namespace

JUICE_NVML_API int nvmlInit() {
    return initialise();
}
JUICE_NVML_API int nvmlInit_v2() {
    return initialise();
}
JUICE_NVML_API int nvmlInitWithFlags(unsigned flags) {
    return initialise();
}
JUICE_NVML_API int nvmlShutdown() {
    return shutDown();
}

JUICE_NVML_API const char* nvmlErrorString(int result) {
    for (const ErrorText& one : kErrorTexts)
        if (one.code == result) return one.text;
    return "Unknown Error";
}

JUICE_NVML_API int nvmlSystemGetDriverVersion(char* version, unsigned length) {
    if (const Result result = initialised()) return result;
    return copyText(version, length, snapshot().driverText);
}

JUICE_NVML_API int nvmlSystemGetNVMLVersion(char* version, unsigned length) {
    if (const Result result = initialised()) return result;
    const std::string major = std::to_string(snapshot().driverVersion / 1000);
    return copyText(version, length, major + "." + snapshot().driverText);
}

JUICE_NVML_API int nvmlSystemGetCudaDriverVersion(int* version) {
    if (const Result result = initialised()) return result;
    if (version == nullptr) return kInvalidArgument;
    *version = snapshot().driverVersion;
    return kSuccess;
}
JUICE_NVML_API int nvmlSystemGetCudaDriverVersion_v2(int* version) {
    return nvmlSystemGetCudaDriverVersion(version);
}
