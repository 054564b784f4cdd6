import { area, fn } from "./schema.ts"

export const driverArea = area(
  "driver",
  "The driver itself: start, version, names of errors, look-up of entry points.",
  [
    fn("CUresult cuGetErrorString(CUresult error, const char** pStr)", { class: "local" }),
    fn("CUresult cuGetErrorName(CUresult error, const char** pStr)", { class: "local" }),
    fn("CUresult cuInit(unsigned int Flags)", { class: "local" }),
    fn("CUresult cuDriverGetVersion(int* driverVersion)", { class: "local" }),
    fn(
      "CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)"
    ),
    fn("CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, unsigned long long flags)", {
      class: "local"
    }),
    fn(
      "CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, unsigned long long flags, CUdriverProcAddressQueryResult* symbolStatus)",
      { class: "local" }
    ),
    fn("CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId)", { class: "local" })
  ]
)
