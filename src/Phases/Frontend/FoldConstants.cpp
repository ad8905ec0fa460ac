//===- FoldConstants.cpp - evaluate ops on constants ----------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"
#include "dmxc/Phases/Phases.h"

#include "dmxc/Reference/Interpreter.h"
#include "dmxc/Support/Half.h"
#include "dmxc/Support/RoundingError.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/ErrorHandling.h"

namespace dmxc {
#define GEN_PASS_DEF_FOLDCONSTANTS
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// Constants above this size are left to run time rather than blow up the bundle.
constexpr uint64_t maxResultBytes = uint64_t(1) << 30;

struct FoldConstants : dmxc::impl::FoldConstantsBase<FoldConstants> {
  explicit FoldConstants(bool asStored) : asStored(asStored) {}
  llvm::DenseSet<Operation *> kept;
  llvm::DenseMap<Value, DictionaryAttr> rounded;
  const bool asStored; ///< whether the products of all targets read constants as they are stored

  /// Folded values stay host tensors until somebody who is not folded uses them, so that the intermediate
  /// results of long constant chains never become attributes (which live as long as the context).
  void runOnOperation() override {
    llvm::DenseMap<Value, Tensor> known;
    SmallVector<Operation *> folded;
    keepIndexArithmetic();
    for (Operation &op : llvm::make_early_inc_range(getOperation().getOps())) {
      if (!candidate(&op, known))
        continue;
      SmallVector<Tensor> operands;
      for (Value operand : op.getOperands())
        operands.push_back(known.contains(operand) ? known[operand] : *dmir::constantTensor(operand));
      Result<std::vector<Tensor>> results = reference::evaluateOp(&op, operands);
      if (!results) {
        if (results.error().kind == ErrorKind::IO)
          llvm::report_bad_alloc_error("constants"); // which ends as every lack of memory does
        op.emitError() << results.error().message;
        return signalPassFailure();
      }
      for (auto [value, tensor] : llvm::zip(op.getResults(), *results))
        known[value] = tensor;
      noteRounding(&op, operands, *results);
      folded.push_back(&op);
    }
    for (Operation *op : llvm::reverse(folded))
      materialize(op, known);
    for (auto constant : llvm::make_early_inc_range(getOperation().getOps<dmir::ConstantOp>()))
      if (constant.use_empty())
        constant.erase();
  }

  /// How far what --numerics rounds is off, which views of it are, too.
  void noteRounding(Operation *op, ArrayRef<Tensor> operands, ArrayRef<Tensor> results) {
    if (isa<dmir::TransposeOp, dmir::ReshapeOp>(op))
      if (DictionaryAttr fact = rounded.lookup(op->getOperand(0)))
        rounded[op->getResult(0)] = fact;
    if (!isa<dmir::CastOp>(op) || !op->hasAttr(dmir::kRoundsWeightsAttr))
      return;
    const Tensor &from = operands.front(), &to = results.front();
    if (from.dtype() != DType::F32 || to.dtype() != DType::BF16)
      return;
    RoundingError error;
    for (int64_t i = 0, count = from.numElements(); i < count; ++i)
      error.add(from.as<float>()[i], bfloatToFloat(to.as<uint16_t>()[i]));
    rounded[op->getResult(0)] = dmir::roundedFact(op->getContext(), static_cast<int64_t>(from.byteSize()),
                                                  static_cast<int64_t>(to.byteSize()), error.relative());
  }

  /// What kernels compute of an index where they need it, as biases that grow with the distance of keys and masks that
  /// are no rule, and would be large as constants.
  void keepIndexArithmetic() {
    constexpr uint64_t least = 1 << 20;
    for (Operation &op : getOperation().getOps()) {
      if (!isa<dmir::AddOp, dmir::SelectOp>(op))
        continue;
      for (Value operand : op.getOperands()) {
        auto type = cast<RankedTensorType>(operand.getType());
        llvm::DenseSet<Operation *> tree;
        bool isLarge = type.hasStaticShape() && bytesOf(type) > least;
        if (isLarge && dmir::isOfIndex(operand, tree) && isReadOnce(tree, &op) && !isOfIndexAlone(&op))
          kept.insert(tree.begin(), tree.end());
      }
    }
  }

