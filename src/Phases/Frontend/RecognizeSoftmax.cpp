//===- RecognizeSoftmax.cpp - softmax that is spelt out, or along columns -===//
//
// What finds masks and attention looks for one op along the last axis, between two products. Graphs have exp(x - max)
// over its sum, with or without the maximum taken off, and scores with the keys in front of the queries, whose weights
// are transposed or stand on the right of the second product.
//
//===----------------------------------------------------------------------===//
#include "Formulas.h"
#include "Quantised.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numeric>

namespace dmxc {
#define GEN_PASS_DEF_RECOGNIZESOFTMAX
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

using Axes = SmallVector<int64_t>;

int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

//===--- Formulas ------------------------------------------------------------------===//

/// Whether every reader of a value is one of `readers`.
bool isReadOnlyBy(Value value, ArrayRef<Operation *> readers) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) { return llvm::is_contained(readers, user); });
}

/// The reduction that a value is of `x`, over one axis that stands as 1 where the value meets x again.
dmir::ReduceOp reductionBeside(Value value, Value x, dmir::Reduction kind) {
  SmallVector<Dim> kept = dmir::dimsOf(x), dims = dmir::dimsOf(value);
  if (auto broadcast = value.getDefiningOp<dmir::BroadcastOp>())
    dims = dmir::dimsOf(value = broadcast.getInput());
  auto reduce = withoutOnes(value).getDefiningOp<dmir::ReduceOp>();
  if (!reduce || reduce.getKind() != kind || reduce.getAxes().size() != 1 || dims.size() > kept.size() ||
      !isSameFormula(reduce.getInput(), x))
    return {};
  kept[reduce.getAxes()[0]] = 1;
  dims.insert(dims.begin(), kept.size() - dims.size(), Dim(1)); // as operands broadcast
  return dims == kept ? reduce : dmir::ReduceOp();
}

/// What a value divides by, where it is one over something.
Value underOne(Value value) {
  if (auto inverse = value.getDefiningOp<dmir::ReciprocalOp>())
    return inverse.getInput();
  auto div = value.getDefiningOp<dmir::DivOp>();
  return div && quantised::evaluateNumber(div.getLhs()) == 1.0 ? div.getRhs() : Value();
}

struct Spelt {
  Value input;
  int64_t axis = 0;
};

/// exp(x) over the sum of it along an axis, which reads nothing else of it. A maximum along that axis that is taken off
/// x changes no weight, and is taken off again inside of the op.
std::optional<Spelt> matchQuotient(Operation *op, Value powers, Value sum) {
  auto exp = powers.getDefiningOp<dmir::ExpOp>();
  dmir::ReduceOp total = exp ? reductionBeside(sum, powers, dmir::Reduction::sum) : dmir::ReduceOp();
  if (!total || !isa<FloatType>(elementOf(powers)) || powers.getType() != op->getResult(0).getType() ||
      !isReadOnlyBy(powers, {op, total}) || !isReadOnlyBy(total.getInput(), {op, total}) || !total->hasOneUse())
    return std::nullopt;
  const int64_t axis = total.getAxes()[0];
  Value input = exp.getInput();
  if (auto sub = input.getDefiningOp<dmir::SubOp>(); sub && sub.getLhs().getType() == input.getType())
    if (dmir::ReduceOp most = reductionBeside(sub.getRhs(), sub.getLhs(), dmir::Reduction::max);
        most && most.getAxes()[0] == axis)
      input = sub.getLhs();
  return Spelt{input, axis};
}

std::optional<Spelt> matchSoftmax(Operation *op) {
  if (isa<dmir::DivOp>(op))
    return matchQuotient(op, op->getOperand(0), op->getOperand(1));
  for (unsigned i = 0; isa<dmir::MulOp>(op) && i < 2; ++i)
    if (Value sum = underOne(op->getOperand(1 - i)))
      if (std::optional<Spelt> found = matchQuotient(op, op->getOperand(i), sum))
        return found;
  return std::nullopt;
}

//===--- Turned scores -------------------------------------------------------------===//

Axes identity(int64_t rank) {
  Axes axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}
