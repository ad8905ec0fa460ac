//===- RoundProducts.cpp - shorter operands of f32 products ---------------===//
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace dmxc {
#define GEN_PASS_DEF_ROUNDPRODUCTS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// Casts of values, each made once, where the value is made.
class Rounding {
public:
  Value round(Value value, Type number) {
    auto key = std::make_pair(value, number);
    if (Value known = rounded.lookup(key))
      return known;
    Value result = make(value, number);
    rounded[key] = result;
    return result;
  }

  /// For a kernel that can round what it reads: where no other op reads the value its producer writes it rounded, else
  /// the cast stands where the kernel may take it, and a cache, say, stays as it is.
  static Value roundForKernel(Value value, Type number) {
    SmallVector<Operation *> views = viewsOf(value);
    Value result = castOf(views.empty() ? value : views.back()->getOperand(0), number);
    for (Operation *view : llvm::reverse(views))
      result = again(view, result, number);
    return result;
  }

  static Value castOf(Value value, Type number) {
    // What was widened has the shorter numbers.
    if (auto cast = value.getDefiningOp<dmir::CastOp>(); cast && elementOf(cast.getInput()) == number)
      return cast.getInput();
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(value);
    auto cast = dmir::CastOp::create(b, value.getLoc(), withNumber(value, number), value);
    if (isOfConstants(value))
      cast->setAttr(dmir::kRoundsWeightsAttr, b.getUnitAttr());
    return cast;
  }

private:
  /// Whether a value is folded before anything reads it.
  static bool isOfConstants(Value value) {
    llvm::SmallSetVector<Operation *, 8> ops;
    ops.insert(value.getDefiningOp());
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!ops[i] || (ops[i]->getNumOperands() == 0 && !isa<dmir::ConstantOp>(ops[i])))
        return false;
      for (Value operand : ops[i]->getOperands())
        ops.insert(operand.getDefiningOp());
    }
    return true;
  }

  static bool isView(Operation *op) {
    return isa_and_nonnull<dmir::TransposeOp, dmir::ReshapeOp, dmir::SliceOp, dmir::BroadcastOp>(op);
  }

  /// The views of rounded numbers through which a kernel reads a value.
  static SmallVector<Operation *> viewsOf(Value value) {
    SmallVector<Operation *> views;
    size_t copied = 0; // up to a view that is no view of memory, as it is reshaped
    Value source = value;
    for (Operation *op; source.hasOneUse() && isView(op = source.getDefiningOp()); source = op->getOperand(0)) {
      if (!views.empty() && isa<dmir::ReshapeOp>(views.back()) && !isa<dmir::ReshapeOp>(op))
        copied = views.size();
      views.push_back(op);
    }
    if (source.hasOneUse() && source.getDefiningOp() && !source.getDefiningOp<dmir::ConcatOp>())
      return views;
    views.truncate(copied);
    if (copied)
      return views;
    for (Operation *op; isa_and_nonnull<dmir::TransposeOp, dmir::BroadcastOp>(op = value.getDefiningOp());
         value = op->getOperand(0))
      views.push_back(op);
    return views;
  }

  /// The view of other numbers.
  static Value again(Operation *view, Value source, Type number) {
    OpBuilder b(view->getContext());
    b.setInsertionPointAfter(view);
    Operation *copy = b.clone(*view);
    copy->setOperand(0, source);
    copy->getResult(0).setType(withNumber(view->getResult(0), number));
    return copy->getResult(0);
  }

  static Type withNumber(Value value, Type number) {
    auto type = typeOf(value);
    return RankedTensorType::get(type.getShape(), number, type.getEncoding());
  }

  Value make(Value value, Type number) {
    Operation *producer = value.getDefiningOp();
    if (isa_and_nonnull<dmir::TransposeOp, dmir::ReshapeOp>(producer))
      return again(producer, round(producer->getOperand(0), number), number);
    return castOf(value, number);
  }

  llvm::DenseMap<std::pair<Value, Type>, Value> rounded;
};

