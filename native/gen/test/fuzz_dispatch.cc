// Any bytes as the payload of any generated call: two bytes of opcode, then the payload. The driver
// lacks every entry, so that what is exercised is the decoding and nothing is executed.
#include "native/gen/test/worker_standin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2) return 0;
    const auto op = static_cast<uint16_t>((data[0] | data[1] << 8) % juice::worker::kHandlerCount);
    if (juice::worker::kHandlers[op].execute == nullptr) return 0;
    std::vector<uint8_t> results;
    juice::standin::execute(op, {data + 2, size - 2}, results);
    return 0;
}
