//===- RoundProducts.cpp - shorter operands of f32 products ---------------===//
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseSet.h"

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

private:
  static Type withNumber(Value value, Type number) {
    auto type = typeOf(value);
    return RankedTensorType::get(type.getShape(), number, type.getEncoding());
  }

  Value make(Value value, Type number) {
    Operation *producer = value.getDefiningOp();
    // What was widened has the shorter numbers.
    if (auto cast = dyn_cast_or_null<dmir::CastOp>(producer))
      if (elementOf(cast.getInput()) == number)
        return cast.getInput();
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(value);
    if (isa_and_nonnull<dmir::TransposeOp, dmir::ReshapeOp>(producer)) {
      Value source = round(producer->getOperand(0), number);
      Operation *view = b.clone(*producer);
      view->setOperand(0, source);
      view->getResult(0).setType(withNumber(value, number));
      return view->getResult(0);
    }
    return dmir::CastOp::create(b, value.getLoc(), withNumber(value, number), value);
  }

  llvm::DenseMap<std::pair<Value, Type>, Value> rounded;
};

struct RoundProducts : dmxc::impl::RoundProductsBase<RoundProducts> {
  explicit RoundProducts(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    SmallVector<std::pair<dmir::MatMulOp, Type>> products;
    getOperation().walk([&](dmir::MatMulOp op) {
      if (Type number = numberOf(op))
        products.emplace_back(op, number);
    });
    if (products.empty())
      return;
    llvm::DenseSet<Operation *> inner = computedByOthers();
    Rounding rounding;
    for (auto [op, number] : products) {
      if (inner.contains(op))
        continue;
      op.getLhsMutable().assign(rounding.round(op.getLhs(), number));
      op.getRhsMutable().assign(rounding.round(op.getRhs(), number));
    }
  }

private:
  /// Null where the product's target keeps it as it is.
  Type numberOf(dmir::MatMulOp op) {
    bool isF32 = llvm::all_of(op->getOperands(), [](Value v) { return elementOf(v).isF32(); });
    const TargetBackend *target = isF32 ? context.responsible(op) : nullptr;
    return target ? target->roundsOperands(op) : Type();
  }

  /// Products with kernels that compute others on the way, and those others.
  llvm::DenseSet<Operation *> computedByOthers() {
    llvm::DenseSet<Operation *> inner;
    getOperation().walk([&](Operation *op) {
      const TargetBackend *target = isa<dmir::MatMulOp>(op) ? context.responsible(op) : nullptr;
      if (!target)
        return;
      SmallVector<Operation *> others = target->computedWith(op);
      inner.insert(others.begin(), others.end());
      if (!others.empty())
        inner.insert(op);
    });
    return inner;
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createRoundProductsPass(const PhaseContext &context) {
  return std::make_unique<RoundProducts>(context);
}
} // namespace dmxc
