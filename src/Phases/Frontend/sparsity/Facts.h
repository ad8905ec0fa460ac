//===- Facts.h - what ops imply of their results, and demand ----*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::sparsity {

/// Of a rule that is kept, and of a case of it; a larger one is nothing that is known.
inline constexpr size_t kMostCases = 16, kMostConditions = 16;

/// What follows of each value of a block from constants, masks, comparisons of indices and what ops do with them.
class Knowledge {
public:
  /// Tensors of fewer than `least` elements are not looked at.
  explicit Knowledge(int64_t least) : least(least) {}

  /// Reads the ops of a block in order, those of regions too.
  void read(mlir::Block &block);
  /// What is known of an argument whose op is not there, as a kernel's.
  void assume(mlir::Value value, const dmir::Known &known) { facts[value] = known; }
  std::optional<dmir::Known> of(mlir::Value value) const;

private:
  void read(mlir::Operation *op);
  std::optional<dmir::Known> implied(mlir::Operation *op);
  std::optional<dmir::Known> ofElements(mlir::Operation *op);
  std::optional<dmir::Known> ofSoftmax(dmir::SoftmaxOp op);
  std::optional<dmir::Known> ofProduct(dmir::MatMulOp op);
  std::optional<dmir::Known> ofReduction(dmir::ReduceOp op);
  std::optional<dmir::Known> ofGather(dmir::GatherOp op);
  bool isWorthIt(mlir::Value value) const;
  bool isRule(mlir::Value value) const { return rules.contains(dmir::acrossRegions(value)); }

  int64_t least;
  llvm::DenseMap<mlir::Value, dmir::Known> facts;
  /// Values that are made of indices, sizes and small constants alone; those with a condition in them.
  llvm::DenseSet<mlir::Value> rules, conditional;
};

/// Which elements of each value outputs depend on; what is in no list is demanded as a whole.
class Demands {
public:
  /// Reads the ops of a function backwards; `knowledge` is not asked: what is not finite spreads in this direction.
  void read(mlir::func::FuncOp function);
  std::optional<dmir::Demand> of(mlir::Value value) const;

private:
  void read(mlir::Operation *op);
  void demandAll(mlir::Operation *op);
  void demand(mlir::Value value, const std::optional<dmir::Rule> &rule);
  void ofElements(mlir::Operation *op, const dmir::Rule &own);
  void ofMask(dmir::MaskOp op, const std::optional<dmir::Rule> &own);
  void ofSelect(dmir::SelectOp op, const std::optional<dmir::Rule> &own);
  void ofSlice(dmir::SliceOp op, const std::optional<dmir::Rule> &own);
  void ofConcat(dmir::ConcatOp op, const dmir::Rule &own);
  void ofProduct(dmir::MatMulOp op, const dmir::Rule &own);
  void along(mlir::Operation *op, llvm::ArrayRef<int64_t> axes, const dmir::Rule &own, bool keepDims);

  /// Of values that something demands: a rule, or nothing where it demands all.
  llvm::DenseMap<mlir::Value, std::optional<dmir::Rule>> rules;
};

} // namespace dmxc::sparsity
