//===- KernelFunctions.cpp - kernels to functions -------------------------===//
#include "KernelFunctions.h"
#include "Passes.h"

#include "targets/corsair/decide/Constants.h"
#include "targets/corsair/decide/Decide.h"
#include "targets/corsair/decide/Kernels.h"
#include "targets/corsair/decide/ModelWork.h"
#include "targets/corsair/dialect/Corsair/Corsair.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"
#include "targets/corsair/write/DeviceTensor.h"

#include "dmxc/Dialect/DMIR/Model.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numeric>

namespace dmxc {
#define GEN_PASS_DEF_KERNELFUNCTIONS
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
namespace cs = dmxc::corsair;

std::optional<SmallVector<unsigned>> dmxc::orderOfDims(func::FuncOp function, unsigned argument, int64_t rank) {
  SmallVector<unsigned> order = cs::rowMajor(static_cast<size_t>(rank));
  Attribute given = function.getArgAttr(argument, kOrderAttr);
  if (!given)
    return order;
  auto numbers = dyn_cast<DenseI64ArrayAttr>(given);
  SmallVector<int64_t> sorted(numbers ? numbers.asArrayRef() : ArrayRef<int64_t>());
  llvm::sort(sorted);
  if (!numbers || !llvm::equal(sorted, order))
    return std::nullopt;
  order.assign(numbers.asArrayRef().begin(), numbers.asArrayRef().end());
  return order;
}

namespace {

struct KernelFunctions : dmxc::impl::KernelFunctionsBase<KernelFunctions> {
  using KernelFunctionsBase::KernelFunctionsBase;

  void runOnOperation() override {
    cs::DecisionsMade made;
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<dlir::KernelOp>())) {
      if (kernel.getDevice() != "corsair")
        continue;
      Result<cs::Distribution> deal = cs::distributionOf(kernel, lldmir::machineOf(&getContext()));
      if (!deal) {
        kernel.emitError() << deal.error().message;
        return signalPassFailure();
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
    if (const int64_t macs = cs::repeatedMultiplyAdds(body, deal))
      function->setAttr(cs::kRepeatedMacs, b.getI64IntegerAttr(macs));
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
        function.setArgAttr(number, lldmir::kDealAttr, deal.dealOf(argument));
    }
    if (auto states = kernel.getStrategy().getAs<DenseI64ArrayAttr>(cs::kStatesKey))
      for (int64_t i = 0; i + 1 < states.size(); i += 2)
        if (states[i] < body->getNumArguments() && states[i + 1] < yield->getNumOperands())
          function.setArgAttr(states[i], kStateAttr, b.getI64IntegerAttr(states[i + 1]));
    for (auto [number, value] : llvm::enumerate(yield->getOperands())) {
      function.setResultAttr(number, kTypeAttr, TypeAttr::get(value.getType()));
      if (cs::Split split = deal.at(value))
        function.setResultAttr(number, lldmir::kDealAttr, deal.dealOf(value));
    }
    // Views and additions of a bias have what their operands have; from here on each op says what it has.
    for (Operation &op : body->without_terminator())
      if (cs::Split split = deal.at(op.getResult(0)); !split && deal.depth.contains(&op))
        op.setAttr(lldmir::kDealAttr, lldmir::DealAttr::get(&getContext(), lldmir::DealAttr::kSums, deal.quads));
      else if (split)
        op.setAttr(lldmir::kDealAttr, deal.dealOf(op.getResult(0)));
      else
        op.removeAttr(lldmir::kDealAttr);
    // What has no elements reads nothing.
    for (Operation &op : llvm::make_early_inc_range(body->without_terminator()))
      if (cs::makesNothing(&op)) {
        b.setInsertionPoint(&op);
        op.replaceAllUsesWith(dmir::UndefOp::create(b, op.getLoc(), op.getResultTypes()[0]));
        op.erase();
      }
    for (Operation &op : body->without_terminator())
      op.removeAttr(dmir::kProductAttr); // for people
    function.getBody().takeBody(kernel.getBody());
    b.setInsertionPoint(yield);
    func::ReturnOp::create(b, yield->getLoc(), yield->getOperands());
    yield->erase();
    kernel.erase();
  }
};

} // namespace
