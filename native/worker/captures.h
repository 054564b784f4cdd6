// Which of the client's streams capture, and what a capture forbids to whom. All calls are made on
// one thread here, so a client thread's mode and its captures are told apart by hand: the driver is
// asked to refuse exactly what it would refuse to that thread.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "native/gen/driver_table.h"

namespace juice::worker {

/// While it lives no capture forbids anything to this thread: for calls of our own.
class Relaxed {
  public:
    explicit Relaxed(const DriverTable& driver) : Relaxed(driver, CU_STREAM_CAPTURE_MODE_RELAXED) {}
    Relaxed(const DriverTable& driver, CUstreamCaptureMode mode) : driver_(driver), mode_(mode) {
        exchange();
    }
    ~Relaxed() { exchange(); }
    Relaxed(const Relaxed&) = delete;

  private:
    void exchange() {
        if (driver_.cuThreadExchangeStreamCaptureMode != nullptr)
            driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    const DriverTable& driver_;
    CUstreamCaptureMode mode_;
};

/// Used by the executor alone.
class Captures {
  public:
    explicit Captures(const DriverTable& driver) : driver_(driver) {}

    bool any() const { return !active_.empty(); }
    /// Is the stream in a capture, begun on it or not?
    bool capturing(CUstream stream) const;
    void setMode(uint32_t thread, CUstreamCaptureMode mode) { modes_[thread] = mode; }
    void began(CUstream stream, uint32_t context, uint32_t thread, CUstreamCaptureMode mode);
    /// The stream may have ceased to capture.
    void look(CUstream stream);
    void forget(CUstream stream) { active_.erase(stream); }
    void forgetOf(uint32_t context);
    /// Must calls that a capture would not notice be refused to this client thread?
    bool forbidden(uint32_t thread) const;

  private:
    struct Active {
        uint32_t context, thread;
        CUstreamCaptureMode mode;
    };
    const DriverTable& driver_;
    std::unordered_map<CUstream, Active> active_;  // by the stream that it was begun on
    std::unordered_map<uint32_t, CUstreamCaptureMode> modes_;
};

}  // namespace juice::worker
