// Attributes of streams: hints about caches, waiting and priority. They change no result here, but
// what was set is what is read again.
#include "native/softgpu/driver/guard.h"

using namespace juice::softgpu;

namespace {

constexpr DefaultStream kLegacy = DefaultStream::legacy;
constexpr DefaultStream kPerThread = DefaultStream::perThread;

bool known(CUstreamAttrID attribute) {
    switch (attribute) {
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
            return true;
        default:
            return false;
    }
}

/// What a stream says before anything was set.
CUstreamAttrValue initial(const Stream& stream, CUstreamAttrID attribute) {
    CUstreamAttrValue value{};
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) value.priority = stream.priority();
    // Not one of the policies by name: the context's.
    if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) value.syncPolicy = -1;
    if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value.memSyncDomainMap.remote = 1;
    return value;
}

CUresult get(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value,
             DefaultStream meaning) {
    return withAnyStream(handle, meaning, [&](Stream& stream) {
        if (value == nullptr || !known(attribute)) return CUDA_ERROR_INVALID_VALUE;
        *value = stream.attribute(attribute).value_or(initial(stream, attribute));
        return CUDA_SUCCESS;
    });
}

CUresult set(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value,
             DefaultStream meaning) {
    return withAnyStream(handle, meaning, [&](Stream& stream) {
        if (value == nullptr || !known(attribute)) return CUDA_ERROR_INVALID_VALUE;
        stream.setAttribute(attribute, *value);
        return CUDA_SUCCESS;
    });
}

CUresult copyAttributes(CUstream to, CUstream from, DefaultStream meaning) {
    return withAnyStream(to, meaning, [&](Stream& target) -> CUresult {
        return withAnyStream(from, meaning, [&](Stream& source) {
            if (&target != &source) target.copyAttributes(source);
            return CUDA_SUCCESS;
        });
    });
}

}  // namespace

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue* value) {
    return get(stream, attribute, value, kLegacy);
}
CUresult cuStreamGetAttribute_ptsz(CUstream stream, CUstreamAttrID attribute,
                                   CUstreamAttrValue* value) {
    return get(stream, attribute, value, kPerThread);
}
CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute,
                              const CUstreamAttrValue* value) {
    return set(stream, attribute, value, kLegacy);
}
CUresult cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID attribute,
                                   const CUstreamAttrValue* value) {
    return set(stream, attribute, value, kPerThread);
}
CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
    return copyAttributes(to, from, kLegacy);
}
CUresult cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) {
    return copyAttributes(to, from, kPerThread);
}
