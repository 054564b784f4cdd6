// Devices, contexts and what may be asked before cuInit.
#include <cstring>

#include "native/shim/test/conformance/record.h"

namespace juice::conformance {
namespace {

void uninitialised(const DriverTable& cu, Record& record) {
    int count = 0, version = 0;
    CUcontext context = nullptr;
    CUdeviceptr pointer = 0;
    CUstream stream = nullptr;
    size_t bytes = 0;
    const char* text = nullptr;
    unsigned flags = 0;
    int active = 0;
    CUmoduleLoadingMode mode{};
    record.code("driver_version", cu.cuDriverGetVersion(&version));
    record.code("driver_version_null", cu.cuDriverGetVersion(nullptr));
    record.code("device_count", cu.cuDeviceGetCount(&count));
    record.code("get_current", cu.cuCtxGetCurrent(&context));
    record.code("set_current_null", cu.cuCtxSetCurrent(nullptr));
    record.code("primary_state", cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    record.code("alloc", cu.cuMemAlloc_v2(&pointer, 16));
    record.code("alloc0", cu.cuMemAlloc_v2(&pointer, 0));
    record.code("free0", cu.cuMemFree_v2(0));
    record.code("stream_create", cu.cuStreamCreate(&stream, 0));
    record.code("mem_info", cu.cuMemGetInfo_v2(&bytes, &bytes));
    record.code("loading_mode", cu.cuModuleGetLoadingMode(&mode));
    record.code("error_string", cu.cuGetErrorString(CUDA_SUCCESS, &text));
    record.code("error_string_unknown", cu.cuGetErrorString(static_cast<CUresult>(12345), &text));
    record.code("init_flags", cu.cuInit(1));
    record.code("launch_null",
                cu.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
}

void devices(const DriverTable& cu, Record& record) {
    record.code("init", cu.cuInit(0));
    record.code("init_again", cu.cuInit(0));
    CUdevice device = -5;
    int value = -1;
    char name[256];
    size_t bytes = 0;
    CUuuid first{}, second{};
    unsigned flags = 9;
    int active = 9;
    record.code("get_out_of_range", cu.cuDeviceGet(&device, 1000));
    record.code("get_negative", cu.cuDeviceGet(&device, -1));
    record.code("get_null", cu.cuDeviceGet(nullptr, 0));
    record.code("count_null", cu.cuDeviceGetCount(nullptr));
    record.code("name_bad_device", cu.cuDeviceGetName(name, 256, 1000));
    std::memset(name, 'x', sizeof name);
    record.code("name_short", cu.cuDeviceGetName(name, 5, 0));
    record.line("name_short_bytes", "%d %d", static_cast<int>(std::strlen(name)), name[4]);
    record.code("total_null", cu.cuDeviceTotalMem_v2(nullptr, 0));
    record.code("total_bad_device", cu.cuDeviceTotalMem_v2(&bytes, 1000));
    record.code("attribute_0",
                cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0));
    record.code("attribute_9999",
                cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(9999), 0));
    record.code("attribute_bad_device",
                cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(1), 1000));
    record.code("attribute_null",
                cu.cuDeviceGetAttribute(nullptr, static_cast<CUdevice_attribute>(1), 0));
    record.code("uuid", cu.cuDeviceGetUuid(&first, 0));
    record.code("uuid_v2", cu.cuDeviceGetUuid_v2(&second, 0));
    record.line("uuids_equal", "%d", std::memcmp(&first, &second, 16) == 0);
    std::memset(name, 0, sizeof name);
    record.code("pci", cu.cuDeviceGetPCIBusId(name, 64, 0));
    record.line("pci_length", "%zu", std::strlen(name));
    record.code("by_pci", cu.cuDeviceGetByPCIBusId(&device, name));
    record.code("by_pci_short", cu.cuDeviceGetByPCIBusId(&device, std::strchr(name, ':') + 1));
    record.code("by_pci_unknown", cu.cuDeviceGetByPCIBusId(&device, "0000:fe:1f.0"));
    record.code("by_pci_garbage", cu.cuDeviceGetByPCIBusId(&device, "garbage"));
    record.code("pci_short", cu.cuDeviceGetPCIBusId(name, 5, 0));
    record.line("pci_short_text", "%zu", std::strlen(name));
    record.code("peer_self", cu.cuDeviceCanAccessPeer(&value, 0, 0));
    record.line("peer_self_value", "%d", value);
    record.code("p2p_self",
                cu.cuDeviceGetP2PAttribute(&value, static_cast<CUdevice_P2PAttribute>(1), 0, 0));
    record.code("state_bad_device", cu.cuDevicePrimaryCtxGetState(1000, &flags, &active));
    record.code("state_nulls", cu.cuDevicePrimaryCtxGetState(0, nullptr, nullptr));
    CUmoduleLoadingMode mode{};
    record.code("loading_mode", cu.cuModuleGetLoadingMode(&mode));
    record.line("loading_mode_value", "%d", static_cast<int>(mode));
    int major = 0, minor = 0;
    record.code("compute_capability", cu.cuDeviceComputeCapability(&major, &minor, 0));
    CUdevprop properties{};
    record.code("properties", cu.cuDeviceGetProperties(&properties, 0));
    record.line("properties_values", "%d %d %d %d %d", properties.maxThreadsPerBlock,
                properties.sharedMemPerBlock, properties.SIMDWidth, properties.regsPerBlock,
                properties.textureAlign);
    record.code("exec_affinity",
                cu.cuDeviceGetExecAffinitySupport(&value, static_cast<CUexecAffinityType>(0), 0));
    record.line("exec_affinity_value", "%d", value);
    unsigned mask = 0;
    record.code("luid", cu.cuDeviceGetLuid(name, &mask, 0));
}

void contexts(const DriverTable& cu, Record& record) {
    cu.cuInit(0);
    CUcontext none = nullptr, a = nullptr, b = nullptr, popped = nullptr;
    CUdevice device = -5;
    unsigned value = 0;
    unsigned long long id = 0, other = 0;
    size_t limit = 0;
    int least = 9, greatest = 9;
    record.code("push_null", cu.cuCtxPushCurrent_v2(nullptr));
    record.code("pop_empty", cu.cuCtxPopCurrent_v2(&popped));
    record.code("get_current_null", cu.cuCtxGetCurrent(nullptr));
    record.code("set_null_on_empty", cu.cuCtxSetCurrent(nullptr));
    record.code("device_without", cu.cuCtxGetDevice(&device));
    record.code("sync_without", cu.cuCtxSynchronize());
    record.code("flags_without", cu.cuCtxGetFlags(&value));
    record.code("limit_without", cu.cuCtxGetLimit(&limit, static_cast<CUlimit>(0)));
    record.code("priority_without", cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    record.code("api_version_null", cu.cuCtxGetApiVersion(nullptr, &value));
    record.code("id_null", cu.cuCtxGetId(nullptr, &id));
    record.code("destroy_null", cu.cuCtxDestroy_v2(nullptr));
    record.code("create_bad_device", cu.cuCtxCreate_v2(&a, 0, 1000));
    record.code("create_bad_flags", cu.cuCtxCreate_v2(&a, 0xf000, 0));
    record.code("create_null", cu.cuCtxCreate_v2(nullptr, 0, 0));
    record.code("create", cu.cuCtxCreate_v2(&a, 0, 0));
    record.code("flags", cu.cuCtxGetFlags(&value));
    record.line("flags_value", "%u", value);
    record.code("api_version", cu.cuCtxGetApiVersion(a, &value));
    record.line("api_version_value", "%u", value);
    record.code("api_version_current", cu.cuCtxGetApiVersion(nullptr, &value));
    record.code("id", cu.cuCtxGetId(a, &id));
    record.code("create_second", cu.cuCtxCreate_v2(&b, 4, 0));
    record.code("id_second", cu.cuCtxGetId(b, &other));
    record.line("ids_differ", "%d", id != other);
    record.code("flags_second", cu.cuCtxGetFlags(&value));
    record.line("flags_second_value", "%u", value);
    record.code("set_flags", cu.cuCtxSetFlags(1));
    record.code("flags_after", cu.cuCtxGetFlags(&value));
    record.line("flags_after_value", "%u", value);
    cu.cuCtxGetCurrent(&none);
    record.line("second_is_current", "%d", none == b);
    record.code("pop", cu.cuCtxPopCurrent_v2(&popped));
    record.line("popped_second", "%d", popped == b);
    cu.cuCtxGetCurrent(&none);
    record.line("first_is_current", "%d", none == a);
    record.code("set_replaces", cu.cuCtxSetCurrent(b));
    record.code("pop_replaced", cu.cuCtxPopCurrent_v2(&popped));
    record.line("pop_replaced_is_second", "%d", popped == b);
    cu.cuCtxGetCurrent(&none);
    record.line("stack_empty_after", "%d", none == nullptr);
    record.code("push_a", cu.cuCtxPushCurrent_v2(a));
    record.code("push_a_again", cu.cuCtxPushCurrent_v2(a));
    record.code("pop_null_out", cu.cuCtxPopCurrent_v2(nullptr));
    record.code("push_b", cu.cuCtxPushCurrent_v2(b));
    record.code("set_null", cu.cuCtxSetCurrent(nullptr));
    cu.cuCtxGetCurrent(&none);
    record.line("after_set_null", "%s", none == nullptr ? "null" : none == a ? "first" : "second");
    cu.cuCtxSetCurrent(a);
    CUdeviceptr pointer = 0;
    record.code("alloc", cu.cuMemAlloc_v2(&pointer, 4096));
    record.code("cache_config", cu.cuCtxSetCacheConfig(static_cast<CUfunc_cache>(1)));
    CUfunc_cache config{};
    record.code("cache_config_get", cu.cuCtxGetCacheConfig(&config));
    record.line("cache_config_value", "%d", static_cast<int>(config));
    record.code("cache_config_bad", cu.cuCtxSetCacheConfig(static_cast<CUfunc_cache>(77)));
    CUsharedconfig shared{};
    record.code("shared_config_get", cu.cuCtxGetSharedMemConfig(&shared));
    record.line("shared_config_value", "%d", static_cast<int>(shared));
    record.code("shared_config_set", cu.cuCtxSetSharedMemConfig(static_cast<CUsharedconfig>(2)));
    record.code("limit_bad", cu.cuCtxGetLimit(&limit, static_cast<CUlimit>(99)));
    record.code("limit_null", cu.cuCtxGetLimit(nullptr, static_cast<CUlimit>(0)));
    record.code("limit_stack_set", cu.cuCtxSetLimit(static_cast<CUlimit>(0), 1000));
    cu.cuCtxGetLimit(&limit, static_cast<CUlimit>(0));
    record.line("limit_stack", "%zu", limit);
    record.code("limit_printf_set", cu.cuCtxSetLimit(static_cast<CUlimit>(1), 1 << 20));
    cu.cuCtxGetLimit(&limit, static_cast<CUlimit>(1));
    record.line("limit_printf", "%zu", limit);
    record.code("limit_heap_set", cu.cuCtxSetLimit(static_cast<CUlimit>(2), 16 << 20));
    cu.cuCtxGetLimit(&limit, static_cast<CUlimit>(2));
    record.line("limit_heap", "%zu", limit);
    record.code("limit_sync_depth_set", cu.cuCtxSetLimit(static_cast<CUlimit>(3), 4));
    record.code("limit_fetch_set", cu.cuCtxSetLimit(static_cast<CUlimit>(5), 128));
    cu.cuCtxGetLimit(&limit, static_cast<CUlimit>(5));
    record.line("limit_fetch", "%zu", limit);
    record.code("limit_bad_set", cu.cuCtxSetLimit(static_cast<CUlimit>(99), 4));
    record.code("priority_null", cu.cuCtxGetStreamPriorityRange(nullptr, nullptr));
    record.code("reset_l2", cu.cuCtxResetPersistingL2Cache());
    record.code("attach", cu.cuCtxAttach(&none, 0));
    record.code("detach", cu.cuCtxDetach(none));
    record.code("peer_self", cu.cuCtxEnablePeerAccess(a, 0));
    record.code("peer_null", cu.cuCtxEnablePeerAccess(nullptr, 0));
    record.code("peer_disable", cu.cuCtxDisablePeerAccess(b));
    record.code("device_v2", cu.cuCtxGetDevice_v2(&device, b));
    record.code("device_v2_null", cu.cuCtxGetDevice_v2(&device, nullptr));
    record.code("sync_v2", cu.cuCtxSynchronize_v2(b));
    record.code("sync_v2_null", cu.cuCtxSynchronize_v2(nullptr));
    record.code("destroy_current", cu.cuCtxDestroy_v2(a));
    cu.cuCtxGetCurrent(&none);
    record.line("current_after_destroy", "%s",
                none == nullptr ? "null"
                : none == a     ? "the destroyed"
                                : "the other");
    record.code("alloc_after_destroy", cu.cuMemAlloc_v2(&pointer, 4096));
    record.code("set_destroyed", cu.cuCtxSetCurrent(a));
    record.code("alloc_with_destroyed", cu.cuMemAlloc_v2(&pointer, 4096));
    record.code("destroy_again", cu.cuCtxDestroy_v2(a));
    record.code("create_v4_null", cu.cuCtxCreate_v4(&b, nullptr, 0, 0));
    record.code("api_version_v4", cu.cuCtxGetApiVersion(b, &value));
    record.line("api_version_v4_value", "%u", value);
    record.code("create_v3", cu.cuCtxCreate_v3(&a, nullptr, 0, 0, 0));
    record.code("api_version_v3", cu.cuCtxGetApiVersion(a, &value));
    record.line("api_version_v3_value", "%u", value);
}

void primary(const DriverTable& cu, Record& record) {
    cu.cuInit(0);
    CUcontext context = nullptr, again = nullptr, current = nullptr;
    unsigned flags = 9;
    int active = 9;
    CUdeviceptr pointer = 0;
    unsigned long long id = 0;
    record.code("release_unretained", cu.cuDevicePrimaryCtxRelease_v2(0));
    record.code("reset_inactive", cu.cuDevicePrimaryCtxReset_v2(0));
    record.code("retain_bad_device", cu.cuDevicePrimaryCtxRetain(&context, 1000));
    record.code("retain_null", cu.cuDevicePrimaryCtxRetain(nullptr, 0));
    record.code("set_flags", cu.cuDevicePrimaryCtxSetFlags_v2(0, 4));
    record.code("set_flags_bad", cu.cuDevicePrimaryCtxSetFlags_v2(0, 0xf000));
    cu.cuDevicePrimaryCtxGetState(0, &flags, &active);
    record.line("state_before", "%u %d", flags, active);
    record.code("retain", cu.cuDevicePrimaryCtxRetain(&context, 0));
    cu.cuDevicePrimaryCtxGetState(0, &flags, &active);
    record.line("state_after", "%u %d", flags, active);
    cu.cuCtxGetCurrent(&current);
    record.line("retain_makes_current", "%d", current != nullptr);
    record.code("retain_again", cu.cuDevicePrimaryCtxRetain(&again, 0));
    record.line("same_handle", "%d", context == again);
    cu.cuCtxSetCurrent(context);
    record.code("flags", cu.cuCtxGetFlags(&flags));
    record.line("flags_value", "%u", flags);
    record.code("set_flags_active", cu.cuDevicePrimaryCtxSetFlags_v2(0, 1));
    cu.cuDevicePrimaryCtxGetState(0, &flags, &active);
    record.line("state_flags_active", "%u %d", flags, active);
    record.code("api_version", cu.cuCtxGetApiVersion(context, &flags));
    record.line("api_version_value", "%u", flags);
    record.code("id", cu.cuCtxGetId(context, &id));
    record.code("destroy_primary", cu.cuCtxDestroy_v2(context));
    record.code("alloc", cu.cuMemAlloc_v2(&pointer, 64));
    record.code("release", cu.cuDevicePrimaryCtxRelease_v2(0));
    cu.cuDevicePrimaryCtxGetState(0, &flags, &active);
    record.line("state_after_release", "%u %d", flags, active);
    record.code("release_last", cu.cuDevicePrimaryCtxRelease_v2(0));
    cu.cuDevicePrimaryCtxGetState(0, &flags, &active);
    record.line("state_after_last", "%u %d", flags, active);
    record.code("release_more", cu.cuDevicePrimaryCtxRelease_v2(0));
    cu.cuCtxGetCurrent(&current);
    record.line("current_after_release", "%d", current == context);
    record.code("alloc_inactive", cu.cuMemAlloc_v2(&pointer, 64));
    record.code("free_inactive", cu.cuMemFree_v2(pointer));
    record.code("device_inactive", cu.cuCtxGetDevice(&active));
    record.code("sync_inactive", cu.cuCtxSynchronize());
    record.code("set_inactive", cu.cuCtxSetCurrent(context));
    record.code("push_inactive", cu.cuCtxPushCurrent_v2(context));
    record.code("retain_anew", cu.cuDevicePrimaryCtxRetain(&again, 0));
    record.line("same_handle_anew", "%d", context == again);
    record.code("alloc_anew", cu.cuMemAlloc_v2(&pointer, 64));
    record.code("reset", cu.cuDevicePrimaryCtxReset_v2(0));
    cu.cuDevicePrimaryCtxGetState(0, &flags, &active);
    record.line("state_after_reset", "%u %d", flags, active);
    record.code("alloc_after_reset", cu.cuMemAlloc_v2(&pointer, 64));
    record.code("release_after_reset", cu.cuDevicePrimaryCtxRelease_v2(0));
    record.code("retain_after_reset", cu.cuDevicePrimaryCtxRetain(&again, 0));
    record.line("same_handle_after_reset", "%d", context == again);
}

}  // namespace

const Section kUninitialised{"uninitialised", uninitialised};
const Section kDevices{"devices", devices};
const Section kContexts{"contexts", contexts};
const Section kPrimary{"primary", primary};

}  // namespace juice::conformance
