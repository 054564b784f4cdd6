#include "native/shim/handles.h"

#include <gtest/gtest.h>

#include "native/shim/objects.h"

namespace juice::shim {
namespace {

Stream* stream() {
    auto* const one = new Stream;
    one->kind = ObjectKind::stream;
    return one;
}

TEST(Handles, FindTheirObjectUntilItIsDropped) {
    Stream* const one = stream();
    void* const handle = handles::mint(*one);
    ASSERT_NE(handle, nullptr);
    EXPECT_NE(one->id, 0u);
    EXPECT_EQ(find<Stream>(handle), one);
    EXPECT_EQ(find<Event>(handle), nullptr);
    EXPECT_EQ(handles::of(*one), handle);
    handles::drop(*one);
    EXPECT_EQ(handles::find(handle), nullptr);
}

TEST(Handles, OfOthersAreNotFound) {
    int local = 0;
    EXPECT_EQ(handles::find(nullptr), nullptr);
    EXPECT_EQ(handles::find(&local), nullptr);
    EXPECT_EQ(handles::find(reinterpret_cast<void*>(1)), nullptr);
    Stream* const one = stream();
    void* const handle = handles::mint(*one);
    EXPECT_EQ(handles::find(static_cast<char*>(handle) + 1), nullptr);
    handles::drop(*one);
}

TEST(Handles, PointAtZerosThatCanBeRead) {
    Stream* const one = stream();
    const auto* const words = static_cast<const uint64_t*>(handles::mint(*one));
    EXPECT_EQ(words[0], 0u);
    EXPECT_EQ(words[1], 0u);
    handles::drop(*one);
}

TEST(Handles, OfAUsedSlotAreNotMistakenForTheNextOne) {
    Stream* const first = stream();
    void* const stale = handles::mint(*first);
    handles::drop(*first);
    std::vector<Stream*> others;
    for (int i = 0; i < 5000; ++i) {
        others.push_back(stream());
        ASSERT_NE(handles::mint(*others.back()), stale);
        handles::drop(*others.back());
        ASSERT_EQ(handles::find(stale), nullptr);
    }
}

TEST(Handles, OfContextsFitIntoAHeader) {
    for (int i = 0; i < 300'000; ++i) {
        Context context;
        context.kind = ObjectKind::context;
        ASSERT_NE(handles::mint(context), nullptr);
        ASSERT_LE(context.id, UINT32_MAX);
        ASSERT_NE(context.id, 0u);
        handles::drop(context);
    }
}

TEST(Handles, VisitWhatLives) {
    Stream* const one = stream();
    handles::mint(*one);
    struct Seen {
        Stream* wanted;
        bool found;
    } seen{one, false};
    const auto look = [](Object& object, void* argument) {
        auto* const at = static_cast<Seen*>(argument);
        at->found = at->found || &object == at->wanted;
    };
    handles::forEach(look, &seen);
    EXPECT_TRUE(seen.found);
    handles::drop(*one);
    seen.found = false;
    handles::forEach(look, &seen);
    EXPECT_FALSE(seen.found);
}

}  // namespace
}  // namespace juice::shim
