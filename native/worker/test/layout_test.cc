// Addresses that are asked for one by one: not for ThreadSanitizer, which lays the address space
// out itself.
#include "native/worker/layout.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace juice::worker {
namespace {

TEST(Layout, APlaceThatIsTakenIsNotTakenTwice) {
    constexpr uint64_t kPlace = 0x5100'0000'0000;
    ASSERT_TRUE(mapAt(kPlace, 8192));
    EXPECT_FALSE(mapAt(kPlace + 4096, 8192));
    *reinterpret_cast<volatile int*>(kPlace + 4096) = 1;
    unmapAt(kPlace, 8192);
    EXPECT_TRUE(mapAt(kPlace + 4096, 4096));
    EXPECT_EQ(*reinterpret_cast<volatile int*>(kPlace + 4096), 0);
    unmapAt(kPlace + 4096, 4096);
}

TEST(Layout, WithHighAddressesFilledMappingsFallIntoTheFirstArena) {
    // In a child: a test runner needs its address space.
    const pid_t child = fork();
    if (child == 0) {
        fillHighAddresses();
        const bool inArena = arenasOfMappings() == 1;
        // A client's page range above the arena can still be mirrored.
        const bool mapped = mapAt(0x7000'0000'0000, 4096);
        if (mapped) unmapAt(0x7000'0000'0000, 4096);
        _exit(inArena && mapped ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace juice::worker
