//===- Control.cpp - rules of dmir.if and dmir.loop -----------------------===//
#include "Infer.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace dmxc;
using namespace dmxc::dmir;
using mlir::TypeRange;

namespace {

/// Equal but for dims: those may be known in one place and symbols in the other.
bool sameForm(TypeRange a, TypeRange b) { return compatible(a, b); }

LogicalResult checkGraph(mlir::Operation *op, mlir::FlatSymbolRefAttr name, TypeRange inputs, TypeRange results,
                         mlir::SymbolTableCollection &symbols) {
  auto graph = symbols.lookupNearestSymbolFrom<mlir::func::FuncOp>(op, name);
  if (!graph)
    return op->emitOpError("C1: there is no function ") << name;
  if (!sameForm(graph.getArgumentTypes(), inputs))
    return op->emitOpError("C1: the function ") << name << " does not take the operands: " << graph.getFunctionType();
  if (!sameForm(graph.getResultTypes(), results))
    return op->emitOpError("C1: the function ") << name << " does not give the results: " << graph.getFunctionType();
  return success();
}

} // namespace

LogicalResult IfOp::verifySymbolUses(mlir::SymbolTableCollection &symbols) {
  for (mlir::FlatSymbolRefAttr name : {getThenGraphAttr(), getElseGraphAttr()})
    if (failed(checkGraph(*this, name, getCaptures().getTypes(), getResultTypes(), symbols)))
      return failure();
  return success();
}

LogicalResult LoopOp::verifySymbolUses(mlir::SymbolTableCollection &symbols) {
  auto scalar = [&](unsigned width) { return RankedTensorType::get({}, mlir::IntegerType::get(getContext(), width)); };
  size_t carried = getCarried().size(), total = getNumResults();
  if (total < carried)
    return emitOpError("C1: has fewer results than carried values");
  SmallVector<Type> inputs{scalar(64), scalar(1)}, results{scalar(1)};
  llvm::append_range(inputs, getCarried().getTypes());
  llvm::append_range(inputs, getCaptures().getTypes());
  for (size_t i = 0; i < total; ++i) {
    Type type = getResult(i).getType();
    if (i >= carried) { // one iteration's part of a scanned value
      SmallVector<Dim> dims = dimsOf(type);
      if (dims.empty())
        return emitOpError("C1: a scanned value has no axis for the iterations");
      type = tensorOf(ArrayRef<Dim>(dims).drop_front(), cast<RankedTensorType>(type).getElementType());
    }
    results.push_back(type);
  }
  return checkGraph(*this, getBodyAttr(), inputs, results, symbols);
}
