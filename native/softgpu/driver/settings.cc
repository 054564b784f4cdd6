#include "native/softgpu/driver/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace juice::softgpu {
namespace {

constexpr unsigned kMaxDevices = 64;
constexpr uint64_t kDefaultMemory = uint64_t{1} << 30;

void complain(const char* variable, const std::string& value, const char* instead) {
    std::fprintf(stderr, "juice softgpu: %s=%s makes no sense; %s\n", variable, value.c_str(),
                 instead);
}

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> items;
    for (size_t start = 0; start <= list.size();) {
        const size_t end = std::min(list.find(',', start), list.size());
        std::string item = list.substr(start, end - start);
        const size_t first = item.find_first_not_of(" \t");
        const size_t last = item.find_last_not_of(" \t");
        items.push_back(first == std::string::npos ? "" : item.substr(first, last - first + 1));
        start = end + 1;
    }
    return items;
}

/// The whole of `text` as a number.
std::optional<uint64_t> number(const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

std::optional<uint64_t> size(std::string text) {
    unsigned shift = 0;
    if (!text.empty()) {
        const std::string units = "kmg";
        const char unit = static_cast<char>(std::tolower(static_cast<unsigned char>(text.back())));
        if (const size_t at = units.find(unit); at != std::string::npos) {
            shift = 10 * (static_cast<unsigned>(at) + 1);
            text.pop_back();
        }
    }
    const auto value = number(text);
    if (!value || *value == 0 || *value > (UINT64_MAX >> shift >> 1)) return std::nullopt;
    return *value << shift;
}

std::optional<Uuid> parseUuid(const std::string& text) {
    if (text.rfind("GPU-", 0) != 0) return std::nullopt;
    std::string digits;
    for (const char c : text.substr(4)) {
        if (c != '-') digits += c;
    }
    Uuid uuid;
    if (digits.size() != 2 * uuid.size()) return std::nullopt;
    for (size_t i = 0; i < uuid.size(); ++i) {
        const char* at = digits.data() + 2 * i;
        const auto [end, error] = std::from_chars(at, at + 2, uuid[i], 16);
        if (error != std::errc() || end != at + 2) return std::nullopt;
    }
    return uuid;
}

/// FNV-1a: no secret here, only the wish for the same UUID tomorrow.
uint64_t hash(const std::string& text, uint64_t seed) {
    uint64_t value = 0xcbf29ce484222325 ^ seed;
    for (const char c : text) value = (value ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    return value ^ (value >> 29);
}

Uuid derivedUuid(const std::string& machine, unsigned index) {
    const std::string name = "juice softgpu " + std::to_string(index) + " of " + machine;
    const uint64_t halves[] = {hash(name, 0), hash(name, 0x9e3779b97f4a7c15)};
    Uuid uuid;
    for (size_t i = 0; i < uuid.size(); ++i) {
        uuid[i] = static_cast<uint8_t>(halves[i / 8] >> (8 * (i % 8)));
    }
    uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x80);  // version 8: of our own making
    uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);
    return uuid;
}

std::vector<DeviceSettings> allDevices(const Environment& environment) {
    std::vector<Uuid> given;
    if (environment.uuids) {
        for (const std::string& item : split(*environment.uuids)) {
            const auto uuid = parseUuid(item);
            if (!uuid) {
                complain("JUICE_SOFTGPU_UUIDS", *environment.uuids, "the UUIDs are derived");
                given.clear();
                break;
            }
            given.push_back(*uuid);
        }
    }
    uint64_t count = given.empty() ? 1 : given.size();
    if (environment.devices) {
        const auto wanted = number(*environment.devices);
        if (wanted && *wanted <= kMaxDevices) {
            count = *wanted;
        } else {
            complain("JUICE_SOFTGPU_DEVICES", *environment.devices, "there is one device");
        }
    }
    uint64_t memory = kDefaultMemory;
    if (environment.memory) {
        if (const auto wanted = size(*environment.memory)) {
            memory = *wanted;
        } else {
            complain("JUICE_SOFTGPU_MEMORY", *environment.memory, "a device has 1 GiB");
        }
    }
    std::vector<DeviceSettings> devices;
    for (unsigned i = 0; i < count; ++i) {
        const Uuid uuid = i < given.size() ? given[i] : derivedUuid(environment.machine, i);
        devices.push_back({i, uuid, memory});
    }
    return devices;
}

/// The device that one entry of CUDA_VISIBLE_DEVICES names.
std::optional<size_t> named(const std::string& entry, const std::vector<DeviceSettings>& all) {
    if (const auto ordinal = number(entry)) {
        if (*ordinal < all.size()) return *ordinal;
        return std::nullopt;
    }
    if (entry.size() <= 4 || entry.rfind("GPU-", 0) != 0) return std::nullopt;
    std::optional<size_t> found;
    for (size_t i = 0; i < all.size(); ++i) {
        if (formatUuid(all[i].uuid).rfind(entry, 0) != 0) continue;
        if (found) return std::nullopt;  // ambiguous
        found = i;
    }
    return found;
}

}  // namespace

std::string formatUuid(const Uuid& uuid) {
    std::string text = "GPU-";
    for (size_t i = 0; i < uuid.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += "0123456789abcdef"[uuid[i] >> 4];
        text += "0123456789abcdef"[uuid[i] & 15];
    }
    return text;
}

Environment environment() {
    const auto variable = [](const char* name) -> std::optional<std::string> {
        const char* value = std::getenv(name);
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
    Environment found;
    found.devices = variable("JUICE_SOFTGPU_DEVICES");
    found.memory = variable("JUICE_SOFTGPU_MEMORY");
    found.uuids = variable("JUICE_SOFTGPU_UUIDS");
    found.watchdog = variable("JUICE_SOFTGPU_WATCHDOG");
    found.visible = variable("CUDA_VISIBLE_DEVICES");
    for (const char* file : {"/etc/machine-id", "/proc/sys/kernel/random/boot_id"}) {
        if (std::ifstream in(file); std::getline(in, found.machine) && !found.machine.empty())
            break;
    }
    return found;
}

std::chrono::milliseconds watchdog(const Environment& environment) {
    if (!environment.watchdog) return {};
    const std::string& text = *environment.watchdog;
    constexpr double kMostSeconds = 1e9;
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    const bool whole = !text.empty() && error == std::errc() && end == text.data() + text.size();
    if (!whole || !(seconds >= 0 && seconds <= kMostSeconds)) {
        complain("JUICE_SOFTGPU_WATCHDOG", text, "kernels may run as long as they like");
        return {};
    }
    // The least that can be asked for is a millisecond.
    return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

std::vector<DeviceSettings> visibleDevices(const Environment& environment) {
    std::vector<DeviceSettings> all = allDevices(environment);
    if (!environment.visible) return all;
    std::vector<DeviceSettings> visible;
    for (const std::string& entry : split(*environment.visible)) {
        const auto index = named(entry, all);
        if (!index) break;
        const DeviceSettings& device = all[*index];
        const auto same = [&](const DeviceSettings& other) { return other.index == device.index; };
        // A device named twice: a real driver then shows none.
        if (std::any_of(visible.begin(), visible.end(), same)) return {};
        visible.push_back(device);
    }
    return visible;
}

}  // namespace juice::softgpu
