// The corner cases of test/data/driver/driver-answers.json, as a real driver answered them.
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

/// The text behind a name of the recording. The file is regular enough to need no JSON parser: a
/// value is a number or a list of numbers and booleans.
std::string recorded() {
    std::ifstream file(JUICE_DRIVER_ANSWERS);
    EXPECT_TRUE(file) << JUICE_DRIVER_ANSWERS;
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<int> codes(const std::string& name) {
    const std::string all = recorded();
    const std::regex entry("\"" + name + "\":\\s*(\\[[^\\]]*\\]|[0-9]+)");
    std::smatch match;
    EXPECT_TRUE(std::regex_search(all, match, entry)) << name;
    const std::string list = std::regex_replace(
        std::regex_replace(match[1].str(), std::regex("true"), "1"), std::regex("false"), "0");
    std::vector<int> numbers;
    const std::regex number("-?[0-9]+");
    for (std::sregex_iterator at(list.begin(), list.end(), number), end; at != end; ++at) {
        numbers.push_back(std::stoi(at->str()));
    }
    return numbers;
}

using Codes = std::vector<int>;

class RealAnswers : public DriverTest {};

TEST_F(RealAnswers, AboutAllocations) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(Codes{cuMemAlloc_v2(&pointer, 0)}, codes("alloc0"));
    EXPECT_EQ(Codes{cuMemFree_v2(0)}, codes("free0"));
    EXPECT_EQ(Codes{cuMemFree_v2(0x123456)}, codes("free_bad"));
    EXPECT_EQ(Codes{cuMemAlloc_v2(&pointer, size_t{1} << 50)}, codes("alloc_huge"));
    pointer = allocate(64);
    const int first = cuMemFree_v2(pointer);
    EXPECT_EQ((Codes{first, cuMemFree_v2(pointer)}), codes("double_free"));
    uint32_t word = 0;
    EXPECT_EQ(Codes{cuMemcpyHtoD_v2(0x10000, &word, 4)}, codes("memcpy_bad_dev"));
    EXPECT_EQ(Codes{cuCtxSynchronize()}, codes("sync_after"));
}

TEST_F(RealAnswers, AboutHostMemory) {
    std::vector<uint8_t> own(8192);
    EXPECT_EQ(Codes{cuMemFreeHost(own.data())}, codes("hostfree_plain"));
    Codes registered;
    registered.push_back(cuMemHostRegister_v2(own.data(), 4096, 0));
    registered.push_back(cuMemHostRegister_v2(own.data(), 4096, 0));
    registered.push_back(cuMemHostUnregister(own.data()));
    registered.push_back(cuMemHostUnregister(own.data()));
    EXPECT_EQ(registered, codes("register_twice"));
    void* host = nullptr;
    ASSERT_OK(cuMemHostAlloc(&host, 4096, 0));
    unsigned flags = 0;
    const int result = cuMemHostGetFlags(&flags, host);
    EXPECT_EQ((Codes{result, static_cast<int>(flags)}), codes("hostalloc_flags0"));
    CUdeviceptr pointer = 0;
    const int asked = cuMemHostGetDevicePointer_v2(&pointer, host, 0);
    EXPECT_EQ((Codes{asked, pointer == reinterpret_cast<CUdeviceptr>(host)}),
              codes("host_dev_ptr_equal"));
}

TEST_F(RealAnswers, AboutStreamsEventsAndModules) {
    const CUevent start = event(), end = event();
    float milliseconds = 0;
    EXPECT_EQ(Codes{cuEventQuery(start)}, codes("event_query_unrecorded"));
    EXPECT_EQ(Codes{cuEventElapsedTime_v2(&milliseconds, start, end)}, codes("elapsed_unrecorded"));
    CUstream made = nullptr;
    EXPECT_EQ(Codes{cuStreamCreate(&made, 0)}, codes("stream_create"));
    EXPECT_EQ(Codes{cuStreamQuery(made)}, codes("stream_query_idle"));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    const int asked = cuStreamIsCapturing(made, &status);
    EXPECT_EQ((Codes{asked, status}), codes("isCapturing"));
    CUmodule loaded = nullptr;
    EXPECT_EQ(Codes{cuModuleLoadData(&loaded, "garbage")}, codes("module_garbage"));
}

/// attribute -> result and first bytes, as recorded for one kind of pointer.
struct Recorded {
    int result = 0;
    std::optional<uint64_t> value;
};

