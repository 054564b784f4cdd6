// The `__managed__` variables of one image. They live apart from its programs, because every
// context that the image is loaded in has a program of its own and sees the same variables.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "native/softgpu/engine.h"

namespace juice::softgpu {

class Context;

class ManagedVariables {
  public:
    ManagedVariables() = default;
    ~ManagedVariables();
    ManagedVariables(const ManagedVariables&) = delete;
    ManagedVariables& operator=(const ManagedVariables&) = delete;

    /// The zeroed memory of a variable: whole pages, the same for every program that asks.
    ManagedPlace place(const std::string& name, size_t size);
    /// Makes them known as managed memory; the first context to ask is told as theirs.
    void enter(Context& context);

  private:
    struct Variable {
        uint64_t address = 0;
        size_t size = 0;
        bool entered = false;
    };

    std::mutex mutex_;
    std::map<std::string, Variable> variables_;
};

}  // namespace juice::softgpu
