//===- Split.h - which loop of a product is split over quads ----*- C++ -*-===//
#pragma once

#include "schemas/corsair/Machine.h"

#include <cstdint>

namespace dmxc {

/// A product in tiles, and the bytes of an operand's tile and of a result's.
struct ProductTiles {
  int64_t rows = 1, columns = 1, k = 1;
  int64_t operandBytes = 4160, resultBytes = 8192;
};

enum class Split : uint8_t { Rows, Columns };

/// Clocks of the product with its rows or columns dealt to `quads` quads: the slower of the chiplets' DDR and of the
/// longest-working quad. Activations that several quads of a chiplet need are read once and multicast; weights, which
/// go to each slice's own store, are read by every quad that needs them.
double splitClocks(const dmx::corsair::Machine &machine, const ProductTiles &product, Split split, int64_t quads);

/// The cheaper split; columns where both cost the same, for then weights stay where they are.
Split cheaperSplit(const dmx::corsair::Machine &machine, const ProductTiles &product, int64_t quads);

} // namespace dmxc
