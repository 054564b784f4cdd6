// Modules, libraries, functions, launches, occupancy.
#include <cstring>
#include <string>

#include "native/shim/test/conformance/record.h"

namespace juice::conformance {
namespace {

CUfunction function(const DriverTable& cu, CUmodule module, const char* name) {
    CUfunction f = nullptr;
    cu.cuModuleGetFunction(&f, module, name);
    return f;
}

void modules(const DriverTable& cu, Record& record) {
    begin(cu);
    CUmodule module = nullptr, second = nullptr;
    CUfunction f = nullptr, g = nullptr;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    unsigned count = 0;
    static const char garbage[64] = {1, 2, 3, 4, 5};
    record.code("null_image", cu.cuModuleLoadData(&module, nullptr));
    record.code("null_out", cu.cuModuleLoadData(nullptr, kPtx));
    record.code("garbage", cu.cuModuleLoadData(&module, garbage));
    record.code("empty_text", cu.cuModuleLoadData(&module, ""));
    record.code("text", cu.cuModuleLoadData(&module, "this is no PTX"));
    record.code(
        "bad_ptx",
        cu.cuModuleLoadData(&module, ".version 7.0\n.target sm_52\n.address_size 64\nnonsense;"));
    record.code("new_ptx",
                cu.cuModuleLoadData(&module, ".version 99.0\n.target sm_52\n.address_size 64\n"));
    record.code("no_kernels",
                cu.cuModuleLoadData(&module, ".version 7.0\n.target sm_52\n.address_size 64\n"));
    record.code("file_missing", cu.cuModuleLoad(&module, "/nonexistent/file.ptx"));
    record.code("file_null", cu.cuModuleLoad(&module, nullptr));
    record.code("load", cu.cuModuleLoadData(&module, kPtx));
    record.code("load_again", cu.cuModuleLoadData(&second, kPtx));
    record.line("differ", "%d", module != second);
    record.code("ex", cu.cuModuleLoadDataEx(&second, kPtx, 0, nullptr, nullptr));
    CUjit_option options[] = {static_cast<CUjit_option>(0), static_cast<CUjit_option>(5),
                              static_cast<CUjit_option>(6)};
    char log[512];
    std::memset(log, 'x', sizeof log);
    void* values[] = {reinterpret_cast<void*>(32), log, reinterpret_cast<void*>(sizeof log)};
    record.code("ex_options", cu.cuModuleLoadDataEx(&second, kPtx, 3, options, values));
    record.line("log_size_after", "%d", static_cast<int>(reinterpret_cast<size_t>(values[2])));
    values[2] = reinterpret_cast<void*>(sizeof log);
    record.code("ex_error", cu.cuModuleLoadDataEx(
                                &second, ".version 7.0\n.target sm_52\n.address_size 64\nnonsense;",
                                3, options, values));
    record.line("fatbinary", "%d", cu.cuModuleLoadFatBinary(&second, garbage));
    record.code("function", cu.cuModuleGetFunction(&f, module, "store"));
    record.code("function_again", cu.cuModuleGetFunction(&g, module, "store"));
    record.line("function_same", "%d", f == g);
    record.code("function_missing", cu.cuModuleGetFunction(&g, module, "missing"));
    record.line("function_missing_out", "%d", g == nullptr);
    record.code("function_null_name", cu.cuModuleGetFunction(&g, module, nullptr));
    record.code("function_null_module", cu.cuModuleGetFunction(&g, nullptr, "store"));
    record.code("function_null_out", cu.cuModuleGetFunction(nullptr, module, "store"));
    record.code("count", cu.cuModuleGetFunctionCount(&count, module));
    record.line("count_value", "%u", count);
    CUfunction all[3] = {};
    record.code("enumerate", cu.cuModuleEnumerateFunctions(all, 3, module));
    record.line("enumerate_values", "%d", all[0] && all[1] && all[2]);
    record.code("global", cu.cuModuleGetGlobal_v2(&address, &bytes, module, "counter"));
    record.line("global_size", "%zu", bytes);
    record.code("global_constant", cu.cuModuleGetGlobal_v2(&address, &bytes, module, "table"));
    record.line("global_constant_size", "%zu", bytes);
    record.code("global_missing", cu.cuModuleGetGlobal_v2(&address, &bytes, module, "missing"));
    record.code("global_null_outs", cu.cuModuleGetGlobal_v2(nullptr, nullptr, module, "counter"));
    record.code("global_null_name", cu.cuModuleGetGlobal_v2(&address, &bytes, module, nullptr));
    CUdeviceptr base = 0;
    cu.cuModuleGetGlobal_v2(&address, &bytes, module, "counter");
    record.code("global_range", cu.cuMemGetAddressRange_v2(&base, &bytes, address));
    record.line("global_range_values", "%d %zu", base == address, bytes);
    unsigned value = 0;
    record.code("global_read", cu.cuMemcpyDtoH_v2(&value, address, 4));
    record.line("global_value", "%u", value);
    record.code("global_read_beyond", cu.cuMemcpyDtoH_v2(&value, address + 4, 4));
    int type = 0;
    record.code("global_type",
                cu.cuPointerGetAttribute(&type, static_cast<CUpointer_attribute>(2), address));
    record.code("global_free", cu.cuMemFree_v2(address));
    record.code("unload", cu.cuModuleUnload(module));
    record.code("unload_null", cu.cuModuleUnload(nullptr));
    cu.cuCtxSetCurrent(nullptr);
    record.code("without_context", cu.cuModuleLoadData(&module, kPtx));
}

void libraries(const DriverTable& cu, Record& record) {
    cu.cuInit(0);
    CUlibrary library = nullptr, owner = nullptr;
    CUkernel kernel = nullptr, again = nullptr;
    CUmodule module = nullptr, module2 = nullptr;
    CUfunction f = nullptr, g = nullptr;
    CUdeviceptr address = 0;
    size_t bytes = 0, offset = 0;
    unsigned count = 0;
    int value = -1;
    const char* name = nullptr;
    static const char garbage[64] = {1, 2, 3, 4, 5};
    const auto load = [&](CUlibrary* out, const void* code) {
        return cu.cuLibraryLoadData(out, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
    };
    record.code("without_context", load(&library, kPtx));
    record.code("kernel_without_context", cu.cuLibraryGetKernel(&kernel, library, "store"));
    record.code("count_without_context", cu.cuLibraryGetKernelCount(&count, library));
    record.code("module_without_context", cu.cuLibraryGetModule(&module, library));
    record.code("function_without_context", cu.cuKernelGetFunction(&f, kernel));
    record.code("attribute_without_context",
                cu.cuKernelGetAttribute(&value, static_cast<CUfunction_attribute>(0), kernel, 0));
    record.code("global_without_context",
                cu.cuLibraryGetGlobal(&address, &bytes, library, "counter"));
    record.code("garbage_without_context", load(&owner, garbage));
    begin(cu);
    record.code("garbage", load(&owner, garbage));
    record.code("null_code", load(&owner, nullptr));
    record.code("null_out", load(nullptr, kPtx));
    record.code("bad_ptx",
                load(&owner, ".version 7.0\n.target sm_52\n.address_size 64\nnonsense;"));
    record.code("file_missing", cu.cuLibraryLoadFromFile(&owner, "/nonexistent/file", nullptr,
                                                         nullptr, 0, nullptr, nullptr, 0));
    record.code("kernel_missing", cu.cuLibraryGetKernel(&again, library, "missing"));
    record.code("kernel_null_name", cu.cuLibraryGetKernel(&again, library, nullptr));
    record.code("kernel_null_library", cu.cuLibraryGetKernel(&again, nullptr, "store"));
    record.code("kernel_again", cu.cuLibraryGetKernel(&again, library, "store"));
    record.line("kernel_same", "%d", kernel == again);
    record.code("count", cu.cuLibraryGetKernelCount(&count, library));
    record.line("count_value", "%u", count);
    CUkernel all[16] = {};
    record.code("enumerate", cu.cuLibraryEnumerateKernels(all, 16, library));
    record.line("enumerate_beyond", "%d", all[15] == nullptr);
    bool found = false;
    for (CUkernel one : all) found = found || one == kernel;
    record.line("enumerate_holds_kernel", "%d", found);
    record.code("function", cu.cuKernelGetFunction(&f, kernel));
    record.code("function_again", cu.cuKernelGetFunction(&g, kernel));
    record.line("function_same", "%d", f == g);
    record.line("function_is_kernel", "%d", static_cast<void*>(f) == static_cast<void*>(kernel));
    record.code("module", cu.cuLibraryGetModule(&module, library));
    record.code("module_again", cu.cuLibraryGetModule(&module2, library));
    record.line("module_same", "%d", module == module2);
    record.code("function_of_module", cu.cuModuleGetFunction(&g, module, "store"));
    record.line("function_of_module_same", "%d", f == g);
    record.code("module_of_function", cu.cuFuncGetModule(&module2, f));
    record.line("module_of_function_same", "%d", module == module2);
    record.code("library_of_kernel", cu.cuKernelGetLibrary(&owner, kernel));
    record.line("library_same", "%d", owner == library);
    record.code("name", cu.cuKernelGetName(&name, kernel));
    record.line("name_value", "%s", name ? name : "null");
    record.code("function_name", cu.cuFuncGetName(&name, f));
    record.line("function_name_value", "%s", name ? name : "null");
    record.code("function_name_of_kernel",
                cu.cuFuncGetName(&name, reinterpret_cast<CUfunction>(kernel)));
    cu.cuLibraryGetKernel(&again, library, "mixed");
    for (size_t i = 0; i < 5; ++i) {
        offset = bytes = 99;
        const int result = cu.cuKernelGetParamInfo(again, i, &offset, &bytes);
        record.line("param", "%zu: %d %zu %zu", i, result, offset, bytes);
    }
    record.code("param_null_size", cu.cuKernelGetParamInfo(again, 0, &offset, nullptr));
    record.code("param_null_offset", cu.cuKernelGetParamInfo(again, 0, nullptr, &bytes));
    record.code("global", cu.cuLibraryGetGlobal(&address, &bytes, library, "counter"));
    record.line("global_size", "%zu", bytes);
    record.code("global_missing", cu.cuLibraryGetGlobal(&address, &bytes, library, "missing"));
    record.code("managed_missing", cu.cuLibraryGetManaged(&address, &bytes, library, "missing"));
    void* unified = nullptr;
    record.code("unified_missing", cu.cuLibraryGetUnifiedFunction(&unified, library, "missing"));
    record.code("attribute",
                cu.cuKernelGetAttribute(&value, static_cast<CUfunction_attribute>(0), kernel, 0));
    record.line("attribute_value", "%d", value);
    record.code("attribute_bad_device",
                cu.cuKernelGetAttribute(&value, static_cast<CUfunction_attribute>(0), kernel, 99));
    record.code("set_attribute",
                cu.cuKernelSetAttribute(static_cast<CUfunction_attribute>(8), 65536, kernel, 0));
    cu.cuKernelGetAttribute(&value, static_cast<CUfunction_attribute>(8), kernel, 0);
    record.line("set_attribute_kernel", "%d", value);
    cu.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(8), f);
    record.line("set_attribute_function", "%d", value);
    record.code("cache_config", cu.cuKernelSetCacheConfig(kernel, static_cast<CUfunc_cache>(1), 0));
    record.code("launch_kernel_handle",
                cu.cuLaunchKernel(reinterpret_cast<CUfunction>(all[0]), 0, 1, 1, 1, 1, 1, 0,
                                  nullptr, nullptr, nullptr));
    record.code("unload", cu.cuLibraryUnload(library));
    record.code("unload_null", cu.cuLibraryUnload(nullptr));
}

void functions(const DriverTable& cu, Record& record) {
    begin(cu);
    CUmodule module = nullptr;
    cu.cuModuleLoadData(&module, kPtx);
    int value = 0;
    const auto get = [&](CUfunction f, int which) {
        value = -77;
        return cu.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(which), f);
    };
    const auto set = [&](CUfunction f, int which, int to) {
        return cu.cuFuncSetAttribute(f, static_cast<CUfunction_attribute>(which), to);
    };
    for (const char* name : {"store", "bounded", "shared4k"}) {
        CUfunction f = function(cu, module, name);
        for (int i = 0; i <= 17; ++i) {
            const int result = get(f, i);
            record.line(name, "%d: %d %d", i, result, value);
        }
    }
    CUfunction f = function(cu, module, "store"), s = function(cu, module, "shared4k");
    record.code("get_null",
                cu.cuFuncGetAttribute(nullptr, static_cast<CUfunction_attribute>(0), f));
    record.code("get_null_function", get(nullptr, 0));
    record.code("set_read_only", set(f, 0, 64));
    record.code("set_unknown", set(f, 99, 64));
    record.code("set_shared", set(f, 8, 65536));
    record.code("get_shared", get(f, 8));
    record.line("shared_value", "%d", value);
    record.code("set_shared_negative", set(f, 8, -1));
    record.code("set_shared_huge", set(f, 8, 10'000'000));
    record.code("set_shared_optin", set(f, 8, 232448));
    record.code("set_shared_over_optin", set(f, 8, 232449));
    record.code("set_shared_static", set(s, 8, 232448 - 4096));
    record.code("set_shared_static_over", set(s, 8, 232448 - 4096 + 1));
    record.code("set_carveout", set(f, 9, 50));
    record.code("set_carveout_default", set(f, 9, -1));
    record.code("set_carveout_101", set(f, 9, 101));
    record.code("set_carveout_minus2", set(f, 9, -2));
    record.code("set_cluster_width", set(f, 11, 2));
    record.code("get_cluster_width", get(f, 11));
    record.line("cluster_width", "%d", value);
    record.code("set_non_portable", set(f, 14, 1));
    record.code("set_policy", set(f, 15, 1));
    record.code("set_must_be_set", set(f, 10, 1));
    record.code("cache_config", cu.cuFuncSetCacheConfig(f, static_cast<CUfunc_cache>(1)));
    record.code("cache_config_bad", cu.cuFuncSetCacheConfig(f, static_cast<CUfunc_cache>(99)));
    record.code("shared_config", cu.cuFuncSetSharedMemConfig(f, static_cast<CUsharedconfig>(1)));
    CUfunctionLoadingState state{};
    record.code("is_loaded", cu.cuFuncIsLoaded(&state, f));
    record.line("is_loaded_value", "%d", static_cast<int>(state));
    record.code("load", cu.cuFuncLoad(f));
    size_t offset = 0;
    record.code("param_null_size", cu.cuFuncGetParamInfo(f, 0, &offset, nullptr));
}

void launches(const DriverTable& cu, Record& record) {
    begin(cu);
    CUmodule module = nullptr;
    cu.cuModuleLoadData(&module, kPtx);
    CUfunction empty = function(cu, module, "empty"), store = function(cu, module, "store"),
               bounded = function(cu, module, "bounded"), shared = function(cu, module, "shared4k");
    CUdeviceptr out = 0;
    cu.cuMemAlloc_v2(&out, 4096);
    unsigned number = 42;
    void* params[] = {&out, &number};
    const auto launch = [&](CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned bytes, void** p) {
        return cu.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, bytes, nullptr, p, nullptr);
    };
    record.code("null_function", launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr));
    record.code("grid0", launch(empty, 0, 1, 1, 1, 1, 1, 0, nullptr));
    record.code("grid_y0", launch(empty, 1, 0, 1, 1, 1, 1, 0, nullptr));
    record.code("block0", launch(empty, 1, 1, 1, 0, 1, 1, 0, nullptr));
    record.code("grid_x_huge", launch(empty, 0x80000000u, 1, 1, 1, 1, 1, 0, nullptr));
    record.code("grid_y_huge", launch(empty, 1, 65536, 1, 1, 1, 1, 0, nullptr));
    record.code("block_x_huge", launch(empty, 1, 1, 1, 1025, 1, 1, 0, nullptr));
    record.code("block_z_huge", launch(empty, 1, 1, 1, 1, 1, 65, 0, nullptr));
    record.code("threads_huge", launch(empty, 1, 1, 1, 1024, 2, 1, 0, nullptr));
    record.code("bounded_128", launch(bounded, 1, 1, 1, 128, 1, 1, 0, params));
    record.code("bounded_129", launch(bounded, 1, 1, 1, 129, 1, 1, 0, params));
    record.code("bounded_1024", launch(bounded, 1, 1, 1, 1024, 1, 1, 0, params));
    record.code("shared_48k", launch(empty, 1, 1, 1, 1, 1, 1, 49152, nullptr));
    record.code("shared_48k_1", launch(empty, 1, 1, 1, 1, 1, 1, 49153, nullptr));
    record.code("shared_static_44k", launch(shared, 1, 1, 1, 1, 1, 1, 45056, params));
    record.code("shared_static_44k_1", launch(shared, 1, 1, 1, 1, 1, 1, 45057, params));
    cu.cuFuncSetAttribute(empty, static_cast<CUfunction_attribute>(8), 100000);
    record.code("shared_opted", launch(empty, 1, 1, 1, 1, 1, 1, 100000, nullptr));
    record.code("shared_opted_over", launch(empty, 1, 1, 1, 1, 1, 1, 100001, nullptr));
    cu.cuFuncSetAttribute(empty, static_cast<CUfunction_attribute>(8), 1000);
    record.code("shared_lowered", launch(empty, 1, 1, 1, 1, 1, 1, 1001, nullptr));
    record.code("null_params", launch(store, 1, 1, 1, 1, 1, 1, 0, nullptr));
    record.code("good", launch(store, 1, 1, 1, 4, 1, 1, 0, params));
    unsigned char block[16] = {};
    std::memcpy(block, &out, 8);
    std::memcpy(block + 8, &number, 4);
    size_t size = 12;
    void* extra[] = {reinterpret_cast<void*>(1), block, reinterpret_cast<void*>(2), &size, nullptr};
    const auto withExtra = [&](void** p) {
        return cu.cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, p, extra);
    };
    record.code("extra", withExtra(nullptr));
    size = 16;
    record.code("extra_long", withExtra(nullptr));
    size = 8;
    record.code("extra_short", withExtra(nullptr));
    size = 12;
    record.code("extra_and_params", withExtra(params));
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    record.code("ex", cu.cuLaunchKernelEx(&config, store, params, nullptr));
    record.code("ex_null_config", cu.cuLaunchKernelEx(nullptr, store, params, nullptr));
    CUlaunchAttribute attribute{};
    config.attrs = &attribute;
    config.numAttrs = 1;
    attribute.id = static_cast<CUlaunchAttributeID>(4);
    attribute.value.clusterDim = {2, 1, 1};
    record.code("ex_cluster_not_dividing", cu.cuLaunchKernelEx(&config, store, params, nullptr));
    config.gridDimX = 4;
    record.code("ex_cluster", cu.cuLaunchKernelEx(&config, store, params, nullptr));
    attribute.value.clusterDim = {16, 1, 1};
    config.gridDimX = 16;
    record.code("ex_cluster_16", cu.cuLaunchKernelEx(&config, store, params, nullptr));
    attribute.id = static_cast<CUlaunchAttributeID>(99);
    record.code("ex_unknown_attribute", cu.cuLaunchKernelEx(&config, store, params, nullptr));
    record.code("cooperative",
                cu.cuLaunchCooperativeKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, params));
    record.code("cooperative_too_large",
                cu.cuLaunchCooperativeKernel(store, 1 << 20, 1, 1, 1024, 1, 1, 0, nullptr, params));
    record.code("sync", cu.cuCtxSynchronize());
    unsigned result = 0;
    cu.cuMemcpyDtoH_v2(&result, out, 4);
    record.line("value", "%u", result);
    cu.cuCtxSetCurrent(nullptr);
    record.code("without_context", launch(store, 1, 1, 1, 1, 1, 1, 0, params));
}

