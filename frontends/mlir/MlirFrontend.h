//===- MlirFrontend.h - DMIR text to DMIR -----------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Import.h"

namespace dmxc {

/// The frontend of `.mlir` files: a module of func.funcs over DMIR ops, one an
/// entry point (normally `@main`). Tensors are named after their `dmir.name`
/// attributes, or input0, output0, ... Dims are static, or dynamic and fixed by
/// --shape.
const Frontend &mlirFrontend();

} // namespace dmxc
