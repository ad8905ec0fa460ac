//===- Formulas.cpp - small formulas that many operators share ------------===//
#include "Formulas.h"

#include <algorithm>

namespace dmxc::frontend {

Val perChannel(Emitter &e, const Val &value, int64_t rank) {
  Dims shape(std::max<int64_t>(rank - 1, 1), 1);
  shape[0] = value.elements();
  return e.reshape(value, shape);
}

} // namespace dmxc::frontend
