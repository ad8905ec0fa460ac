//===- CacheCodes.h - caches of 8 and 4 bit codes ---------------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// How a cache of keys or values holds its numbers: as they are, or as codes of a scale each tensor or channel.
class CacheCodes {
public:
  /// From the attribute `quantization` and the attribute of the codes' bits; fails unless the cache in operand `past`
  /// has the type that they ask for. `scale`: an operand, one number or [1, heads, 1, size].
  CacheCodes(NodeContext &c, const char *quantization, int past, int scale, int64_t heads, Dim size);

  /// How many elements of the cache hold a head's numbers.
  Dim width() const { return bits == 4 ? Dim::floorDiv(size, 2) : size; }
  /// Of numbers [batch, heads, rows, size], and back in f32; the same where the cache has no codes.
  Val encoded(const Val &x) const;
  Val decoded(const Val &cache) const;

private:
  Emitter &e;
  Dim size;
  int64_t bits = 0; ///< 0: no codes
  Val scale;        ///< f32, broadcasts
};

} // namespace dmxc::onnxfe
