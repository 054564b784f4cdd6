// What the truth tests of streams, captures and graphs share: a small kernel, streams and events
// that are put away with the test, and shorter ways to ask a graph.
#pragma once

#include <vector>

#include "test/softgpu/device.h"

namespace juice::truth {

/// A call that what stands between program and driver may lack, which is no fault of the driver.
#define NEEDS_CALL(call)                                                      \
    if (const CUresult result = (call); result == CUDA_ERROR_NOT_SUPPORTED) { \
        GTEST_SKIP() << #call << " is not supported";                         \
    } else {                                                                  \
        ASSERT_EQ(result, CUDA_SUCCESS) << #call;                             \
    }

class WorkTest : public DeviceTest {
  protected:
    void SetUp() override;
    void TearDown() override;

    /// Adds a number to a word, in one thread.
    void add(CUdeviceptr address, uint32_t value, CUstream on) const;
    /// Keeps a stream busy until the word is not 0.
    void spin(volatile uint32_t* word, CUstream on) const;
    CUfunction adder() const { return add_; }

    CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING);
    CUevent event(unsigned flags = CU_EVENT_DISABLE_TIMING);
    /// A word of pinned memory, 0.
    volatile uint32_t* pinnedWord();

    static std::vector<CUgraphNode> nodes(CUgraph graph);
    static std::vector<CUgraphNode> dependencies(CUgraphNode node);
    static CUgraphNodeType typeOf(CUgraphNode node);
    static CUgraphExec instantiate(CUgraph graph);
    static void launchAndWait(CUgraphExec exec);

  private:
    CUmodule module_ = nullptr;
    CUfunction add_ = nullptr, spin_ = nullptr;
    std::vector<CUstream> streams_;
    std::vector<CUevent> events_;
    std::vector<void*> pinned_;
};

class GraphWorkTest : public WorkTest {
  protected:
    void SetUp() override;
};

}  // namespace juice::truth
