// Memory, host memory, copies, pointer attributes, pools.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "native/shim/test/conformance/record.h"

namespace juice::conformance {
namespace {

void memory(const DriverTable& cu, Record& record) {
    begin(cu);
    CUdeviceptr p = 0, base = 0;
    size_t size = 0, pitch = 0, free = 0, total = 0;
    record.code("alloc_null", cu.cuMemAlloc_v2(nullptr, 16));
    record.code("alloc0", cu.cuMemAlloc_v2(&p, 0));
    record.code("alloc_max", cu.cuMemAlloc_v2(&p, ~size_t{0}));
    record.code("alloc", cu.cuMemAlloc_v2(&p, 1000));
    record.line("aligned", "%llu", p % 512);
    record.code("range", cu.cuMemGetAddressRange_v2(&base, &size, p + 999));
    record.line("range_values", "%d %zu", base == p, size);
    record.code("range_end", cu.cuMemGetAddressRange_v2(&base, &size, p + 1000));
    record.code("range_far", cu.cuMemGetAddressRange_v2(&base, &size, p + (64u << 20)));
    record.code("range_null_out", cu.cuMemGetAddressRange_v2(nullptr, nullptr, p));
    record.code("range_zero", cu.cuMemGetAddressRange_v2(&base, &size, 0));
    record.code("range_plain",
                cu.cuMemGetAddressRange_v2(&base, &size, reinterpret_cast<CUdeviceptr>(&size)));
    record.code("free_interior", cu.cuMemFree_v2(p + 16));
    record.code("free", cu.cuMemFree_v2(p));
    record.code("free_again", cu.cuMemFree_v2(p));
    record.code("free_plain", cu.cuMemFree_v2(reinterpret_cast<CUdeviceptr>(&size)));
    record.code("pitch", cu.cuMemAllocPitch_v2(&p, &pitch, 1000, 4, 4));
    record.line("pitch_value", "%zu", pitch);
    record.code("pitch_range", cu.cuMemGetAddressRange_v2(&base, &size, p));
    record.line("pitch_size", "%zu", size);
    record.code("pitch_element", cu.cuMemAllocPitch_v2(&p, &pitch, 1000, 4, 5));
    record.code("pitch_element1", cu.cuMemAllocPitch_v2(&p, &pitch, 1000, 4, 1));
    record.code("pitch_width0", cu.cuMemAllocPitch_v2(&p, &pitch, 0, 4, 4));
    record.code("pitch_height0", cu.cuMemAllocPitch_v2(&p, &pitch, 16, 0, 4));
    record.code("info_null", cu.cuMemGetInfo_v2(nullptr, &total));
    record.code("info", cu.cuMemGetInfo_v2(&free, &total));
    record.line("info_sane", "%d", free <= total && free > 0);
}

void hostMemory(const DriverTable& cu, Record& record) {
    begin(cu);
    void *p = nullptr, *q = nullptr;
    CUdeviceptr d = 0;
    unsigned flags = 0;
    record.code("alloc_null", cu.cuMemHostAlloc(nullptr, 16, 0));
    record.code("alloc0", cu.cuMemHostAlloc(&p, 0, 0));
    record.line("alloc0_pointer", "%d", p != nullptr);
    record.code("alloc_bad_flags", cu.cuMemHostAlloc(&p, 64, 0x80));
    record.code("alloc", cu.cuMemHostAlloc(&p, 5000, 0));
    record.code("flags", cu.cuMemHostGetFlags(&flags, p));
    record.line("flags_value", "%u", flags);
    record.code("flags_interior", cu.cuMemHostGetFlags(&flags, static_cast<char*>(p) + 100));
    record.code("flags_plain", cu.cuMemHostGetFlags(&flags, &flags));
    record.code("device_pointer", cu.cuMemHostGetDevicePointer_v2(&d, p, 0));
    record.line("device_pointer_equal", "%d", d == reinterpret_cast<CUdeviceptr>(p));
    record.code("device_pointer_interior",
                cu.cuMemHostGetDevicePointer_v2(&d, static_cast<char*>(p) + 100, 0));
    record.line("device_pointer_interior_equal", "%d", d == reinterpret_cast<CUdeviceptr>(p) + 100);
    record.code("device_pointer_flags", cu.cuMemHostGetDevicePointer_v2(&d, p, 1));
    record.code("device_pointer_plain", cu.cuMemHostGetDevicePointer_v2(&d, &flags, 0));
    record.code("unregister_allocated", cu.cuMemHostUnregister(p));
    record.code("register_allocated", cu.cuMemHostRegister_v2(p, 100, 0));
    record.code("mem_free", cu.cuMemFree_v2(reinterpret_cast<CUdeviceptr>(p)));
    record.code("free_interior", cu.cuMemFreeHost(static_cast<char*>(p) + 8));
    record.code("free", cu.cuMemFreeHost(p));
    record.code("free_again", cu.cuMemFreeHost(p));
    record.code("free_null", cu.cuMemFreeHost(nullptr));
    record.code("portable", cu.cuMemHostAlloc(&p, 64, 1));
    cu.cuMemHostGetFlags(&flags, p);
    record.line("portable_flags", "%u", flags);
    record.code("combined", cu.cuMemHostAlloc(&p, 64, 4));
    cu.cuMemHostGetFlags(&flags, p);
    record.line("combined_flags", "%u", flags);
    record.code("alloc_host", cu.cuMemAllocHost_v2(&p, 64));
    cu.cuMemHostGetFlags(&flags, p);
    record.line("alloc_host_flags", "%u", flags);

    char* const plain = static_cast<char*>(std::aligned_alloc(4096, 65536));
    record.code("register", cu.cuMemHostRegister_v2(plain + 100, 1000, 0));
    cu.cuMemHostGetFlags(&flags, plain + 100);
    record.line("register_flags", "%u", flags);
    record.code("register_device_pointer", cu.cuMemHostGetDevicePointer_v2(&d, plain + 100, 0));
    record.line("register_device_pointer_equal", "%d",
                d == reinterpret_cast<CUdeviceptr>(plain + 100));
    record.code("register_same_page", cu.cuMemHostRegister_v2(plain + 2000, 500, 0));
    record.code("register_overlap", cu.cuMemHostRegister_v2(plain + 1000, 500, 0));
    record.code("register_null", cu.cuMemHostRegister_v2(nullptr, 500, 0));
    record.code("register_size0", cu.cuMemHostRegister_v2(plain + 8192, 0, 0));
    record.code("register_bad_flags", cu.cuMemHostRegister_v2(plain + 8192, 100, 0x100));
    record.code("register_all_flags", cu.cuMemHostRegister_v2(plain + 8192, 100, 3));
    cu.cuMemHostGetFlags(&flags, plain + 8192);
    record.line("register_all_flags_value", "%u", flags);
    record.code("register_read_only", cu.cuMemHostRegister_v2(plain + 16384, 100, 8));
    record.code("register_io", cu.cuMemHostRegister_v2(plain + 32768, 100, 4));
    record.code("free_registered", cu.cuMemFreeHost(plain + 100));
    record.code("unregister_interior", cu.cuMemHostUnregister(plain + 101));
    record.code("unregister", cu.cuMemHostUnregister(plain + 100));
    record.code("unregister_again", cu.cuMemHostUnregister(plain + 100));
    record.code("unregister_null", cu.cuMemHostUnregister(nullptr));
    record.code("register_unmapped",
                cu.cuMemHostRegister_v2(reinterpret_cast<void*>(0x10000), 4096, 0));
    void* const readOnly = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    record.code("register_readonly_page", cu.cuMemHostRegister_v2(readOnly, 4096, 0));
    (void)q;
}

void copies(const DriverTable& cu, Record& record) {
    begin(cu);
    CUdeviceptr a = 0, b = 0;
    cu.cuMemAlloc_v2(&a, 4096);
    cu.cuMemAlloc_v2(&b, 4096);
    static char plain[8192], other[8192];
    void* pinned = nullptr;
    cu.cuMemHostAlloc(&pinned, 8192, 0);
    const auto host = [](void* p) { return reinterpret_cast<CUdeviceptr>(p); };
    record.code("htod0", cu.cuMemcpyHtoD_v2(a, plain, 0));
    record.code("htod0_null", cu.cuMemcpyHtoD_v2(0, nullptr, 0));
    record.code("htod_null_source", cu.cuMemcpyHtoD_v2(a, nullptr, 16));
    record.code("htod_bad_target", cu.cuMemcpyHtoD_v2(16, plain, 16));
    record.code("htod_beyond", cu.cuMemcpyHtoD_v2(a + 4000, plain, 200));
    record.code("htod_far_beyond", cu.cuMemcpyHtoD_v2(a, plain, size_t{1} << 40));
    record.code("htod_to_plain", cu.cuMemcpyHtoD_v2(host(other), plain, 16));
    record.code("htod_to_pinned", cu.cuMemcpyHtoD_v2(host(pinned), plain, 16));
    record.code("htod_from_device", cu.cuMemcpyHtoD_v2(a, reinterpret_cast<void*>(b), 16));
    record.code("dtoh_bad_source", cu.cuMemcpyDtoH_v2(plain, 16, 16));
    record.code("dtoh_from_plain", cu.cuMemcpyDtoH_v2(plain, host(other), 16));
    record.code("dtoh_null", cu.cuMemcpyDtoH_v2(nullptr, a, 16));
    record.code("dtoh_beyond", cu.cuMemcpyDtoH_v2(plain, a + 4000, 200));
    record.code("dtoh_to_device", cu.cuMemcpyDtoH_v2(reinterpret_cast<void*>(b), a, 16));
    record.code("dtod", cu.cuMemcpyDtoD_v2(a, b, 4096));
    record.code("dtod_bad", cu.cuMemcpyDtoD_v2(a, 16, 16));
    record.code("dtod_beyond", cu.cuMemcpyDtoD_v2(a + 4000, b, 200));
    record.code("dtod_from_plain", cu.cuMemcpyDtoD_v2(a, host(plain), 16));
    record.code("generic_htod", cu.cuMemcpy(a, host(plain), 16));
    record.code("generic_dtoh", cu.cuMemcpy(host(plain), a, 16));
    record.code("generic_htoh", cu.cuMemcpy(host(plain), host(other), 16));
    record.code("generic_null", cu.cuMemcpy(a, 0, 16));
    record.code("async_htod", cu.cuMemcpyHtoDAsync_v2(a, plain, 16, nullptr));
    record.code("async_htod_bad", cu.cuMemcpyHtoDAsync_v2(16, plain, 16, nullptr));
    record.code("async_dtoh_bad", cu.cuMemcpyDtoHAsync_v2(plain, 16, 16, nullptr));
    record.code("async_htoh", cu.cuMemcpyAsync(host(plain), host(other), 16, nullptr));
    record.code("async_beyond", cu.cuMemcpyHtoDAsync_v2(a + 4000, pinned, 200, nullptr));
    record.code("memset0", cu.cuMemsetD8_v2(a, 1, 0));
    record.code("memset_bad", cu.cuMemsetD8_v2(16, 1, 16));
    record.code("memset_beyond", cu.cuMemsetD8_v2(a + 4000, 1, 200));
    record.code("memset32_unaligned", cu.cuMemsetD32_v2(a + 2, 1, 4));
    record.code("memset_pinned", cu.cuMemsetD8_v2(host(pinned), 1, 16));
    record.code("memset_plain", cu.cuMemsetD8_v2(host(plain), 1, 16));
    record.code("memset_async_bad", cu.cuMemsetD8Async(16, 1, 16, nullptr));
    record.code("memset2d_pitch", cu.cuMemsetD2D8_v2(a, 8, 1, 16, 4));
    record.code("sync", cu.cuCtxSynchronize());
    CUcontext context = nullptr;
    cu.cuCtxGetCurrent(&context);
    record.code("peer", cu.cuMemcpyPeer(a, context, b, context, 16));
    record.code("peer_null_context", cu.cuMemcpyPeer(a, nullptr, b, context, 16));
}

/// Every pointer attribute, one at a time: result, bytes that were written, first eight of them.
void everyAttribute(const DriverTable& cu, Record& record, const char* kind, CUdeviceptr pointer) {
    for (int attribute = 1; attribute <= 21; ++attribute) {
        unsigned char ones[64], zeros[64];
        std::memset(ones, 0xff, sizeof ones);
        std::memset(zeros, 0, sizeof zeros);
        const auto which = static_cast<CUpointer_attribute>(attribute);
        const int result = cu.cuPointerGetAttribute(ones, which, pointer);
        cu.cuPointerGetAttribute(zeros, which, pointer);
        int written = 0;
        for (int i = 0; i < 64; ++i)
            if (ones[i] == zeros[i]) written = i + 1;
        char name[64];
        std::snprintf(name, sizeof name, "%s_%d", kind, attribute);
        record.line(name, "%d written %d", result, written);
    }
}

/// All of them at once, over buffers of 0xaa.
void attributesAtOnce(const DriverTable& cu, Record& record, const char* kind,
                      CUdeviceptr pointer) {
    CUpointer_attribute which[] = {
        static_cast<CUpointer_attribute>(1),  static_cast<CUpointer_attribute>(2),
        static_cast<CUpointer_attribute>(3),  static_cast<CUpointer_attribute>(4),
        static_cast<CUpointer_attribute>(7),  static_cast<CUpointer_attribute>(8),
        static_cast<CUpointer_attribute>(9),  static_cast<CUpointer_attribute>(11),
        static_cast<CUpointer_attribute>(12), static_cast<CUpointer_attribute>(13),
        static_cast<CUpointer_attribute>(14), static_cast<CUpointer_attribute>(16),
        static_cast<CUpointer_attribute>(17), static_cast<CUpointer_attribute>(6)};
    constexpr unsigned kCount = sizeof which / sizeof which[0];
    unsigned long long values[kCount];
    void* data[kCount];
    std::memset(values, 0xaa, sizeof values);
    for (unsigned i = 0; i < kCount; ++i) data[i] = &values[i];
    char name[64];
    std::snprintf(name, sizeof name, "%s_all", kind);
    record.code(name, cu.cuPointerGetAttributes(kCount, which, data, pointer));
    for (unsigned i = 0; i < kCount; ++i) {
        std::snprintf(name, sizeof name, "%s_all_%d", kind, static_cast<int>(which[i]));
        const bool echo = values[i] == pointer && pointer != 0;
        // Addresses and handles differ from run to run; everything else is printed.
        if (echo)
            record.line(name, "the pointer");
        else if (values[i] > 0xffffff && values[i] < 0x7fffffffffff)
            record.line(name, "an address");
        else if (which[i] == static_cast<CUpointer_attribute>(7) && values[i] < 0x10000 &&
                 values[i] != 0)
            record.line(name, "an id");
        else
            record.line(name, "%llx", values[i]);
    }
}

void pointers(const DriverTable& cu, Record& record) {
    begin(cu);
    CUdeviceptr device = 0;
    cu.cuMemAlloc_v2(&device, 4096);
    void* pinned = nullptr;
    cu.cuMemHostAlloc(&pinned, 4096, 0);
    static char plain[4096], registered[8192];
    cu.cuMemHostRegister_v2(registered + 100, 4096, 0);
    const auto address = [](void* p) { return reinterpret_cast<CUdeviceptr>(p); };
    everyAttribute(cu, record, "device", device + 16);
    everyAttribute(cu, record, "host", address(pinned) + 8);
    everyAttribute(cu, record, "registered", address(registered) + 108);
    everyAttribute(cu, record, "plain", address(plain));
    attributesAtOnce(cu, record, "device", device + 16);
    attributesAtOnce(cu, record, "host", address(pinned) + 8);
    attributesAtOnce(cu, record, "registered", address(registered) + 108);
    attributesAtOnce(cu, record, "plain", address(plain));
    attributesAtOnce(cu, record, "null", 0);
    attributesAtOnce(cu, record, "end", device + 4096 + (64u << 20));
    unsigned long long value = 0;
    CUdeviceptr start = 0;
    cu.cuPointerGetAttribute(&start, static_cast<CUpointer_attribute>(11),
                             address(registered) + 108);
    cu.cuPointerGetAttribute(&value, static_cast<CUpointer_attribute>(12),
                             address(registered) + 108);
    record.line("registered_range", "%lld %llu",
                static_cast<long long>(start - address(registered)), value);
    cu.cuPointerGetAttribute(&start, static_cast<CUpointer_attribute>(19),
                             address(registered) + 108);
    value = 0;
    cu.cuPointerGetAttribute(&value, static_cast<CUpointer_attribute>(18),
                             address(registered) + 108);
    record.line("registered_mapping", "%d %llu", start <= address(registered) + 100, value);
    CUpointer_attribute one = static_cast<CUpointer_attribute>(2);
    void* data = &value;
    record.code("attributes_none", cu.cuPointerGetAttributes(0, &one, &data, device));
    record.code("attributes_null", cu.cuPointerGetAttributes(1, nullptr, &data, device));
    one = static_cast<CUpointer_attribute>(99);
    record.code("attributes_unknown", cu.cuPointerGetAttributes(1, &one, &data, device));
    record.code("attribute_unknown", cu.cuPointerGetAttribute(&value, one, device));
    record.code("attribute_null",
                cu.cuPointerGetAttribute(nullptr, static_cast<CUpointer_attribute>(2), device));
    unsigned on = 1;
    record.code("set_sync",
                cu.cuPointerSetAttribute(&on, static_cast<CUpointer_attribute>(6), device));
    record.code("set_type",
                cu.cuPointerSetAttribute(&on, static_cast<CUpointer_attribute>(2), device));
    cu.cuCtxSetCurrent(nullptr);
    record.code("without_context",
                cu.cuPointerGetAttribute(&value, static_cast<CUpointer_attribute>(2), device));
}

void pools(const DriverTable& cu, Record& record) {
    begin(cu);
    CUdeviceptr p = 0;
    CUmemoryPool pool = nullptr, other = nullptr;
    record.code("default", cu.cuDeviceGetDefaultMemPool(&pool, 0));
    record.code("current", cu.cuDeviceGetMemPool(&other, 0));
    record.line("same", "%d", pool == other);
    record.code("alloc0", cu.cuMemAllocAsync(&p, 0, nullptr));
    record.code("alloc_null", cu.cuMemAllocAsync(nullptr, 64, nullptr));
    record.code("alloc_huge", cu.cuMemAllocAsync(&p, size_t{1} << 46, nullptr));
    record.code("alloc", cu.cuMemAllocAsync(&p, 1000, nullptr));
    everyAttribute(cu, record, "pool", p);
    attributesAtOnce(cu, record, "pool", p);
    CUdeviceptr base = 0;
    size_t size = 0;
    record.code("range", cu.cuMemGetAddressRange_v2(&base, &size, p));
    record.line("range_size", "%zu", size);
    record.code("free_interior", cu.cuMemFreeAsync(p + 8, nullptr));
    record.code("free", cu.cuMemFreeAsync(p, nullptr));
    record.code("free_again", cu.cuMemFreeAsync(p, nullptr));
    record.code("free_null", cu.cuMemFreeAsync(0, nullptr));
    record.code("from_pool", cu.cuMemAllocFromPoolAsync(&p, 64, pool, nullptr));
    record.code("free_plainly", cu.cuMemFree_v2(p));
    cu.cuMemAlloc_v2(&p, 64);
    record.code("free_alloc_async", cu.cuMemFreeAsync(p, nullptr));
    unsigned long long value = 0;
    record.code("threshold",
                cu.cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(4), &value));
    record.line("threshold_value", "%llu", value);
    record.code("trim", cu.cuMemPoolTrimTo(pool, 0));
    record.code("sync", cu.cuCtxSynchronize());
}

}  // namespace

const Section kMemory{"memory", memory};
const Section kHostMemory{"host", hostMemory};
const Section kCopies{"copies", copies};
const Section kPointers{"pointers", pointers};
const Section kPools{"pools", pools};

}  // namespace juice::conformance
