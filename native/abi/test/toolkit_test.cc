// Holds our declarations against the toolkit's headers: values of enumerators, sizes and offsets of
// structures, and the prototypes by what the ABI sees of them (how many arguments, and of each its
// size and kind). Built only where the toolkit is installed; everything is checked by the compiler.
#include <assert.h>
#include <gtest/gtest.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <type_traits>

namespace ours {
#define JUICE_CUDA_API
#include "native/gen/cuda_api.h"
}  // namespace ours

// Without the macros that give a name to its newest version, and with all older versions.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaEGL.h>
#include <cudaGL.h>
#include <cudaProfiler.h>
// cudaVDPAU.h expects VDPAU's own header before it.
// clang-format off
#include <vdpau/vdpau.h>
#include <cudaVDPAU.h>
// clang-format on

namespace {

template <typename T>
constexpr bool isNumber = std::is_integral_v<T> || std::is_enum_v<T>;

template <typename T>
concept Complete = requires {
    sizeof(T);
};

template <typename A, typename B>
constexpr bool sameAbi();

template <typename A, typename B>
struct SameFunction : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct SameFunction<R(A...), S(B...)>
    : std::bool_constant<sameAbi<R, S>() && (sameAbi<A, B>() && ...)> {
};

/// Does a caller that believes in A pass what a callee that believes in B expects?
template <typename A, typename B>
constexpr bool sameAbi() {
    if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
        return std::is_void_v<A> && std::is_void_v<B>;
    } else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
        using P = std::remove_pointer_t<A>;
        using Q = std::remove_pointer_t<B>;
        return std::is_const_v<P> == std::is_const_v<Q> &&
               sameAbi<std::remove_const_t<P>, std::remove_const_t<Q>>();
    } else if constexpr (std::is_function_v<A> && std::is_function_v<B>) {
        return SameFunction<A, B>::value;
    } else if constexpr (isNumber<A> && isNumber<B>) {
        return sizeof(A) == sizeof(B);
    } else if constexpr (std::is_floating_point_v<A> && std::is_floating_point_v<B>) {
        return sizeof(A) == sizeof(B);
    } else if constexpr (std::is_class_v<A> != std::is_class_v<B> ||
                         std::is_union_v<A> != std::is_union_v<B>) {
        return false;
    } else if constexpr (Complete<A> && Complete<B>) {
        return sizeof(A) == sizeof(B) && alignof(A) == alignof(B);
    } else {
        return Complete<A> == Complete<B>;  // opaque on both sides
    }
}

static_assert(!sameAbi<int*, const int*>());
static_assert(!sameAbi<int(int), int(int, int)>());
static_assert(!sameAbi<int(size_t), int(int)>());

#define CONSTANT(name) \
    static_assert(static_cast<long long>(ours::name) == static_cast<long long>(::name), #name);
#define LAYOUT(type)                                            \
    static_assert(sizeof(ours::type) == sizeof(::type), #type); \
    static_assert(alignof(ours::type) == alignof(::type), #type);
#define FIELD(type, field)                                                                   \
    static_assert(offsetof(ours::type, field) == offsetof(::type, field), #type "." #field); \
    static_assert(sizeof(ours::type::field) == sizeof(::type::field), #type "." #field);
#define FUNCTION(name) static_assert(sameAbi<decltype(ours::name), decltype(::name)>(), #name);
#include "native/abi/test/toolkit_checks.inc"
#undef CONSTANT
#undef LAYOUT
#undef FIELD
#undef FUNCTION

#define RESULT(name, code) static_assert(static_cast<int>(::name) == code, #name);
JUICE_CUDA_RESULTS(RESULT)
#undef RESULT

TEST(Toolkit, DeclarationsAgreeWithItsHeaders) {
    // Compiled, so agreed; what is left is that the lists are not empty.
    int functions = 0;
#define FUNCTION(name) ++functions;
#include "native/abi/test/toolkit_checks.inc"
#undef FUNCTION
    EXPECT_EQ(functions, 671);
}

}  // namespace
