// Copies: which way the bytes go.
#include "native/shim/test/fixture.h"

namespace juice::shim::test {
namespace {

class Copies : public Attached {
  protected:
    custom::CopyIn in(size_t index) {
        return link->of(Op::cuMemcpyHtoDAsync_v2).at(index).as<custom::CopyIn>();
    }
    custom::CopyOut out(size_t index) {
        return link->of(Op::cuMemcpyDtoHAsync_v2).at(index).as<custom::CopyOut>();
    }
    Reply answer(const Sent& call) override {
        if (call.op != Op::cuMemcpyDtoHAsync_v2) return Attached::answer(call);
        const auto copy = call.as<custom::CopyOut>();
        Reply reply;
        if (copy.host == static_cast<uint32_t>(custom::Host::inlined))
            reply.payload.assign(copy.size, 0x5a);
        else if (copy.host == static_cast<uint32_t>(custom::Host::transfer))
            std::memset(link->expected.at(copy.transfer).first, 0x5b, copy.size);
        return reply;
    }
    static bool is(uint32_t host, custom::Host wanted) {
        return host == static_cast<uint32_t>(wanted);
    }
};

TEST_F(Copies, OfALittleOrdinaryMemoryRideInTheCall) {
    const CUdeviceptr device = alloc(4096);
    const std::vector<uint8_t> data(100, 7);
    ASSERT_EQ(cuMemcpyHtoD_v2(device, data.data(), data.size()), CUDA_SUCCESS);
    const Sent call = link->of(Op::cuMemcpyHtoDAsync_v2).at(0);
    EXPECT_FALSE(call.waited);
    EXPECT_TRUE(is(in(0).host, custom::Host::inlined));
    ASSERT_EQ(call.payload.size(), sizeof(custom::CopyIn) + 100);
    EXPECT_EQ(call.payload.back(), 7);
    EXPECT_EQ(in(0).stream, 0u);
    ASSERT_EQ(cuMemcpyHtoD_v2_ptds(device, data.data(), data.size()), CUDA_SUCCESS);
    EXPECT_EQ(in(1).stream, 2u);
}

TEST_F(Copies, OfMuchOrdinaryMemoryGoAsATransfer) {
    const CUdeviceptr device = alloc(1 << 20);
    std::vector<uint8_t> data(200'000, 9);
    ASSERT_EQ(cuMemcpyHtoDAsync_v2(device, data.data(), data.size(), nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(is(in(0).host, custom::Host::transfer));
    EXPECT_EQ(link->transfers.at(in(0).where), data);
    ASSERT_EQ(cuMemcpyDtoH_v2(data.data(), device, data.size()), CUDA_SUCCESS);
    EXPECT_TRUE(is(out(0).host, custom::Host::transfer));
    EXPECT_EQ(data[199'999], 0x5b);
}

TEST_F(Copies, ToOrdinaryMemoryWaitEvenWhenAsynchronous) {
    const CUdeviceptr device = alloc(4096);
    uint8_t data[64] = {};
    ASSERT_EQ(cuMemcpyDtoHAsync_v2(data, device, sizeof data, nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(link->of(Op::cuMemcpyDtoHAsync_v2).at(0).waited);
    EXPECT_EQ(data[63], 0x5a);
}

TEST_F(Copies, ToPinnedMemoryArePostedAndDeliveredLater) {
    const CUdeviceptr device = alloc(4096);
    void* const host = pinned(4096);
    ASSERT_EQ(cuMemcpyDtoHAsync_v2(host, device, 1000, nullptr), CUDA_SUCCESS);
    const Sent call = link->of(Op::cuMemcpyDtoHAsync_v2).at(0);
    EXPECT_FALSE(call.waited);
    EXPECT_TRUE(is(out(0).host, custom::Host::mirror));
    EXPECT_EQ(out(0).address, reinterpret_cast<uint64_t>(host));
    EXPECT_EQ(link->expected.at(out(0).transfer).first, host);
    EXPECT_EQ(link->expected.at(out(0).transfer).second, 1000u);
}

TEST_F(Copies, FromPinnedMemoryGoStraightWhileNothingIsOnItsWayThere) {
    const CUdeviceptr device = alloc(4096);
    void* const host = pinned(4096);
    ASSERT_EQ(cuMemcpyHtoDAsync_v2(device, host, 1000, nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(is(in(0).host, custom::Host::inlined));
    EXPECT_EQ(link->of(Op::juiceMirrorPush).size(), 0u);
}

TEST_F(Copies, FromPinnedMemoryReadTheMirrorWhereADeliveryIsOutstanding) {
    const CUdeviceptr device = alloc(8192);
    auto* const host = static_cast<uint8_t*>(pinned(8192));
    const auto begin = reinterpret_cast<uint64_t>(host);
    std::memset(host, 1, 8192);
    ASSERT_EQ(cuMemcpyDtoHAsync_v2(host + 1000, device, 500, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyHtoDAsync_v2(device, host, 2000, nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(is(in(0).host, custom::Host::mirror));
    EXPECT_EQ(in(0).where, begin);
    // What the worker does not have newer is brought up to date first.
    const auto pushes = link->of(Op::juiceMirrorPush);
    ASSERT_EQ(pushes.size(), 2u);
    EXPECT_EQ(pushes[0].as<custom::MirrorPush>().address, begin);
    EXPECT_EQ(pushes[0].as<custom::MirrorPush>().size, 1000u);
    EXPECT_EQ(pushes[1].as<custom::MirrorPush>().address, begin + 1500);
    EXPECT_EQ(pushes[1].as<custom::MirrorPush>().size, 500u);
    // Elsewhere, and once it has landed, the program's memory is the newest again.
    ASSERT_EQ(cuMemcpyHtoDAsync_v2(device, host + 4096, 100, nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(is(in(1).host, custom::Host::inlined));
    link->landedTransfers.insert(out(0).transfer);
    ASSERT_EQ(cuMemcpyHtoDAsync_v2(device, host, 2000, nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(is(in(2).host, custom::Host::inlined));
}

TEST_F(Copies, ToAPlaceThatAnotherIsOnItsWayToWaitForIt) {
    const CUdeviceptr device = alloc(4096);
    void* const host = pinned(4096);
    ASSERT_EQ(cuMemcpyDtoHAsync_v2(host, device, 100, nullptr), CUDA_SUCCESS);
    const uint64_t first = out(0).transfer;
    link->answer = [&](const Sent& call) {
        if (call.op == Op::cuCtxSynchronize) link->landedTransfers.insert(first);
        return answer(call);
    };
    ASSERT_EQ(cuMemcpyDtoHAsync_v2(host, device, 100, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuCtxSynchronize).size(), 1u);
    EXPECT_TRUE(link->cancelled.empty());
    // One that never lands, since its copy failed, is given up after that.
    link->answer = [&](const Sent& call) { return answer(call); };
    ASSERT_EQ(cuMemcpyDtoHAsync_v2(host, device, 100, nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(link->cancelled.contains(out(1).transfer));
}

TEST_F(Copies, OutstandingMakeAFreeWait) {
    const CUdeviceptr device = alloc(4096), other = alloc(4096);
    ASSERT_EQ(cuMemFree_v2(other), CUDA_SUCCESS);
    EXPECT_FALSE(link->of(Op::cuMemFree_v2).at(0).waited);
    void* const host = pinned(4096);
    ASSERT_EQ(cuMemcpyDtoHAsync_v2(host, device, 100, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
    EXPECT_TRUE(link->of(Op::cuMemFree_v2).at(1).waited);
    ASSERT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
    EXPECT_TRUE(link->cancelled.contains(out(0).transfer));
}

TEST_F(Copies, AreClassifiedByWhatThePointersAre) {
    const CUdeviceptr a = alloc(4096), b = alloc(4096);
    uint8_t data[16] = {}, other[16] = {3};
    ASSERT_EQ(cuMemcpy(a, b, 16), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuMemcpyDtoDAsync_v2).size(), 1u);
    ASSERT_EQ(cuMemcpy(a, reinterpret_cast<CUdeviceptr>(data), 16), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuMemcpyHtoDAsync_v2).size(), 1u);
    ASSERT_EQ(cuMemcpy(reinterpret_cast<CUdeviceptr>(data), a, 16), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuMemcpyDtoHAsync_v2).size(), 1u);
    ASSERT_EQ(
        cuMemcpy(reinterpret_cast<CUdeviceptr>(data), reinterpret_cast<CUdeviceptr>(other), 16),
        CUDA_SUCCESS);
    EXPECT_EQ(data[0], 3);
    ASSERT_EQ(cuMemcpyHtoD_v2(a, reinterpret_cast<void*>(b), 16), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuMemcpyDtoDAsync_v2).size(), 2u);
}

TEST_F(Copies, OutsideOfAnAllocationAreNotSent) {
    const CUdeviceptr a = alloc(4096);
    uint8_t data[300] = {};
    EXPECT_EQ(cuMemcpyHtoD_v2(a + 4000, data, 200), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD_v2(16, data, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD_v2(a, nullptr, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyDtoH_v2(data, a + 4000, 200), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD8_v2(a + 4000, 0, 200), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD32_v2(a + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyHtoD_v2(a, data, 0), CUDA_SUCCESS);
    EXPECT_EQ(link->of(Op::cuMemcpyHtoDAsync_v2).size(), 0u);
}

TEST_F(Copies, OfRowsTravelPacked) {
    const CUdeviceptr device = alloc(4096);
    std::vector<uint8_t> image(10 * 100);
    for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(i / 100);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = image.data();
    copy.srcPitch = 100;
    copy.srcXInBytes = 5;
    copy.srcY = 1;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = device;
    copy.dstPitch = 64;
    copy.WidthInBytes = 32;
    copy.Height = 4;
    ASSERT_EQ(cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
    const Sent call = link->of(Op::cuMemcpy3DAsync_v2).at(0);
    ASSERT_EQ(call.payload.size(), sizeof(custom::CopyBox) + 4 * 32);
    EXPECT_EQ(call.payload[sizeof(custom::CopyBox)], 1);
    EXPECT_EQ(call.payload.back(), 4);
    const auto box = call.as<custom::CopyBox>();
    EXPECT_EQ(box.target.where, device);
    EXPECT_EQ(box.target.pitch, 64u);
    copy.dstPitch = copy.srcPitch = 32;  // back to back: an ordinary copy
    copy.srcXInBytes = copy.srcY = 0;
    ASSERT_EQ(cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
    EXPECT_EQ(in(0).size, 128u);
    copy.dstPitch = 16;
    EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copies, ToMemoryRegisteredWithoutAMirrorAreOrdinaryOnes) {
    const CUdeviceptr device = alloc(4096);
    static uint8_t memory[8192];
    ASSERT_EQ(cuMemHostRegister_v2(memory, sizeof memory, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemHostRegister_v2(memory + 100, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    ASSERT_EQ(cuMemcpyDtoHAsync_v2(memory, device, 64, nullptr), CUDA_SUCCESS);
    EXPECT_TRUE(link->of(Op::cuMemcpyDtoHAsync_v2).at(0).waited);
    EXPECT_EQ(cuMemHostUnregister(memory), CUDA_SUCCESS);
    EXPECT_EQ(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    EXPECT_EQ(link->of(Op::cuMemHostUnregister).size(), 0u);
}

}  // namespace
}  // namespace juice::shim::test