  /// Whether only one op reads what others compute: what several layers read is computed once, and stays a constant.
  static bool isReadOnce(const llvm::DenseSet<Operation *> &tree, Operation *reader) {
    return llvm::all_of(tree, [&](Operation *op) {
      return isa<dmir::IotaOp>(op) ||
             llvm::all_of(op->getUsers(), [&](Operation *user) { return user == reader || tree.contains(user); });
    });
  }

  /// Whether an op is one of what is kept with those that read it.
  static bool isOfIndexAlone(Operation *op) {
    llvm::DenseSet<Operation *> tree;
    return dmir::isOfIndex(op->getResult(0), tree);
  }

  static uint64_t bytesOf(RankedTensorType type) {
    std::optional<DType> dtype = dmir::dtypeOf(type.getElementType());
    return dtype ? dtypeBytes(*dtype, type.getNumElements()) : 0;
  }

  bool candidate(Operation *op, const llvm::DenseMap<Value, Tensor> &known) {
    if (kept.contains(op))
      return false;
    if (op->getNumOperands() == 0 && !isa<dmir::IotaOp>(op))
      return false;
    for (Value operand : op->getOperands())
      if (!known.contains(operand) && !dmir::constantTensor(operand))
        return false;
    // Weights of few bits stay so where a product takes them as they are.
    if (asStored && isa<dmir::DequantizeOp>(op) && isRightOperand(op->getResult(0)))
      return false;
    // A table turned round would be there twice.
    if (asStored && isa<dmir::TransposeOp>(op) && dmir::isTable(op->getOperand(0)) && isRightOperand(op->getResult(0)))
      return false;
    // A part of fixed size may start where a run says.
    return !op->hasAttr("dims") && resultsFoldable(op);
  }

  /// Whether a product reads the value, or a view of it, from the right.
  static bool isRightOperand(Value value) {
    return llvm::any_of(value.getUses(), [](OpOperand &use) {
      Operation *user = use.getOwner();
      if (isa<dmir::TransposeOp, dmir::ReshapeOp, dmir::SliceOp, dmir::BroadcastOp>(user))
        return isRightOperand(user->getResult(0));
      return isa<dmir::MatMulOp, dmir::GroupedMatMulOp>(user) && use.getOperandNumber() == 1;
    });
  }

  bool resultsFoldable(Operation *op) {
    if (isa<dmir::ConstantOp, dmir::RegionOp>(op) || op->getNumResults() == 0 || !reference::canEvaluate(op->getName()))
      return false;
    return llvm::all_of(op->getResultTypes(), [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape() || tensor.getEncoding())
        return false;
      std::optional<DType> dtype = dmir::dtypeOf(tensor.getElementType());
      return dtype && dtypeBytes(*dtype, tensor.getNumElements()) <= maxResultBytes;
    });
  }

  /// Replaces a folded op by constants for the results that are still used (its folded users are gone by now).
  void materialize(Operation *op, const llvm::DenseMap<Value, Tensor> &known) {
    OpBuilder builder(op);
    for (Value result : op->getResults())
      if (!result.use_empty()) {
        auto constant = dmir::ConstantOp::create(
            builder, op->getLoc(), dmir::constantAttr(known.at(result), cast<RankedTensorType>(result.getType())));
        if (auto fact = rounded.find(result); fact != rounded.end())
          constant->setAttr(dmir::kRoundedAttr, fact->second);
        result.replaceAllUsesWith(constant);
      }
    op->erase();
  }
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createFoldConstantsPass(const PhaseContext &context) {
  return std::make_unique<FoldConstants>(
      llvm::all_of(context.targets, [](const TargetBackend *target) { return target->readsStoredOperands(); }));
}
} // namespace dmxc
