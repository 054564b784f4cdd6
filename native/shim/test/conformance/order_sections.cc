// Streams, events, and what a faulted context still answers.
#include <unistd.h>

#include "native/shim/test/conformance/record.h"

namespace juice::conformance {
namespace {

CUfunction function(const DriverTable& cu, const char* name) {
    CUmodule module = nullptr;
    CUfunction f = nullptr;
    cu.cuModuleLoadData(&module, kPtx);
    cu.cuModuleGetFunction(&f, module, name);
    return f;
}

CUresult spin(const DriverTable& cu, CUfunction f, CUstream stream,
              unsigned long long nanoseconds) {
    void* params[] = {&nanoseconds};
    return cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
}

void streams(const DriverTable& cu, Record& record) {
    CUcontext context = begin(cu), of = nullptr;
    CUfunction busy = function(cu, "spin");
    CUstream blocking = nullptr, free = nullptr, low = nullptr;
    unsigned flags = 9;
    int priority = 99;
    unsigned long long id = 0, other = 0;
    CUdevice device = -5;
    const auto legacy = reinterpret_cast<CUstream>(1), perThread = reinterpret_cast<CUstream>(2);
    record.code("create_null", cu.cuStreamCreate(nullptr, 0));
    record.code("create_bad_flags", cu.cuStreamCreate(&free, 8));
    record.code("create", cu.cuStreamCreate(&blocking, 0));
    record.code("create_non_blocking", cu.cuStreamCreate(&free, 1));
    record.code("flags", cu.cuStreamGetFlags(free, &flags));
    record.line("flags_value", "%u", flags);
    record.code("flags_null", cu.cuStreamGetFlags(nullptr, &flags));
    record.line("flags_null_value", "%u", flags);
    record.code("flags_legacy", cu.cuStreamGetFlags(legacy, &flags));
    record.line("flags_legacy_value", "%u", flags);
    record.code("flags_per_thread", cu.cuStreamGetFlags(perThread, &flags));
    record.line("flags_per_thread_value", "%u", flags);
    for (const int wanted : {-10, -5, -3, 0, 5}) {
        cu.cuStreamCreateWithPriority(&low, 0, wanted);
        priority = 99;
        const int result = cu.cuStreamGetPriority(low, &priority);
        record.line("priority", "%d: %d %d", wanted, result, priority);
    }
    record.code("priority_null", cu.cuStreamGetPriority(nullptr, &priority));
    record.line("priority_null_value", "%d", priority);
    record.code("priority_null_out", cu.cuStreamGetPriority(blocking, nullptr));
    record.code("id", cu.cuStreamGetId(blocking, &id));
    record.code("id_null", cu.cuStreamGetId(nullptr, &other));
    record.line("id_differ", "%d", id != other);
    record.code("id_legacy", cu.cuStreamGetId(legacy, &id));
    record.line("id_legacy_same", "%d", id == other);
    record.code("context", cu.cuStreamGetCtx(blocking, &of));
    record.line("context_same", "%d", of == context);
    record.code("context_null", cu.cuStreamGetCtx(nullptr, &of));
    record.line("context_null_same", "%d", of == context);
    record.code("device", cu.cuStreamGetDevice(blocking, &device));
    record.line("device_value", "%d", device);
    record.code("query_idle", cu.cuStreamQuery(blocking));
    record.code("query_null", cu.cuStreamQuery(nullptr));
    record.code("spin", spin(cu, busy, blocking, 50'000'000));
    record.code("query_busy", cu.cuStreamQuery(blocking));
    record.code("query_null_busy", cu.cuStreamQuery(nullptr));
    record.code("query_other", cu.cuStreamQuery(free));
    record.code("synchronize", cu.cuStreamSynchronize(blocking));
    record.code("query_after", cu.cuStreamQuery(blocking));
    record.code("synchronize_null", cu.cuStreamSynchronize(nullptr));
    record.code("synchronize_per_thread", cu.cuStreamSynchronize(perThread));
    CUstreamCaptureStatus status{};
    record.code("capturing", cu.cuStreamIsCapturing(blocking, &status));
    record.line("capturing_value", "%d", static_cast<int>(status));
    record.code("capturing_null", cu.cuStreamIsCapturing(nullptr, &status));
    record.code("capturing_null_out", cu.cuStreamIsCapturing(blocking, nullptr));
    unsigned long long captureId = 77;
    CUgraph graph = reinterpret_cast<CUgraph>(77);
    const CUgraphNode* nodes = reinterpret_cast<const CUgraphNode*>(77);
    size_t count = 77;
    const CUgraphEdgeData* edges = reinterpret_cast<const CUgraphEdgeData*>(77);
    record.code("capture_info", cu.cuStreamGetCaptureInfo_v3(blocking, &status, &captureId, &graph,
                                                             &nodes, &edges, &count));
    record.line("capture_info_values", "%d %llu %llu %zu", static_cast<int>(status),
                static_cast<unsigned long long>(captureId),
                reinterpret_cast<unsigned long long>(graph), count);
    CUstreamCaptureMode mode = static_cast<CUstreamCaptureMode>(2);
    record.code("exchange", cu.cuThreadExchangeStreamCaptureMode(&mode));
    record.line("exchange_value", "%d", static_cast<int>(mode));
    mode = static_cast<CUstreamCaptureMode>(9);
    record.code("exchange_bad", cu.cuThreadExchangeStreamCaptureMode(&mode));
    record.code("wait_null_event", cu.cuStreamWaitEvent(blocking, nullptr, 0));
    CUevent event = nullptr;
    cu.cuEventCreate(&event, 0);
    record.code("wait_unrecorded", cu.cuStreamWaitEvent(blocking, event, 0));
    record.code("wait_bad_flags", cu.cuStreamWaitEvent(blocking, event, 99));
    CUstreamAttrValue value{};
    record.code("attribute_sync_policy",
                cu.cuStreamGetAttribute(blocking, static_cast<CUstreamAttrID>(3), &value));
    record.line("attribute_sync_policy_value", "%d", static_cast<int>(value.syncPolicy));
    record.code("attribute_priority",
                cu.cuStreamGetAttribute(low, static_cast<CUstreamAttrID>(8), &value));
    record.code("copy_attributes", cu.cuStreamCopyAttributes(blocking, free));
    record.code("destroy", cu.cuStreamDestroy_v2(blocking));
    record.code("destroy_null", cu.cuStreamDestroy_v2(nullptr));
    record.code("destroy_legacy", cu.cuStreamDestroy_v2(legacy));
    cu.cuCtxSetCurrent(nullptr);
    record.code("query_without_context", cu.cuStreamQuery(free));
    record.code("synchronize_without_context", cu.cuStreamSynchronize(free));
    record.code("null_without_context", cu.cuStreamSynchronize(nullptr));
    record.code("flags_without_context", cu.cuStreamGetFlags(free, &flags));
    record.code("capturing_without_context", cu.cuStreamIsCapturing(free, &status));
}

void events(const DriverTable& cu, Record& record) {
    begin(cu);
    CUfunction busy = function(cu, "spin");
    CUstream stream = nullptr;
    cu.cuStreamCreate(&stream, 1);
    CUevent a = nullptr, b = nullptr, untimed = nullptr, odd = nullptr;
    float ms = -1;
    record.code("create_null", cu.cuEventCreate(nullptr, 0));
    record.code("create", cu.cuEventCreate(&a, 0));
    record.code("create_blocking", cu.cuEventCreate(&b, 1));
    record.code("create_untimed", cu.cuEventCreate(&untimed, 2));
    record.code("create_interprocess_timed", cu.cuEventCreate(&odd, 4));
    record.code("create_interprocess", cu.cuEventCreate(&odd, 6));
    record.code("create_bad_flags", cu.cuEventCreate(&odd, 0x100));
    record.code("query_unrecorded", cu.cuEventQuery(a));
    record.code("synchronize_unrecorded", cu.cuEventSynchronize(a));
    record.code("elapsed_unrecorded", cu.cuEventElapsedTime(&ms, a, b));
    record.code("query_null", cu.cuEventQuery(nullptr));
    record.code("record_null", cu.cuEventRecord(nullptr, stream));
    record.code("record", cu.cuEventRecord(a, stream));
    spin(cu, busy, stream, 50'000'000);
    record.code("record_with_flags", cu.cuEventRecordWithFlags(b, stream, 0));
    record.code("record_bad_flags", cu.cuEventRecordWithFlags(b, stream, 0x100));
    record.code("query_busy", cu.cuEventQuery(b));
    record.code("elapsed_busy", cu.cuEventElapsedTime(&ms, a, b));
    record.code("synchronize", cu.cuEventSynchronize(b));
    record.code("query_done", cu.cuEventQuery(b));
    record.code("elapsed", cu.cuEventElapsedTime(&ms, a, b));
    record.line("elapsed_sane", "%d", ms > 25 && ms < 5000);
    record.code("elapsed_null", cu.cuEventElapsedTime(nullptr, a, b));
    record.code("elapsed_null_event", cu.cuEventElapsedTime(&ms, nullptr, b));
    cu.cuEventRecord(untimed, stream);
    cu.cuStreamSynchronize(stream);
    record.code("elapsed_untimed", cu.cuEventElapsedTime(&ms, a, untimed));
    record.code("elapsed_v2", cu.cuEventElapsedTime_v2(&ms, a, b));
    record.code("destroy", cu.cuEventDestroy_v2(a));
    record.code("destroy_null", cu.cuEventDestroy_v2(nullptr));
    cu.cuCtxSetCurrent(nullptr);
    record.code("query_without_context", cu.cuEventQuery(b));
    record.code("synchronize_without_context", cu.cuEventSynchronize(b));
    record.code("record_without_context", cu.cuEventRecord(b, stream));
    record.code("elapsed_without_context", cu.cuEventElapsedTime(&ms, b, b));
    record.code("destroy_without_context", cu.cuEventDestroy_v2(b));
    record.code("create_without_context", cu.cuEventCreate(&a, 0));
}

void sticky(const DriverTable& cu, Record& record) {
    CUcontext context = begin(cu);
    CUfunction fault = function(cu, "fault");
    CUmodule module = nullptr;
    cu.cuModuleLoadData(&module, kPtx);
    CUdeviceptr p = 0, q = 0;
    void* pinned = nullptr;
    cu.cuMemAlloc_v2(&p, 4096);
    cu.cuMemHostAlloc(&pinned, 4096, 0);
    CUevent event = nullptr;
    CUstream stream = nullptr;
    cu.cuEventCreate(&event, 0);
    cu.cuStreamCreate(&stream, 0);
    record.code("launch", cu.cuLaunchKernel(fault, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    record.code("synchronize", cu.cuStreamSynchronize(stream));
    char plain[16];
    int value = 0;
    size_t free = 0, total = 0;
    unsigned flags = 0;
    int active = 0;
    CUfunction f = nullptr;
    CUlibrary library = nullptr;
    CUevent another = nullptr;
    CUstream other = nullptr;
    CUdevice device = 0;
    record.code("synchronize_again", cu.cuStreamSynchronize(stream));
    record.code("context_synchronize", cu.cuCtxSynchronize());
    record.code("alloc", cu.cuMemAlloc_v2(&q, 64));
    record.code("alloc0", cu.cuMemAlloc_v2(&q, 0));
    record.code("host_alloc", cu.cuMemHostAlloc(&pinned, 64, 0));
    record.code("mem_info", cu.cuMemGetInfo_v2(&free, &total));
    record.code("dtoh", cu.cuMemcpyDtoH_v2(plain, p, 16));
    record.code("htod", cu.cuMemcpyHtoD_v2(p, plain, 16));
    record.code("launch_again",
                cu.cuLaunchKernel(fault, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    record.code("launch_invalid",
                cu.cuLaunchKernel(fault, 0, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    record.code("module_load", cu.cuModuleLoadData(&module, kPtx));
    record.code("library_load",
                cu.cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    record.code("get_function", cu.cuModuleGetFunction(&f, module, "store"));
    record.code("function_attribute",
                cu.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(0), fault));
    record.code("event_query", cu.cuEventQuery(event));
    record.code("event_record", cu.cuEventRecord(event, stream));
    record.code("event_create", cu.cuEventCreate(&another, 0));
    record.code("stream_create", cu.cuStreamCreate(&other, 0));
    record.code("stream_query", cu.cuStreamQuery(stream));
    record.code("stream_flags", cu.cuStreamGetFlags(stream, &flags));
    record.code("get_current", cu.cuCtxGetCurrent(&context));
    record.code("set_current", cu.cuCtxSetCurrent(context));
    record.code("get_device", cu.cuCtxGetDevice(&device));
    record.code("device_attribute",
                cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(1), 0));
    record.code("pointer_attribute",
                cu.cuPointerGetAttribute(&value, static_cast<CUpointer_attribute>(2), p));
    record.code("primary_state", cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    record.line("primary_state_values", "%u %d", flags, active);
    record.code("limit", cu.cuCtxGetLimit(&total, static_cast<CUlimit>(0)));
    record.code("host_free", cu.cuMemFreeHost(pinned));
    record.code("free", cu.cuMemFree_v2(p));
    record.code("event_destroy", cu.cuEventDestroy_v2(event));
    record.code("stream_destroy", cu.cuStreamDestroy_v2(stream));
    record.code("module_unload", cu.cuModuleUnload(module));
    record.code("create_context", cu.cuCtxCreate_v2(&context, 0, 0));
    record.code("retain", cu.cuDevicePrimaryCtxRetain(&context, 0));
    record.code("release", cu.cuDevicePrimaryCtxRelease_v2(0));
    record.code("reset", cu.cuDevicePrimaryCtxReset_v2(0));
    record.code("alloc_after_reset", cu.cuMemAlloc_v2(&q, 64));
    record.code("retain_after_reset", cu.cuDevicePrimaryCtxRetain(&context, 0));
    record.code("set_after_reset", cu.cuCtxSetCurrent(context));
    record.code("alloc_after_retain", cu.cuMemAlloc_v2(&q, 64));
}

}  // namespace

const Section kStreams{"streams", streams};
const Section kEvents{"events", events};
const Section kSticky{"sticky", sticky};

}  // namespace juice::conformance