void occupancy(const DriverTable& cu, Record& record) {
    begin(cu);
    CUmodule module = nullptr;
    cu.cuModuleLoadData(&module, kPtx);
    CUfunction store = function(cu, module, "store"), bounded = function(cu, module, "bounded");
    int blocks = 0, grid = 0, block = 0;
    size_t bytes = 0;
    const auto active = [&](CUfunction f, int size, size_t dynamic) {
        blocks = -1;
        return cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, size, dynamic);
    };
    record.code("active", active(store, 128, 0));
    record.line("active_value", "%d", blocks);
    record.code("active0", active(store, 0, 0));
    record.code("active_negative", active(store, -1, 0));
    record.code("active_2000", active(store, 2000, 0));
    record.line("active_2000_value", "%d", blocks);
    record.code("active_shared", active(store, 128, 60000));
    record.line("active_shared_value", "%d", blocks);
    record.code("active_shared_huge", active(store, 128, 10'000'000));
    record.line("active_shared_huge_value", "%d", blocks);
    record.code("active_null", active(nullptr, 128, 0));
    record.code("available", cu.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, store, 2, 128));
    record.line("available_value", "%zu", bytes);
    record.code("potential",
                cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, store, nullptr, 0, 0));
    record.line("potential_values", "%d %d", grid, block);
    record.code("potential_limit",
                cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, store, nullptr, 0, 200));
    record.line("potential_limit_values", "%d %d", grid, block);
    record.code("potential_bounded",
                cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, bounded, nullptr, 0, 0));
    record.line("potential_bounded_values", "%d %d", grid, block);
    record.code("potential_shared",
                cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, store, nullptr, 40000, 0));
    record.line("potential_shared_values", "%d %d", grid, block);
    record.code("potential_dynamic",
                cu.cuOccupancyMaxPotentialBlockSize(
                    &grid, &block, store,
                    [](int threads) { return static_cast<size_t>(threads) * 100; }, 0, 0));
    record.line("potential_dynamic_values", "%d %d", grid, block);
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 128;
    config.blockDimY = config.blockDimZ = 1;
    int clusters = 0;
    record.code("clusters_without", cu.cuOccupancyMaxActiveClusters(&clusters, store, &config));
    CUlaunchAttribute attribute{};
    config.attrs = &attribute;
    config.numAttrs = 1;
    attribute.id = static_cast<CUlaunchAttributeID>(4);
    attribute.value.clusterDim = {2, 1, 1};
    config.gridDimX = 2;
    record.code("clusters", cu.cuOccupancyMaxActiveClusters(&clusters, store, &config));
    record.line("clusters_value", "%d", clusters);
    record.code("cluster_size", cu.cuOccupancyMaxPotentialClusterSize(&clusters, store, &config));
    record.line("cluster_size_value", "%d", clusters);
}

}  // namespace

const Section kModules{"modules", modules};
const Section kLibraries{"libraries", libraries};
const Section kFunctions{"functions", functions};
const Section kLaunches{"launches", launches};
const Section kOccupancy{"occupancy", occupancy};

}  // namespace juice::conformance
