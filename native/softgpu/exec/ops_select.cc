// Choosing between two values: selp and slct.
#include <array>

#include "native/softgpu/exec/floats.h"
#include "native/softgpu/exec/ops.h"

namespace juice::softgpu {
namespace {

using ptx::FunctionDecoder;
using ptx::Type;

template <class T>
JUICE_LOOP void selpLoop(Exec& x, const Instr& in, uint32_t m) {
    T* d = x.to<T>(in.dst);
    const T* a = x.from<T>(in.a);
    const T* b = x.from<T>(in.b);
    uint32_t c = x.predicate(in.c) ^ static_cast<uint32_t>(in.imm);
    forLanes(m, [=](unsigned i) { d[i] = c >> i & 1 ? a[i] : b[i]; });
}

void decodeSelp(FunctionDecoder& d) {
    d.needOperands(4);
    Type type = d.takeType();
    Ref a = d.source(1, type), b = d.source(2, type);
    bool flip = false;
    Ref c = d.predicate(d.operand(3), flip);
    Handler run = nullptr;
    switch (ptx::sizeOf(type)) {
        case 2:
            run = lanes<selpLoop<uint16_t>>();
            break;
        case 4:
            run = lanes<selpLoop<uint32_t>>();
            break;
        case 8:
            run = lanes<selpLoop<uint64_t>>();
            break;
        default:
            d.unsupported("." + std::string(nameOf(type)) + " here");
    }
    d.emit(run, d.target(0, type), a, b, c).imm = flip ? 0xffffffffll : 0;
}

template <class T, class C, bool Ftz>
void slctLoop(Exec& x, const Instr& in, uint32_t m) {
    T* d = x.to<T>(in.dst);
    const T* a = x.from<T>(in.a);
    const T* b = x.from<T>(in.b);
    const C* c = x.from<C>(in.c);
    eachLane(m, [&](unsigned i) {
        bool first = Ftz ? flush(static_cast<float>(c[i])) >= 0 : c[i] >= 0;
        d[i] = first ? a[i] : b[i];
    });
}

template <class T>
Handler slctHandler(Type chooser, bool ftz) {
    if (chooser == Type::s32) return slctLoop<T, int32_t, false>;
    return ftz ? slctLoop<T, float, true> : slctLoop<T, float, false>;
}

void decodeSlct(FunctionDecoder& d) {
    d.needOperands(4);
    bool ftz = d.takeMod("ftz");
    Type type = d.takeType();
    Type chooser = d.takeTypeOf({Type::s32, Type::f32});
    Ref a = d.source(1, type), b = d.source(2, type), c = d.source(3, chooser);
    Handler run = nullptr;
    switch (ptx::sizeOf(type)) {
        case 2:
            run = slctHandler<uint16_t>(chooser, ftz);
            break;
        case 4:
            run = slctHandler<uint32_t>(chooser, ftz);
            break;
        case 8:
            run = slctHandler<uint64_t>(chooser, ftz);
            break;
        default:
            d.unsupported("." + std::string(nameOf(type)) + " here");
    }
    d.emit(run, d.target(0, type), a, b, c);
}

constexpr std::array<ptx::OpEntry, 2> kOps{{{"selp", decodeSelp}, {"slct", decodeSlct}}};

}  // namespace

std::span<const ptx::OpEntry> selectOps() {
    return kOps;
}

}  // namespace juice::softgpu
