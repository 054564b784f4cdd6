// Code: modules and their functions belong to a context; libraries and their kernels to none, and
// are instantiated in a context when they are first used there.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/managed_variables.h"
#include "native/softgpu/engine.h"

namespace juice::softgpu {

class Context;
class Library;
class LibraryKernel;

/// A loaded program and what its PTX says of itself.
struct LoadedCode {
    std::shared_ptr<ManagedVariables> managed;  // outlives the program
    std::shared_ptr<Program> program;
    int target = 0;  // 75 for .target sm_75

    const Kernel* kernel(const std::string& name) const;
    const GlobalInfo* global(const std::string& name) const;
};

/// What cuFuncSetAttribute and cuKernelSetAttribute change.
struct FunctionSettings {
    std::mutex mutex;
    std::map<CUfunction_attribute, int> values;
};

/// One attribute: the recorded setting, or what follows from the kernel. 1 for an unknown one.
CUresult functionAttribute(const LoadedCode& code, const Kernel& kernel, FunctionSettings& settings,
                           CUfunction_attribute attribute, int& value);
/// 1 for an attribute that cannot be set or a value out of its range.
CUresult setFunctionAttribute(const Kernel& kernel, FunctionSettings& settings,
                              CUfunction_attribute attribute, int value);

class Module;

/// A kernel in a context: what is launched. Its address is a CUfunction.
struct Function {
    Module& module;
    LoadedCode code;  // keeps the program alive while launches of it run
    const Kernel& kernel;
    std::shared_ptr<FunctionSettings> settings;

    Context& context() const;
    CUresult attribute(CUfunction_attribute which, int& value) const {
        return functionAttribute(code, kernel, *settings, which, value);
    }
};

class Module {
  public:
    /// Enters the code's variables into the context's memory. `library`: null for a plain module.
    static std::shared_ptr<Module> create(Context& context, LoadedCode code, Library* library);
    ~Module();

    Context& context() const { return context_; }
    Library* library() const { return library_; }
    const LoadedCode& code() const { return code_; }
    /// Null when there is no kernel of that name.
    Function* function(const std::string& name) const;
    const std::vector<std::shared_ptr<Function>>& functions() const { return functions_; }

  private:
    Module(Context& context, LoadedCode code, Library* library);

    Context& context_;
    Library* library_;
    LoadedCode code_;
    std::vector<std::shared_ptr<Function>> functions_;
    std::map<std::string, Function*> byName_;
};

/// A library's kernel, in no context yet. Its address is a CUkernel.
class LibraryKernel {
  public:
    LibraryKernel(Library& library, const Kernel& kernel) : library_(library), kernel_(kernel) {}

    Library& library() const { return library_; }
    const Kernel& kernel() const { return kernel_; }
    /// What was set for a device; functions on that device share it.
    std::shared_ptr<FunctionSettings> settings(int device);

  private:
    Library& library_;
    const Kernel& kernel_;  // of the library's first program
    std::mutex mutex_;
    std::map<int, std::shared_ptr<FunctionSettings>> settings_;
};

class Library {
  public:
    static std::shared_ptr<Library> create(std::string ptx, LoadedCode code);
    ~Library();

    const LoadedCode& code() const { return code_; }
    const std::vector<std::shared_ptr<LibraryKernel>>& kernels() const { return kernels_; }
    LibraryKernel* kernel(const std::string& name) const;

    /// The library's module in a context, made at the first call.
    CUresult moduleIn(Context& context, std::shared_ptr<Module>& module);
    /// Returns when no context that has a module of it is at work.
    void synchronize();
    /// Forgets the modules in a context that ends, or in all.
    void forget(const Context* context);

  private:
    Library(std::string ptx, LoadedCode code);

    const std::string ptx_;
    const LoadedCode code_;
    std::vector<std::shared_ptr<LibraryKernel>> kernels_;
    std::map<std::string, LibraryKernel*> byName_;
    std::mutex mutex_;
    bool codeUsed_ = false;  // its variables belong to one context; the next gets a fresh program
    std::map<const Context*, std::shared_ptr<Module>> modules_;
};

/// Takes a module out of use, with its functions: none of their handles is valid afterwards.
void retire(const Module& module);

/// Makes every library forget its module in a context that ends.
void forgetModules(const Context& context);

/// The function that a CUfunction, or a CUkernel passed in its place, stands for in a context. Null
/// for anything else.
std::shared_ptr<Function> functionIn(Context& context, CUfunction handle);

}  // namespace juice::softgpu
