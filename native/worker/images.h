// Parts of module images, by content. On disk they live under the hex of their SHA-256, shared by
// all workers of the host, and are believed only after they have been hashed again. Without a
// directory, or on a full disk, parts are kept in this process's memory instead: slower next time,
// nothing else.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "native/link/codec.h"
#include "native/link/custom.h"

namespace juice::worker {

/// A part's bytes: a mapping of its own, page aligned, followed by at least one zero byte.
class Part {
  public:
    Part(uint8_t* data, uint64_t size, uint64_t mapped)
        : data_(data), size_(size), mapped_(mapped) {}
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    uint8_t* data() const { return data_; }
    Bytes bytes() const { return {data_, size_}; }

  private:
    uint8_t* data_;
    uint64_t size_, mapped_;
};

class Images {
  public:
    /// `directory` is made when it is missing; empty: memory only. `limit`: bytes on disk, and
    /// in memory at most the same.
    Images(std::string directory, uint64_t limit);

    /// The part, verified; null when it is not here.
    std::shared_ptr<const Part> find(const custom::PartName& name);

    /// A part on its way in: fill data(), then keep(). Dropped without keep(), it leaves nothing.
    class Upload {
      public:
        ~Upload();
        uint8_t* data() const { return part_->data(); }

      private:
        friend class Images;
        custom::PartName name_{};
        std::shared_ptr<Part> part_;
        std::string file_;  // the temporary file behind it; empty: memory
    };
    /// Room for the part, or null when there is none.
    std::unique_ptr<Upload> begin(const custom::PartName& name);
    /// False when the bytes are not what the name says.
    bool keep(std::unique_ptr<Upload> upload);

  private:
    struct Kept {
        custom::PartName name;
        std::shared_ptr<const Part> part;
        bool onDisk;
    };
    std::string fileOf(const custom::PartName& name) const;
    /// Deletes the least recently used files until `room` bytes more are within the limit.
    void makeRoom(uint64_t room);
    void removeLeftovers();

    std::string directory_;
    uint64_t limit_;
    uint64_t nextFile_ = 0;
    /// Uploaded by this client; the newest last. What is on disk leaves at its first use.
    std::list<Kept> kept_;
    uint64_t keptBytes_ = 0;
};

}  // namespace juice::worker
