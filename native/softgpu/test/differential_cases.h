// The snippets that the software GPU and a real one are compared by.
#pragma once

#include <string>
#include <vector>

namespace juice::softgpu::test {

/// How close two results must be.
enum class Match {
    exact,      // the same bits
    logarithm,  // f32 within 2^-21 of each other, absolutely or relatively
    near,       // f32 within 2^-21 of each other, relatively, or both NaN
    coarse,     // f32 or f64 within 2^-10 relatively (the manual's tanh; f64's 20 digits)
    lastBit,    // the bits as integers at most 1 apart
    absolute,   // f32 within 2^-19
};

struct Case {
    std::string name;
    std::string body;
    Match match;
};

std::vector<Case> differentialCases();

}  // namespace juice::softgpu::test
