#include "native/worker/worker.h"

namespace juice::worker {

const DriverTable& Incoming::driver() const {
    return worker_.driver;
}

void* Incoming::object(ObjectKind kind, uint64_t id) {
    if (kind == ObjectKind::context) {
        const auto context = worker_.contexts.find(id);
        if (context == nullptr) fail(CUDA_ERROR_INVALID_CONTEXT);
        return context == nullptr ? nullptr : context->handle;
    }
    const Object* object = worker_.objects.find(id);
    if (object == nullptr || object->kind != kind) {
        fail(CUDA_ERROR_INVALID_HANDLE);
        return nullptr;
    }
    return object->handle;
}

void* Incoming::handle(ObjectKind kind, bool nullable) {
    const auto id = get<uint64_t>();
    return id == 0 && nullable ? nullptr : object(kind, id);
}

CUfunction Incoming::callable() {
    return callable(get<uint64_t>());
}

CUfunction Incoming::callable(uint64_t id) {
    const Object* object = worker_.objects.find(id);
    if (object == nullptr ||
        (object->kind != ObjectKind::function && object->kind != ObjectKind::kernel)) {
        fail(CUDA_ERROR_INVALID_HANDLE);
        return nullptr;
    }
    return static_cast<CUfunction>(object->handle);
}

CUstream Incoming::stream(uint64_t wire) {
    constexpr uint64_t kFirstMinted = 16;
    if (wire == 0) return nullptr;
    if (wire == reinterpret_cast<uint64_t>(CU_STREAM_LEGACY)) return CU_STREAM_LEGACY;
    if (wire == reinterpret_cast<uint64_t>(CU_STREAM_PER_THREAD)) {
        if (worker_.context() == nullptr) {
            fail(CUDA_ERROR_INVALID_CONTEXT);
            return nullptr;
        }
        CUstream out = nullptr;
        const CUresult result =
            worker_.contexts.threadStream(driver(), *worker_.context(), header_.thread, out);
        if (result != CUDA_SUCCESS) fail(result);
        return out;
    }
    if (wire < kFirstMinted) {
        fail(CUDA_ERROR_INVALID_HANDLE);
        return nullptr;
    }
    return static_cast<CUstream>(object(ObjectKind::stream, wire - kFirstMinted));
}

uint64_t Incoming::minted(ObjectKind kind) {
    const auto id = get<uint64_t>();
    if (kind != ObjectKind::context && !worker_.objects.available(id)) {
        worker_.violate("an object's id is taken or out of range");
        fail(CUDA_ERROR_INVALID_HANDLE);
    }
    return id;
}

void Incoming::made(ObjectKind kind, uint64_t id, void* driverHandle) {
    Object& object = worker_.objects.add(id, kind, driverHandle);
    const bool ofContext = kind != ObjectKind::library && kind != ObjectKind::kernel;
    object.context = ofContext ? header_.context : 0;
}

void* Incoming::dropped(ObjectKind kind) {
    const auto id = get<uint64_t>();
    void* out = object(kind, id);
    if (out == nullptr) return out;
    if (kind == ObjectKind::stream) worker_.retireStream(id, static_cast<CUstream>(out));
    worker_.objects.remove(id);
    return out;
}

CUresult Incoming::done() {
    if (!in_.done()) {
        worker_.violate("a payload is shorter or longer than its call says");
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    return error_;
}

}  // namespace juice::worker
