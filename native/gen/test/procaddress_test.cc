#include "native/gen/procaddress.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

struct Row {
    int version;
    std::optional<std::string> symbol;
    int status;
};
using Recorded = std::map<std::string, std::map<int, std::vector<Row>>>;

/// Reads procaddress.json: one name on each line,
/// "name":{"0":[[2000,"symbol",0],[3020,null,2]],"2":[...]}.
class Scanner {
  public:
    explicit Scanner(const std::string& line) : at_(line.c_str()) {}
    bool take(char c) {
        if (*at_ != c) return false;
        ++at_;
        return true;
    }
    std::string text() {
        EXPECT_TRUE(take('"')) << at_;
        std::string out;
        while (*at_ != '"' && *at_ != '\0') out += *at_++;
        take('"');
        return out;
    }
    int number() {
        char* end = nullptr;
        const long value = std::strtol(at_, &end, 10);
        at_ = end;
        return static_cast<int>(value);
    }
    std::optional<std::string> textOrNull() {
        if (*at_ == '"') return text();
        at_ += 4;  // null
        return std::nullopt;
    }

  private:
    const char* at_;
};

Recorded readRecorded() {
    std::ifstream in(JUICE_TEST_DATA "/procaddress.json");
    Recorded all;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] != '"') continue;
        Scanner scan(line);
        auto& flags = all[scan.text()];
        scan.take(':');
        scan.take('{');
        do {
            auto& rows = flags[std::stoi(scan.text())];
            scan.take(':');
            scan.take('[');
            do {
                scan.take('[');
                Row row{};
                row.version = scan.number();
                scan.take(',');
                row.symbol = scan.textOrNull();
                scan.take(',');
                row.status = scan.number();
                rows.push_back(row);
                scan.take(']');
            } while (scan.take(','));
            scan.take(']');
        } while (scan.take(','));
    }
    return all;
}

struct Answer {
    CUresult result;
    std::optional<std::string> symbol;
    int status;
    bool operator==(const Answer&) const = default;
};

void PrintTo(const Answer& answer, std::ostream* out) {
    *out << answer.result << " " << answer.symbol.value_or("null") << " " << answer.status;
}

Answer ask(const char* name, int version, uint64_t flags) {
    const char* symbol = "untouched";
    int status = -1;
    const CUresult result = juice::resolveProc(name, version, flags, &symbol, &status);
    return {result, symbol == nullptr ? std::nullopt : std::optional<std::string>(symbol), status};
}

Answer answerOf(const Row& row) {
    return {CUDA_SUCCESS, row.symbol, row.status};
}

TEST(ProcAddress, AnswersEveryRecordedRowFromItsFirstToItsLastVersion) {
    const Recorded recorded = readRecorded();
    EXPECT_EQ(recorded.size(), 497u);
    for (const auto& [name, flags] : recorded) {
        for (const auto& [flag, rows] : flags) {
            for (size_t i = 0; i < rows.size(); ++i) {
                const int last =
                    i + 1 < rows.size() ? rows[i + 1].version - 1 : juice::kProcAddressVersion;
                for (int version : {rows[i].version, (rows[i].version + last) / 2, last}) {
                    SCOPED_TRACE(name + " version " + std::to_string(version) + " flags " +
                                 std::to_string(flag));
                    EXPECT_EQ(ask(name.c_str(), version, flag), answerOf(rows[i]));
                    if (flag == 0) {
                        EXPECT_EQ(ask(name.c_str(), version, 1), answerOf(rows[i]));
                    }
                }
            }
        }
    }
}

TEST(ProcAddress, AnUnknownAnEmptyAndASuffixedNameAreNotFound) {
    const Answer notFound{CUDA_SUCCESS, std::nullopt, 1};
    EXPECT_EQ(ask("cuNoSuchThing", 12000, 0), notFound);
    EXPECT_EQ(ask("", 0, 0), notFound);
    EXPECT_EQ(ask("cuMemAlloc_v2", 12000, 0), notFound);
    EXPECT_EQ(ask("cuLaunchKernel_ptsz", 12000, 2), notFound);
}

TEST(ProcAddress, AVersionNewerThanTheDriverIsInvalid) {
    EXPECT_EQ(ask("cuInit", 13001, 0), (Answer{CUDA_ERROR_INVALID_VALUE, std::nullopt, 1}));
    EXPECT_EQ(ask("cuInit", 13000, 0), (Answer{CUDA_SUCCESS, "cuInit", 0}));
}

TEST(ProcAddress, AVersionBeforeAllRowsIsNotSufficient) {
    EXPECT_EQ(ask("cuInit", 1999, 0), (Answer{CUDA_SUCCESS, std::nullopt, 2}));
}

TEST(ProcAddress, OneNameStandsForSeveralAbis) {
    EXPECT_EQ(ask("cuCtxCreate", 2000, 0).symbol, "cuCtxCreate");
    EXPECT_EQ(ask("cuCtxCreate", 3020, 0).symbol, "cuCtxCreate_v2");
    EXPECT_EQ(ask("cuCtxCreate", 11040, 0).symbol, "cuCtxCreate_v3");
    EXPECT_EQ(ask("cuCtxCreate", 13000, 0).symbol, "cuCtxCreate_v4");
    EXPECT_EQ(ask("cuMemcpy", 7000, 2).symbol, "cuMemcpy_ptds");
    EXPECT_EQ(ask("cuMemcpy", 4000, 2), (Answer{CUDA_SUCCESS, std::nullopt, 2}));
}

}  // namespace
