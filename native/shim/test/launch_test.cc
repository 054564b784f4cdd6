// Launches: parameters, checks, handles; and events, whose completion is remembered.
#include "native/link/delta.h"
#include "native/shim/test/fixture.h"

namespace juice::shim::test {
namespace {

class Launches : public Attached {
  protected:
    void SetUp() override {
        Attached::SetUp();
        function = store();
    }
    CUresult launch(unsigned gx, unsigned bx, unsigned shared = 0, CUstream stream = nullptr) {
        return cuLaunchKernel(function, gx, 1, 1, bx, 1, 1, shared, stream, parameters, nullptr);
    }
    CUfunction function = nullptr;
    uint64_t pointer = 0x1122334455667788;
    uint8_t byte = 0x99;
    uint32_t number = 0xaabbccdd;
    void* parameters[3] = {&pointer, &byte, &number};
};

TEST_F(Launches, ArePostedWithTheirParametersLaidOut) {
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuLaunchKernel(function, 2, 3, 4, 8, 4, 2, 100, stream, parameters, nullptr),
              CUDA_SUCCESS);
    const Sent call = link->of(Op::cuLaunchKernel).at(0);
    EXPECT_FALSE(call.waited);
    const auto header = call.as<custom::Launch>();
    EXPECT_EQ(header.function, find<Function>(function)->id);
    EXPECT_EQ(header.stream, 16 + find<Stream>(stream)->id);
    EXPECT_EQ(header.grid[2], 4u);
    EXPECT_EQ(header.block[1], 4u);
    EXPECT_EQ(header.sharedBytes, 100u);
    ASSERT_EQ(header.paramBytes, 16u);
    ASSERT_EQ(call.payload.size(), sizeof header + 16);
    const std::vector<uint8_t> laidOut(call.payload.begin() + sizeof header, call.payload.end());
    const std::vector<uint8_t> wanted = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
                                         0x99, 0,    0,    0,    0xdd, 0xcc, 0xbb, 0xaa};
    EXPECT_EQ(laidOut, wanted);
}

TEST_F(Launches, AskForTheFunctionsAttributesOnce) {
    ASSERT_EQ(launch(1, 1), CUDA_SUCCESS);
    ASSERT_EQ(launch(1, 1), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::juiceFunctionInfo).size(), 1u);
}

