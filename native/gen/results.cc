#include "native/gen/results.h"

#include <algorithm>
#include <iterator>

namespace juice {
namespace {

struct Row {
    int code;
    const char* name;
    const char* sentence;
};

constexpr Row kResults[] = {
#include "native/gen/results.inc"
};

const Row* find(CUresult code) {
    const auto* found =
        std::lower_bound(std::begin(kResults), std::end(kResults), static_cast<int>(code),
                         [](const Row& row, int wanted) { return row.code < wanted; });
    return found != std::end(kResults) && found->code == static_cast<int>(code) ? found : nullptr;
}

}  // namespace

const char* resultName(CUresult code) {
    const Row* row = find(code);
    return row == nullptr ? nullptr : row->name;
}

const char* resultSentence(CUresult code) {
    const Row* row = find(code);
    return row == nullptr ? nullptr : row->sentence;
}

}  // namespace juice
