// Payloads of the calls that are written by hand on both sides. Everything else is generated: its
// payload is the entry's arguments in order, as native/codegen writes them.
//
// A call's payload begins with its struct, raw; what follows the struct, and what its Reply carries
// after ReplyHead, stands in the struct's comment. Every struct is free of padding. Unless a
// comment says otherwise a call without results is *posted* and one with results is *waited*; any
// posted call may also be waited for (JUICE_STRICT), then its Reply has no results.
//
// Words: an *id* is a wire id (docs/architecture.md, Handles), never 0 unless "0: none". A *stream*
// is the wire's form of one: 0 or 1 the legacy default, 2 the client thread's own, else 16 + id. A
// *transfer* is an id of bulk data, from ClientLink::mintTransfer (towards the worker) or
// ClientLink::expect (towards the client). Context ids must fit in 32 bits, as Header::context
// does.
//
// Not listed, because their generated payload says it all, although the worker treats them apart:
//   cuStreamSynchronize {u64 stream}   cuStreamQuery {u64 stream}   cuEventSynchronize {u64 event
//   id} cuEventQuery {u64 event id}        cuCtxSynchronize {}          (the header's context)
// Every answer of the worker presupposes the delivery of all mirrored copies that had completed
// when it was given (ReplyHead::landed), so a success of any of these means "landed" as well.
#pragma once

#include <cstdint>
#include <type_traits>

#include "native/link/codec.h"

