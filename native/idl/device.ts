import { area, fn } from "./schema.ts"

export const deviceArea = area("device", "Devices: which there are, what they can do, their primary contexts.", [
  fn("CUresult cuDeviceGet(CUdevice* device, int ordinal)", { class: "local" }),
  fn("CUresult cuDeviceGetCount(int* count)", { class: "local" }),
  fn("CUresult cuDeviceGetName(char* name, int len, CUdevice dev)", { class: "local" }),
  fn("CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev)", { class: "local" }),
  fn("CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev)", { class: "local" }),
  fn("CUresult cuDeviceGetLuid(char* luid, unsigned int* deviceNodeMask, CUdevice dev)"),
  fn("CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice dev)"),
  fn("CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev)", { class: "local" }),
  fn(
    "CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* maxWidthInElements, CUarray_format format, unsigned int numChannels, CUdevice dev)",
    { class: "cached", contextless: true, args: { maxWidthInElements: "out" } }
  ),
  fn("CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev)", { class: "local" }),
  fn(
    "CUresult cuDeviceGetHostAtomicCapabilities(unsigned int* capabilities, const CUatomicOperation* operations, unsigned int count, CUdevice dev)"
  ),
  fn("CUresult cuDeviceGetNvSciSyncAttributes(void* nvSciSyncAttrList, CUdevice dev, int flags)"),
  fn("CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)"),
  fn("CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev)"),
  fn("CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev)"),
  fn("CUresult cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType type, CUdevice dev)", { class: "local" }),
  fn("CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev)", { class: "local" }),
  fn("CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev)", { class: "local" }),
  fn("CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev)", { class: "custom", mayBlock: true }),
  fn("CUresult cuDevicePrimaryCtxRelease(CUdevice dev)", { class: "custom", mayBlock: true }),
  fn("CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)", { class: "custom", mayBlock: true }),
  fn("CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)", { class: "custom" }),
  fn("CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)", { class: "custom" }),
  fn("CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active)", { class: "local" }),
  fn("CUresult cuDevicePrimaryCtxReset(CUdevice dev)", { class: "custom", mayBlock: true }),
  fn("CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)", { class: "custom", mayBlock: true }),
  fn(
    "CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc, void* userData, CUasyncCallbackHandle* callback)"
  ),
  fn("CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback)"),
  fn("CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId)", { class: "local" }),
  fn("CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev)", { class: "local" }),
  fn("CUresult cuDeviceGraphMemTrim(CUdevice device)", { class: "custom" }),
  fn("CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value)", {
    class: "custom"
  }),
  fn("CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value)", {
    class: "custom"
  }),
  fn("CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev)", { class: "local" }),
  fn("CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)", { class: "waited" }),
  fn("CUresult cuCtxDisablePeerAccess(CUcontext peerContext)", { class: "waited" }),
  fn(
    "CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)",
    { class: "cached", contextless: true, args: { value: "out" } }
  ),
  fn(
    "CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int* capabilities, const CUatomicOperation* operations, unsigned int count, CUdevice srcDevice, CUdevice dstDevice)"
  )
])
