// The instruction families, each in its own ops_*.cc, and the few handlers that the decoder itself
// needs. To add an instruction: a handler and a decode function in its family's file, and one line
// in that family's table.
#pragma once

#include <span>
#include <string_view>

#include "native/softgpu/ptx/decoder.h"

namespace juice::softgpu {

std::span<const ptx::OpEntry> integerOps();
std::span<const ptx::OpEntry> bitOps();
std::span<const ptx::OpEntry> arithmeticOps();
std::span<const ptx::OpEntry> floatOps();
std::span<const ptx::OpEntry> compareOps();
std::span<const ptx::OpEntry> moveOps();
std::span<const ptx::OpEntry> convertOps();
std::span<const ptx::OpEntry> memoryOps();
std::span<const ptx::OpEntry> atomicOps();
std::span<const ptx::OpEntry> controlOps();
std::span<const ptx::OpEntry> barrierOps();
std::span<const ptx::OpEntry> warpOps();
std::span<const ptx::OpEntry> packedOps();
std::span<const ptx::OpEntry> permuteOps();
std::span<const ptx::OpEntry> carryOps();
std::span<const ptx::OpEntry> selectOps();

/// Arithmetic whose opcode integers and floats share: add, sub, mul, mad, div, abs, neg, min, max.
/// Each stands on its type, already taken.
void decodeIntegerArithmetic(ptx::FunctionDecoder& d, std::string_view op, ptx::Type type);
void decodeFloatArithmetic(ptx::FunctionDecoder& d, std::string_view op, ptx::Type type);
void decodeHalfArithmetic(ptx::FunctionDecoder& d, std::string_view op, ptx::Type type);
void decodePackedArithmetic(ptx::FunctionDecoder& d, std::string_view op, ptx::Type type);

/// add.cc or sub.cc, and mad.cc: .cc is not taken yet for the latter.
void decodeAddCarry(ptx::FunctionDecoder& d, bool subtract, ptx::Type type);
void decodeMadCarry(ptx::FunctionDecoder& d, ptx::Type type);

/// cvt to and from the types that are no register's own: tf32, e4m3x2, e5m2x2, and cvt.pack.
/// False where the conversion is none of them.
bool decodeNarrowConversion(ptx::FunctionDecoder& d);

/// dst = a + b in wrapping integers of the type's width.
Handler addHandler(ptx::Type type);
/// Copies the low part of a register, or extends it with zeros (with the sign for signed `from`).
Handler resizeHandler(ptx::Type from, ptx::Type to);
/// Plain copy between registers of one width.
Handler copyHandler(ptx::Type type);
/// dst (64-bit) = the base of the running function's local memory, by lane.
Handler localBaseHandler();
/// dst (64-bit) = where the block's dynamic shared memory begins.
Handler dynamicSharedHandler();

/// Is this a jump to the instruction `aux`?
bool isBranch(const Instr& in);

/// Is this a special register (%tid.x, %laneid, ...)?
bool isSpecial(std::string_view name);
/// Reads a special register into a fresh one of the wanted type.
Ref emitSpecial(ptx::FunctionDecoder& d, std::string_view name, ptx::Type type);

}  // namespace juice::softgpu
