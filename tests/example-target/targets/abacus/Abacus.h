//===- Abacus.h - the dialect of the abacus, and its compiler ---*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

#include "schemas/abacus/Machine.h"
#include "targets/common/roots/Contraction.h"

#include "targets/abacus/AbacusOpsDialect.h.inc"
#define GET_OP_CLASSES
#include "targets/abacus/AbacusOps.h.inc"

namespace abacus {

/// Registers the dialect, and with DLIR the machine.
void registerDevice(mlir::DialectRegistry &registry);
/// Writes the program of a kernel, which is one product, before it.
void writeProgram(dmxc::dlir::KernelOp kernel);
/// Key of a strategy, and a decision: the outer loop of a product, over "rows" or "columns" of its result.
inline constexpr llvm::StringLiteral kOrder = "order";
/// Whether a product has so many tiles that the order is one.
bool hasOrders(const dmxc::kernels::Contraction &product);
/// Bytes of DRAM that the program of a product needs.
int64_t bytesInDram(const dmxc::kernels::Contraction &product);

} // namespace abacus
