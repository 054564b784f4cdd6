// From what a program hands over as an image to code that can run.
#pragma once

#include <string>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/module.h"

namespace juice::softgpu {

/// The log buffers among a load's options; null where the program gave none.
class JitLog {
  public:
    JitLog(unsigned count, const CUjit_option* options, void** values);
    /// Puts the message into the error log and its length into the option. False without a buffer.
    bool error(const std::string& message);
    /// Says that there is nothing in the logs.
    void nothing();

  private:
    char* buffer_ = nullptr;
    size_t size_ = 0;
    void** written_ = nullptr;      // the size option's value, which is also an output
    void** infoWritten_ = nullptr;  // the same of the other log
};

/// The PTX for this device in the image at a bare pointer (any kind). Results: 200 for no image,
/// 209 for one without PTX that the device may run.
CUresult readImage(const void* image, std::string& ptx);
/// The same for bytes whose end is known.
CUresult readImageBytes(const void* image, size_t size, std::string& ptx);
/// The same for a file; 301 when it cannot be read.
CUresult readImageFile(const char* path, std::string& ptx);

/// Parses and decodes; managed variables stay those that `code` has. A refusal is told on stderr,
/// with the PTX line, and in the log.
CUresult compile(const std::string& ptx, JitLog* log, LoadedCode& code);

}  // namespace juice::softgpu
