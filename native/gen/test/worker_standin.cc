#include "native/gen/test/worker_standin.h"

#include "native/gen/custom_handlers.h"

namespace juice::standin {

DriverTable driver;
uint64_t madeId = 0;
void* madeHandle = nullptr;

CUresult execute(uint16_t op, Bytes payload, std::vector<uint8_t>& results) {
    // No generated handler asks for the worker itself.
    alignas(8) static char noWorker[8];
    const wire::Header header{};
    worker::Incoming in(reinterpret_cast<worker::Worker&>(noWorker), header, payload);
    const CUresult result = worker::kHandlers[op].execute(in);
    results.assign(in.out().data(), in.out().data() + in.out().size());
    return result;
}

}  // namespace juice::standin

namespace juice::worker {

void* Incoming::handle(ObjectKind, bool) {
    return standin::driverHandle<void*>(get<uint64_t>());
}
CUfunction Incoming::callable() {
    return standin::driverHandle<CUfunction>(get<uint64_t>());
}
CUstream Incoming::stream(uint64_t wire) {
    return standin::driverHandle<CUstream>(wire - 16);
}
uint64_t Incoming::minted(ObjectKind) {
    return get<uint64_t>();
}
void Incoming::made(ObjectKind, uint64_t id, void* handle) {
    standin::madeId = id;
    standin::madeHandle = handle;
}
void* Incoming::dropped(ObjectKind) {
    return standin::driverHandle<void*>(get<uint64_t>());
}
CUresult Incoming::done() {
    return in_.done() ? error_ : CUDA_ERROR_UNKNOWN;
}
const DriverTable& Incoming::driver() const {
    return standin::driver;
}

#define CUSTOM_HANDLER(name)             \
    CUresult custom_##name(Incoming&) {  \
        return CUDA_ERROR_NOT_SUPPORTED; \
    }
JUICE_CUSTOM_HANDLERS(CUSTOM_HANDLER)
#undef CUSTOM_HANDLER

}  // namespace juice::worker
