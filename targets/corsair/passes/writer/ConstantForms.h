//===- ConstantForms.h - one form of a constant in all of a text --*- C++ -*-===//
#pragma once

#include "targets/corsair/decide/Constants.h"

#include "mlir/IR/Operation.h"

namespace dmxc::corsair {

/// The buffer of a dispatch says by which form a constant is packed, the kernel by which it finds the tiles: an
/// argument of its function, or of its program. Fails where a kernel's are none, or not the same.
Status checkConstantForms(mlir::Operation *kernel, const hw::Machine &machine);

} // namespace dmxc::corsair