TEST_F(Launches, OfImpossibleShapeAreInvalidAtOnce) {
    EXPECT_EQ(launch(0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(1, 257), CUDA_ERROR_INVALID_VALUE);  // the function allows 256
    EXPECT_EQ(launch(1, 256), CUDA_SUCCESS);
    EXPECT_EQ(launch(1, 1, 49153), CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000),
              CUDA_SUCCESS);
    EXPECT_EQ(launch(1, 1, 60000), CUDA_SUCCESS);
    EXPECT_EQ(launch(1, 1, 60001), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchKernel(function, 1, 65536, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(link->of(Op::cuLaunchKernel).size(), 2u);
}

TEST_F(Launches, TakeAReadyParameterBuffer) {
    uint8_t buffer[16] = {1, 2, 3};
    size_t size = 16;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    const auto launch = [&](void** also) {
        return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, also, extra);
    };
    ASSERT_EQ(launch(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuLaunchKernel).at(0).payload[sizeof(custom::Launch) + 2], 3);
    size = 17;
    EXPECT_EQ(launch(nullptr), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    size = 16;
    EXPECT_EQ(launch(parameters), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launches, CarryTheirAttributes) {
    CUevent event = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 2), CUDA_SUCCESS);
    CUlaunchAttribute attributes[3]{};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[1].value.clusterDim = {2, 1, 1};
    attributes[2].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    attributes[2].value.launchCompletionEvent.event = event;
    CUlaunchConfig config{4, 1, 1, 32, 1, 1, 0, nullptr, attributes, 3};
    ASSERT_EQ(cuLaunchKernelEx(&config, function, parameters, nullptr), CUDA_SUCCESS);
    const Sent call = link->of(Op::cuLaunchKernelEx).at(0);
    const auto header = call.as<custom::Launch>();
    ASSERT_EQ(header.attributes, 2u);
    ASSERT_EQ(call.payload.size(), sizeof header + 16 + 2 * sizeof(custom::LaunchAttribute));
    custom::LaunchAttribute last{};
    std::memcpy(&last, call.payload.data() + call.payload.size() - sizeof last, sizeof last);
    uint64_t id = 0;
    std::memcpy(&id, last.value, sizeof id);
    EXPECT_EQ(id, find<Event>(event)->id);
    config.gridDimX = 3;
    EXPECT_EQ(cuLaunchKernelEx(&config, function, parameters, nullptr),
              CUDA_ERROR_INVALID_CLUSTER_SIZE);
    attributes[1].id = 99;
    EXPECT_EQ(cuLaunchKernelEx(&config, function, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launches, TakeAKernelForAFunction) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr, again = nullptr;
    ASSERT_EQ(
        cuLibraryLoadData(&library, ".version 7.0\n", nullptr, nullptr, 0, nullptr, nullptr, 0),
        CUDA_SUCCESS);
    ASSERT_EQ(cuLibraryGetKernel(&kernel, library, "store"), CUDA_SUCCESS);
    ASSERT_EQ(cuLibraryGetKernel(&again, library, "store"), CUDA_SUCCESS);
    EXPECT_EQ(kernel, again);
    EXPECT_EQ(cuLibraryGetKernel(&again, library, "other"), CUDA_ERROR_NOT_FOUND);
    ASSERT_EQ(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                             parameters, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuLaunchKernel).at(0).as<custom::Launch>().function,
              find<Kernel>(kernel)->id);
    CUfunction through = nullptr, viaModule = nullptr;
    CUmodule module = nullptr;
    ASSERT_EQ(cuKernelGetFunction(&through, kernel), CUDA_SUCCESS);
    ASSERT_EQ(cuLibraryGetModule(&module, library), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&viaModule, module, "store"), CUDA_SUCCESS);
    EXPECT_EQ(through, viaModule);
    ASSERT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
    EXPECT_EQ(handles::find(kernel), nullptr);
    EXPECT_EQ(handles::find(through), nullptr);
    EXPECT_EQ(handles::find(module), nullptr);
}

TEST_F(Launches, AreForgottenWithTheirContext) {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    const CUdeviceptr memory = alloc(64);
    ASSERT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    EXPECT_EQ(handles::find(stream), nullptr);
    EXPECT_EQ(handles::find(event), nullptr);
    EXPECT_EQ(handles::find(function), nullptr);
    unsigned type = 0;
    EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory),
              CUDA_ERROR_INVALID_VALUE);
}

using Events = Attached;

TEST_F(Events, ThatAreKnownToBeDoneAreNotAskedAbout) {
    CUevent event = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);  // never recorded
    EXPECT_EQ(link->of(Op::cuEventQuery).size(), 0u);
    ASSERT_EQ(cuEventRecord(event, nullptr), CUDA_SUCCESS);
    int asked = 0;
    link->answer = [&](const Sent& call) {
        Reply reply = answer(call);
        if (call.op == Op::cuEventQuery && ++asked == 1) reply.head.result = CUDA_ERROR_NOT_READY;
        return reply;
    };
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
    EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
    EXPECT_EQ(asked, 2);
    ASSERT_EQ(cuEventRecord(event, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
    EXPECT_EQ(asked, 3);
}

TEST_F(Events, AreDoneWithTheirStreamOrTheirContext) {
    CUevent a = nullptr, b = nullptr;
    CUstream stream = nullptr, other = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&other, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&a, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&b, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(a, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(b, other), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(a), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuEventQuery).size(), 0u);
    EXPECT_EQ(cuEventQuery(b), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuEventQuery).size(), 1u);
    ASSERT_EQ(cuEventRecord(b, other), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(b), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuEventQuery).size(), 1u);
    // A new stream at the old one's place proves nothing.
    ASSERT_EQ(cuEventRecord(a, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(a), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuEventQuery).size(), 2u);
}

