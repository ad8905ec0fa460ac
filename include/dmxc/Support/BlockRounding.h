//===- BlockRounding.h - floats as integers with a scale a block -*- C++ -*-===//
#pragma once

#include "dmxc/Support/Tensor.h"

#include <optional>

namespace dmxc {

/// How numbers are kept: integers of 4 or 8 bits, a scale for `block` of them that follow one another.
struct BlockRounding {
  int64_t bits = 8, block = 32;
  bool zeroPoints = false;

  bool operator==(const BlockRounding &) const = default;
  /// Whether the integers are two's complement; else they have 2^(bits-1), or a zero point, for 0.
  bool isSigned() const { return bits == 8 && !zeroPoints; }
  /// What is subtracted from every integer.
  int64_t zero() const { return isSigned() || zeroPoints ? 0 : int64_t(1) << (bits - 1); }
};

/// Matrices in the layout of dmir.dequantize, their blocks along the last axis or the one before it.
struct RoundedBlocks {
  Tensor codes, scales, zeros; ///< scales f16, f32 where f16 has not their range; zeros empty where there are none
  int64_t axis = 0;            ///< that has blocks
  bool turned = false;         ///< the last two axes are those of the matrices the other way round
  double error = 0;            ///< RMS of the differences over the RMS of the numbers

  int64_t bytes() const;
};

/// Rounds matrices `[.., rows, columns]` of f32, f16 or bf16 with blocks along `axis`, one of the last two; the last
/// block of a line may be shorter. Of a block with the greatest magnitude m, 8 bits have the scale m/127 and 4 bits the
/// number of that magnitude over -8; with zero points the range with 0 in it over 2^bits-1. Scales are rounded first,
/// then each number to the nearest multiple, ties to even. nullopt where some number is not finite, or neither the
/// lines nor what crosses them are whole bytes.
std::optional<RoundedBlocks> roundInBlocks(const Tensor &numbers, int64_t axis, const BlockRounding &rounding);

} // namespace dmxc
