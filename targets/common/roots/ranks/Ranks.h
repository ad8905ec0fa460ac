//===- Ranks.h - an element's order and place as one number -----*- C++ -*-===//
#pragma once

#include "targets/common/code/KernelBuilder.h"

namespace dmxc::kernels {

/// Elements of up to 32 bits of a row, as numbers of 64 bits without a sign that are higher the better an element is;
/// of equal elements one place is better. 0 is less than each.
struct Ranks {
  using Value = mlir::Value;
  KernelBuilder &b;
  mlir::Type element;     ///< in DMIR
  bool largest = true;    ///< the larger the better
  bool nanFirst = true;   ///< NaN is better than numbers, else worse
  bool lastFirst = false; ///< of equal elements the last one is the best

  static bool fit(mlir::Type element, Dim size);
  /// i32, of an element's computed value, or a vector of them: higher without a sign where it is better, the same for
  /// equal values.
  Value orderOf(Value value) const;
  Value pack(Value order, Value place) const;
  Value placeOf(Value packed) const;
};

} // namespace dmxc::kernels
