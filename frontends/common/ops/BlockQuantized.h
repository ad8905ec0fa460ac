//===- BlockQuantized.h - numbers of few bits with a scale a block -*- C++ -*-===//
#pragma once

#include "../Emitter.h"

namespace dmxc::frontend {

/// Rows (the last axis) of numbers that share a scale, and a zero point, a block of them.
struct BlockQuantized {
  /// u8 [.., bytes] with `bits` (2, 3, 4 or 8) for each number, the lowest bits first; the bytes may hold more than
  /// `count` numbers. With `bits` 0: the numbers themselves, of any type.
  Val codes;
  int64_t bits = 0;
  Dim block = 1; ///< numbers that share a scale
  Dim count = 0; ///< numbers in a row
  Val scales;    ///< [.., blocks]
  /// Packed as the codes are, or [.., blocks] of floats, or of the codes' type where those are not packed. Null: half
  /// of what the bits count to, or 0 where the codes are not packed.
  Val zeros;
  Val groups; ///< integers [count or more]: the block that each number belongs to; null: in order
};

/// (code - zero) * scale as f32 [.., count].
Val blockDequantize(Emitter &e, const BlockQuantized &q);

/// The first `count` numbers that the bytes of the last axis hold, as u8.
Val unpackedBits(Emitter &e, const Val &bytes, int64_t bits, Dim count);

/// dmir.dequantize: integers that lie densely in bytes keep their bits where a product reads them from the right.
struct Dequantize {
  Val bytes; ///< u8, or i8 for two's complement
  Val scale, zeros;
  int64_t bits, axis, block, zero = 0;
  Dims dims; ///< of the result
  DType type = DType::F32;
};
Val dequantize(Emitter &e, const Dequantize &d);

/// The bytes of a constant of 2, 4 or 8 bits an element; null for other values, and where rows do not begin with a
/// byte.
Val bytesOfConstant(Emitter &e, const Val &x);

} // namespace dmxc::frontend
