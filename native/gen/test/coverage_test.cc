// What native/idl calls implemented must be defined by the library itself, and nothing else: a
// definition that is still the generated weak one is a hole, a strong one that native/idl does not
// know is missing from docs/cuda-coverage.md.
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

namespace {

/// The strong (T) functions among the library's exports, as nm lists them.
std::set<std::string> definedBy(const std::string& library) {
    FILE* pipe = popen(("nm -D --defined-only --format=posix " + library).c_str(), "r");
    std::set<std::string> names;
    char line[512];
    while (fgets(line, sizeof line, pipe) != nullptr) {
        std::istringstream words(line);
        std::string name, kind;
        words >> name >> kind;
        if (kind == "T") names.insert(name);
    }
    pclose(pipe);
    return names;
}

TEST(Coverage, TheLibraryDefinesExactlyWhatIsDeclaredImplemented) {
    const std::set<std::string> implemented = {
#define JUICE_IMPLEMENTED(name) #name,
#include "native/gen/implemented.inc"
#undef JUICE_IMPLEMENTED
    };
    EXPECT_EQ(definedBy(JUICE_LIBRARY), implemented);
}

}  // namespace
