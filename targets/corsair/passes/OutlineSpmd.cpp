//===- OutlineSpmd.cpp - a loop of a product's nest to threads of a kernel ===//
//
// Every quad runs the same program with its number. With more trips than quads a quad takes every quads-th.
//
//===----------------------------------------------------------------------===//
#include "KernelFunctions.h"
#include "OutlineKernel.h"
#include "Passes.h"
#include "product/Split.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/LoopUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

namespace dmxc {
#define GEN_PASS_DEF_OUTLINESPMD
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using affine::AffineForOp;

namespace {

/// A nest whose innermost body computes tiles of one result.
struct Nest {
  SmallVector<AffineForOp> loops; ///< outermost first
  int rows = -1, columns = -1;    ///< which loops run over the result's rows and columns of tiles
  int64_t k = 0;                  ///< tiles along k
};

/// The loop whose index is result `position` of the store's map, or -1.
int loopOf(affine::AffineStoreOp store, unsigned position, ArrayRef<AffineForOp> loops) {
  auto dim = dyn_cast<AffineDimExpr>(store.getAffineMap().getResult(position));
  if (!dim)
    return -1;
  Value index = store.getMapOperands()[dim.getPosition()];
  for (auto [i, loop] : llvm::enumerate(loops))
    if (AffineForOp(loop).getInductionVar() == index)
      return static_cast<int>(i);
  return -1;
}

FailureOr<Nest> nestOf(AffineForOp root) {
  Nest nest;
  affine::getPerfectlyNestedLoops(nest.loops, root);
  affine::AffineStoreOp store;
  root.walk([&](affine::AffineStoreOp op) { store = op; });
  root.walk([&](lldmir::MatMulOp op) { nest.k += op.getNumImc(); });
  unsigned rank = store ? store.getMemRefType().getRank() : 0;
  if (rank >= 2) {
    nest.rows = loopOf(store, rank - 2, nest.loops);
    nest.columns = loopOf(store, rank - 1, nest.loops);
  }
  for (AffineForOp loop : nest.loops)
    if (!loop.hasConstantBounds() || loop.getConstantLowerBound() != 0 || loop.getStepAsInt() != 1 ||
        loop.getNumResults())
      return loop.emitError("runs not from 0 by 1 to a constant: normalize it first");
  return nest;
}

/// Weights, activations, then what is written: the order of a kernel's arguments.
int argumentClass(Value value, ArrayRef<Value> written) {
  if (llvm::is_contained(written, value))
    return 2;
  auto tile = cast<affine_ext::VecExtType>(cast<MemRefType>(value.getType()).getElementType());
  auto block = dyn_cast<dmir::BlockFpType>(tile.getElementType());
  return value.getDefiningOp<affine_ext::ConstantOp>() || (block && block.getColumns()) ? 0 : 1;
}

struct OutlineSpmd : dmxc::impl::OutlineSpmdBase<OutlineSpmd> {
  using OutlineSpmdBase::OutlineSpmdBase;

  void runOnOperation() override {
    int64_t most = lldmir::machineOf(&getContext()).quadCount();
    if (quads < 1 || quads > most) {
      getOperation().emitError() << "option 'quads' is 1 to " << most << ", not " << quads.getValue();
      return signalPassFailure();
    }
    if (!llvm::is_contained({"auto", "rows", "columns", "batch"}, split.getValue())) {
      getOperation().emitError() << "option 'split' is auto, rows, columns or batch, not '" << split.getValue()
                                 << "'; splitting k would need a reduction over quads, which this pass does not make";
      return signalPassFailure();
    }
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function->hasAttr(kQuadsAttr)) {
        if (failed(outlineKernel(function)))
          return signalPassFailure();
        continue;
      }
      SmallVector<AffineForOp> roots;
      for (auto loop : function.getOps<AffineForOp>())
        if (loop.walk([](lldmir::MatMulOp) { return WalkResult::interrupt(); }).wasInterrupted())
          roots.push_back(loop);
      for (auto [number, root] : llvm::enumerate(roots))
        if (failed(outline(function, root, number)))
          return signalPassFailure();
    }
  }

