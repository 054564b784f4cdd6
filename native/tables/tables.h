// The private tables that cuGetExportTable hands out. NVIDIA's runtime, of which every program and
// many libraries carry a copy, calls the driver through them and does not start without six:
//
//   table                  what it is for
//   CUDART_INTERFACE       primary-context handle without activation; module from a fatbin
//   CALLBACK_HOOKS         two static buffers for tools
//   TLS                    the thread's current context
//   CONTEXT_LOCAL_STORAGE  a map (context, key) -> value with destructors
//   CONTEXT_CHECKS         two constants
//   INTEGRITY_CHECK        an answer over the process, its tables and its devices
//
// Three more are asked by libraries that fail without them: TOOLS_CONTEXT by cuBLAS and cuFFT,
// TOOLS_MODULE by cuFFT, TOPOLOGY by cuBLASLt, which crashes when it is refused on a GPU that it
// has kernels with clusters for. All other tables are refused; programs live without them.
//
// Use: implement Driver, call serve() once before the first getExportTable(), and contextGone()
// whenever a context is destroyed or reset. Shared by the shim and the software GPU; each library
// that links this has its own tables, hence its own Driver. Results are CUresult values.
#pragma once

#include <cstdint>
#include <span>

namespace juice::tables {

/// How cudart names a device to itself: as cuDeviceGetUuid and attributes 50, 33, 34 tell.
struct DeviceIdentity {
    uint8_t uuid[16];
    int32_t pciDomain, pciBus, pciDevice;
};

/// Where the multiprocessors of a GPU sit: for each TPC its GPC, and its place in that GPC.
struct Topology {
    std::span<const uint8_t> gpcOfTpc, tpcInGpc;
};

/// What the tables need to know of the driver that serves them. Called from any thread; none of
/// these may be slow, since the runtime asks on nearly every call.
class Driver {
  public:
    virtual ~Driver() = default;
    /// What cuDriverGetVersion answers.
    virtual int driverVersion() = 0;
    /// What cuDeviceGetCount answers.
    virtual int deviceCount() = 0;
    virtual DeviceIdentity device(int ordinal) = 0;
    /// The calling thread's current context, or null.
    virtual void* currentContext() = 0;
    /// The handle that cuDevicePrimaryCtxRetain would give, without activating it.
    virtual int primaryContext(int ordinal, void** context) = 0;
    /// Loads a module as cuModuleLoadData does, from a wrapper or a container.
    virtual int loadModule(void** module, const void* image) = 0;
    /// Of the current context's device. Empty where it is not known: the answer is 801 then.
    virtual Topology topology() { return {}; }
};

/// From now on the tables ask `driver`, which must live for ever.
void serve(Driver& driver);

/// cuGetExportTable: 0 and the table, or 1 for null arguments, 500 for a table that is not served.
int getExportTable(const void** table, const uint8_t* uuid);

/// Runs the destructors of everything stored for the context and forgets it. For the end of a
/// context: cuCtxDestroy, and for a primary one its last release or its reset.
void contextGone(void* context);

}  // namespace juice::tables
