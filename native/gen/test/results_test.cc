#include "native/gen/results.h"

#include <gtest/gtest.h>

namespace {

TEST(Results, EveryDeclaredCodeHasItsOwnNameAndASentence) {
#define CHECK_RESULT(result, code)                    \
    EXPECT_STREQ(juice::resultName(result), #result); \
    EXPECT_NE(juice::resultSentence(result), nullptr) << #result;
    JUICE_CUDA_RESULTS(CHECK_RESULT)
#undef CHECK_RESULT
}

TEST(Results, AnUndefinedCodeHasNone) {
    EXPECT_EQ(juice::resultName(static_cast<CUresult>(35)), nullptr);
    EXPECT_EQ(juice::resultSentence(static_cast<CUresult>(1000)), nullptr);
}

}  // namespace
