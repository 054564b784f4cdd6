// Program::load: parse, place the globals, decode every function, describe the kernels.
#include <algorithm>
#include <new>

#include "native/softgpu/engine.h"
#include "native/softgpu/exec/code.h"
#include "native/softgpu/exec/reserved.h"
#include "native/softgpu/ptx/decoder.h"
#include "native/softgpu/ptx/parser.h"

namespace juice::softgpu {
namespace {

/// Local memory per lane for functions that recurse or are called through pointers, to begin with;
/// the stack grows when that is not enough.
constexpr size_t kUnknownStack = 4096;

class Loaded : public Program {
  public:
    Loaded(std::string_view ptx, const PlaceManaged& managed) {
        ptx::Module module = ptx::parse(ptx);
        code_.version = module.version;
        code_.source = std::move(module.source);
        reservesShared_ = code_.source->find("%reserved_smem_offset_") != std::string::npos;
        for (const auto& [number, name] : module.files) code_.files[number] = std::string(name);
        ptx::Symbols symbols(module, code_, globals_, managed);
        ptx::Constants constants;
        for (size_t i = 0; i < symbols.functionCount(); ++i) {
            const ptx::Function& function = symbols.definition(i);
            if (!function.defined) continue;
            ptx::FunctionDecoder(function, symbols, code_, constants).decode(code_.functions[i]);
        }
        code_.constants = constants.take();
        for (size_t i = 0; i < symbols.functionCount(); ++i) {
            const ptx::Function& function = symbols.definition(i);
            if (function.entry && function.defined) describe(module, function, symbols, i);
        }
    }

    const std::vector<std::unique_ptr<Kernel>>& kernels() const override { return kernels_; }
    const std::vector<GlobalInfo>& globals() const override { return globals_; }

  private:
    void describe(const ptx::Module& module, const ptx::Function& function,
                  const ptx::Symbols& symbols, size_t index) {
        auto kernel = std::make_unique<EntryKernel>();
        kernel->code = &code_;
        kernel->function = static_cast<uint32_t>(index);
        kernel->name = std::string(function.name);
        kernel->ptxVersion = module.version;
        ptx::FormalLayout layout = ptx::layoutFormals({}, function.params);
        for (size_t i = 0; i < function.params.size(); ++i) {
            kernel->params.push_back({layout.params[i], function.params[i].size});
        }
        kernel->paramBytes = layout.size;
        uint64_t shared = usesModuleShared(function, symbols) ? symbols.moduleShared() : 0;
        for (const ptx::Variable& variable : function.variables) {
            if (variable.space != ptx::Space::shared) continue;
            shared = std::max(shared, symbols.sharedOffset(variable) + variable.size);
        }
        if (reservesShared_) shared = reservedSharedAt(shared) + kReservedShared;
        kernel->staticShared = shared;
        const FunctionCode& code = code_.functions[index];
        kernel->localBytes = code.localBytes;
        bool calls = std::any_of(function.code.begin(), function.code.end(),
                                 [](const ptx::Instruction& in) { return in.op == "call"; });
        kernel->localStack = code.localBytes + (calls ? kUnknownStack : 0);
        for (const GlobalInfo& global : globals_) {
            if (global.constant) kernel->constBytes += global.size;
        }
        if (function.maxThreads != 0) kernel->maxThreads = std::min(function.maxThreads, 1024u);
        kernel->registers = std::min<uint32_t>(code.frameBytes / (kLanes * 4), 255);
        kernels_.push_back(std::move(kernel));
    }

    /// Module-level shared memory counts for kernels that name it and for those that call others.
    static bool usesModuleShared(const ptx::Function& function, const ptx::Symbols& symbols) {
        auto names = [&](const auto& self, const ptx::Operand& operand) -> bool {
            if (operand.kind == ptx::Operand::Kind::name) {
                const ptx::Symbol* symbol = symbols.find(operand.name);
                if (symbol != nullptr && symbol->space == ptx::Space::shared && !symbol->dynamic) {
                    return true;
                }
            }
            return std::any_of(operand.items.begin(), operand.items.end(),
                               [&](const ptx::Operand& item) { return self(self, item); });
        };
        return std::any_of(
            function.code.begin(), function.code.end(), [&](const ptx::Instruction& in) {
                if (in.op == "call") return true;
                return std::any_of(in.operands.begin(), in.operands.end(),
                                   [&](const ptx::Operand& one) { return names(names, one); });
            });
    }

    Code code_;
    bool reservesShared_ = false;
    std::vector<std::unique_ptr<Kernel>> kernels_;
    std::vector<GlobalInfo> globals_;
};

}  // namespace

std::unique_ptr<Program> Program::load(std::string_view ptx, LoadError& error,
                                       const PlaceManaged& managed) {
    try {
        return std::make_unique<Loaded>(ptx, managed);
    } catch (const ptx::Refusal& refusal) {
        error = {refusal.curesult, refusal.message};
    } catch (const std::bad_alloc&) {
        error = {2, "out of memory while loading the module"};
    }
    return nullptr;
}

}  // namespace juice::softgpu
