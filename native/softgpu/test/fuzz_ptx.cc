// Feeds arbitrary text to the loader: it must refuse or accept, never misbehave. What it accepts is
// not run. Start it with a corpus: fuzz_ptx native/softgpu/test/fixtures
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "native/softgpu/engine.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    juice::softgpu::LoadError error;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto program = juice::softgpu::Program::load(text, error);
    return 0;
}
