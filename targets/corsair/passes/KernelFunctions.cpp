//===- KernelFunctions.cpp - kernels to functions -------------------------===//
#include "KernelFunctions.h"
#include "Passes.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"
#include "targets/corsair/emit/Decide.h"
#include "targets/corsair/emit/KernelLowering.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numeric>

namespace dmxc {
#define GEN_PASS_DEF_KERNELFUNCTIONS
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
namespace cs = dmxc::corsair;

namespace {

/// Why a kernel has no stages yet: the first op that is not known to them.
class Stages {
public:
  Stages(dlir::KernelOp kernel, const cs::Distribution &deal) : kernel(kernel), deal(deal) {}

  Operation *unknown() {
    for (Operation &op : kernel.getBlock()->without_terminator())
      if (!knows(&op))
        return &op;
    return nullptr;
  }

private:
  static bool isPlain(Value value) {
    Type element = elementOf(value);
    return element.isF32() || element.isInteger(1) || element.isInteger(32) || element.isInteger(64);
  }

  bool knows(Operation *op) {
    if (cs::makesNothing(op) || !llvm::all_of(op->getResults(), isPlain) || !llvm::all_of(op->getOperands(), isPlain))
      return false;
    if (auto matmul = dyn_cast<dmir::MatMulOp>(op))
      return knows(matmul);
    if (auto conv = dyn_cast<dmir::ConvOp>(op))
      return cs::isDepthwise(conv) || knows(conv);
    if (auto constant = dyn_cast<dmir::ConstantOp>(op))
      return isa<SplatElementsAttr>(constant.getValue());
    if (auto pad = dyn_cast<dmir::PadOp>(op))
      return pad.getMode() == dmir::PadMode::constant;
    return isa<dmir::ReshapeOp, dmir::TransposeOp, dmir::SliceOp, dmir::BroadcastOp, dmir::ConcatOp, dmir::GatherOp,
               dmir::PoolOp>(op) ||
           cs::rowsOp(op) || cs::elementwiseFunction(op);
  }

  /// A convolution by packed tiles that are planned for it.
  bool knows(dmir::ConvOp op) {
    SmallVector<int64_t> part(shapeOf(op.getResult()));
    if (cs::Split split = deal.at(op.getResult()))
      part[split.dim] = split.part;
    return deal.packed.contains(op.getWeights()) &&
           cs::dimsOf(op, deal).m == ShapedType::getNumElements(ArrayRef(part).drop_front(2));
  }

  /// A product by packed tiles whose rows lie one behind the other, or matrices by matrices of their own.
  bool knows(dmir::MatMulOp op) {
    if (deal.depth.contains(op) || op.getLhs().getDefiningOp<dmir::ConstantOp>())
      return false;
    SmallVector<int64_t> part(shapeOf(op.getResult()));
    cs::Split split = deal.at(op.getResult());
    const auto rank = static_cast<int>(part.size());
    if (!deal.packed.contains(op.getRhs())) {
      if (split)
        part[split.dim] = split.part;
      return !op.getRhs().getDefiningOp<dmir::ConstantOp>() &&
             (cs::isBatched(op, split) || ShapedType::getNumElements(ArrayRef(part).drop_back(2)) == 1);
    }
    if (split && split.dim + 1 < rank)
      for (int dim = 0; dim < split.dim; ++dim)
        if (part[dim] != 1)
          return false;
    if (split)
      part[split.dim] = split.part;
    // Tiles that serve uses of different sizes are those of the largest.
    return cs::dimsOf(op, deal).m == cs::packedRows(part);
  }

  dlir::KernelOp kernel;
  const cs::Distribution &deal;
};

bool keepsStates(dlir::KernelOp kernel) {
  auto pairs = kernel.getStrategy().getAs<DenseI64ArrayAttr>(cs::kStatesKey);
  return pairs && !pairs.empty();
}

struct KernelFunctions : dmxc::impl::KernelFunctionsBase<KernelFunctions> {
  using KernelFunctionsBase::KernelFunctionsBase;

