// The software GPU against the recorded answers of an H200 to some nine hundred right and wrong
// calls.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Answers = std::map<std::string, std::vector<std::string>>;

/// Answers by question; one question may be asked several times.
Answers parse(std::istream& in) {
    Answers answers;
    for (std::string line; std::getline(in, line);) {
        const size_t colon = line.find(": ");
        if (colon != std::string::npos) {
            answers[line.substr(0, colon)].push_back(line.substr(colon + 2));
        }
    }
    return answers;
}

/// What the driver answers, asked by the program that made the recording too.
Answers asked() {
    FILE* const pipe = popen("'" JUICE_CONFORMANCE "' '" JUICE_SOFTGPU "' 2>/dev/null", "r");
    if (pipe == nullptr) return {};
    std::string all;
    char part[4096];
    for (size_t n = 0; (n = std::fread(part, 1, sizeof(part), pipe)) > 0;) all.append(part, n);
    EXPECT_EQ(pclose(pipe), 0);
    std::istringstream in(all);
    return parse(in);
}

/// Where the software GPU differs, and why.
const std::set<std::string> kDifferent = {
    // The real one finds other things in the freed memory behind the handle on each occasion.
    "contexts.destroy_again",
    // Libraries are compiled when they are loaded, not when they are first used.
    "libraries.garbage_without_context", "libraries.garbage", "libraries.bad_ptx",
    // What the device is: its multiprocessors and the registers of its kernels.
    "functions.bounded", "occupancy.potential_values", "occupancy.potential_limit_values",
    "occupancy.potential_bounded_values", "occupancy.potential_shared_values",
    "occupancy.potential_dynamic_values",
    // What it lacks: clusters.
    "launches.ex_cluster", "occupancy.clusters_value", "occupancy.cluster_size_value"};

TEST(SoftwareGpuConformance, AnswersAreThoseOfAnH200) {
    std::ifstream file(JUICE_ANSWERS);
    const Answers recorded = parse(file);
    ASSERT_GT(recorded.size(), 800U);
    Answers answers = asked();
    for (const auto& [question, wanted] : recorded) {
        if (kDifferent.contains(question)) continue;
        EXPECT_EQ(answers[question], wanted) << question;
    }
}

}  // namespace
