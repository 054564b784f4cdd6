#include "native/softgpu/driver/shared_event.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace juice::softgpu {
namespace {

constexpr size_t kPage = 4096;

/// So often a waiting process looks whether the recording one still lives.
constexpr timespec kLook{0, 100'000'000};

/// Records of one event that can be under way at once, before their numbers are taken for those
/// that many later.
constexpr uint32_t kRing = 256;

/// Dead, or ended and not yet waited for by its parent.
bool isGone(uint32_t process) {
    if (kill(static_cast<pid_t>(process), 0) != 0) return errno == ESRCH;
    std::ifstream in("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    if (!std::getline(in, text)) return false;
    const size_t name = text.rfind(')');
    return name != std::string::npos && name + 2 < text.size() && text[name + 2] == 'Z';
}

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* limit) {
    syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

/// A thread that outlives its caller and takes none of the program's signals.
template <typename Body>
void aside(Body body) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread(std::move(body)).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// The pages of this process's own events, cut from one file.
class EventPages {
  public:
    static EventPages& instance() {
        static auto* const pages = new EventPages;
        return *pages;
    }

    struct Place {
        void* memory = nullptr;  // zeros
        uint64_t offset = 0;
    };

    Place take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty() && !grow()) return {};
        const Place place = free_.back();
        free_.pop_back();
        std::fill_n(static_cast<uint8_t*>(place.memory), kPage, uint8_t{0});
        return place;
    }

    void give(const Place& place) {
        const std::lock_guard lock(mutex_);
        free_.push_back(place);
    }

    const std::shared_ptr<Backing>& backing() const { return backing_; }

  private:
    bool grow() {
        const auto offset = backing_->take(Backing::kUnit);
        if (!offset) return false;
        void* const mapped = mmap(nullptr, Backing::kUnit, PROT_READ | PROT_WRITE, MAP_SHARED,
                                  backing_->file(), static_cast<off_t>(*offset));
        if (mapped == MAP_FAILED) return false;
        for (size_t at = 0; at < Backing::kUnit; at += kPage) {
            free_.push_back({static_cast<uint8_t*>(mapped) + at, *offset + at});
        }
        return true;
    }

    std::mutex mutex_;
    std::shared_ptr<Backing> backing_ = std::make_shared<Backing>();
    std::vector<Place> free_;
};

}  // namespace

struct SharedEvent::Page {
    struct Record {
        std::atomic<uint32_t> ended;    // number of the last that ended here
        std::atomic<uint32_t> process;  // of the last that began here
    };
    uint64_t offset;                  // in the file of the process that made it
    std::atomic<uint32_t> begun;      // numbers given out
    std::atomic<uint32_t> published;  // the newest record that others may ask about
    Record records[kRing];

    Record& of(uint32_t number) { return records[number % kRing]; }
};

SharedEvent::SharedEvent(Page& page, const Uuid& device) : page_(page), device_(device) {
    static_assert(sizeof(Page) <= kPage);
}

std::shared_ptr<SharedEvent> SharedEvent::create(const Uuid& device) {
    const EventPages::Place place = EventPages::instance().take();
    if (place.memory == nullptr) return nullptr;
    auto* const page = static_cast<Page*>(place.memory);
    page->offset = place.offset;
    return std::shared_ptr<SharedEvent>(new SharedEvent(*page, device));
}

CUresult SharedEvent::open(const Ticket& ticket, std::shared_ptr<SharedEvent>& opened) {
    std::unique_ptr<Loan> loan;
    if (const CUresult failed = Loan::take(ticket, ExportKind::event, loan)) return failed;
    const Exported& exported = loan->exported();
    void* const mapped = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, exported.file,
                              static_cast<off_t>(exported.offset));
    if (mapped == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
    opened.reset(new SharedEvent(*static_cast<Page*>(mapped), exported.device));
    opened->loan_ = std::move(loan);
    return CUDA_SUCCESS;
}

SharedEvent::~SharedEvent() {
    if (loan_) {
        munmap(&page_, kPage);
        return;
    }
    const auto give = [place = EventPages::Place{&page_, page_.offset}] {
        EventPages::instance().give(place);
    };
    if (!ticket_ || Door::instance().close(ticket_->id, give)) give();
}

const Ticket* SharedEvent::ticket() {
    const std::lock_guard lock(mutex_);
    if (loan_) return nullptr;
    if (!ticket_) {
        const auto& backing = EventPages::instance().backing();
        ticket_ = Door::instance().open(ExportKind::event,
                                        {backing->file(), page_.offset, kPage, device_}, backing);
    }
    return ticket_.get();
}

bool SharedEvent::ended(uint32_t number) const {
    return static_cast<int32_t>(page_.of(number).ended.load(std::memory_order_acquire) - number) >=
           0;
}

void SharedEvent::end(uint32_t number) const {
    auto& word = page_.of(number).ended;
    uint32_t before = word.load();
    while (static_cast<int32_t>(number - before) > 0 &&
           !word.compare_exchange_weak(before, number, std::memory_order_acq_rel)) {
    }
    futex(word, FUTEX_WAKE, INT32_MAX, nullptr);
}

void SharedEvent::awaitEnd(uint32_t number) const {
    auto& record = page_.of(number);
    while (!ended(number)) {
        futex(record.ended, FUTEX_WAIT, record.ended.load(), &kLook);
        // Work that its process took along will not end; nobody may wait for it for ever.
        if (!ended(number) && isGone(record.process.load())) end(number);
    }
}

void SharedEvent::record(const Fence& fence) {
    const uint32_t number = page_.begun.fetch_add(1) + 1;
    page_.of(number).process.store(static_cast<uint32_t>(getpid()));
    uint32_t before = page_.published.load();
    while (static_cast<int32_t>(number - before) > 0 &&
           !page_.published.compare_exchange_weak(before, number, std::memory_order_acq_rel)) {
    }
    if (!fence || fence->done()) {
        end(number);
        return;
    }
    aside([self = shared_from_this(), fence, number] {
        fence->wait();
        self->end(number);
    });
}

Fence SharedEvent::last() {
    const uint32_t number = page_.published.load(std::memory_order_acquire);
    if (number == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    if (!fence_ || awaited_ != number) {
        awaited_ = number;
        fence_ = std::make_shared<Completion>();
        if (!ended(number)) {
            aside([self = shared_from_this(), fence = fence_, number] {
                self->awaitEnd(number);
                fence->finish();
            });
            return fence_;
        }
    }
    // The thread that waits may be late in telling.
    if (ended(number) && !fence_->done()) fence_->finish();
    return fence_;
}

}  // namespace juice::softgpu
