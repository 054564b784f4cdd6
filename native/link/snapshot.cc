#include "native/link/snapshot.h"

namespace juice {
namespace {

constexpr uint32_t kFormat = 2;
constexpr uint32_t kMaxDevices = 64;
constexpr uint32_t kMaxEntries = 4096;

template <typename Key, typename Value>
void put(Writer& out, const std::map<Key, Value>& map) {
    out.put(static_cast<uint32_t>(map.size()));
    for (const auto& [key, value] : map) out.put(key).put(value);
}

template <typename Key, typename Value>
void get(Reader& in, std::map<Key, Value>& map) {
    const auto count = in.get<uint32_t>();
    if (count > kMaxEntries) return in.fail();
    for (uint32_t i = 0; i < count && in.ok(); ++i) {
        const auto key = in.get<Key>();
        map[key] = in.get<Value>();
    }
}

void put(Writer& out, const DeviceSnapshot& device) {
    out.text(device.name);
    out.raw(device.uuid.data(), device.uuid.size());
    out.put(device.totalMemory).text(device.pciBusId);
    put(out, device.attributes);
    put(out, device.limits);
    out.put(device.leastPriority).put(device.greatestPriority);
    out.bytes(device.gpcOfTpc.data(), device.gpcOfTpc.size());
    out.bytes(device.tpcInGpc.data(), device.tpcInGpc.size());
}

void get(Reader& in, DeviceSnapshot& device) {
    device.name = in.text();
    in.raw(device.uuid.data(), device.uuid.size());
    in.get(device.totalMemory);
    device.pciBusId = in.text();
    get(in, device.attributes);
    get(in, device.limits);
    in.get(device.leastPriority);
    in.get(device.greatestPriority);
    const Bytes gpcs = in.bytes(), places = in.bytes();
    if (gpcs.size() != places.size()) return in.fail();
    device.gpcOfTpc.assign(gpcs.begin(), gpcs.end());
    device.tpcInGpc.assign(places.begin(), places.end());
}

}  // namespace

std::vector<uint8_t> Snapshot::encode() const {
    Writer out;
    out.put(kFormat).put(driverVersion).text(driverText);
    out.put(static_cast<uint32_t>(devices.size()));
    for (const DeviceSnapshot& device : devices) put(out, device);
    out.bytes(peer.data(), peer.size());
    return out.take();
}

bool Snapshot::decode(Bytes data, Snapshot& out) {
    Reader in(data);
    Snapshot read;
    if (in.get<uint32_t>() != kFormat) return false;
    in.get(read.driverVersion);
    read.driverText = in.text();
    const auto count = in.get<uint32_t>();
    if (count > kMaxDevices) return false;
    read.devices.resize(count);
    for (DeviceSnapshot& device : read.devices) get(in, device);
    const Bytes peer = in.bytes();
    read.peer.assign(peer.begin(), peer.end());
    if (!in.done() || read.peer.size() != size_t{count} * count) return false;
    out = std::move(read);
    return true;
}

}  // namespace juice