namespace juice::custom {

/// Writes or reads a struct as it stands.
template <typename T>
requires(std::is_trivially_copyable_v<T>&& std::has_unique_object_representations_v<T>) void put(
    Writer& out, const T& value) {
    out.raw(&value, sizeof value);
}
template <typename T>
requires(std::is_trivially_copyable_v<T>&& std::has_unique_object_representations_v<T>) T
    get(Reader& in) {
    T value{};
    in.raw(&value, sizeof value);
    return value;
}

// ---- Contexts

/// cuDevicePrimaryCtxRetain: the first retain of a device's primary context by this process, or the
/// first after a release or reset. Waited, no results: it tells of a lack of memory.
/// The shim counts retains itself.
struct PrimaryRetain {
    uint64_t id;
    int32_t device;
    uint32_t reserved;
};
/// cuDevicePrimaryCtxRelease_v2 (the last release) and cuDevicePrimaryCtxReset_v2: everything that
/// the context owns is gone, ids included. The next use begins with PrimaryRetain, under a new id
/// or the old one.
struct PrimaryEnd {
    int32_t device;
    uint32_t reserved;
};
/// cuDevicePrimaryCtxSetFlags_v2
struct PrimaryFlags {
    int32_t device;
    uint32_t flags;
};
/// cuCtxCreate_v2, and the later versions with no parameters. Waited, no results.
struct ContextCreate {
    uint64_t id;
    uint32_t flags;
    int32_t device;
};
/// cuCtxDestroy_v2: as PrimaryEnd, for a context of its own.
struct ContextDestroy {
    uint64_t id;
};

// ---- Images

/// Names a part of an image (native/image: a container, a cubin, or PTX with its NUL) by content.
struct PartName {
    uint8_t sha256[32];
    uint64_t size;
};
/// A CUjit_option or CUlibraryOption with a value that is no pointer. Log buffers are named by
/// their size options alone; the logs come back in the Reply.
struct LoadOption {
    uint32_t option;
    uint32_t reserved;
    uint64_t value;
};
/// cuModuleLoadDataEx (every way to load a module) and cuLibraryLoadData (every way to load a
/// library). Followed by `parts` PartName, `jitOptions` LoadOption and `libraryOptions` LoadOption.
/// Waited. Results: u32 LoadStatus, then
///   missing  u32 n, n u32: indices of parts to upload (ImagePart) before the same call is made
///   again else     text info log, text error log (empty unless asked for), f32 wall time of a JIT
///   in ms, and,
///            when the head's result is success, a KernelPage
/// A second `missing` for the same image means that the worker has no room: give up with 2 (out of
/// memory).
struct ImageLoad {
    uint64_t id;              // of the module or the library to be
    uint32_t kind;            // image::Kind
    uint32_t wrapperVersion;  // 1 or 2 for a wrapper, else 0
    uint32_t parts;
    uint32_t jitOptions;
    uint32_t libraryOptions;
    uint32_t reserved;
};
enum class LoadStatus : uint32_t { done = 0, missing = 1 };
constexpr uint32_t kMaxParts = 16384;
constexpr uint32_t kMaxLoadOptions = 64;

/// juiceImagePart: the bytes of one part, inline (they follow) or as a transfer of name.size bytes.
struct ImagePart {
    PartName name;
    uint64_t transfer;  // 0: inline
};

/// A page of the kernels of a module or library, in the driver's order:
///   u32 kernels in all, u32 kernels in this page, then for each: text name, u32 parameters, for
///   each parameter u32 offset, u32 size in the parameter buffer.
/// juiceKernelList asks for the kernels from index `from` on; the Reply's result is a KernelPage.
/// The first page is part of the load's Reply, and most often the only one.
struct KernelList {
    uint64_t id;  // of a module or library
    uint32_t from;
    uint32_t reserved;
};

/// cuModuleGetFunction {parent module, id of the function} and cuLibraryGetKernel {parent library,
/// id of the kernel}: followed by text name, which the shim has found among the kernels.
/// cuLibraryGetModule {parent library, id of the module} and cuKernelGetFunction {parent kernel, id
/// of the function, in the header's context}: nothing follows.
struct Child {
    uint64_t parent;
    uint64_t id;
};
/// cuModuleUnload, cuLibraryUnload: the id and everything found through it are gone.
struct Unload {
    uint64_t id;
};
/// cuModuleGetGlobal_v2, cuLibraryGetGlobal, cuLibraryGetManaged: followed by text name.
/// Results: u64 address, u64 size, u32 managed (1: managed memory, which has a mirror that can be
/// made coherent).
struct GlobalOf {
    uint64_t parent;
};
/// juiceFunctionInfo: all attributes of a function or kernel, for the header's context.
/// Results: u32 n, n i32: the values of CUfunction_attribute 0..n-1, INT32_MIN where the driver
/// refuses.
struct FunctionInfo {
    uint64_t id;
};

// ---- Launches

/// cuLaunchKernel, cuLaunchCooperativeKernel, cuLaunchKernelEx: followed by `paramBytes` bytes, the
/// parameter buffer as CU_LAUNCH_PARAM_BUFFER_POINTER takes it, and `attributes` LaunchAttribute.
struct Launch {
    uint64_t function;  // id of a function or of a kernel
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t sharedBytes;  // dynamic
    uint32_t paramBytes;
    uint64_t stream;
    uint32_t attributes;
    uint32_t reserved;
};
/// A CUlaunchAttribute. An event in the value's first eight bytes (programmatic event, launch
/// completion event) is replaced by its id. Attributes that need other handles are refused by the
/// shim.
struct LaunchAttribute {
    uint32_t id;  // CUlaunchAttributeID
    uint32_t reserved;
    uint8_t value[64];
};
constexpr uint32_t kMaxParamBytes = 32764;
constexpr uint32_t kMaxLaunchAttributes = 32;

// ---- Device memory

/// cuMemAlloc_v2. Results: u64 address.
struct Alloc {
    uint64_t size;
};
/// cuMemAllocPitch_v2. Results: u64 address, u64 pitch.
struct AllocPitch {
    uint64_t width, height;
    uint32_t elementBytes;
    uint32_t reserved;
};
/// cuMemAllocAsync, from the device's current pool. Results: u64 address.
struct AllocAsync {
    uint64_t size;
    uint64_t stream;
};
/// cuMemFree_v2.
struct Free {
    uint64_t address;
};
/// cuMemFreeAsync.
struct FreeAsync {
    uint64_t address;
    uint64_t stream;
};
/// cuMemAllocManaged. Results: u64 address. The memory has a mirror that is coherent from the
/// start; cuMemFree_v2 frees it.
struct ManagedAlloc {
    uint64_t size;
};
// cuMemGetInfo_v2: nothing. Results: u64 free, u64 total; the lease's limit where one is set.

// ---- Copies. Host memory is the client's: `Host` says how its bytes travel.

enum class Host : uint32_t {
    inlined = 0,   // in the Call or the Reply; at most wire::kInlineLimit bytes
    transfer = 1,  // as bulk data
    mirror = 2,    // the worker's mirror of pinned memory, in stream order
};

/// cuMemcpyHtoDAsync_v2, and cuMemcpyHtoD_v2 with its stream made explicit. Posted.
/// Inlined bytes follow. From a mirror the copy reads what the mirror holds when the stream gets
/// there.
struct CopyIn {
    uint64_t stream;
    uint64_t destination;
    uint64_t size;
    uint32_t host;  // Host
    uint32_t reserved;
    uint64_t where;  // the transfer, or the host address inside a live mirror
};
/// cuMemcpyDtoHAsync_v2, and cuMemcpyDtoH_v2 with its stream made explicit.
/// inlined   waited; results: `size` bytes
/// transfer  waited; answered when all of it has been copied, the bytes travel as `transfer`
/// mirror    posted: copied to the mirror in stream order, then sent as `transfer`. With `wait` it
/// is waited and
///           answered when the copy has completed (a blocking copy to pinned memory). Without a
///           transfer (0) the mirror is coherent, and a watch sends what has changed.
struct CopyOut {
    uint64_t stream;
    uint64_t source;
    uint64_t size;
    uint32_t host;      // Host
    uint32_t wait;      // mirror only: 0 or 1
    uint64_t address;   // mirror: host address inside a live mirror
    uint64_t transfer;  // transfer, mirror (or 0)
};
/// cuMemcpyDtoDAsync_v2, and cuMemcpyDtoD_v2.
struct CopyDevice {
    uint64_t stream;
    uint64_t destination;
    uint64_t source;
    uint64_t size;
};
/// cuMemcpyPeerAsync, and cuMemcpyPeer.
struct CopyPeer {
    uint64_t stream;
    uint64_t destination;
    uint64_t destinationContext;  // id
    uint64_t source;
    uint64_t sourceContext;  // id
    uint64_t size;
};

/// One end of a box copy.
struct BoxSide {
    uint32_t place;  // Place
    uint32_t reserved;
    uint64_t where;   // device: address of the first byte to copy; mirror: host address of it;
                      // transfer: its id
    uint64_t pitch;   // device and mirror: bytes from row to row
    uint64_t height;  // device and mirror: rows from slice to slice
};
/// inlined and transfer carry the rows packed: width * height * depth bytes.
enum class Place : uint32_t { inlined = 0, transfer = 1, mirror = 2, device = 3 };
/// cuMemcpy3DAsync_v2: every 2D and 3D copy between linear memories, one end of it at least in the
/// device. Towards the client it is waited unless the target is a mirror (then `transfer` carries
/// the packed rows when it has completed, and the client scatters them; or it is 0, as in CopyOut).
/// Inlined source bytes follow; results of an inlined target: the packed bytes.
struct CopyBox {
    uint64_t stream;
    uint64_t width;  // bytes
    uint64_t height, depth;
    BoxSide source, target;
    uint64_t transfer;  // target mirror: the transfer; else 0
    uint32_t wait;      // target mirror: as in CopyOut
    uint32_t reserved;
};

// ---- Pinned memory

/// cuMemHostAlloc, and cuMemAllocHost_v2 (flags 0).
/// Results: u64 host address (the worker's; inside the arena), u64 device address, u32 flags as
/// cuMemHostGetFlags tells them, u32 0.
struct HostAlloc {
    uint64_t size;
    uint32_t flags;
    uint32_t reserved;
};
/// cuMemHostRegister_v2. Results: u64 device address (0 when not mirrored), u32 flags, u32 mirrored
/// (0: the worker has no memory at this address; the range is copy-only: treat it as pageable).
struct HostRegister {
    uint64_t address;
    uint64_t size;
    uint32_t flags;
    uint32_t reserved;
};
/// cuMemFreeHost and cuMemHostUnregister. Waited, no results: mirrored copies in flight land first.
struct HostFree {
    uint64_t address;
};
/// juiceMirrorPush: the client's bytes go into the mirror at once (inlined bytes follow, or a
/// transfer).
struct MirrorPush {
    uint64_t address;
    uint64_t size;
    uint64_t transfer;  // 0: inlined
};

// ---- Other processes of the session, by the driver's own handles
//
// cuIpcGetMemHandle {u64 address}: results: the 64 bytes of the handle.
// cuIpcOpenMemHandle_v2 {64 bytes, u32 flags}: results: u64 address, u64 base, u64 size (of the
// whole range).
// cuIpcCloseMemHandle {u64 address}: results: u32 gone (0: it was opened more often).
// cuIpcGetEventHandle {u64 event id}: results: the 64 bytes of the handle.
// cuIpcOpenEventHandle {u64 id of the event to be, 64 bytes}. Waited, no results.

// ---- Coherence: pinned memory that device code reads and writes itself (wire.h, "Coherence")

/// juiceMirrorCohere: from now on the mirror that begins there is kept the same as the client's
/// memory, by patches both ways. It is zero when the answer is given, and so is what both ends
/// compare with; only a managed variable stays as it is, which a patch before the answer tells.
/// Waited, no results.
struct MirrorCohere {
    uint64_t address;
};
/// juiceWatch: when the stream has got here, what the device has changed in coherent memory is
/// sent, and answers given after that presuppose it; until then changes are sent now and then.
/// Posted after each work that may touch coherent memory. A patch's `watches` counts those that are
/// over.
struct Watch {
    uint64_t stream;
};

}  // namespace juice::custom
