//===- Indices.h - numbers of loops and maps --------------------*- C++ -*-===//
#pragma once

#include "View.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/DenseMap.h"

namespace dmxc::corsair::stages {

/// What values of type index are while a text is evaluated.
class Indices {
public:
  void set(mlir::Value value, int64_t number) { numbers[value] = number; }
  /// Of an affine.apply, a constant, a counter of a loop or the number of a quad; nullopt for other values.
  std::optional<int64_t> at(mlir::Value value) const;
  std::optional<int64_t> at(mlir::OpFoldResult value) const;
  /// All of them, or nothing.
  std::optional<Dims> at(llvm::ArrayRef<mlir::OpFoldResult> values) const;
  std::optional<Dims> at(mlir::AffineMap map, mlir::ValueRange operands) const;
  /// The first value of a loop's counter and the one that it ends before.
  std::optional<std::pair<int64_t, int64_t>> bounds(mlir::affine::AffineForOp loop) const;
  std::optional<bool> holds(mlir::affine::AffineIfOp condition) const;

private:
  llvm::DenseMap<mlir::Value, int64_t> numbers;
};

/// "node 'name' (op): why", of text that cannot be evaluated.
Error errorAt(mlir::Operation *op, const std::string &why);
/// The same of what the interpreter does not have, which is no fault of the text (ErrorKind::Constraint).
Error notEvaluated(mlir::Operation *op, const std::string &why);
/// An error of an op's numbers with the op in front of it.
inline Status at(mlir::Operation *op, Status status) {
  return status ? std::move(status) : Status(errorAt(op, status.error().message));
}

} // namespace dmxc::corsair::stages
