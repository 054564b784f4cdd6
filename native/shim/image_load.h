// Loading images: measured here, offered to the worker by hash, uploaded where it lacks them.
#pragma once

#include <optional>
#include <string>

#include "native/image/image.h"
#include "native/shim/send.h"

namespace juice::shim {

/// CUjit_option and CUlibraryOption arrays as a program passes them.
class LoadOptions {
  public:
    /// Success, or the error of an option that cannot be passed on.
    CUresult read(unsigned count, CUjit_option* options, void** values);
    CUresult readLibrary(unsigned count, CUlibraryOption* options, void** values);

    const std::vector<custom::LoadOption>& jit() const { return jit_; }
    /// Gives the program its logs and the time that the JIT took.
    void answer(std::string_view info, std::string_view error, float milliseconds);

  private:
    struct Log {
        char* buffer = nullptr;
        size_t size = 0;
        void** sizeOut = nullptr;  // receives the length of the text
        void fill(std::string_view text) const;
    };
    std::vector<custom::LoadOption> jit_;
    Log info_, error_;
    void** wallTime_ = nullptr;
};

/// Loads `image` as the module or library with the wire id `id`; `context` may be null for a
/// library. On success `contents` tells what it holds.
CUresult loadImage(Op op, uint64_t id, const Context* context, const image::Image& image,
                   LoadOptions& options, std::shared_ptr<Contents>& contents);

/// A file's bytes, with a NUL behind them in case that it is PTX; nothing when it cannot be read.
std::optional<std::vector<uint8_t>> readFile(const char* path);

/// Forgets the modules and functions of a context that ends.
void forgetModulesOf(const Context& context);

/// The function handle of a library's code in a context, minted when there is none yet: through the
/// library's module, or through the kernel.
CUresult functionThrough(const Object& parent, Op op, Code& code, Context& context,
                         Library* library, Module* module, Function*& function);
/// The module handle of a library in a context.
CUresult moduleOfLibrary(Library& library, Context& context, Module*& module);

/// cuModuleGetGlobal and its relatives: asks the worker and writes the address down. `asked` keeps
/// the addresses for the unloading.
CUresult globalOf(Op op, const Object& parent, const char* name, Context& context,
                  std::mutex& mutex, std::vector<uint64_t>& asked, CUdeviceptr* address,
                  size_t* bytes);

/// Takes functions, and addresses of variables, out of the tables.
void forgetFunctions(const std::unordered_map<Code*, Function*>& functions);
void forgetGlobals(const std::vector<uint64_t>& addresses);

}  // namespace juice::shim
