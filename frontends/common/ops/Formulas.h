//===- Formulas.h - small formulas that many operators share ----*- C++ -*-===//
#pragma once

#include "../Emitter.h"

namespace dmxc::frontend {

/// [c] as [c, 1, 1, ...] that broadcasts along axis 1 of a tensor of `rank`.
Val perChannel(Emitter &e, const Val &value, int64_t rank);

} // namespace dmxc::frontend