  void runOnOperation() override {
    cs::DecisionsMade made;
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<dlir::KernelOp>())) {
      if (kernel.getDevice() != "corsair" || keepsStates(kernel))
        continue;
      Result<cs::Distribution> deal = cs::distributionOf(kernel, lldmir::machineOf(&getContext()));
      if (!deal) {
        kernel.emitError() << deal.error().message;
        return signalPassFailure();
      }
      if (Operation *other = Stages(kernel, *deal).unknown()) {
        kernel->setAttr(kUnstagedAttr, StringAttr::get(&getContext(), dmir::nodeName(other)));
        continue;
      }
      convert(kernel, *deal);
    }
  }

  void convert(dlir::KernelOp kernel, const cs::Distribution &deal) {
    OpBuilder b(kernel);
    Block *body = kernel.getBlock();
    Operation *yield = body->getTerminator();
    auto function = func::FuncOp::create(b, kernel.getLoc(), kernel.getSymName(),
                                         b.getFunctionType(body->getArgumentTypes(), yield->getOperandTypes()));
    function->setAttr(kQuadsAttr, b.getI64IntegerAttr(deal.quads));
    function->setAttr(dlir::kDeviceAttr, kernel.getDeviceAttr());
    for (BlockArgument argument : body->getArguments()) {
      const unsigned number = argument.getArgNumber();
      function.setArgAttr(number, kTypeAttr, TypeAttr::get(argument.getType()));
      if (DictionaryAttr form = cs::packedForm(kernel, argument)) {
        function.setArgAttr(number, kFormAttr, form);
        if (form.getAs<StringAttr>("form").getValue() == cs::forms::kPlain && cs::isTable(argument))
          function.setArgAttr(number, kTableAttr, b.getUnitAttr());
      }
      if (!cs::packedForm(kernel, argument) && cs::crossesAsTiles(argument, deal.packed))
        function.setArgAttr(number, kTilesAttr, b.getI64IntegerAttr(cs::rowsOfTiles(argument, deal)));
      const SmallVector<unsigned> order = cs::preferredOrder(argument, shapeOf(argument).size());
      if (!cs::packedForm(kernel, argument) && order != cs::rowMajor(order.size()))
        function.setArgAttr(number, kOrderAttr,
                            b.getDenseI64ArrayAttr(SmallVector<int64_t>(order.begin(), order.end())));
      if (cs::Split split = deal.at(argument))
        function.setArgAttr(number, lldmir::kDealAttr, lldmir::DealAttr::get(&getContext(), split.dim, deal.quads));
    }
    for (auto [number, value] : llvm::enumerate(yield->getOperands())) {
      function.setResultAttr(number, kTypeAttr, TypeAttr::get(value.getType()));
      if (cs::Split split = finalSplit(value, deal))
        function.setResultAttr(number, lldmir::kDealAttr, lldmir::DealAttr::get(&getContext(), split.dim, deal.quads));
    }
    // Views and additions of a bias have what their operands have; from here on each op says what it has.
    for (Operation &op : body->without_terminator())
      if (cs::Split split = deal.at(op.getResult(0)))
        op.setAttr(lldmir::kDealAttr, lldmir::DealAttr::get(&getContext(), split.dim, deal.quads));
      else
        op.removeAttr(lldmir::kDealAttr);
    function.getBody().takeBody(kernel.getBody());
    b.setInsertionPoint(yield);
    func::ReturnOp::create(b, yield->getLoc(), yield->getOperands());
    yield->erase();
    kernel.erase();
  }

  /// What quads have of a value when the kernel ends: all, where an op had it made whole.
  static cs::Split finalSplit(Value value, const cs::Distribution &deal) {
    for (const auto &[op, gathered] : deal.gathers)
      if (llvm::is_contained(gathered, value))
        return {};
    return deal.at(value);
  }
};

} // namespace
