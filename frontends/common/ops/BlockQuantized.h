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

/// (code - zero) * scale as f32 [.., count]. Constants are unpacked while the model is imported.
Val blockDequantize(Emitter &e, const BlockQuantized &q);

/// The first `count` numbers that the bytes of the last axis hold, as u8.
Val unpackedBits(Emitter &e, const Val &bytes, int64_t bits, Dim count);

} // namespace dmxc::frontend
