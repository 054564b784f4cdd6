// Options of a load as they came over the wire, turned into what the driver takes.
#pragma once

#include <string>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/link/codec.h"
#include "native/link/custom.h"

namespace juice::worker {

/// CUjit_option with values. Log buffers are ours; what the driver wrote is in logs() after the
/// load.
class JitOptions {
  public:
    /// False for an option that is unknown, or whose value is an address in the client.
    bool add(const custom::LoadOption& option);
    unsigned count() const { return static_cast<unsigned>(names_.size()); }
    CUjit_option* names() { return names_.data(); }
    void** values() { return values_.data(); }
    /// text info log, text error log, f32 wall time.
    void putLogs(Writer& out) const;

  private:
    void addLog(CUjit_option buffer, CUjit_option size, uint64_t bytes, std::string& log);
    void push(CUjit_option name, void* value);

    std::vector<CUjit_option> names_;
    std::vector<void*> values_;
    std::string info_, error_;
};

}  // namespace juice::worker
