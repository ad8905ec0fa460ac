//===- RandomGraph.h - graphs with masks and sparse constants in them -*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <random>
#include <vector>

namespace dmxc::graphs {

/// A function of one to three f32 inputs and results; numbers are small integers, so that nothing overflows.
class RandomGraph {
public:
  RandomGraph(mlir::MLIRContext &context, unsigned seed);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function() { return *module->getOps<mlir::func::FuncOp>().begin(); }
  std::vector<Tensor> inputs();

private:
  using V = mlir::Value;
  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine); }
  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape);
  V pick();
  V matrix();
  V constant(llvm::ArrayRef<int64_t> shape, llvm::function_ref<double(int64_t, int64_t)> at);
  V sparse(int64_t rows, int64_t columns);
  V scalar(double value);
  V rule(llvm::ArrayRef<int64_t> shape);
  mlir::ArrayAttr keep(int64_t rank, int64_t rows, int64_t columns);
  V step();
  V moved(V x);
  V joined(V x);
  V masked(V x);
  V elementwise(V x);
  V product(V x);
  V reduced(V x);
  V like(V x);

  std::mt19937 engine;
  mlir::MLIRContext &context;
  mlir::OpBuilder b;
  mlir::Location loc;
  std::vector<V> values;
};

} // namespace dmxc::graphs
