//===- Infer.h - helpers of the result type inference -----------*- C++ -*-===//
//
// Inference is the verifier: ODS calls it both to build and to check, and its
// messages cite the op's constraints.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/Dims.h"

namespace dmxc::dmir {

using dmxc::Dim;
using mlir::ArrayRef, mlir::failure, mlir::FailureOr, mlir::isa, mlir::cast, mlir::dyn_cast, mlir::Location,
    mlir::LogicalResult, mlir::MLIRContext, mlir::RankedTensorType, mlir::ShapedType, mlir::SmallVector,
    mlir::SmallVectorImpl, mlir::success, mlir::Type, mlir::TypeRange, mlir::Value;

using OptLoc = std::optional<Location>;

inline int64_t rankOf(Value value) { return typeOf(value).getRank(); }

inline bool dimsAgree(int64_t a, int64_t b) { return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b); }

/// Equal up to encodings, with dynamic dims matching anything.
inline bool compatible(TypeRange a, TypeRange b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b)) {
    auto s = dyn_cast<RankedTensorType>(x), t = dyn_cast<RankedTensorType>(y);
    if (!s || !t || s.getElementType() != t.getElementType() || s.getRank() != t.getRank())
      return false;
    for (auto [p, q] : llvm::zip(s.getShape(), t.getShape()))
      if (!dimsAgree(p, q))
        return false;
  }
  return true;
}

/// Rule "static and with a wire format" for a tensor that may be block_fp; BFP32_1 is dense and may have any shape.
inline LogicalResult checkWireFormat(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, llvm::StringRef rule,
                                     Type type) {
  BlockFpType block = blockFpOf(type);
  std::string error;
  if (!block || !block.hasBlocks() || blockLayoutOf(cast<RankedTensorType>(type), error))
    return success();
  return emitError() << rule << ": " << error;
}

/// C-rule "axes sorted, unique, in range".
inline bool axesValid(ArrayRef<int64_t> axes, int64_t rank) {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] < 0 || axes[i] >= rank || (i && axes[i] <= axes[i - 1]))
      return false;
  return true;
}

/// The layout shared by all operands that have the result's dims; none when they differ.
inline mlir::Attribute commonLayout(mlir::ValueRange operands, ArrayRef<Dim> dims) {
  mlir::Attribute layout;
  for (Value operand : operands)
    if (mlir::Attribute own = layoutOf(operand.getType()); own && ArrayRef<Dim>(dimsOf(operand)) == dims)
      layout = own;
  return layout;
}

// Ops of a class in DMIRBase.td: the operand's type; i1 of its shape; the broadcast of two with one element type.
inline LogicalResult inferSame(Value input, SmallVectorImpl<Type> &results) {
  results.push_back(input.getType());
  return success();
}
LogicalResult inferTest(MLIRContext *context, Value input, SmallVectorImpl<Type> &results);
LogicalResult inferBinary(OptLoc loc, Value lhs, Value rhs, SmallVectorImpl<Type> &results);

} // namespace dmxc::dmir

/// Defines isCompatibleReturnTypes of an op the common way.
#define DMIR_COMPATIBLE(OP)                                                                                            \
  bool OP::isCompatibleReturnTypes(TypeRange a, TypeRange b) { return compatible(a, b); }
/// Opens the definition of an op's inference; `op` is the adaptor, `loc` where to report.
#define DMIR_INFER(OP)                                                                                                 \
  DMIR_COMPATIBLE(OP)                                                                                                  \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, OptLoc loc, OP::Adaptor op, SmallVectorImpl<Type> &results)
