// The corner cases of test/data/driver/driver-answers.json, as a real driver answered them.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

/// The recording from the named entry on, behind its colon. The file is regular enough to need no
/// JSON parser: every name stands once within its section.
std::string recorded(const std::string& section, const std::string& name) {
    std::ifstream file(JUICE_DRIVER_ANSWERS);
    EXPECT_TRUE(file) << JUICE_DRIVER_ANSWERS;
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    const size_t start = all.find('"' + section + '"');
    const size_t entry = all.find('"' + name + "\":", start);
    EXPECT_NE(entry, std::string::npos) << section << " " << name;
    return entry == std::string::npos ? "" : all.substr(all.find(':', entry) + 1);
}

/// The next token: a number, a word, a text without its quotes, or a punctuation mark.
std::string next(std::string& text) {
    const size_t start = std::min(text.find_first_not_of(" \n"), text.size());
    size_t end = start + 1;
    if (start < text.size() && text[start] == '"') {
        end = text.find('"', end) + 1;
    } else if (start < text.size() &&
               std::string("[]{},:").find(text[start]) == std::string::npos) {
        end = text.find_first_of(" \n[]{},:", start);
    }
    std::string token = text.substr(start, end - start);
    text.erase(0, end);
    if (!token.empty() && token[0] == '"') token = token.substr(1, token.size() - 2);
    return token;
}

/// A number, or a list of numbers and booleans.
std::vector<int> codes(const std::string& name) {
    std::string text = recorded("return_codes", name);
    std::vector<int> numbers;
    std::string token = next(text);
    const bool list = token == "[";
    if (list) token = next(text);
    while (true) {
        if (token != ",") numbers.push_back(token == "true" ? 1 : std::atoi(token.c_str()));
        if (!list) return numbers;
        token = next(text);
        if (token == "]") return numbers;
    }
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
    std::string text = recorded("pointer_attributes", kind);
    while (next(text) != "{") {
    }
    std::map<int, Recorded> found;
    for (std::string token = next(text); token != "}"; token = next(text)) {
        if (token == ",") continue;
        const int attribute = std::stoi(token);
        next(text);  // :
        next(text);  // [
        Recorded one;
        one.result = std::stoi(next(text));
        next(text);  // ,
        const std::string value = next(text);
        if (value != "null") one.value = std::stoull(value, nullptr, 16);
        next(text);  // ]
        found[attribute] = one;
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
    /// What a real device can and the software GPU says that it cannot: RDMA, decompression.
    static bool isCapability(int attribute) { return attribute == 15 || attribute == 21; }

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
    EXPECT_EQ(echoed, 0U);
    EXPECT_EQ(ordinal, CU_DEVICE_INVALID);
    EXPECT_EQ(size, 77U) << "left as it was";
}

}  // namespace
}  // namespace juice::softgpu
