//===- Kernel.h - which ops the array computes ------------------*- C++ -*-===//
#pragma once

#include "place/Place.h"

#include "dmxc/Support/Result.h"
#include "dmxc/Target/TargetBackend.h"

namespace dmxc::aie {

/// Of a strategy: how many output pixels of a convolution are a row of its product.
inline constexpr llvm::StringLiteral kTogetherKey = "pixels_a_row";

/// nullopt where the array computes the op, else the reason why not: a clause. A sum with a row, a relu and up to three
/// steps (schemas/aie/Kernels.h) are computed behind a product or convolution that the array computes.
std::optional<std::string> refuses(const hw::Machine &machine, const Herd &herd, mlir::Operation *op);
/// Whether an op is computed as a product.
bool isProduct(mlir::Operation *op);
/// The first op of a block that is; null where there is none.
mlir::Operation *productIn(mlir::Block *block);
/// Whether an op may be computed by the cores behind a product, and what they do behind that, whose value is `result`.
bool isEpilogue(mlir::Operation *op, mlir::Value result);
/// What a region or kernel computes: a product, a bias, a relu, steps. The strategy says which operands are packed, and
/// may choose.
Result<Product> productOf(const hw::Machine &machine, mlir::Block *block, const Herd &herd,
                          mlir::DictionaryAttr strategy);

/// The form in which the bundle has a constant operand: as the border would make it, or of a convolution's weights and
/// bias in the order of k and n.
mlir::DictionaryAttr formOf(mlir::Builder &b, const Product &product, const Operand &operand);
/// Puts a constant into its form.
Status pack(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out);

} // namespace dmxc::aie
