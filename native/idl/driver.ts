import { area, fn } from "./schema.ts"

export const driverArea = area(
  "driver",
  "The driver itself: start, version, names of errors, look-up of entry points.",
  [
    fn("CUresult cuGetErrorString(CUresult error, const char** pStr)"),
    fn("CUresult cuGetErrorName(CUresult error, const char** pStr)"),
    fn("CUresult cuInit(unsigned int Flags)"),
    fn("CUresult cuDriverGetVersion(int* driverVersion)"),
    fn(
      "CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)"
    ),
    fn("CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, unsigned long long flags)"),
    fn(
      "CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, unsigned long long flags, CUdriverProcAddressQueryResult* symbolStatus)"
    ),
    fn("CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId)")
  ]
)
