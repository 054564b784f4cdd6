import { area, fn, unknown } from "./schema.ts"

export const graphicsArea = area("graphics", "Sharing with OpenGL, EGL and VDPAU.", [
  fn("CUresult cuGraphicsUnregisterResource(CUgraphicsResource resource)"),
  fn(
    "CUresult cuGraphicsSubResourceGetMappedArray(CUarray* pArray, CUgraphicsResource resource, unsigned int arrayIndex, unsigned int mipLevel)"
  ),
  fn(
    "CUresult cuGraphicsResourceGetMappedMipmappedArray(CUmipmappedArray* pMipmappedArray, CUgraphicsResource resource)"
  ),
  fn(
    "CUresult cuGraphicsResourceGetMappedPointer(CUdeviceptr_v1* pDevPtr, unsigned int* pSize, CUgraphicsResource resource)"
  ),
  fn(
    "CUresult cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr* pDevPtr, size_t* pSize, CUgraphicsResource resource)"
  ),
  fn("CUresult cuGraphicsResourceSetMapFlags(CUgraphicsResource resource, unsigned int flags)"),
  fn("CUresult cuGraphicsResourceSetMapFlags_v2(CUgraphicsResource resource, unsigned int flags)"),
  fn("CUresult cuGraphicsMapResources(unsigned int count, CUgraphicsResource* resources, CUstream hStream)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource* resources, CUstream hStream)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource* pCudaResource, GLuint buffer, unsigned int Flags)"),
  fn(
    "CUresult cuGraphicsGLRegisterImage(CUgraphicsResource* pCudaResource, GLuint image, GLenum target, unsigned int Flags)"
  ),
  fn(
    "CUresult cuGLGetDevices(unsigned int* pCudaDeviceCount, CUdevice* pCudaDevices, unsigned int cudaDeviceCount, CUGLDeviceList deviceList)"
  ),
  fn(
    "CUresult cuGLGetDevices_v2(unsigned int* pCudaDeviceCount, CUdevice* pCudaDevices, unsigned int cudaDeviceCount, CUGLDeviceList deviceList)"
  ),
  fn("CUresult cuGLCtxCreate(CUcontext* pCtx, unsigned int Flags, CUdevice device)"),
  fn("CUresult cuGLCtxCreate_v2(CUcontext* pCtx, unsigned int Flags, CUdevice device)"),
  fn("CUresult cuGLInit(void)"),
  fn("CUresult cuGLRegisterBufferObject(GLuint buffer)"),
  fn("CUresult cuGLMapBufferObject(CUdeviceptr_v1* dptr, unsigned int* size, GLuint buffer)"),
  fn("CUresult cuGLMapBufferObject_v2(CUdeviceptr* dptr, size_t* size, GLuint buffer)", { perThread: "ptds" }),
  fn("CUresult cuGLUnmapBufferObject(GLuint buffer)"),
  fn("CUresult cuGLUnregisterBufferObject(GLuint buffer)"),
  fn("CUresult cuGLSetBufferObjectMapFlags(GLuint buffer, unsigned int Flags)"),
  fn("CUresult cuGLMapBufferObjectAsync(CUdeviceptr_v1* dptr, unsigned int* size, GLuint buffer, CUstream hStream)"),
  fn("CUresult cuGLMapBufferObjectAsync_v2(CUdeviceptr* dptr, size_t* size, GLuint buffer, CUstream hStream)", {
    perThread: "ptsz"
  }),
  fn("CUresult cuGLUnmapBufferObjectAsync(GLuint buffer, CUstream hStream)"),
  fn("CUresult cuGraphicsEGLRegisterImage(CUgraphicsResource* pCudaResource, EGLImageKHR image, unsigned int flags)"),
  fn("CUresult cuEGLStreamConsumerConnect(CUeglStreamConnection* conn, EGLStreamKHR stream)"),
  fn(
    "CUresult cuEGLStreamConsumerConnectWithFlags(CUeglStreamConnection* conn, EGLStreamKHR stream, unsigned int flags)"
  ),
  fn("CUresult cuEGLStreamConsumerDisconnect(CUeglStreamConnection* conn)"),
  fn(
    "CUresult cuEGLStreamConsumerAcquireFrame(CUeglStreamConnection* conn, CUgraphicsResource* pCudaResource, CUstream* pStream, unsigned int timeout)"
  ),
  fn(
    "CUresult cuEGLStreamConsumerReleaseFrame(CUeglStreamConnection* conn, CUgraphicsResource pCudaResource, CUstream* pStream)"
  ),
  fn(
    "CUresult cuEGLStreamProducerConnect(CUeglStreamConnection* conn, EGLStreamKHR stream, EGLint width, EGLint height)"
  ),
  fn("CUresult cuEGLStreamProducerDisconnect(CUeglStreamConnection* conn)"),
  fn("CUresult cuEGLStreamProducerPresentFrame(CUeglStreamConnection* conn, CUeglFrame eglframe, CUstream* pStream)"),
  fn("CUresult cuEGLStreamProducerReturnFrame(CUeglStreamConnection* conn, CUeglFrame* eglframe, CUstream* pStream)"),
  fn(
    "CUresult cuGraphicsResourceGetMappedEglFrame(CUeglFrame* eglFrame, CUgraphicsResource resource, unsigned int index, unsigned int mipLevel)"
  ),
  fn("CUresult cuVDPAUGetDevice(CUdevice* pDevice, VdpDevice vdpDevice, VdpGetProcAddress* vdpGetProcAddress)"),
  fn(
    "CUresult cuVDPAUCtxCreate(CUcontext* pCtx, unsigned int flags, CUdevice device, VdpDevice vdpDevice, VdpGetProcAddress* vdpGetProcAddress)"
  ),
  fn(
    "CUresult cuVDPAUCtxCreate_v2(CUcontext* pCtx, unsigned int flags, CUdevice device, VdpDevice vdpDevice, VdpGetProcAddress* vdpGetProcAddress)"
  ),
  fn(
    "CUresult cuGraphicsVDPAURegisterVideoSurface(CUgraphicsResource* pCudaResource, VdpVideoSurface vdpSurface, unsigned int flags)"
  ),
  fn(
    "CUresult cuGraphicsVDPAURegisterOutputSurface(CUgraphicsResource* pCudaResource, VdpOutputSurface vdpSurface, unsigned int flags)"
  ),
  unknown("cuEGLApiInit")
])
