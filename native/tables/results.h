// The CUresult values that the tables answer with.
#pragma once

namespace juice::tables {

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kNotSupported = 801;

}  // namespace juice::tables