std::map<int, Recorded> pointerAttributes(const std::string& kind) {
    const std::string all = recorded();
    std::string section = all.substr(all.find("\"pointer_attributes\""));
    section = section.substr(section.find("\"" + kind + "\""));
    section = section.substr(0, section.find('}'));
    const std::regex entry("\"([0-9]+)\":\\s*\\[\\s*([0-9]+),\\s*(null|\"([0-9a-f]+)\")");
    std::map<int, Recorded> found;
    for (std::sregex_iterator at(section.begin(), section.end(), entry), end; at != end; ++at) {
        Recorded one;
        one.result = std::stoi((*at)[2]);
        if ((*at)[4].matched) one.value = std::stoull((*at)[4], nullptr, 16);
        found[std::stoi((*at)[1])] = one;
    }
    EXPECT_EQ(found.size(), 21U) << kind;
    return found;
}

class PointerAnswers : public DriverTest {
  protected:
    /// Attributes whose value is an address, a handle or a running number.
    static bool isIdentity(int attribute) {
        for (const int id : {1, 3, 4, 7, 11, 19, 20}) {
            if (attribute == id) return true;
        }
        return false;
    }
    /// What a real device can and the software GPU says that it cannot: IPC, RDMA, decompression.
    static bool isCapability(int attribute) {
        return attribute == 10 || attribute == 15 || attribute == 21;
    }

    void compare(const std::string& kind, CUdeviceptr pointer, CUdeviceptr base) {
        for (const auto& [attribute, expected] : pointerAttributes(kind)) {
            uint64_t value[2] = {};
            const int result = cuPointerGetAttribute(value, attribute, pointer);
            EXPECT_EQ(result, expected.result) << kind << " attribute " << attribute;
            if (!expected.value || isCapability(attribute) || isIdentity(attribute)) continue;
            EXPECT_EQ(value[0], *expected.value) << kind << " attribute " << attribute;
        }
        if (base == 0) return;
        const auto get = [&](int attribute) {
            uint64_t value = 0;
            EXPECT_OK(cuPointerGetAttribute(&value, attribute, pointer));
            return value;
        };
        EXPECT_EQ(get(CU_POINTER_ATTRIBUTE_CONTEXT), reinterpret_cast<uint64_t>(context));
        EXPECT_EQ(get(CU_POINTER_ATTRIBUTE_DEVICE_POINTER), pointer);
        EXPECT_EQ(get(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR), base);
        EXPECT_NE(get(CU_POINTER_ATTRIBUTE_BUFFER_ID), 0U);
        EXPECT_LE(get(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR), base);
    }
};

TEST_F(PointerAnswers, AreThoseOfDeviceMemory) {
    const CUdeviceptr pointer = allocate(4096);
    compare("device+16", pointer + 16, pointer);
}

TEST_F(PointerAnswers, AreThoseOfManagedMemory) {
    CUdeviceptr pointer = 0;
    ASSERT_OK(cuMemAllocManaged(&pointer, 4096, CU_MEM_ATTACH_GLOBAL));
    compare("managed", pointer, pointer);
}

TEST_F(PointerAnswers, AreThoseOfHostMemory) {
    void* host = nullptr;
    ASSERT_OK(cuMemHostAlloc(&host, 4096, 0));
    const auto pointer = reinterpret_cast<CUdeviceptr>(host);
    compare("hostalloc+8", pointer + 8, pointer);
}

TEST_F(PointerAnswers, AreErrorsForTheProgramsOwnMemoryAndNull) {
    int own = 0;
    compare("plain", reinterpret_cast<CUdeviceptr>(&own), 0);
    compare("null", 0, 0);
}

TEST_F(PointerAnswers, ComeTogetherWithoutErrorForTheProgramsOwnMemory) {
    int own = 0;
    const auto pointer = reinterpret_cast<CUdeviceptr>(&own);
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    int type = 9, ordinal = 9;
    CUdeviceptr echoed = 0;
    size_t size = 77;
    void* data[] = {&type, &echoed, &ordinal, &size};
    EXPECT_OK(cuPointerGetAttributes(4, attributes, data, pointer));
    EXPECT_EQ(type, 0);
    EXPECT_EQ(echoed, pointer);
    EXPECT_EQ(ordinal, CU_DEVICE_INVALID);
    EXPECT_EQ(size, 77U) << "left as it was";
}

}  // namespace
}  // namespace juice::softgpu
