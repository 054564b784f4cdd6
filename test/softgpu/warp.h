// Instructions of a whole warp: a body runs in 32 lanes, each with registers of its own.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "test/softgpu/device.h"

namespace juice::truth {

/// Words of one lane, before or after.
using LaneWords = std::vector<uint32_t>;
using WarpWords = std::array<LaneWords, 32>;

class WarpTest : public DeviceTest {
  protected:
    /// The body finds a lane's words in %in0, %in1, ... and leaves `results` words in %out0, ...
    /// It may declare what else it needs; %lane is the lane, `room` 4 KiB of shared memory, %data
    /// the address of `data` in global memory.
    WarpWords runWarp(const std::string& body, const WarpWords& in, size_t results,
                      std::vector<uint32_t>* data = nullptr) const;
    /// The same with a word each: the lane's number.
    WarpWords runLanes(const std::string& body, size_t results,
                       std::vector<uint32_t>* data = nullptr) const;
};

/// "{%in4, %in5}" of `count` registers from number `first` on.
std::string group(const std::string& bank, size_t first, size_t count);

}  // namespace juice::truth
