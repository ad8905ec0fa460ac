//===- KeyClasses.h - masks that keep keys a step apart ---------*- C++ -*-===//
//
// Of a strided mask each row keeps the keys of one class, (i - j) mod step == 0; of a fixed one all rows keep those of
// some classes, j mod step >= c. Each tile of neighbours has some of them, but inside of a class there is no step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/Where.h"

#include <optional>

namespace dmxc::cpu {

struct KeyClasses {
  int64_t step = 0;
  bool ofRows = false; ///< each row has its own class: key mod step == (row + shift) mod step
  int64_t count = 0;   ///< of classes: of columns those with (key - shift) mod step < count
  int64_t shift = 0;
  dmir::Rule inside, outside; ///< what is kept of these keys, and of the others; outside may have no cases
};

/// Those of the first case that has any; nothing where they are nearly all keys, or the rule lists tiles.
std::optional<KeyClasses> findClasses(const dmir::Rule &rule);

} // namespace dmxc::cpu
