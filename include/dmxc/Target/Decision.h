//===- Decision.h - what of a region's strategy is free ---------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Domain.h"

namespace dmxc {

/// The most that another value of a decision may change results by.
enum class Effect {
  Bits,      ///< nothing: every bit is the same
  Order,     ///< rounding, by the order of sums
  Algorithm, ///< rounding, by another method
  Numerics   ///< rounding, by another number format
};

inline llvm::StringRef effectName(Effect effect) {
  constexpr llvm::StringLiteral names[] = {"bits", "order", "algorithm", "numerics"};
  return names[static_cast<size_t>(effect)];
}

/// A free choice of a region's strategy: one of the values in the strategy's `decided` dictionary. A value for one
/// scope alone stands in a dictionary of the scope's name: decided = {grain = 2, "x86-64-v4" = {rows = 14}}.
struct Decision {
  std::string name;
  std::string scope;         ///< the part of a bundle that it is for, a level; "" = all of it
  Domain domain;             ///< all that the target computes right; the rest of the strategy fits every one of them
  mlir::Attribute preferred; ///< what the target chooses where nothing is decided, one of the domain
  Effect effect = Effect::Bits;
  std::string help;    ///< a clause: "rows of a register tile"
  bool inTask = false; ///< the task that runs the kernel says it; no code differs
};

} // namespace dmxc
