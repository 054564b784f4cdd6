#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "native/gen/cuda_api.h"

namespace {

struct Export {
    std::string name, kind;
    size_t size = 0;
};

std::vector<Export> recorded(const char* file) {
    std::ifstream in(std::string(JUICE_TEST_DATA) + "/" + file);
    std::vector<Export> all;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        Export one;
        words >> one.name >> one.kind >> one.size;
        all.push_back(one);
    }
    return all;
}

/// The names that a library exports, as nm lists them.
std::vector<std::string> exportedBy(const std::string& library) {
    FILE* pipe = popen(("nm -D --defined-only --format=posix " + library).c_str(), "r");
    std::vector<std::string> names;
    char line[512];
    while (fgets(line, sizeof line, pipe) != nullptr) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        names.push_back(name);
    }
    pclose(pipe);
    return names;
}

void* probe() {
    void* library = dlopen(JUICE_EXPORTS_PROBE, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
}

template <typename F>
F* entry(const char* name) {
    return reinterpret_cast<F*>(dlsym(probe(), name));
}

TEST(Exports, AreExactlyTheNamesOfTheRealDriver) {
    std::vector<std::string> wanted;
    for (const Export& one : recorded("exports.txt")) wanted.push_back(one.name);
    EXPECT_EQ(wanted.size(), 707u);
    std::vector<std::string> present = exportedBy(JUICE_EXPORTS_PROBE);
    std::sort(wanted.begin(), wanted.end());
    std::sort(present.begin(), present.end());
    EXPECT_EQ(present, wanted);
}

TEST(Exports, DataSymbolsHaveTheRecordedSizeAndAreZero) {
    for (const Export& one : recorded("exports.txt")) {
        if (one.kind != "data") continue;
        const auto* bytes = static_cast<const char*>(dlsym(probe(), one.name.c_str()));
        ASSERT_NE(bytes, nullptr) << one.name;
        EXPECT_EQ(std::string(bytes, one.size), std::string(one.size, '\0')) << one.name;
    }
}

TEST(Exports, AnUnimplementedEntryRefusesByName) {
    EXPECT_EQ(entry<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(nullptr, 1),
              CUDA_ERROR_NOT_SUPPORTED);
    const char* name = nullptr;
    entry<decltype(cuGetErrorName)>("cuGetErrorName")(CUDA_SUCCESS, &name);
    EXPECT_STREQ(name, "cuMemAlloc_v2");
}

TEST(Exports, AStrongDefinitionReplacesTheWeakOne) {
    int version = 0;
    EXPECT_EQ(entry<decltype(cuDriverGetVersion)>("cuDriverGetVersion")(&version), CUDA_SUCCESS);
    EXPECT_EQ(version, 4242);
}

TEST(Exports, SymbolAddressGivesTheLibrarysOwnFunctions) {
    const char* address = nullptr;
    entry<decltype(cuGetErrorName)>("cuGetErrorName")(CUDA_ERROR_INVALID_VALUE, &address);
    EXPECT_EQ(static_cast<const void*>(address), dlsym(probe(), "cuDriverGetVersion"));
}

TEST(NvmlExports, AreExactlyTheNamesOfTheRealLibraryAndRefuse) {
    std::vector<std::string> wanted;
    for (const Export& one : recorded("nvml-exports.txt")) wanted.push_back(one.name);
    EXPECT_EQ(wanted.size(), 404u);
    std::vector<std::string> present = exportedBy(JUICE_NVML_EXPORTS_PROBE);
    std::sort(wanted.begin(), wanted.end());
    std::sort(present.begin(), present.end());
    EXPECT_EQ(present, wanted);
    void* library = dlopen(JUICE_NVML_EXPORTS_PROBE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    EXPECT_EQ(reinterpret_cast<int (*)(void*)>(dlsym(library, "nvmlDeviceGetName"))(nullptr), 3);
}

}  // namespace
