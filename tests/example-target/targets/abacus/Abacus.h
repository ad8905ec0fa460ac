//===- Abacus.h - the dialect of the abacus, and its compiler ---*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Support/Result.h"

#include "schemas/abacus/Machine.h"

#include "targets/abacus/AbacusOpsDialect.h.inc"
#define GET_OP_CLASSES
#include "targets/abacus/AbacusOps.h.inc"

namespace abacus {

/// Registers the dialect, and with DLIR the machine.
void registerDevice(mlir::DialectRegistry &registry);
/// Writes the program of a kernel, which is one product, before it.
dmxc::Status writeProgram(dmxc::dlir::KernelOp kernel);
/// Bytes of DRAM that it needs.
int64_t bytesInDram(int64_t m, int64_t k, int64_t n);

} // namespace abacus
