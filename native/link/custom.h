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

/// What a Callback of the link is about; its id is of that kind.
enum class Called : uint32_t {
    function = 0,       // HostCall::id
    graphFunction = 1,  // GraphHost::gate
    launched = 2,       // GraphLaunch::token: all of the launch is done, or has failed
    userObject = 3,     // UserObject::destroyed: nothing refers to it any more
};
/// cuLaunchHostFunc and cuStreamAddCallback: the stream stops here until the client has called the
/// function that it knows by `id`. Posted. A Callback for it comes in any case, with an error where
/// the stream does not get here. In a captured stream it becomes a host node, and nothing comes.
struct HostCall {
    uint64_t id;  // the client's, used once
    uint64_t stream;
    uint64_t captured;  // 1: the client knows the stream as captured
};

// ---- Captures and graphs. Graphs, their nodes, executable graphs and user objects go by *numbers*
// that the worker gives out, never 0; it forgets the number of a node with its graph. Calls with
// results are waited.

/// A node and the data of the edge to or from it.
struct NodeEdge {
    uint64_t node;
    uint8_t data[8];  // CUgraphEdgeData
};
/// juiceCaptureMode: the client thread's cuThreadExchangeStreamCaptureMode.
struct CaptureMode {
    uint64_t mode;
};
/// cuStreamBeginCapture_v2 and cuStreamBeginCaptureToGraph: followed by `dependencies` NodeEdge.
/// Results: u64 id of the capture.
struct CaptureBegin {
    uint64_t stream;
    uint64_t graph;  // 0: a new one
    uint32_t mode;
    uint32_t dependencies;
};
/// cuStreamEndCapture {u64 stream}. Results: u64 graph.
/// cuStreamGetCaptureInfo_v3 {u64 stream}. Results: CaptureInfo, then its NodeEdges.
struct CaptureInfo {
    uint64_t id, graph;
    uint32_t status, dependencies;
};
/// cuStreamUpdateCaptureDependencies_v2: followed by `dependencies` NodeEdge. Waited, no results.
struct CaptureUpdate {
    uint64_t stream;
    uint32_t flags, dependencies;
};

/// cuGraphCreate {u64 flags}, cuGraphClone {u64 graph}: results u64 graph.
/// cuGraphDestroy {u64 graph}, cuGraphDestroyNode {u64 node}: waited, no results.
/// cuGraphNodeFindInClone {u64 node, u64 graph}: results u64 node.
/// cuGraphDebugDotPrint {u64 graph, u64 flags}: results the text, without a length.
/// juiceGraphList: results u32 n, u32 0, n NodeEdge; of edges 2n: from (with the data) and to.
struct GraphList {
    uint64_t of;    // a graph or a node
    uint64_t what;  // GraphListed
};
enum class GraphListed : uint64_t { nodes, roots, edges, dependencies, dependents };
constexpr uint32_t kMaxListed = 30000;  // nodes that fit in a frame
/// juiceGraphConnect: cuGraphAddDependencies_v2, cuGraphRemoveDependencies_v2. Followed by `count`
/// pairs of NodeEdge, from (with the data) and to. Waited, no results.
struct GraphConnect {
    uint64_t graph;
    uint32_t remove, count;
};

/// The parameters of a node travel as a NodeParams, then what its type needs:
///   kernel      Launch (stream 0, no attributes), the parameter buffer
///   memcpy      u64 context id or 0, CUDA_MEMCPY3D
///   memset      u64 context id or 0, CUDA_MEMSET_NODE_PARAMS
///   host        u64 function
///   graph       u64 graph
///   event       u64 event id (record and wait)
///   memory ops  u64 context id or 0, u32 flags, u32 count, count CUstreamBatchMemOpParams
///   allocation  CUDA_MEM_ALLOC_NODE_PARAMS without descriptors (no pointers), u32 0, u32 count,
///   count CUmemAccessDesc
///   free        u64 address
///   empty       nothing
struct NodeParams {
    uint64_t type;  // CUgraphNodeType
};
/// juiceGraphAddNode: followed by `dependencies` NodeEdge, and the parameters.
/// Results: u64 node, u64 of its type: the child graph's number, the allocation's address, or 0.
struct GraphAddNode {
    uint64_t graph;
    uint64_t dependencies;
};
/// juiceGraphSetNode: followed by the parameters. `exec` 0: of the node itself. Waited. Results: a
/// GraphFacts where exec is given.
struct GraphSetNode {
    uint64_t exec;
    uint64_t node;
};
/// juiceGraphGetNode {u64 node}: results the parameters. cuGraphNodeGetType {u64 node}: u64 type.
/// cuGraphKernelNodeGetAttribute {u64 node, u64 attribute}: 64 bytes.
/// cuGraphKernelNodeSetAttribute {u64 node, u64 attribute, 64 bytes},
/// cuGraphKernelNodeCopyAttributes {u64 to, u64 from}: waited, no results.

/// What of pinned memory an executable graph reads and writes, and its functions: u32 reads, u32
/// writes, u32 functions, u32 0, then reads + writes HostSpan and GraphHosts.
struct HostSpan {
    uint64_t address, size;
};
struct GraphHost {
    uint64_t gate;      // of a Callback
    uint64_t function;  // HostCall::id, or of a host node's parameters
};
/// cuGraphInstantiateWithParams {u64 graph, u64 flags}. Results: u64 exec (0: an error), u64 error
/// node or 0, u64 CUgraphInstantiateResult, and with exec the GraphFacts.
/// cuGraphExecDestroy {u64 exec}: posted. cuGraphUpload {u64 exec, u64 stream}: posted.
/// cuGraphExecUpdate_v2 {u64 exec, u64 graph}: results u64 result, u64 node, u64 from node, and on
/// success the GraphFacts.
/// cuGraphNodeSetEnabled {u64 exec, u64 node, u64 enabled}: waited, no results;
/// cuGraphNodeGetEnabled {u64 exec, u64 node}: u64.
/// cuGraphLaunch: posted; followed by a transfer for each span that the graph writes, none in a
/// captured stream. With functions in it, Callbacks come, the last one of kind `launched`.
struct GraphLaunch {
    uint64_t exec, stream;
    uint64_t token;      // of the last callback
    uint64_t transfers;  // their number
};

/// cuUserObjectCreate: results u64 object. cuUserObjectRetain/Release {u64 object, u64 count},
/// cuGraphRetainUserObject/ReleaseUserObject {u64 graph, u64 object, u64 count, u64 flags}: waited,
/// no results.
struct UserObject {
    uint64_t destroyed;  // id of the Callback
    uint32_t count, flags;
};
/// cuDeviceGetGraphMemAttribute {u64 ordinal, u64 attribute}: results u64.
/// cuDeviceSetGraphMemAttribute {u64 ordinal, u64 attribute, u64 value}, cuDeviceGraphMemTrim {u64
/// ordinal}: waited, no results.

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
