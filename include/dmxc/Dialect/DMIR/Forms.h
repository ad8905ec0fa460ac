//===- Forms.h - how a target has tensors for itself ------------*- C++ -*-===//
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace dmxc::dmir {

/// Of a form in which regions of one target hand a tensor over, a dictionary that is the encoding of its type: the
/// bytes that it takes. The rest of it is the target's.
inline constexpr llvm::StringLiteral kFormBytes = "bytes";

/// Those of a type that has a form; no less than the tensor itself would take.
inline std::optional<int64_t> formBytesOf(mlir::Type type) {
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  auto form = tensor ? mlir::dyn_cast_or_null<mlir::DictionaryAttr>(tensor.getEncoding()) : mlir::DictionaryAttr();
  auto bytes = form ? form.getAs<mlir::IntegerAttr>(kFormBytes) : mlir::IntegerAttr();
  if (!bytes || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat() || bytes.getValue().isNegative())
    return std::nullopt;
  int64_t bits = tensor.getElementTypeBitWidth(), count = bytes.getInt();
  for (int64_t dim : tensor.getShape()) { // room for each number, without a product that overflows
    if (dim < 1)
      return std::nullopt;
    count /= dim;
  }
  return count > 0 && count * 8 >= bits ? std::optional(bytes.getInt()) : std::nullopt;
}

} // namespace dmxc::dmir
