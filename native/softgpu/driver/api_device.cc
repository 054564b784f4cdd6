// Devices and their primary contexts.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "native/softgpu/driver/guard.h"

using namespace juice::softgpu;

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    return withDevice(ordinal, [&](Device&) {
        if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *device = ordinal;
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetCount(int* count) {
    return withDriver([&] {
        if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *count = static_cast<int>(devices().size());
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device&) {
        if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
        std::snprintf(name, static_cast<size_t>(length), "%s", kDeviceName);
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::memcpy(uuid->bytes, device.uuid().data(), sizeof(uuid->bytes));
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
    return cuDeviceGetUuid(uuid, ordinal);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *bytes = device.totalMemory();
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        const auto found = device.attribute(attribute);
        if (value == nullptr || !found) return CUDA_ERROR_INVALID_VALUE;
        *value = *found;
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device&) {
        if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *major = static_cast<int>(kSm / 10);
        *minor = static_cast<int>(kSm % 10);
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const auto attribute = [&](int id) { return device.attribute(id).value_or(0); };
        *properties = {};
        properties->maxThreadsPerBlock = kMaxThreadsPerBlock;
        for (int i = 0; i < 3; ++i) {
            properties->maxThreadsDim[i] = static_cast<int>(kMaxBlockDim[i]);
            properties->maxGridSize[i] = static_cast<int>(kMaxGridDim[i]);
        }
        properties->sharedMemPerBlock = kSharedPerBlock;
        properties->totalConstantMemory = attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
        properties->SIMDWidth = kWarpSize;
        properties->memPitch = attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
        properties->regsPerBlock = kRegistersPerMultiprocessor;
        properties->clockRate = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
        properties->textureAlign = attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        const std::string id = device.pciBusId();
        if (text == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
        const int needed = std::snprintf(text, static_cast<size_t>(length), "%s", id.c_str());
        return needed < length ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
    return withDriver([&] {
        if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
        unsigned domain = 0, bus = 0, slot = 0, function = 0;
        if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
            domain = function = 0;
            if (std::sscanf(text, "%x:%x.%x", &bus, &slot, &function) < 2) {
                return CUDA_ERROR_INVALID_VALUE;
            }
        }
        for (const Device* candidate : devices()) {
            if (static_cast<unsigned>(candidate->pciDomain()) == domain &&
                static_cast<unsigned>(candidate->pciBus()) == bus &&
                static_cast<unsigned>(candidate->pciDevice()) == slot && function == 0) {
                *device = candidate->ordinal();
                return CUDA_SUCCESS;
            }
        }
        return CUDA_ERROR_INVALID_DEVICE;
    });
}

CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device&) {
        if (supported == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *supported = 0;
        return CUDA_SUCCESS;
    });
}

// Peers: all devices are this process's memory, so any two can reach each other.

CUresult cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer) {
    return withDevice(ordinal, [&](Device&) {
        if (deviceAt(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *can = ordinal != peer ? 1 : 0;
        return CUDA_SUCCESS;
    });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice destination) {
    return withDevice(source, [&](Device&) {
        if (deviceAt(destination) == nullptr || source == destination) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
        switch (attribute) {
            case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
            case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
                *value = 1;
                return CUDA_SUCCESS;
            case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
            case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
                *value = 0;
                return CUDA_SUCCESS;
            default:
                return CUDA_ERROR_INVALID_VALUE;
        }
    });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    return withContext([&](Context& context) {
        const auto other = find<Context>(peer);
        if (!other) return CUDA_ERROR_INVALID_CONTEXT;
        if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
        if (&other->device() == &context.device()) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        return context.enablePeer(other->device()) ? CUDA_SUCCESS
                                                   : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    });
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    return withContext([&](Context& context) {
        const auto other = find<Context>(peer);
        if (!other) return CUDA_ERROR_INVALID_CONTEXT;
        return context.disablePeer(other->device()) ? CUDA_SUCCESS
                                                    : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    });
}

// Primary contexts.

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) -> CUresult {
        if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
        // What is alive may be retained however sick it is; it cannot be brought to life again.
        if (!device.primary().active()) {
            if (const CUresult failed = device.failure()) return failed;
        }
        device.primary().retain();
        *context = handleOf(device.primary());
        return CUDA_SUCCESS;
    });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        return device.primary().release() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    });
}

/// The first ABI takes a release that nobody owes without a word.
CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        device.primary().release();
        return CUDA_SUCCESS;
    });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
    return withDevice(ordinal, [&](Device& device) {
        device.primary().reset();
        return CUDA_SUCCESS;
    });
}

CUresult cuDevicePrimaryCtxReset(CUdevice ordinal) {
    return cuDevicePrimaryCtxReset_v2(ordinal);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
    return withDevice(ordinal, [&](Device& device) {
        if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        device.primary().flags() = flags;
        return CUDA_SUCCESS;
    });
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned int flags) {
    return cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
    return withDevice(ordinal, [&](Device& device) {
        if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *flags = device.primary().flags();
        *active = device.primary().active() ? 1 : 0;
        return CUDA_SUCCESS;
    });
}
