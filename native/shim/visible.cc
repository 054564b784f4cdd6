#include "native/shim/visible.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "native/abi/cuda_result.h"

namespace juice::shim {
namespace {

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool isUuid(std::string_view entry) {
    return entry.starts_with("GPU-");
}

/// The device of one entry, or -1.
int deviceOf(const Snapshot& snapshot, std::string_view entry) {
    const int count = static_cast<int>(snapshot.devices.size());
    if (!isUuid(entry)) {
        int ordinal = -1;
        const auto [end, error] = std::from_chars(entry.begin(), entry.end(), ordinal);
        const bool whole = error == std::errc() && end == entry.end();
        return whole && ordinal >= 0 && ordinal < count ? ordinal : -1;
    }
    int found = -1;
    for (int i = 0; i < count; ++i) {
        if (!uuidText(snapshot.devices[static_cast<size_t>(i)].uuid).starts_with(entry)) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return entry.size() > 4 ? found : -1;
}

}  // namespace

std::string uuidText(const std::array<uint8_t, 16>& uuid) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string text = "GPU-";
    for (size_t i = 0; i < uuid.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += kHex[uuid[i] >> 4];
        text += kHex[uuid[i] & 15];
    }
    return text;
}

Visible visibleDevices(const Snapshot& snapshot, const char* list) {
    Visible visible;
    if (list == nullptr) {
        for (size_t i = 0; i < snapshot.devices.size(); ++i)
            visible.devices.push_back(static_cast<int>(i));
    } else {
        std::string_view rest = list;
        const bool uuids = isUuid(trimmed(rest));
        for (bool more = true; more;) {
            const auto comma = rest.find(',');
            const std::string_view entry = trimmed(rest.substr(0, comma));
            more = comma != std::string_view::npos;
            if (more) rest.remove_prefix(comma + 1);
            const int device = isUuid(entry) == uuids ? deviceOf(snapshot, entry) : -1;
            if (device < 0) break;
            const auto end = visible.devices.end();
            if (std::find(visible.devices.begin(), end, device) != end) {
                visible.devices.clear();
                visible.result = CUDA_ERROR_INVALID_DEVICE;
                return visible;
            }
            visible.devices.push_back(device);
        }
    }
    if (visible.devices.empty()) visible.result = CUDA_ERROR_NO_DEVICE;
    return visible;
}

}  // namespace juice::shim