  LogicalResult outline(func::FuncOp function, AffineForOp root, unsigned number) {
    FailureOr<Nest> nest = nestOf(root);
    if (failed(nest))
      return failure();
    if (nest->rows < 0 || nest->columns < 0)
      return root.emitError("stores no tile at an index of rows and columns of its loops");
    FailureOr<AffineForOp> outer = bringOut(*nest);
    if (failed(outer))
      return failure();
    FailureOr<SmallVector<Value>> arguments = argumentsOf(*outer);
    if (failed(arguments))
      return failure();
    int64_t trips = outer->getConstantUpperBound(), threads = std::min<int64_t>(trips, quads);
    gpu::GPUFuncOp kernel = makeKernel(function, *outer, *arguments, threads, number);
    OpBuilder builder(*outer);
    Location loc = outer->getLoc();
    Value one = arith::ConstantIndexOp::create(builder, loc, 1),
          count = arith::ConstantIndexOp::create(builder, loc, threads);
    gpu::LaunchFuncOp::create(builder, loc, kernel, gpu::KernelDim3{one, one, one}, gpu::KernelDim3{count, one, one},
                              Value(), *arguments);
    outer->erase();
    getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), builder.getUnitAttr());
    return success();
  }

  /// The loop over matrices with the most trips, or -1 for a product of two matrices.
  int longestBatchLoop(Nest &nest) {
    int longest = -1;
    for (int i = 0, count = nest.loops.size(); i < count; ++i)
      if (i != nest.rows && i != nest.columns &&
          (longest < 0 || nest.loops[i].getConstantUpperBound() > nest.loops[longest].getConstantUpperBound()))
        longest = i;
    return longest;
  }

  /// Which loop is split. Matrices of a batch share nothing, so that splitting them costs nothing, once they are
  /// enough.
  int chooseLoop(Nest &nest) {
    ProductTiles product;
    product.rows = nest.loops[nest.rows].getConstantUpperBound();
    product.columns = nest.loops[nest.columns].getConstantUpperBound();
    product.k = nest.k;
    int batch = longestBatchLoop(nest);
    if (split == "batch")
      return batch;
    if (split == "auto" && batch >= 0) {
      int64_t most = std::max(product.rows, product.columns), trips = nest.loops[batch].getConstantUpperBound();
      if (trips >= quads || trips >= most)
        return batch;
    }
    if (split == "auto")
      return cheaperSplit(lldmir::machineOf(&getContext()), product, quads) == Split::Rows ? nest.rows : nest.columns;
    return split == "rows" ? nest.rows : nest.columns;
  }

  /// Makes the loop that is split the outermost.
  FailureOr<AffineForOp> bringOut(Nest &nest) {
    int loop = chooseLoop(nest);
    if (loop < 0)
      return nest.loops.front().emitError("has no loop over a batch to split");
    unsigned chosen = loop;
    SmallVector<unsigned> places;
    for (unsigned i = 0; i < nest.loops.size(); ++i)
      places.push_back(i == chosen ? 0 : i < chosen ? i + 1 : i);
    if (!affine::isValidLoopInterchangePermutation(nest.loops, places))
      return nest.loops[chosen].emitError("cannot be split: its trips depend on one another");
    SmallVector<AffineForOp> loops = nest.loops;
    return loops[affine::permuteLoops(loops, places)];
  }

  FailureOr<SmallVector<Value>> argumentsOf(AffineForOp loop) {
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(loop.getRegion(), captured);
    SmallVector<Value> written, arguments(captured.begin(), captured.end());
    loop.walk([&](affine::AffineStoreOp store) { written.push_back(store.getMemRef()); });
    for (Value value : arguments) {
      auto memref = dyn_cast<MemRefType>(value.getType());
      if (!memref || !isa<affine_ext::VecExtType>(memref.getElementType()))
        return loop.emitError() << "uses a " << value.getType() << "; a kernel takes memrefs of tiles only";
    }
    llvm::stable_sort(arguments,
                      [&](Value a, Value b) { return argumentClass(a, written) < argumentClass(b, written); });
    return arguments;
  }

  gpu::GPUFuncOp makeKernel(func::FuncOp function, AffineForOp loop, ArrayRef<Value> arguments, int64_t threads,
                            unsigned number) {
    Location loc = loop.getLoc();
    OpBuilder builder(&getContext());
    builder.setInsertionPointToEnd(kernelModule(function).getBody());
    std::string name = (function.getName() + "_" + Twine(number)).str();
    auto type = builder.getFunctionType(TypeRange(ValueRange(arguments)), {});
    auto kernel = gpu::GPUFuncOp::create(builder, loc, name, type);
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    kernel.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
    builder.setInsertionPointToStart(&kernel.getBody().front());
    IRMapping mapping;
    mapping.map(arguments, kernel.getArguments().take_front(arguments.size()));
    Value thread = gpu::ThreadIdOp::create(builder, loc, builder.getIndexType(), gpu::Dimension::x);
    int64_t trips = loop.getConstantUpperBound();
    gpu::ReturnOp::create(builder, loc);
    builder.setInsertionPoint(kernel.getBody().front().getTerminator());
    mapping.map(loop.getInductionVar(), thread);
    if (trips > threads) {
      auto wrapped = AffineForOp::create(builder, loc, thread, builder.getDimIdentityMap(), ValueRange(),
                                         builder.getConstantAffineMap(trips), threads);
      mapping.map(loop.getInductionVar(), wrapped.getInductionVar());
      builder.setInsertionPoint(wrapped.getBody()->getTerminator());
    }
    for (Operation &op : loop.getBody()->without_terminator())
      builder.clone(op, mapping);
    return kernel;
  }

  /// The kernels of a function stand in a module of their own after it.
  gpu::GPUModuleOp kernelModule(func::FuncOp function) {
    std::string name = (function.getName() + "_kernels").str();
    if (auto module = getOperation().lookupSymbol<gpu::GPUModuleOp>(name))
      return module;
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(function);
    return gpu::GPUModuleOp::create(builder, function.getLoc(), name);
  }
};

} // namespace
