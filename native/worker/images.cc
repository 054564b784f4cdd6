#include "native/worker/images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "native/link/keys.h"

namespace juice::worker {
namespace {

namespace fs = std::filesystem;

constexpr char kTemporary[] = ".part-";
constexpr auto kLeftoverAge = std::chrono::hours(1);
/// What stays below the limit after room was made, so that it is not made for every part.
constexpr uint64_t kSlackPercent = 5;

uint64_t pages(uint64_t size) {
    return (size + 4096) & ~uint64_t{4095};
}  // at least one byte more

/// A mapping whose first `size` bytes are the file's (fd -1: zeros). The page behind the file's end
/// is anonymous, so that the byte after the last can be read.
std::shared_ptr<Part> map(uint64_t size, int fd, int flags) {
    const uint64_t whole = pages(size);
    void* memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (fd >= 0 && size != 0 &&
        mmap(memory, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(memory, whole);
        return nullptr;
    }
    return std::make_shared<Part>(static_cast<uint8_t*>(memory), size, whole);
}

bool isNamed(const Part& part, const custom::PartName& name) {
    return part.bytes().size() == name.size && sameBytes(sha256(part.bytes()), name.sha256);
}

bool same(const custom::PartName& a, const custom::PartName& b) {
    return a.size == b.size && std::equal(a.sha256, a.sha256 + 32, b.sha256);
}

}  // namespace

Part::~Part() {
    munmap(data_, mapped_);
}

Images::Images(std::string directory, uint64_t limit)
    : directory_(std::move(directory)), limit_(limit) {
    if (directory_.empty()) return;
    std::error_code error;
    fs::create_directories(directory_, error);
    if (!fs::is_directory(directory_, error)) directory_.clear();
    removeLeftovers();
}

void Images::removeLeftovers() {
    if (directory_.empty()) return;
    std::error_code error;
    const auto old = fs::file_time_type::clock::now() - kLeftoverAge;
    for (const auto& entry : fs::directory_iterator(directory_, error))
        if (entry.path().filename().string().starts_with(kTemporary) &&
            entry.last_write_time(error) < old)
            fs::remove(entry.path(), error);
}

std::string Images::fileOf(const custom::PartName& name) const {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out = directory_ + "/";
    for (const uint8_t byte : name.sha256) {
        out += kDigits[byte >> 4];
        out += kDigits[byte & 15];
    }
    return out;
}

std::shared_ptr<const Part> Images::find(const custom::PartName& name) {
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
        if (!same(it->name, name)) continue;
        std::shared_ptr<const Part> part = it->part;
        if (it->onDisk) {
            keptBytes_ -= name.size;
            kept_.erase(it);
        }
        return part;
    }
    if (directory_.empty()) return nullptr;
    const std::string path = fileOf(name);
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    struct stat info {};
    std::shared_ptr<Part> part;
    if (fstat(fd, &info) == 0 && static_cast<uint64_t>(info.st_size) == name.size)
        part = map(name.size, fd, MAP_PRIVATE);
    if (part != nullptr && isNamed(*part, name)) {
        futimens(fd, nullptr);  // the time of last use, by which room is made
    } else {
        part = nullptr;
        unlink(path.c_str());
    }
    close(fd);
    return part;
}

std::unique_ptr<Images::Upload> Images::begin(const custom::PartName& name) {
    auto upload = std::make_unique<Upload>();
    upload->name_ = name;
    if (!directory_.empty() && name.size <= limit_) {
        makeRoom(name.size);
        upload->file_ = directory_ + "/" + kTemporary + std::to_string(getpid()) + "-" +
                        std::to_string(nextFile_++);
        const int fd = open(upload->file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        // Allocated before it is mapped: a write to a mapping on a full disk would be a signal.
        if (fd >= 0 && posix_fallocate(fd, 0, static_cast<off_t>(name.size)) == 0)
            upload->part_ = map(name.size, fd, MAP_SHARED);
        if (fd >= 0) close(fd);
        if (upload->part_ != nullptr) return upload;
        unlink(upload->file_.c_str());
        upload->file_.clear();
    }
    while (!kept_.empty() && name.size > limit_ - std::min(limit_, keptBytes_)) {
        keptBytes_ -= kept_.front().name.size;
        kept_.pop_front();
    }
    if (name.size > limit_) return nullptr;
    upload->part_ = map(name.size, -1, 0);
    return upload->part_ == nullptr ? nullptr : std::move(upload);
}

bool Images::keep(std::unique_ptr<Upload> upload) {
    if (!isNamed(*upload->part_, upload->name_)) return false;
    bool onDisk = false;
    if (!upload->file_.empty()) {
        onDisk = rename(upload->file_.c_str(), fileOf(upload->name_).c_str()) == 0;
        if (onDisk) upload->file_.clear();
    }
    kept_.push_back({upload->name_, upload->part_, onDisk});
    keptBytes_ += upload->name_.size;
    return true;
}

Images::Upload::~Upload() {
    if (!file_.empty()) unlink(file_.c_str());
}

void Images::makeRoom(uint64_t room) {
    struct File {
        fs::file_time_type used;
        uint64_t size;
        fs::path path;
    };
    std::vector<File> files;
    uint64_t total = room;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory_, error)) {
        if (entry.path().filename().string().starts_with(kTemporary)) continue;
        File file{entry.last_write_time(error), 0, entry.path()};
        file.size = entry.file_size(error);
        if (error) continue;  // another worker was faster
        total += file.size;
        files.push_back(std::move(file));
    }
    if (total <= limit_) return;
    std::sort(files.begin(), files.end(),
              [](const File& a, const File& b) { return a.used < b.used; });
    const uint64_t goal = limit_ - limit_ / 100 * kSlackPercent;
    for (const File& file : files) {
        if (total <= goal) break;
        if (fs::remove(file.path, error)) total -= file.size;
    }
}

}  // namespace juice::worker
