//===- Passes.h - what schedules do with loops ------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace dmxc::transform {

#define GEN_PASS_DECL
#include "dmxc/Dialect/Transform/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dmxc/Dialect/Transform/Passes.h.inc"

} // namespace dmxc::transform