Axes exchangingLast(int64_t rank) {
  Axes axes = identity(rank);
  std::swap(axes[rank - 1], axes[rank - 2]);
  return axes;
}
/// What transposing by `first` and then by `then` is.
Axes after(ArrayRef<int64_t> first, ArrayRef<int64_t> then) {
  return llvm::map_to_vector(then, [&](int64_t axis) { return first[axis]; });
}
Axes inverse(ArrayRef<int64_t> axes) {
  Axes back(axes.size());
  for (auto [to, from] : llvm::enumerate(axes))
    back[from] = to;
  return back;
}

Value transposed(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> axes) {
  if (llvm::is_sorted(axes))
    return value;
  SmallVector<Dim> from = dmir::dimsOf(value), to;
  for (int64_t axis : axes)
    to.push_back(from[axis]);
  return dmir::TransposeOp::create(b, loc, dmir::tensorOf(to, elementOf(value)), value, axes);
}
/// Matrices turned, whatever is in front of them.
Value turned(OpBuilder &b, Location loc, Value value) {
  return transposed(b, loc, value, exchangingLast(rankOf(value)));
}

/// Weights between two products whose axes other ops have moved: from the product of the scores through ops of one
/// element, a softmax and transposes to the product that reads the weights.
class TurnedScores {
public:
  explicit TurnedScores(dmir::SoftmaxOp softmax) : softmax(softmax) {}

  /// Whether there are such, which then become weights with queries as rows and keys as columns.
  bool match() {
    constexpr int64_t mostRank = 6;
    const int64_t rank = rankOf(softmax.getResult());
    if (softmax.getLog() || rank < 2 || rank > mostRank)
      return false;
    scores = findProduct(softmax.getInput());
    if (!scores || rankOf(scores.getResult()) != rank || isOfWeights(scores))
      return false;
    Axes order = identity(rank); // of the scores as they are there, in those of the product
    for (OpOperand *step : steps)
      if (auto transpose = dyn_cast<dmir::TransposeOp>(step->getOwner()))
        order = after(order, transpose.getPermutation());
    const int64_t axis = order[softmax.getAxis()];
    if (axis + 2 < rank)
      return false;
    exchanges = axis == rank - 2;
    weights = exchanges ? after(exchangingLast(rank), order) : order;
    return findReader(weights) && !isCanonical(order);
  }

  void rewrite() {
    OpBuilder b(softmax);
    Location loc = softmax.getLoc();
    Value value = scores.getResult();
    Axes order = identity(rankOf(value));
    if (exchanges) {
      Value keys = turned(b, scores.getLoc(), scores.getRhs()), queries = turned(b, scores.getLoc(), scores.getLhs());
      SmallVector<Dim> dims = dmir::dimsOf(value);
      std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
      auto type = dmir::tensorOf(dims, elementOf(value));
      value = dmir::MatMulOp::create(b, scores.getLoc(), type, keys, queries);
      order = exchangingLast(rankOf(value));
    }
    for (OpOperand *step : steps)
      if (auto transpose = dyn_cast<dmir::TransposeOp>(step->getOwner()))
        order = after(order, transpose.getPermutation());
      else
        value = again(b, *step, value, order);
    Value result = dmir::SoftmaxOp::create(b, loc, value, rankOf(value) - 1, false);
    setReader(result);
  }

private:
  /// The product behind a value that nothing else reads, through ops of one element and transposes, which are steps in
  /// order. Null where there is none.
  dmir::MatMulOp findProduct(Value value) {
    constexpr size_t most = 8;
    Operation *op = value.getDefiningOp();
    if (!op || !value.hasOneUse() || op->getNumResults() != 1 || depth >= most)
      return {};
    if (auto product = dyn_cast<dmir::MatMulOp>(op))
      return product;
    const bool moves = isa<dmir::TransposeOp>(op);
    if (!moves && (!op->hasTrait<dmir::Elementwise>() || isa<dmir::MaskOp>(op)))
      return {};
    ++depth;
    for (OpOperand &operand : op->getOpOperands())
      if (moves || dmir::dimsOf(operand.get()) == dmir::dimsOf(value))
        if (dmir::MatMulOp product = findProduct(operand.get())) {
          steps.push_back(&operand);
          --depth;
          return product;
        }
    --depth;
    return {};
  }

  /// Whether the graph alone brings an operand: it is packed for the side on which it stands.
  static bool isOfWeights(dmir::MatMulOp product) {
    return llvm::any_of(product->getOperands(), [](Value value) { return quantised::isConstantExpression(value); });
  }

