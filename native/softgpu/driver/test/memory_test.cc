#include <cstring>
#include <numeric>

#include "native/softgpu/driver/test/driver_fixture.h"

namespace juice::softgpu {
namespace {

using Memory = DriverTest;

TEST_F(Memory, IsAllocatedWithinTheDevicesSize) {
    SOFTWARE_GPU_ONLY();
    size_t free = 0, total = 0;
    EXPECT_OK(cuMemGetInfo_v2(&free, &total));
    EXPECT_EQ(free, total);
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(cuMemAlloc_v2(&pointer, total));
    CUdeviceptr more = 0;
    EXPECT_EQ(cuMemAlloc_v2(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(cuMemFree_v2(pointer));
    EXPECT_OK(cuMemAlloc_v2(&more, 1));
}

TEST_F(Memory, TellsTheRangeOfAnyAddressInIt) {
    const CUdeviceptr pointer = allocate(1000);
    CUdeviceptr base = 0;
    size_t size = 0;
    EXPECT_OK(cuMemGetAddressRange_v2(&base, &size, pointer + 999));
    EXPECT_EQ(base, pointer);
    EXPECT_EQ(size, 1000U);
    EXPECT_EQ(cuMemGetAddressRange_v2(&base, &size, pointer + 1000), CUDA_ERROR_NOT_FOUND);
}

TEST_F(Memory, IsPitchedInRowsOf512Bytes) {
    CUdeviceptr pointer = 0;
    size_t pitch = 0;
    EXPECT_OK(cuMemAllocPitch_v2(&pointer, &pitch, 513, 3, 4));
    EXPECT_EQ(pitch, 1024U);
    EXPECT_EQ(cuMemAllocPitch_v2(&pointer, &pitch, 513, 3, 5), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, OfTheHostHasItsAddressAsDevicePointer) {
    void* pointer = nullptr;
    ASSERT_OK(cuMemHostAlloc(&pointer, 64, CU_MEMHOSTALLOC_PORTABLE));
    CUdeviceptr devicePointer = 0;
    EXPECT_OK(cuMemHostGetDevicePointer_v2(&devicePointer, pointer, 0));
    EXPECT_EQ(devicePointer, reinterpret_cast<CUdeviceptr>(pointer));
    uint32_t value = 11;
    EXPECT_OK(launch("store", {&devicePointer, &value}));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(*static_cast<uint32_t*>(pointer), 11U);
    EXPECT_EQ(cuMemFree_v2(devicePointer), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemFreeHost(pointer));
}

TEST_F(Memory, OfTheProgramCanBeRegistered) {
    std::vector<uint32_t> own(1024);
    auto address = reinterpret_cast<CUdeviceptr>(own.data());
    EXPECT_OK(cuMemHostRegister_v2(own.data() + 10, 400, 0));
    EXPECT_EQ(cuMemHostRegister_v2(own.data(), 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CUdeviceptr target = address + 40;
    uint32_t value = 12;
    EXPECT_OK(launch("store", {&target, &value}));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(own[10], 12U);
    EXPECT_OK(cuMemHostUnregister(own.data() + 10));
    EXPECT_OK(cuMemHostRegister_v2(own.data(), 4096, 0));
    EXPECT_OK(cuMemHostUnregister(own.data()));
}

TEST_F(Memory, ManagedIsReadAndWrittenByBothSides) {
    CUdeviceptr pointer = 0;
    ASSERT_OK(cuMemAllocManaged(&pointer, 4096, CU_MEM_ATTACH_GLOBAL));
    auto* words = reinterpret_cast<uint32_t*>(pointer);
    words[0] = 40;
    uint32_t two = 2;
    EXPECT_OK(launch("add", {&pointer, &two}));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(words[0], 42U);
    EXPECT_OK(cuMemFree_v2(pointer));
    EXPECT_EQ(cuMemAllocManaged(&pointer, 4096, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, IsOnlyFreedWhenTheWorkThatUsesItIsDone) {
    volatile uint32_t* gate = pinnedWord();
    CUdeviceptr word = allocate(4);
    uint32_t one = 1;
    const CUstream on = stream(CU_STREAM_NON_BLOCKING);
    spin(gate, on);
    EXPECT_OK(launch("store", {&word, &one}, on));
    std::thread opener([&] {
        giveItTime();
        *gate = 1;
    });
    EXPECT_OK(cuMemFree_v2(word));
    EXPECT_EQ(*gate, 1U);
    opener.join();
    EXPECT_OK(cuCtxSynchronize());
}

using Copies = DriverTest;

TEST_F(Copies, GoEveryWay) {
    std::vector<uint32_t> from(256), to(256);
    std::iota(from.begin(), from.end(), 1);
    const CUdeviceptr first = allocate(1024), second = allocate(1024);
    EXPECT_OK(cuMemcpyHtoD_v2(first, from.data(), 1024));
    EXPECT_OK(cuMemcpyDtoD_v2(second, first, 1024));
    EXPECT_OK(cuMemcpyDtoH_v2(to.data(), second, 1024));
    EXPECT_EQ(from, to);
    std::fill(to.begin(), to.end(), 0);
    EXPECT_OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(to.data()), second, 1024));
    EXPECT_EQ(from, to);
    EXPECT_OK(cuMemcpyPeer(first, context, second, context, 1024));
    EXPECT_OK(cuMemcpyHtoD_v2(first, nullptr, 0));
}

TEST_F(Copies, CheckThatDeviceMemoryIsKnown) {
    uint32_t word = 0;
    const CUdeviceptr pointer = allocate(100);
    EXPECT_EQ(cuMemcpyHtoD_v2(0x1234, &word, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyDtoH_v2(&word, pointer + 98, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuCtxSynchronize()) << "an error at the call kills nothing";
}

TEST_F(Copies, TakePageableSourcesAtTheCall) {
    volatile uint32_t* gate = pinnedWord();
    const CUdeviceptr word = allocate(4);
    const CUstream on = stream();
    uint32_t source = 1;
    spin(gate, on);
    EXPECT_OK(cuMemcpyHtoDAsync_v2(word, &source, 4, on));
    source = 2;
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(word), 1U);
}

TEST_F(Copies, ReadPinnedSourcesInStreamOrder) {
    volatile uint32_t* gate = pinnedWord();
    volatile uint32_t* source = pinnedWord();
    const CUdeviceptr word = allocate(4);
    const CUstream on = stream();
    *source = 1;
    spin(gate, on);
    EXPECT_OK(cuMemcpyHtoDAsync_v2(word, const_cast<uint32_t*>(source), 4, on));
    *source = 2;
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(word), 2U);
}

TEST_F(Copies, MoveRectangles) {
    std::vector<uint8_t> from(10 * 8), to(20 * 8, 0xee);
    std::iota(from.begin(), from.end(), 0);
    CUdeviceptr pointer = 0;
    size_t pitch = 0;
    ASSERT_OK(cuMemAllocPitch_v2(&pointer, &pitch, 10, 8, 4));
    CUDA_MEMCPY2D up{};
    up.srcMemoryType = CU_MEMORYTYPE_HOST;
    up.srcHost = from.data();
    up.srcPitch = 10;
    up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    up.dstDevice = pointer;
    up.dstPitch = pitch;
    up.WidthInBytes = 10;
    up.Height = 8;
    EXPECT_OK(cuMemcpy2D_v2(&up));
    CUDA_MEMCPY2D down{};
    down.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    down.srcDevice = pointer;
    down.srcPitch = pitch;
    down.srcXInBytes = 2;
    down.srcY = 1;
    down.dstMemoryType = CU_MEMORYTYPE_HOST;
    down.dstHost = to.data();
    down.dstPitch = 20;
    down.dstXInBytes = 5;
    down.dstY = 3;
    down.WidthInBytes = 3;
    down.Height = 2;
    EXPECT_OK(cuMemcpy2DUnaligned_v2(&down));
    EXPECT_EQ(to[3 * 20 + 5], 12);
    EXPECT_EQ(to[4 * 20 + 7], 24);
    EXPECT_EQ(to[3 * 20 + 4], 0xee);
    EXPECT_EQ(to[3 * 20 + 8], 0xee);
    down.WidthInBytes = 30;
    EXPECT_EQ(cuMemcpy2D_v2(&down), CUDA_ERROR_INVALID_VALUE) << "wider than the pitch";
}

TEST_F(Copies, MoveBoxes) {
    const CUdeviceptr pointer = allocate(4 * 4 * 4);
    std::vector<uint8_t> from(64), to(8, 0);
    std::iota(from.begin(), from.end(), 0);
    EXPECT_OK(cuMemcpyHtoD_v2(pointer, from.data(), 64));
    CUDA_MEMCPY3D box{};
    box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = pointer;
    box.srcPitch = 4;
    box.srcHeight = 4;
    box.srcXInBytes = box.srcY = box.srcZ = 1;
    box.dstMemoryType = CU_MEMORYTYPE_HOST;
    box.dstHost = to.data();
    box.dstPitch = 2;
    box.dstHeight = 2;
    box.WidthInBytes = box.Height = box.Depth = 2;
    EXPECT_OK(cuMemcpy3D_v2(&box));
    EXPECT_EQ(to, (std::vector<uint8_t>{21, 22, 25, 26, 37, 38, 41, 42}));
    box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    if (isSoftwareGpu()) {
        EXPECT_EQ(cuMemcpy3D_v2(&box), CUDA_ERROR_NOT_SUPPORTED);
    }
}

TEST_F(Copies, FillWithElementsOfAnyWidth) {
    const CUdeviceptr pointer = allocate(64);
    std::vector<uint8_t> bytes(64);
    EXPECT_OK(cuMemsetD8_v2(pointer, 0xff, 64));
    EXPECT_OK(cuMemsetD16_v2(pointer + 2, 0x1234, 2));
    EXPECT_OK(cuMemsetD32_v2(pointer + 8, 0xa1b2c3d4, 1));
    EXPECT_OK(cuMemsetD2D8_v2(pointer + 16, 8, 0x55, 3, 2));
    EXPECT_OK(cuMemcpyDtoH_v2(bytes.data(), pointer, 64));
    const std::vector<uint8_t> expected = {0xff, 0xff, 0x34, 0x12, 0x34, 0x12, 0xff, 0xff, 0xd4,
                                           0xc3, 0xb2, 0xa1, 0xff, 0xff, 0xff, 0xff, 0x55, 0x55,
                                           0x55, 0xff, 0xff, 0xff, 0xff, 0xff, 0x55, 0x55, 0x55};
    EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.begin() + 27), expected);
    EXPECT_EQ(cuMemsetD32_v2(pointer + 2, 0, 1), CUDA_ERROR_INVALID_VALUE) << "misaligned";
    EXPECT_EQ(cuMemsetD8_v2(pointer, 0, 65), CUDA_ERROR_INVALID_VALUE) << "beyond the end";
}

TEST_F(Copies, GoInBatches) {
    const CUstream on = stream();
    const CUdeviceptr first = allocate(64), second = allocate(64);
    std::vector<uint32_t> from = {1, 2, 3, 4}, to(4, 0);
    CUdeviceptr targets[] = {first, second, second + 4};
    CUdeviceptr sources[] = {reinterpret_cast<CUdeviceptr>(from.data()), first + 4, first + 8};
    size_t sizes[] = {16, 4, 4};
    CUmemcpyAttributes attributes[2] = {};
    attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    size_t indices[] = {0, 1};
    ASSERT_OK(cuMemcpyBatchAsync_v2(targets, sources, sizes, 3, attributes, indices, 2, on));
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(second), 2U);
    EXPECT_EQ(read(second + 4), 3U);
    EXPECT_EQ(cuMemcpyBatchAsync_v2(targets, sources, sizes, 3, attributes, indices, 2, nullptr),
              CUDA_ERROR_INVALID_VALUE)
        << "the default stream takes no batches";
    indices[0] = 1;
    EXPECT_EQ(cuMemcpyBatchAsync_v2(targets, sources, sizes, 3, attributes, indices, 2, on),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copies, OfABatchTakePinnedSourcesAtTheCallWhenToldTo) {
    volatile uint32_t* gate = pinnedWord();
    volatile uint32_t* source = pinnedWord();
    const CUstream on = stream();
    CUdeviceptr targets[] = {allocate(4)};
    CUdeviceptr sources[] = {reinterpret_cast<CUdeviceptr>(source)};
    size_t sizes[] = {4}, indices[] = {0};
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    *source = 1;
    spin(gate, on);
    EXPECT_OK(cuMemcpyBatchAsync_v2(targets, sources, sizes, 1, &attributes, indices, 1, on));
    *source = 2;
    *gate = 1;
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(read(targets[0]), 1U);
}

TEST_F(Copies, OfBoxesGoInBatches) {
    const CUstream on = stream();
    const CUdeviceptr pointer = allocate(4 * 4 * 4);
    std::vector<uint8_t> from(64), to(8, 0);
    std::iota(from.begin(), from.end(), 0);
    EXPECT_OK(cuMemcpyHtoD_v2(pointer, from.data(), 64));
    CUDA_MEMCPY3D_BATCH_OP box{};
    box.src.type = box.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    box.src.op.ptr.ptr = pointer + 21;
    box.src.op.ptr.rowLength = 4;
    box.src.op.ptr.layerHeight = 4;
    box.dst.op.ptr.ptr = reinterpret_cast<CUdeviceptr>(to.data());
    box.extent = {2, 2, 2};
    box.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    EXPECT_OK(cuMemcpy3DBatchAsync_v2(1, &box, 0, on));
    EXPECT_OK(cuStreamSynchronize(on));
    EXPECT_EQ(to, (std::vector<uint8_t>{21, 22, 25, 26, 37, 38, 41, 42}));
}

}  // namespace
}  // namespace juice::softgpu