TEST_F(Launches, LookAtHostMemoryOnlyWhereItIsNamed) {
    const CUfunction function = store();
    auto* const named = static_cast<uint64_t*>(pinned(4096));
    auto* const other = static_cast<uint64_t*>(pinned(4096));
    uint64_t out = 0x1000;
    uint8_t small = 0;
    uint32_t value = 7;
    void* parameters[] = {&out, &small, &value};
    const auto launch = [&] {
        return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    };
    named[3] = 33;
    other[4] = 44;
    ASSERT_EQ(launch(), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::juiceMirrorCohere).size() + link->of(Op::juiceWatch).size(), 0u);
    EXPECT_EQ(link->patches.size(), 0u);
    // An address inside it is enough.
    out = reinterpret_cast<uint64_t>(named) + 100;
    ASSERT_EQ(launch(), CUDA_SUCCESS);
    ASSERT_EQ(link->of(Op::juiceMirrorCohere).size(), 1u);
    EXPECT_EQ(link->of(Op::juiceMirrorCohere).at(0).as<custom::MirrorCohere>().address,
              reinterpret_cast<uint64_t>(named));
    EXPECT_EQ(link->of(Op::juiceWatch).size(), 1u);
    ASSERT_EQ(link->patches.size(), 1u);
    Reader in(link->patches[0]);
    delta::Piece piece;
    ASSERT_TRUE(delta::next(in, piece));
    EXPECT_EQ(piece.address, reinterpret_cast<uint64_t>(&named[3]));
    EXPECT_EQ(piece.words, 1u);
    EXPECT_EQ(piece.value(0), 33u);
    EXPECT_FALSE(delta::next(in, piece));
    // From then on every launch may use it; what has not changed is not sent again.
    out = 0x1000;
    ASSERT_EQ(launch(), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::juiceWatch).size(), 2u);
    EXPECT_EQ(link->patches.size(), 1u);
    ASSERT_EQ(cuMemFreeHost(named), CUDA_SUCCESS);
    ASSERT_EQ(launch(), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::juiceWatch).size(), 2u);
    ASSERT_EQ(cuMemFreeHost(other), CUDA_SUCCESS);
}

TEST_F(Launches, FindThePatchesOfTheWorkerInTheProgramsMemory) {
    auto* const memory = static_cast<uint64_t*>(pinned(4096));
    CUdeviceptr mapped = 0;
    ASSERT_EQ(cuMemHostGetDevicePointer_v2(&mapped, memory, 0), CUDA_SUCCESS);
    memory[1] = 0x1111;
    Writer patch;
    patch.put(reinterpret_cast<uint64_t>(memory)).put(uint32_t{2}).put(uint32_t{0});
    const uint8_t masks[] = {0xff, 0x80};
    const uint64_t values[] = {5, 0x0900000000000000};
    patch.raw(masks, sizeof masks);
    patch.raw(values, sizeof values);
    EXPECT_EQ(link->patchHandler(0, patch.view()), "");
    EXPECT_EQ(memory[0], 5u);
    EXPECT_EQ(memory[1], 0x0900000000001111u);
    // Memory that is gone is left alone; what makes no sense ends the link.
    ASSERT_EQ(cuMemFreeHost(memory), CUDA_SUCCESS);
    EXPECT_EQ(link->patchHandler(0, patch.view()), "");
    EXPECT_NE(link->patchHandler(0, patch.view().first(7)), "");
    EXPECT_NE(link->patchHandler(1, {}), "");
}

}  // namespace
}  // namespace juice::shim::test
