//===- StageWriter.h - a kernel over quads to tasks --------------*- C++ -*-===//
#pragma once

#include "targets/corsair/emit/KernelWriter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace dmxc {

/// Writes the program of a function that launches one kernel over quads, as corsair-outline-spmd leaves it.
class StageWriter : public corsair::KernelWriter {
public:
  /// Fails where the op is no such function.
  static Result<std::unique_ptr<corsair::KernelWriter>> create(mlir::Operation *op,
                                                               const dmx::corsair::Machine &machine, bool fromDdr);
  Status lower() override;

private:
  StageWriter(mlir::func::FuncOp function, int quads, const dmx::corsair::Machine &machine, bool fromDdr);
  Status fail(mlir::Operation *op, const llvm::Twine &why);
  Status addArgument(mlir::BlockArgument argument);
  /// What a deal gives of a value of this shape; nothing where it cannot.
  corsair::Split splitOf(lldmir::DealAttr deal, llvm::ArrayRef<int64_t> shape) const;
  Status lower(mlir::Operation *op);
  Status product(mlir::affine::AffineForOp loop);
  Status vectorOp(mlir::Operation *op);
  Status view(mlir::Operation *op);
  /// The tensor in a buffer, which gets its place when it is used first.
  Result<corsair::DeviceTensor> tensorOf(mlir::Operation *user, mlir::Value memref);
  /// Where a value of the kernel lies outside, if it is an argument.
  mlir::Value outside(mlir::Value value);

  mlir::func::FuncOp function;
  mlir::gpu::GPUFuncOp kernel;
  mlir::gpu::LaunchFuncOp launch;
  llvm::DenseMap<mlir::Value, corsair::DeviceTensor> tensors; ///< of memrefs, by what allocates or views them
  llvm::DenseMap<mlir::Value, Tiles> weights;
};

} // namespace dmxc
