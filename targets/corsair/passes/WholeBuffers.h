//===- WholeBuffers.h - values of a kernel as whole buffers -----*- C++ -*-===//
//
// What is not in loops over tiles: a value is a buffer in GM, a view of one, or filled by one op of the vector device
// or the reshape engine. Its dims lie in memory as those of what it is made of, so that most transposes move nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/Kernels.h"
#include "targets/corsair/decide/Distribution.h"
#include "targets/corsair/decide/Functions.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/DenseMap.h"

namespace dmxc {

/// Where a tensor lies, and the format that is made of it where it is loaded. Of what is dealt the buffer is a quad's
/// share.
struct Place {
  mlir::Value memref;
  mlir::Type format = {};
  corsair::Split split = {};
};

class WholeBuffers {
protected:
  explicit WholeBuffers(mlir::func::FuncOp function);

  mlir::LogicalResult lower(dmir::ConstantOp op);
  mlir::LogicalResult lower(dmir::TransposeOp op);
  mlir::LogicalResult lower(dmir::SliceOp op);
  mlir::LogicalResult lower(dmir::BroadcastOp op);
  mlir::LogicalResult lower(dmir::ReshapeOp op);
  mlir::LogicalResult lower(dmir::ConcatOp op);
  mlir::LogicalResult lower(dmir::PadOp op);
  mlir::LogicalResult lower(dmir::GatherOp op);
  mlir::LogicalResult lower(dmir::ConvOp op);
  mlir::LogicalResult lower(dmir::PoolOp op);
  mlir::LogicalResult lower(dmir::IsInfOp op);
  mlir::LogicalResult lower(dmir::ScatterElementsOp op);
  mlir::LogicalResult lower(dmir::ExternOp op);
  mlir::LogicalResult lower(lldmir::ConvOp op);
  mlir::LogicalResult lower(lldmir::SumOp op);
  /// One op of the vector device.
  mlir::LogicalResult lowerWhole(mlir::Operation *op);
  /// A function of it that also does what ops before this one would.
  mlir::LogicalResult lowerAs(const corsair::DeviceFunction &function, mlir::Operation *op);

  /// A mask, a bound after the other.
  mlir::LogicalResult lowerMask(const corsair::DeviceFunction &function, mlir::Operation *op);

  /// Whether the device keeps numbers of such a type as f16, and another type says so.
  static bool isWide(mlir::Type type) { return type.isF32() || type.isF64() || type.isBF16(); }
  void fill(mlir::Operation *op, mlir::Type element);
  void fill(mlir::Location loc, mlir::Value buffer, mlir::TypedAttr value);
  /// The buffer of a value that is returned, or a copy of it without gaps; null where it has none.
  mlir::Value withoutGaps(mlir::Location loc, mlir::Value value);
  /// The buffer of an op's operand, or a copy of it where it is broadcast along the dim so many from the end; null,
  /// with an error, where it has none.
  mlir::Value writtenOut(mlir::Operation *op, mlir::Value operand, unsigned fromEnd);
  mlir::Value memrefOf(mlir::Value value) { return places.lookup(value).memref; }
  /// What each quad has of an op's result.
  corsair::Split splitOf(mlir::Operation *op) const;
  /// The shape of that.
  llvm::SmallVector<int64_t> shareOf(mlir::Operation *op) const;
  /// The buffer of an op's result, a share as the op is dealt.
  void put(mlir::Operation *op, mlir::Value buffer) { places[op->getResult(0)] = {buffer, {}, splitOf(op)}; }
  /// What each quad has of a view of its operand.
  corsair::Split viewedSplit(mlir::Operation *view) const;
  llvm::SmallVector<int64_t> viewedShare(mlir::Operation *view) const;
  void putView(mlir::Operation *view, mlir::Value buffer, mlir::Type format = {}) {
    places[view->getResult(0)] = {buffer, format, viewedSplit(view)};
  }
  /// A fresh buffer, row by row without an order.
  mlir::Value allocate(mlir::Location loc, llvm::ArrayRef<int64_t> shape, mlir::Type element,
                       llvm::ArrayRef<unsigned> order = {});

  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  const int quads;
  llvm::DenseMap<mlir::Value, Place> places; ///< of tensors

private:
  /// The buffer of an operand that has one of numbers; null, with an error at the op, for others.
  mlir::Value numbersOf(mlir::Operation *op, mlir::Value operand);
  /// `split`: of the value that `to` is a share of.
  void copy(mlir::Location loc, mlir::Value from, mlir::Value to, corsair::Split split);
  /// One op of the vector device on buffers.
  void unit(mlir::Operation *op, mlir::ValueRange inputs, llvm::ArrayRef<unsigned> order);
  void unit(mlir::Operation *op, llvm::StringRef function, mlir::DictionaryAttr parameters, mlir::ValueRange inputs,
            llvm::ArrayRef<unsigned> order);
  /// A copy of a value's buffer without gaps, its dims in memory in this order.
  mlir::Value copied(mlir::Location loc, mlir::Value value, mlir::Value buffer, llvm::ArrayRef<unsigned> order);
  /// The buffer, or a copy of it that lies row by row without gaps.
  mlir::Value rowByRow(mlir::Location loc, mlir::Value value, mlir::Value buffer);
  /// The buffer, or a copy of it where rows along these axes would walk over more dims than an instruction has.
  mlir::Value rowsTogether(mlir::Location loc, mlir::Value value, mlir::Value buffer, llvm::ArrayRef<int64_t> axes);
};

} // namespace dmxc
