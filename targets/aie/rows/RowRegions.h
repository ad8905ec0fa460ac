//===- RowRegions.h - which ops the array computes row by row ---*- C++ -*-===//
#pragma once

#include "RowMapping.h"

#include "dmxc/Target/TargetBackend.h"

namespace dmxc::aie {

/// nullopt where the array computes the op row by row, or reads through the view that it is, and a tensor does not
/// cross to it and back for that alone; else the reason why not: a clause. `isProduct` tells which
/// ops it computes as products, or behind one.
std::optional<std::string> refusesRows(const hw::Machine &machine, const Herd &herd, mlir::Operation *op,
                                       llvm::function_ref<bool(mlir::Operation *)> isProduct);
/// As TargetBackend asks; of regions whose root is no product.
bool fusesRowProducer(const hw::Machine &machine, const Herd &herd, mlir::Operation *root, mlir::OpOperand &use,
                      mlir::Operation *producer);
bool fusesRowConsumer(const hw::Machine &machine, const Herd &herd, mlir::Operation *root, mlir::Value result,
                      mlir::Operation *consumer);

Result<mlir::DictionaryAttr> rowStrategy(const hw::Machine &machine, const Herd &herd, dmir::RegionOp region);

} // namespace dmxc::aie
