#include "native/softgpu/ptx/units.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace juice::softgpu::ptx {
namespace {

/// No unit has so many source files.
constexpr uint32_t kFilesOfUnit = 1u << 20;

using Names = std::unordered_map<std::string_view, std::string_view>;  // old to new

/// Names that a function declares for itself: they hide the module's.
bool hides(const Function& function, std::string_view name) {
    const auto named = [&](const auto& thing) { return thing.name == name; };
    return std::any_of(function.variables.begin(), function.variables.end(), named) ||
           std::any_of(function.params.begin(), function.params.end(), named) ||
           std::any_of(function.returns.begin(), function.returns.end(), named) ||
           std::any_of(function.labels.begin(), function.labels.end(), named) ||
           std::any_of(function.targets.begin(), function.targets.end(), named);
}

class Renamer {
  public:
    explicit Renamer(const Names& names) : names_(names) {}

    void name(std::string_view& name) const {
        if (const auto found = names_.find(name); found != names_.end()) name = found->second;
    }

    void variable(Variable& variable) const {
        name(variable.name);
        for (Init& init : variable.init) name(init.symbol);
    }

    void function(Function& function) const {
        name(function.name);
        for (Instruction& instruction : function.code) {
            for (Operand& one : instruction.operands) operand(function, one);
        }
        for (TargetList& list : function.targets) {
            for (std::string_view& label : list.labels) {
                if (!hides(function, label)) name(label);
            }
        }
    }

  private:
    void operand(const Function& function, Operand& operand) const {
        if (!operand.name.empty() && !hides(function, operand.name)) name(operand.name);
        for (Operand& item : operand.items) this->operand(function, item);
    }

    const Names& names_;
};

std::string_view nameOf(const Variable& variable) {
    return variable.name;
}
std::string_view nameOf(const std::unique_ptr<Function>& function) {
    return function->name;
}

bool isDefined(const Variable& variable) {
    return !variable.isExtern;
}
bool isDefined(const std::unique_ptr<Function>& function) {
    return function->defined;
}

/// How many units use a name.
class Uses {
  public:
    void add(std::string_view name, size_t unit) {
        const auto [at, fresh] = units_.try_emplace(name, unit);
        if (!fresh && at->second != unit) at->second = kSeveral;
    }
    bool several(std::string_view name) const { return units_.at(name) == kSeveral; }

  private:
    static constexpr size_t kSeveral = SIZE_MAX;
    std::unordered_map<std::string_view, size_t> units_;
};

/// A name that is in no source, kept for ever: programs that are loaded again use the same.
std::string_view kept(std::string_view name, size_t unit) {
    static std::mutex mutex;
    static auto* const all = new std::set<std::string>;
    const std::lock_guard lock(mutex);
    return *all->insert(std::string(name) + "@" + std::to_string(unit + 1)).first;
}

/// Of several definitions of a name the one that is not weak, else the first. Two that are not weak
/// stay, for whoever places them to complain of.
template <typename Thing>
void leaveOne(std::vector<Thing>& all, const std::vector<Linkage>& linkages) {
    std::unordered_map<std::string_view, size_t> best;
    for (size_t i = 0; i < all.size(); ++i) {
        if (!isDefined(all[i])) continue;
        const auto [at, fresh] = best.try_emplace(nameOf(all[i]), i);
        if (!fresh && linkages[at->second].isWeak && !linkages[i].isWeak) at->second = i;
    }
    std::vector<Thing> left;
    for (size_t i = 0; i < all.size(); ++i) {
        const bool loses = isDefined(all[i]) && linkages[i].isWeak && best.at(nameOf(all[i])) != i;
        if (!loses) left.push_back(std::move(all[i]));
    }
    all = std::move(left);
}

}  // namespace

void joinUnits(Module& module, const std::vector<Unit>& units, const Linkages& linkages) {
    if (units.size() < 2) return;
    const auto endOf = [&](size_t unit) {
        return unit + 1 < units.size() ? units[unit + 1]
                                       : Unit{module.variables.size(), module.functions.size(),
                                              module.aliases.size(), module.files.size()};
    };
    Uses uses;
    for (size_t i = 0; i < units.size(); ++i) {
        const Unit end = endOf(i);
        for (size_t at = units[i].variables; at < end.variables; ++at) {
            uses.add(nameOf(module.variables[at]), i);
        }
        for (size_t at = units[i].functions; at < end.functions; ++at) {
            uses.add(nameOf(module.functions[at]), i);
        }
    }
    for (size_t i = 0; i < units.size(); ++i) {
        const Unit end = endOf(i);
        Names names;
        const auto rename = [&](std::string_view name, const Linkage& linkage) {
            if (linkage.isLocal() && uses.several(name)) names[name] = kept(name, i);
        };
        for (size_t at = units[i].variables; at < end.variables; ++at) {
            rename(nameOf(module.variables[at]), linkages.variables[at]);
        }
        for (size_t at = units[i].functions; at < end.functions; ++at) {
            rename(nameOf(module.functions[at]), linkages.functions[at]);
        }
        const Renamer renamer(names);
        const auto fileBase = static_cast<uint32_t>(i) * kFilesOfUnit;
        for (size_t at = units[i].variables; at < end.variables; ++at) {
            renamer.variable(module.variables[at]);
        }
        for (size_t at = units[i].functions; at < end.functions; ++at) {
            renamer.function(*module.functions[at]);
            for (Location& location : module.functions[at]->locations) location.file += fileBase;
        }
        for (size_t at = units[i].aliases; at < end.aliases; ++at) {
            renamer.name(module.aliases[at].first);
            renamer.name(module.aliases[at].second);
        }
        for (size_t at = units[i].files; at < end.files; ++at) module.files[at].first += fileBase;
    }
    leaveOne(module.variables, linkages.variables);
    leaveOne(module.functions, linkages.functions);
}

}  // namespace juice::softgpu::ptx
