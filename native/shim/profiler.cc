// Profilers are told when to start and stop; here there is none to tell.
#include "native/gen/cuda_api.h"
#include "native/shim/session.h"

namespace session = juice::shim::session;

CUresult cuProfilerInitialize(const char* configFile, const char* outputFile,
                              CUoutput_mode outputMode) {
    return CUDA_ERROR_PROFILER_DISABLED;
}
CUresult cuProfilerStart() {
    return session::initialised();
}
CUresult cuProfilerStop() {
    return session::initialised();
}
