//===- Rounding.h - constants that are not what the model has ---*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Codegen.h"

namespace dmxc {

/// What rounding a constant of a program costs, in the graph or by the form of its target; nullopt where it has the
/// model's values. `node` reads it.
std::optional<RoundedConstant> roundingOf(dlir::BufferOp constant, const std::string &node,
                                          const TargetBackend &target);

} // namespace dmxc
