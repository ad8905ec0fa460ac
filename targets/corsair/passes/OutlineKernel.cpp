//===- OutlineKernel.cpp - a kernel's function to a program for all quads -===//
//
// The whole function becomes one gpu.func; a thread is a quad. A loop over quads becomes the quad's number, an op that
// is dealt computes its part, and quads meet after they sent their parts to the others. What is returned is allocated
// outside and an argument, behind weights and activations.
//
//===----------------------------------------------------------------------===//
#include "OutlineKernel.h"
#include "KernelFunctions.h"
#include "Views.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dmxc;
using affine_ext::VecExtType;

namespace {

class Outliner {
public:
  explicit Outliner(func::FuncOp function) : function(function), builder(function.getContext()) {}

  LogicalResult run() {
    quads = function->getAttrOfType<IntegerAttr>(kQuadsAttr).getInt();
    findReturned();
    gpu::GPUFuncOp kernel = makeKernel();
    builder.setInsertionPointToStart(&kernel.getBody().front());
    Location loc = function.getLoc();
    thread = gpu::ThreadIdOp::create(builder, loc, builder.getIndexType(), gpu::Dimension::x);
    for (Operation &op : function.getBody().front().without_terminator())
      if (!outside.contains(&op) && failed(move(&op))) {
        kernel->getParentOp()->erase();
        return failure();
      }
    gpu::ReturnOp::create(builder, loc);
    launch(kernel);
    return success();
  }

private:
  /// The allocations that results lie in stay outside, and the views of them too.
  void findReturned() {
    for (Value value : function.getBody().front().getTerminator()->getOperands()) {
      SmallVector<Operation *> chain;
      for (Operation *op = value.getDefiningOp(); op;
           op = op->getOperands().empty() ? nullptr : op->getOperand(0).getDefiningOp())
        if (isa<memref::AllocOp>(op) || isBufferView(op))
          chain.push_back(op);
      outside.insert(chain.begin(), chain.end());
    }
    // Weights, activations, then what is made.
    auto isWeights = [](Value value) {
      auto tile = dyn_cast<VecExtType>(cast<MemRefType>(value.getType()).getElementType());
      auto block = tile ? dyn_cast<dmir::BlockFpType>(tile.getElementType()) : dmir::BlockFpType();
      return block && tile.getRank() == 2 && block.getColumns();
    };
    for (bool weights : {true, false})
      for (BlockArgument argument : function.getArguments())
        if (isWeights(argument) == weights)
          operands.push_back(argument);
    for (Operation &op : function.getBody().front())
      if (outside.contains(&op) && isa<memref::AllocOp>(op))
        operands.push_back(op.getResult(0));
  }

  gpu::GPUFuncOp makeKernel() {
    builder.setInsertionPointAfter(function);
    Location loc = function.getLoc();
    auto module = gpu::GPUModuleOp::create(builder, loc, (function.getName() + "_kernels").str());
    builder.setInsertionPointToEnd(module.getBody());
    auto kernel = gpu::GPUFuncOp::create(builder, loc, function.getName(),
                                         builder.getFunctionType(TypeRange(ValueRange(operands)), {}));
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    kernel.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({static_cast<int32_t>(quads), 1, 1}));
    for (auto [operand, argument] : llvm::zip(operands, kernel.getArguments()))
      mapping.map(operand, argument);
    return kernel;
  }