struct RoundProducts : dmxc::impl::RoundProductsBase<RoundProducts> {
  explicit RoundProducts(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    SmallVector<std::pair<Operation *, Type>> products;
    getOperation().walk([&](Operation *op) {
      if (!isa<dmir::MatMulOp, dmir::ConvOp>(op))
        return;
      if (context.keepsPrecision(op))
        op->setAttr(dmir::kKeepsPrecisionAttr, UnitAttr::get(&getContext()));
      if (Type number = numberOf(op))
        products.emplace_back(op, number);
    });
    if (products.empty())
      return;
    llvm::DenseMap<Operation *, Operation *> kernels = kernelsOfSeveral();
    llvm::erase_if(products, [&](const auto &product) { return isKept(product.first, kernels); });
    bool isQuantised = multipliesIntegers();
    Rounding rounding;
    for (auto [op, number] : products) {
      Operation *kernel = kernels.lookup(op);
      if (kernel && isQuantised)
        continue;
      auto isComputed = [&](Value value) {
        Operation *producer = value.getDefiningOp();
        return producer && producer != kernel && kernels.lookup(producer) == kernel;
      };
      bool roundsAll = kernel && context.responsible(op)->roundsComputed(op);
      bool widens = kernel && !roundsAll && llvm::any_of(op->getOperands(), isComputed);
      for (OpOperand &operand : op->getOpOperands()) {
        if (!kernel)
          operand.set(rounding.round(operand.get(), number));
        else if (isComputed(operand.get()) && roundsAll)
          operand.set(Rounding::castOf(operand.get(), number));
        else if (!isComputed(operand.get()))
          operand.set(roundForKernel(op, operand.get(), number, widens));
      }
    }
  }

private:
  /// Null where the product's target keeps it as it is.
  Type numberOf(Operation *op) {
    bool isF32 = llvm::all_of(op->getOperands(), [](Value v) { return elementOf(v).isF32(); });
    const TargetBackend *target = isF32 ? context.responsible(op) : nullptr;
    return target ? target->roundsOperands(op) : Type();
  }

  /// Products that one kernel computes stay as they are where one of them is to.
  static bool isKept(Operation *op, const llvm::DenseMap<Operation *, Operation *> &kernels) {
    Operation *kernel = kernels.lookup(op);
    return op->hasAttr(dmir::kKeepsPrecisionAttr) ||
           (kernel && llvm::any_of(kernels, [&](const auto &entry) {
              return entry.second == kernel && entry.first->hasAttr(dmir::kKeepsPrecisionAttr);
            }));
  }

  /// Where the kernel computes the other operand itself that one stays f32, and this one is f32 again.
  static Value roundForKernel(Operation *op, Value value, Type number, bool widens) {
    Value rounded = Rounding::roundForKernel(value, number);
    if (!widens)
      return rounded;
    OpBuilder b(op);
    return dmir::CastOp::create(b, op->getLoc(), value.getType(), rounded);
  }

  /// A model that computes most products in integers rounds to them what attention makes: where that differs a little
  /// it jumps by a whole step, and attention alone would gain little.
  bool multipliesIntegers() {
    auto result = getOperation().walk([](Operation *op) {
      bool isOne = isa<dmir::MatMulOp, dmir::ConvOp>(op) && isa<IntegerType>(elementOf(op->getOperand(0)));
      return isOne ? WalkResult::interrupt() : WalkResult::advance();
    });
    return result.wasInterrupted();
  }

  /// The products whose kernels compute other ops on the way, for these ops and themselves.
  llvm::DenseMap<Operation *, Operation *> kernelsOfSeveral() {
    llvm::DenseMap<Operation *, Operation *> kernels;
    getOperation().walk([&](Operation *op) {
      const TargetBackend *target = isa<dmir::MatMulOp>(op) ? context.responsible(op) : nullptr;
      SmallVector<Operation *> others = target ? target->computedWith(op) : SmallVector<Operation *>();
      if (llvm::none_of(others, [](Operation *other) { return isa<dmir::MatMulOp>(other); }))
        return; // no product on the way to another one
      for (Operation *other : others)
        kernels[other] = op;
      kernels[op] = op;
    });
    return kernels;
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createRoundProductsPass(const PhaseContext &context) {
  return std::make_unique<RoundProducts>(context);
}
} // namespace dmxc
