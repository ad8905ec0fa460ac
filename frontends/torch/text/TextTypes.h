//===- TextTypes.h - types and literals of torch-dialect text ---*- C++ -*-===//
#pragma once

#include "../Shared.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace dmxc::torchfe {

/// !torch.vtensor<[2,?,8],f32>.
struct TensorType {
  DType type;
  std::vector<int64_t> dims; ///< -1 where it is not known
};
std::optional<TensorType> tensorType(mlir::Type type);
/// The type as it is written.
std::string typeText(mlir::Type type);

/// A literal's elements as a host tensor. Fails the node where they have no tensor meaning.
Tensor literalOf(mlir::ElementsAttr literal);

/// A result of an affine map as a Dim; nothing for forms that sizes do not have.
std::optional<Dim> dimOf(mlir::AffineExpr expression, llvm::ArrayRef<Dim> symbols);

} // namespace dmxc::torchfe
