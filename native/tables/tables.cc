#include "native/tables/tables.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "native/tables/context_storage.h"
#include "native/tables/integrity.h"
#include "native/tables/results.h"

namespace juice::tables {
namespace {

Driver* driver = nullptr;

/// Leaked: programs call in here from their own atexit handlers.
ContextStorage& storage() {
    static auto* const instance = new ContextStorage;
    return *instance;
}

// A table is an array of words: its size in bytes, then functions. (The calling convention lets a
// function ignore arguments that it does not declare, so one refusal fits all slots.)
template <size_t Words>
using Table = std::array<const void*, Words>;

template <typename F>
const void* slot(F* function) {
    return reinterpret_cast<const void*>(function);
}

int refuse() {
    return kNotSupported;
}
int succeed() {
    return kSuccess;
}

template <size_t Words>
Table<Words> refusing() {
    Table<Words> table;
    table.fill(slot(refuse));
    table[0] = reinterpret_cast<const void*>(Words * sizeof(void*));
    return table;
}

// CUDART_INTERFACE

int moduleFromImage(void** module, const void* image) {
    if (module == nullptr || image == nullptr) return kInvalidValue;
    return driver->loadModule(module, image);
}

int primaryContextHandle(void** context, int ordinal) {
    if (context == nullptr) return kInvalidValue;
    return driver->primaryContext(ordinal, context);
}

/// The last three arguments ask for linking options of unknown meaning: refused unless empty.
int moduleFromWrapper(void** module, const void* wrapper, void* a, void* b, uint32_t c) {
    if (a != nullptr || b != nullptr || c != 0) return kNotSupported;
    return moduleFromImage(module, wrapper);
}

int moduleFromContainer(const void* container, void** module, void* a, void* b, uint32_t c) {
    return moduleFromWrapper(module, container, a, b, c);
}

const Table<13>& cudartInterface() {
    static const Table<13> table = [] {
        auto made = refusing<13>();
        made[1] = slot(moduleFromImage);
        made[2] = slot(primaryContextHandle);
        made[6] = slot(moduleFromWrapper);
        made[7] = slot(succeed);
        made[8] = slot(moduleFromContainer);
        made[12] = slot(succeed);  // load the compilers: there is nothing to load
        return made;
    }();
    return table;
}

// CALLBACK_HOOKS

void firstHooksBuffer(void** buffer, size_t* size) {
    // The runtime looks up one word for each of its entry points in here, "is a tool listening?",
    // and goes beyond the size that it is told: version 13.0 reads at 0x798. All of it must be
    // zero.
    static uint8_t bytes[16384];
    *buffer = bytes;
    *size = 1024;
}

void secondHooksBuffer(void** buffer, size_t* size) {
    static uint8_t bytes[14];
    *buffer = bytes;
    *size = sizeof(bytes);
}

const Table<7>& callbackHooks() {
    static const Table<7> table = [] {
        auto made = refusing<7>();
        // Events for tools; nobody listens.
        for (const size_t event : {1, 3, 4, 5}) made[event] = slot(succeed);
        made[2] = slot(firstHooksBuffer);
        made[6] = slot(secondHooksBuffer);
        return made;
    }();
    return table;
}

// TLS

int threadContext(void** context) {
    if (context == nullptr) return kInvalidValue;
    *context = driver->currentContext();
    return kSuccess;
}

const Table<4>& threadLocal() {
    static const Table<4> table = [] {
        auto made = refusing<4>();
        made[2] = slot(threadContext);
        return made;
    }();
    return table;
}

// CONTEXT_LOCAL_STORAGE: the one table without a size; it ends with a null word.

/// Null and all-ones stand for the thread's current context.
void* named(void* context) {
    const auto value = reinterpret_cast<uintptr_t>(context);
    return value == 0 || value == UINTPTR_MAX ? driver->currentContext() : context;
}

int storagePut(void* context, void* key, void* value, ContextStorage::Destructor destructor) {
    void* const owner = named(context);
    if (owner == nullptr) return kInvalidContext;
    return storage().put(owner, key, value, destructor);
}

int storageDelete(void* context, void* key) {
    return storage().remove(named(context), key);
}

int storageGet(void** value, void* context, void* key) {
    if (value == nullptr) return kInvalidValue;
    return storage().get(value, named(context), key);
}

const Table<4>& contextLocalStorage() {
    static const Table<4> table = {slot(storagePut), slot(storageDelete), slot(storageGet),
                                   nullptr};
    return table;
}

// CONTEXT_CHECKS

int checkContext(void* context, uint32_t* result, const void** details) {
    if (result != nullptr) *result = 0;
    return kSuccess;
}

uint32_t checkNothing() {
    return 0;
}

const Table<4>& contextChecks() {
    static const Table<4> table = [] {
        auto made = refusing<4>();
        made[2] = slot(checkContext);
        made[3] = slot(checkNothing);
        return made;
    }();
    return table;
}

// INTEGRITY_CHECK

int checkIntegrity(uint32_t version, uint64_t unixSeconds, uint64_t* out);

const Table<3>& integrityCheck() {
    static const Table<3> table = [] {
        auto made = refusing<3>();
        made[1] = slot(checkIntegrity);
        return made;
    }();
    return table;
}

int checkIntegrity(uint32_t version, uint64_t unixSeconds, uint64_t* out) {
    if (out == nullptr) return kInvalidValue;
    IntegrityQuestion question{};
    question.driverVersion = static_cast<uint32_t>(driver->driverVersion());
    question.version = version;
    question.pid = static_cast<uint32_t>(getpid());
    question.thread = static_cast<uint32_t>(pthread_self());
    question.cudartInterface = reinterpret_cast<uint64_t>(cudartInterface().data());
    question.integrityCheck = reinterpret_cast<uint64_t>(integrityCheck().data());
    question.checkFunction = reinterpret_cast<uint64_t>(integrityCheck()[1]);
    question.unixSeconds = unixSeconds;
    for (int i = 0; i < driver->deviceCount(); ++i) question.devices.push_back(driver->device(i));
    const Digest digest = answer(question);
    std::memcpy(out, digest.data(), digest.size());
    return kSuccess;
}

// TOOLS_CONTEXT, as asked by cuBLAS and cuFFT

int toolsContextKnown(void* context, uint64_t* known) {
    if (known == nullptr) return kInvalidValue;
    *known = context != nullptr ? 1 : 0;
    return kSuccess;
}

const Table<93>& toolsContext() {
    static const Table<93> table = [] {
        auto made = refusing<93>();
        made[4] = slot(toolsContextKnown);
        return made;
    }();
    return table;
}

// TOOLS_MODULE, as asked by cuFFT

/// cuFFT asks once per plan, with a callback, and goes on when it reads 1, the recorded answer of a
/// real driver. What a driver would tell the callback is not known, so it is not called.
int toolsModuleFunctions() {
    return 1;
}

const Table<99>& toolsModule() {
    static const Table<99> table = [] {
        auto made = refusing<99>();
        made[7] = slot(toolsModuleFunctions);
        return made;
    }();
    return table;
}

// TOPOLOGY, as asked by cuBLASLt on Hopper. Read off driver 580: slot 4 gives two arrays, one byte
// a TPC, of the current context's device; slot 13 frees them. The caller knows their length, half
// the number of multiprocessors.

uint8_t* copyOf(std::span<const uint8_t> bytes) {
    auto* const copy = static_cast<uint8_t*>(std::malloc(bytes.size()));
    if (copy != nullptr) std::memcpy(copy, bytes.data(), bytes.size());
    return copy;
}

int topologyOf(uint8_t** gpcOfTpc, uint8_t** tpcInGpc) {
    if (gpcOfTpc == nullptr || tpcInGpc == nullptr) return kInvalidValue;
    if (driver->currentContext() == nullptr) return kInvalidContext;
    const Topology topology = driver->topology();
    if (topology.gpcOfTpc.empty()) return kNotSupported;
    *gpcOfTpc = copyOf(topology.gpcOfTpc);
    *tpcInGpc = copyOf(topology.tpcInGpc);
    return kSuccess;
}

int freeTopology(uint8_t* gpcOfTpc, uint8_t* tpcInGpc) {
    std::free(gpcOfTpc);
    std::free(tpcInGpc);
    return kSuccess;
}

const Table<17>& topologyTable() {
    static const Table<17> table = [] {
        auto made = refusing<17>();
        made[4] = slot(topologyOf);
        made[13] = slot(freeTopology);
        return made;
    }();
    return table;
}

template <size_t Words>
const void* words(const Table<Words>& table) {
    return table.data();
}

struct Served {
    uint8_t uuid[16];
    const void* (*table)();
};

constexpr Served kServed[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
      0xf9},
     [] { return words(cudartInterface()); }},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
      0x66},
     [] { return words(callbackHooks()); }},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
      0xdc},
     [] { return words(threadLocal()); }},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
      0x93},
     [] { return words(contextLocalStorage()); }},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
      0x7e},
     [] { return words(contextChecks()); }},
    {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
      0xf2},
     [] { return words(integrityCheck()); }},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
      0xf2},
     [] { return words(toolsContext()); }},
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99,
      0x1e},
     [] { return words(toolsModule()); }},
    {{0x17, 0x34, 0xdc, 0x26, 0x80, 0x0d, 0x47, 0x45, 0x87, 0x26, 0xc0, 0xf1, 0xe7, 0xdd, 0x8b,
      0xca},
     [] { return words(topologyTable()); }},
};

}  // namespace

void serve(Driver& served) {
    driver = &served;
}

int getExportTable(const void** table, const uint8_t* uuid) {
    if (table == nullptr || uuid == nullptr) return kInvalidValue;
    *table = nullptr;
    for (const Served& served : kServed) {
        if (std::memcmp(served.uuid, uuid, sizeof(served.uuid)) != 0) continue;
        *table = served.table();
        return kSuccess;
    }
    return kNotFound;
}

void contextGone(void* context) {
    storage().clear(context);
}

}  // namespace juice::tables
