#include "native/softgpu/driver/conditional.h"

#include <atomic>
#include <utility>

#include "native/softgpu/driver/context.h"

namespace juice::softgpu {
namespace {

std::atomic_ref<uint32_t> word(uint64_t address) {
    return std::atomic_ref(*reinterpret_cast<uint32_t*>(address));
}

}  // namespace

std::shared_ptr<Condition> Condition::create(Context& context, unsigned initial, unsigned flags) {
    std::shared_ptr<Condition> made(new Condition(context, initial, flags));
    if (made->memory_.result() != CUDA_SUCCESS) return nullptr;
    word(made->handle()) = 0;
    return made;
}

Condition::Condition(Context& context, unsigned initial, unsigned flags)
    : context_(context),
      memory_(context, sizeof(uint64_t), MemoryKind::host),
      initial_(initial),
      flags_(flags) {}

unsigned Condition::value() const {
    return word(handle());
}

void Condition::reset() const {
    if ((flags_ & kAssignDefault) != 0) word(handle()) = initial_;
}

Work ConditionalOperation::over(std::vector<std::shared_ptr<const Plan>> bodies) const {
    return [self = std::static_pointer_cast<const ConditionalOperation>(shared_from_this()),
            bodies = std::move(bodies)] {
        const Condition& condition = self->condition();
        const unsigned value = condition.value();
        switch (self->kind()) {
            case CU_GRAPH_COND_TYPE_IF:
                if (value != 0) {
                    bodies[0]->execute();
                } else if (bodies.size() > 1) {
                    bodies[1]->execute();
                }
                break;
            case CU_GRAPH_COND_TYPE_WHILE:
                while (condition.value() != 0 && !condition.context().failed() &&
                       !*condition.context().cancelled()) {
                    bodies[0]->execute();
                }
                break;
            default:
                if (value < bodies.size()) bodies[value]->execute();
        }
    };
}

}  // namespace juice::softgpu
