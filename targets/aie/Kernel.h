//===- Kernel.h - which ops the array computes ------------------*- C++ -*-===//
#pragma once

#include "place/Place.h"

#include "dmxc/Support/Result.h"

namespace dmxc::aie {

/// nullopt where the array computes the op, else the reason why not: a clause. A sum with a row and a relu are computed
/// behind a product that the array computes.
std::optional<std::string> refuses(const hw::Machine &machine, const Herd &herd, mlir::Operation *op);
/// Whether an op may be computed by the cores behind a product (and a bias) whose value is `result`.
bool isEpilogue(mlir::Operation *op, mlir::Value result);
/// What a region or kernel computes: a product, a bias, a relu.
Result<Product> productOf(mlir::Block *block, const Herd &herd);

} // namespace dmxc::aie
