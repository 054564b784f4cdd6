// Memory that other processes can map too: a file without a name, handed out in ranges. It goes
// when the last process that has it open or mapped ends, however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace juice::softgpu {

class Backing {
  public:
    /// Ranges are whole multiples of it.
    static constexpr size_t kUnit = size_t{2} << 20;

    /// Where the system gives no such file, `file()` is -1 and nothing can be taken.
    Backing();
    /// A file that another process made; of this one nothing can be taken.
    explicit Backing(int file);
    ~Backing();
    Backing(const Backing&) = delete;
    Backing& operator=(const Backing&) = delete;

    int file() const { return file_; }

    /// The offset of a range that nobody else has; empty when there is no room.
    std::optional<uint64_t> take(size_t size);
    /// Gives a range and its memory back.
    void give(uint64_t offset, size_t size);

  private:
    const int file_;
    const bool own_;
    std::mutex mutex_;
    uint64_t end_ = 0;
    std::map<uint64_t, size_t> holes_;  // by offset, never adjacent
};

}  // namespace juice::softgpu
