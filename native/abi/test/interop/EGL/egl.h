// What cudaEGL.h needs of EGL.
typedef int EGLint;
typedef void* EGLStreamKHR;
typedef void* EGLImageKHR;
typedef void* EGLSyncKHR;