  void launch(gpu::GPUFuncOp kernel) {
    Operation *terminator = function.getBody().front().getTerminator();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (&op != terminator && !outside.contains(&op)) {
        op.dropAllUses();
        op.erase();
      }
    builder.setInsertionPoint(terminator);
    Location loc = function.getLoc();
    Value one = arith::ConstantIndexOp::create(builder, loc, 1),
          count = arith::ConstantIndexOp::create(builder, loc, quads);
    gpu::LaunchFuncOp::create(builder, loc, kernel, gpu::KernelDim3{one, one, one}, gpu::KernelDim3{count, one, one},
                              Value(), operands);
    function->getParentOfType<ModuleOp>()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                                                   builder.getUnitAttr());
  }

  LogicalResult move(Operation *op) {
    op->walk([&](Operation *inner) { viewsOf(inner); });
    if (auto loop = dyn_cast<affine::AffineForOp>(op); loop && loop->hasAttr(kQuadsAttr)) {
      if (!loop.hasConstantBounds() || loop.getConstantLowerBound() != 0 || loop.getConstantUpperBound() != quads)
        return op->emitError() << "runs over other quads than the " << quads << " of the function's team";
      mapping.map(loop.getInductionVar(), thread);
      for (Operation &inner : loop.getBody()->without_terminator())
        builder.clone(inner, mapping);
      return success();
    }
    if (auto simd = dyn_cast<lldmir::SimdOp>(op); simd && simd->hasAttr(lldmir::kDealAttr))
      return deal(simd);
    if (auto reshape = dyn_cast<lldmir::ReshapeOp>(op); reshape && reshape->hasAttr(lldmir::kDealAttr))
      return deal(reshape);
    builder.clone(*op, mapping);
    if (isa<lldmir::GatherOp>(op))
      gpu::BarrierOp::create(builder, op->getLoc());
    return success();
  }

  /// A view of what is allocated outside is made here again.
  void viewsOf(Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *view = operand.getDefiningOp(); view && !mapping.contains(operand) && outside.contains(view)) {
        viewsOf(view);
        builder.clone(*view, mapping);
      }
  }

  /// Which dim of an input a dim of the result is; -1: none.
  static int64_t dimOf(lldmir::ReshapeOp, unsigned input, MemRefType, MemRefType, int64_t dim) {
    return input == 1 ? dim : -1; // rows are gathered for a part of the indices
  }
  static int64_t dimOf(lldmir::SimdOp op, unsigned, MemRefType operand, MemRefType result, int64_t dim) {
    DictionaryAttr parameters = op.getParametersAttr();
    auto several = parameters ? parameters.getAs<DenseI64ArrayAttr>("axes") : DenseI64ArrayAttr();
    auto one = parameters ? parameters.getAs<IntegerAttr>("axis") : IntegerAttr();
    SmallVector<int64_t> axes(several ? several.asArrayRef() : ArrayRef<int64_t>());
    if (one)
      axes.push_back(one.getInt());
    if (!axes.empty() && operand.getRank() > result.getRank()) { // reduced away
      int64_t at = 0;
      for (int64_t i = 0; i < operand.getRank(); ++i)
        if (!llvm::is_contained(axes, i) && at++ == dim)
          return i;
      return -1;
    }
    dim -= result.getRank() - operand.getRank();
    return dim >= 0 && operand.getDimSize(dim) != 1 ? dim : -1;
  }

  /// Each quad fills its share from shares of the operands, and from parts of those that it has whole.
  template <typename UnitOp> LogicalResult deal(UnitOp op) {
    auto attribute = op->template getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
    if (!attribute || op.getOuts().size() != 1 ||
        !llvm::all_of(op->getOperandTypes(), [](Type type) { return isa<MemRefType>(type); }))
      return op.emitError("is dealt, but does not fill one buffer from others");
    auto result = cast<MemRefType>(op.getOuts()[0].getType());
    const int64_t dim = attribute.getDim();
    if (dim < 0 || dim >= result.getRank() || attribute.getQuads() != quads)
      return op.emitError() << "cannot be dealt by '" << lldmir::kDealAttr << "' " << attribute << ": it fills "
                            << result << " on " << quads << " quads";
    const int64_t part = result.getDimSize(dim);
    Location loc = op.getLoc();
    Value at;
    auto placeOf = [&](int64_t part) {
      if (!at)
        at = affine::AffineApplyOp::create(builder, loc, AffineMap::get(1, 0, builder.getAffineDimExpr(0) * part),
                                           thread);
      return at;
    };
    auto partOf = [&](Value value, int64_t own) -> Value {
      auto type = cast<MemRefType>(value.getType());
      Value mapped = mapping.lookup(value);
      if (own < 0 || own >= type.getRank() || type.getDimSize(own) != part * quads)
        return mapped;
      SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
          ones(type.getRank(), builder.getIndexAttr(1)),
          sizes = getAsIndexOpFoldResult(builder.getContext(), type.getShape());
      offsets[own] = placeOf(part);
      sizes[own] = builder.getIndexAttr(part);
      return memref::SubViewOp::create(builder, loc, mapped, offsets, sizes, ones);
    };
    SmallVector<Value> inputs;
    for (auto [number, input] : llvm::enumerate(op.getInputs()))
      inputs.push_back(partOf(input, dimOf(op, number, cast<MemRefType>(input.getType()), result, dim)));
    auto simd = dyn_cast<lldmir::SimdOp>(op.getOperation());
    const bool counts = simd && simd.masks() && dim + 2 == result.getRank();
    if (attribute.getFolded() && at)
      return op.emitError("is of other rows in each quad, and reads a buffer that all of them have");
    Value row = !counts ? Value() : placeOf(attribute.getFolded() ? part / 2 : part);
    DictionaryAttr parameters = op.getParametersAttr();
    if (row && attribute.getFolded()) {
      NamedAttrList list(parameters);
      list.set(lldmir::kFolded, builder.getI64IntegerAttr(part * quads));
      parameters = list.getDictionary(op.getContext());
    }
    auto made = UnitOp::create(builder, loc, TypeRange(), op.getFunction(), inputs, mapping.lookup(op.getOuts()[0]),
                               parameters);
    if (row)
      cast<lldmir::SimdOp>(made.getOperation()).getRowMutable().assign(row);
    return success();
  }

  func::FuncOp function;
  OpBuilder builder;
  int64_t quads = 1;
  llvm::SmallPtrSet<Operation *, 8> outside;
  SmallVector<Value> operands; ///< of the launch
  IRMapping mapping;
  Value thread;
};

} // namespace

LogicalResult dmxc::outlineKernel(func::FuncOp function) { return Outliner(function).run(); }
