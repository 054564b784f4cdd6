#include <fstream>
#include <sstream>

#include "native/softgpu/test/harness.h"

namespace juice::softgpu::test {

std::string fixture(const std::string& name) {
    std::ifstream file(std::string(JUICE_FIXTURES) + "/" + name);
    EXPECT_TRUE(file.good()) << name;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace juice::softgpu::test