  /// Finds the product that alone reads the weights, as queries by keys on its left or as keys by queries on its right.
  bool findReader(Axes order) {
    Value value = softmax.getResult();
    while (value.hasOneUse()) {
      reader = &*value.use_begin();
      if (auto transpose = dyn_cast<dmir::TransposeOp>(reader->getOwner())) {
        order = after(order, transpose.getPermutation());
        value = transpose.getResult();
        continue;
      }
      if (!isa<dmir::MatMulOp>(reader->getOwner()))
        return false;
      isOnLeft = reader->getOperandNumber() == 0;
      return llvm::is_sorted(isOnLeft ? order : after(exchangingLast(order.size()), order));
    }
    return false;
  }

  bool isCanonical(ArrayRef<int64_t> order) {
    return !exchanges && isOnLeft && llvm::is_sorted(order) && reader->get() == softmax.getResult() &&
           llvm::none_of(steps, [](OpOperand *step) { return isa<dmir::TransposeOp>(step->getOwner()); });
  }

  /// A step's op of scores whose axes are those of the product again; `order` is how they were.
  static Value again(OpBuilder &b, OpOperand &step, Value value, ArrayRef<int64_t> order) {
    Operation *op = step.getOwner();
    Axes back = inverse(order);
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      Value other = operand.get();
      if (&operand == &step) {
        operands.push_back(value);
        continue;
      }
      SmallVector<Dim> dims = dmir::dimsOf(other);
      if (!dims.empty() && dims.size() < order.size() && !llvm::is_sorted(order)) {
        dims.insert(dims.begin(), order.size() - dims.size(), Dim(1));
        other = dmir::ReshapeOp::create(b, op->getLoc(), dmir::tensorOf(dims, elementOf(other)), other);
      }
      operands.push_back(dims.empty() ? other : transposed(b, op->getLoc(), other, back));
    }
    Operation *copy = b.clone(*op);
    copy->setOperands(operands);
    copy->getResult(0).setType(dmir::tensorOf(dmir::dimsOf(value), elementOf(op->getResult(0))));
    return copy->getResult(0);
  }

  /// The old weights go with what reads them.
  void setReader(Value result) {
    auto product = cast<dmir::MatMulOp>(reader->getOwner());
    if (isOnLeft) {
      Operation *old = reader->get().getDefiningOp();
      reader->set(result);
      return eraseUnused(old);
    }
    OpBuilder b(product);
    Location loc = product.getLoc();
    SmallVector<Dim> dims = dmir::dimsOf(product.getResult());
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    auto type = dmir::tensorOf(dims, elementOf(product.getResult()));
    Value values = turned(b, loc, product.getLhs());
    replaceBy(product, turned(b, loc, dmir::MatMulOp::create(b, loc, type, result, values)));
  }

  dmir::SoftmaxOp softmax;
  dmir::MatMulOp scores;
  SmallVector<OpOperand *> steps; ///< which operand of each op the scores are, from the product on
  size_t depth = 0;
  Axes weights;           ///< how the softmax has the axes of the new one
  bool exchanges = false; ///< the product has keys as rows
  OpOperand *reader = nullptr;
  bool isOnLeft = false;
};

//===--- Pass ----------------------------------------------------------------------===//

struct RecognizeSoftmax : dmxc::impl::RecognizeSoftmaxBase<RecognizeSoftmax> {
  explicit RecognizeSoftmax(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (std::optional<Spelt> spelt = op->getNumResults() == 1 ? matchSoftmax(op) : std::nullopt)
        replace(op, *spelt);
    });
    SmallVector<dmir::SoftmaxOp> all;
    getOperation()->walk([&](dmir::SoftmaxOp softmax) { all.push_back(softmax); });
    for (dmir::SoftmaxOp softmax : all)
      if (TurnedScores scores(softmax); scores.match())
        scores.rewrite();
  }

private:
  /// Unless the target that computes the formula lacks the function.
  void replace(Operation *op, const Spelt &spelt) {
    OpBuilder b(op);
    const TargetBackend *target = context.responsible(op);
    auto softmax = dmir::SoftmaxOp::create(b, op->getLoc(), spelt.input, spelt.axis, false);
    if ((target && context.refusal(*target, softmax)) || isPlacedApart(context, op, softmax))
      return softmax->erase();
    replaceBy(op, softmax.getResult());
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createRecognizeSoftmaxPass(const PhaseContext &context) {
  return std::make_unique<RecognizeSoftmax>(context);
}
} // namespace dmxc
