//===- AttentionPattern.cpp - what is attention ---------------------------===//

#include "AttentionPattern.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

static bool isPlainF32(Value value) {
  return getElementTypeOrSelf(value.getType()).isF32() && !dmir::layoutOf(value.getType());
}

/// What kernels of attention read: numbers of f32, or of bf16 that are multiplied in f32.
static bool isPlainOperand(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  return (element.isF32() || element.isBF16()) && !dmir::layoutOf(value.getType());
}

/// Whether a cast is made where an operand is read: between f32 and bf16, and of what memory has to f32.
static bool isReadCast(dmir::CastOp cast, bool isOnly) {
  Value from = cast.getInput();
  return isPlainOperand(from) ||
         (isOnly && getElementTypeOrSelf(from.getType()).isF16() && getElementTypeOrSelf(cast.getType()).isF32());
}

/// Whether a product's operand will be a view of memory: what is fused into products are views, and casts to f32, bf16
/// and from them, which `casts` gets.
static bool isOperand(Value value, ArrayRef<Dim> batch, SmallVector<Operation *> &casts) {
  SmallVector<Dim> dims = dmir::dimsOf(value);
  size_t missing = batch.size() + 2 - dims.size();
  for (size_t axis = 0; axis + 2 < dims.size(); ++axis)
    if (!dims[axis].isStatic() && !(dims[axis] == batch[axis + missing]))
      return false; // a stride that depends on whether it is 1
  const size_t before = casts.size();
  auto isHalf = [&] { return casts.size() > before && getElementTypeOrSelf(value.getType()).isF16(); };
  for (; isPlainOperand(value) || (isHalf() && !dmir::layoutOf(value.getType()));
       value = value.getDefiningOp()->getOperand(0)) {
    if (auto cast = value.getDefiningOp<dmir::CastOp>(); cast && isReadCast(cast, casts.size() == before)) {
      casts.push_back(cast);
      continue;
    }
    if (!mlir::isa_and_nonnull<dmir::TransposeOp, dmir::SliceOp, dmir::BroadcastOp>(value.getDefiningOp()))
      // A constant number is part of the kernel and not in memory.
      return !value.getDefiningOp<dmir::ConstantOp>() || !dmir::elementsOf(value.getType()).is(1);
    if (mlir::isa<dmir::BroadcastOp>(value.getDefiningOp()) &&
        !cast<RankedTensorType>(value.getType()).hasStaticShape())
      return false;
  }
  return false;
}

/// Whether a small constant holds zeros alone.
static bool isZero(Value value) {
  std::optional<Tensor> number = dmir::elementsOf(value.getType()).is(1) ? dmir::constantTensor(value) : std::nullopt;
  return number && number->asDouble(0) == 0;
}

/// The test in select(is_nan(w), 0, w), which alone reads w besides the select; null in other selects.
static dmir::IsNaNOp guardTest(Operation *op) {
  auto select = dyn_cast<dmir::SelectOp>(op);
  auto test = select ? select.getCondition().getDefiningOp<dmir::IsNaNOp>() : dmir::IsNaNOp();
  bool guards = test && test.getInput() == select.getOnFalse() && test.getResult().hasOneUse() &&
                test.getInput().hasNUses(2) && isZero(select.getOnTrue());
  return guards ? test : dmir::IsNaNOp();
}

/// Follows a matrix through elementwise ops, and reshapes of its batch axes, back to what a product or softmax made.
/// Null where there is nothing of the kind, or it is read elsewhere too; `path` gets the ops in order. Uses of a
/// `guarded` value are known.
static Operation *findSource(Value value, SmallVector<Operation *> &path, bool guarded = false) {
  constexpr size_t most = 8;
  Operation *op = value.getDefiningOp();
  if (!op || !(guarded || value.hasOneUse()) || !isPlainF32(value))
    return nullptr;
  if (mlir::isa<dmir::MatMulOp, dmir::SoftmaxOp>(op))
    return op;
  bool reshapes = mlir::isa<dmir::ReshapeOp>(op);
  if ((!reshapes && !op->hasTrait<dmir::Elementwise>()) || op->getNumResults() != 1 || path.size() == most)
    return nullptr;
  if (dmir::IsNaNOp test = guardTest(op)) {
    Operation *source = findSource(test.getInput(), path, /*guarded=*/true);
    path.append({test, op});
    return source;
  }
  SmallVector<Dim> dims = dmir::dimsOf(value);
  for (Value operand : op->getOperands()) {
    SmallVector<Dim> own = dmir::dimsOf(operand);
    bool same = reshapes
                    ? own.size() >= 2 && dims.size() >= 2 && ArrayRef(own).take_back(2) == ArrayRef(dims).take_back(2)
                    : own == dims;
    if (Operation *source = same ? findSource(operand, path) : nullptr) {
      path.push_back(op);
      return source;
    }
  }
  return nullptr;
}

static ArrayRef<Dim> batchOf(ArrayRef<Dim> dims) { return dims.drop_back(2); }

/// What is done behind the softmax, where that is no more than rows of zeros: a guard against NaN, or a choice between
/// 0 and the weights that is the same in a whole row. Nothing where each weight has to be computed.
static std::optional<ZeroRows> zeroRowsOf(ArrayRef<Operation *> after) {
  ZeroRows rows;
  for (Operation *op : after) {
    if (mlir::isa<dmir::ReshapeOp>(op))
      continue;
    bool isFirst = !rows.whereNaN && !rows.choice;
    if (mlir::isa<dmir::IsNaNOp>(op) && isFirst) {
      rows.whereNaN = true;
      continue;
    }
    if (rows.whereNaN && guardTest(op))
      continue;
    auto select = dyn_cast<dmir::SelectOp>(op);
    if (!select || !isFirst || !isZero(select.getOnTrue()))
      return std::nullopt;
    SmallVector<Dim> dims = dmir::dimsOf(select.getCondition());
    if (!dims.empty() && !dims.back().is(1))
      return std::nullopt;
    rows.choice = select;
  }
  return rows;
}

double kernels::keptPart(const dmir::Rule &rule, ArrayRef<int64_t> dims) {
  constexpr int64_t rows = 64; // of a block, about
  const int64_t m = dims[dims.size() - 2], columns = dims.back();
  double kept = 0;
  for (int64_t row = 0; row < m; row += rows) {
    SmallVector<dmir::Interval> box(dims.size() - 2, {0, 0});
    box.push_back({row, std::min(row + rows, m) - 1});
    dmir::Run run = dmir::keptColumns(rule, box, columns, {});
    kept += static_cast<double>(box.back().max - row + 1) * static_cast<double>(run.second - run.first);
  }
  return kept / (static_cast<double>(m) * static_cast<double>(columns));
}

/// What of weights without a softmax is not zero, where that is a rule of rows and columns that leaves out enough for
/// blocks of rows, and all sizes are known and are those of heads.
static std::optional<dmir::Rule> keptOf(dmir::MatMulOp scores, dmir::MatMulOp result) {
  constexpr double most = 0.9;
  constexpr int64_t leastKeys = 256, mostDepth = 512;
  std::optional<dmir::Known> known = dmir::knownOf(result.getLhs());
  auto type = cast<RankedTensorType>(result.getLhs().getType());
  auto isDeep = [&](Value value, int64_t fromEnd) {
    auto own = cast<RankedTensorType>(value.getType());
    return !own.hasStaticShape() || own.getDimSize(own.getRank() - fromEnd) > mostDepth || dmir::isConstant(value);
  };
  if (!known || known->value != 0 || known->keep.symbols() || known->keep.cases.empty() || !type.hasStaticShape() ||
      type.getShape().back() < leastKeys || isDeep(scores.getLhs(), 1) || isDeep(scores.getRhs(), 2) ||
      isDeep(result.getRhs(), 1))
    return std::nullopt;
  for (IntegerSet set : known->keep.cases)
    for (AffineExpr expr : set.getConstraints())
      for (int64_t axis = 0; axis + 2 < type.getRank(); ++axis)
        if (expr.isFunctionOfDim(axis))
          return std::nullopt;
  return kernels::keptPart(known->keep, type.getShape()) <= most ? std::optional(known->keep) : std::nullopt;
}

/// An attention by its form alone.
static std::optional<Attention> formOfAttention(Operation *op) {
  Attention found;
  found.result = dyn_cast<dmir::MatMulOp>(op);
  if (!found.result || !isPlainF32(found.result.getResult()))
    return std::nullopt;
  auto cast = found.result.getLhs().getDefiningOp<dmir::CastOp>();
  if (cast && elementOf(cast).isBF16() && cast.getResult().hasOneUse())
    found.rounded = cast;
  Operation *source = findSource(found.weights(), found.after);
  found.softmax = dyn_cast_or_null<dmir::SoftmaxOp>(source);
  found.scores = dyn_cast_or_null<dmir::MatMulOp>(source);
  if (found.scores) {
    found.keep = found.rounded ? std::nullopt : keptOf(found.scores, found.result);
    std::swap(found.before, found.after);
    if (!found.keep)
      return std::nullopt;
  } else {
    if (!found.softmax || found.softmax.getLog() ||
        found.softmax.getAxis() + 1 != dmir::dimsOf(found.softmax.getResult()).size())
      return std::nullopt;
    found.scores = dyn_cast_or_null<dmir::MatMulOp>(findSource(found.softmax.getInput(), found.before));
    if (!found.scores)
      return std::nullopt;
  }
  SmallVector<Dim> weights = dmir::dimsOf(found.weights()), result = dmir::dimsOf(found.result.getResult()),
                   scores = dmir::dimsOf(found.scores.getResult());
  bool filled = llvm::none_of(weights, [](Dim dim) { return dim.is(0); });
  auto isRead = [&](Value value, ArrayRef<Dim> dims) { return isOperand(value, batchOf(dims), found.casts); };
  if (!filled || batchOf(result) != batchOf(weights) || !isRead(found.scores.getLhs(), scores) ||
      !isRead(found.scores.getRhs(), scores) || !isRead(found.result.getRhs(), result))
    return std::nullopt;
  found.zeroRows = zeroRowsOf(found.after);
  return found;
}

// Of products with softmax between, each would take the one before it for its scores: every second one does, from the
// first on, so that none is part of two.
std::optional<Attention> kernels::matchAttention(Operation *op) {
  std::optional<Attention> found = formOfAttention(op);
  bool isTaken = false;
  for (std::optional<Attention> before = found; before && (before = formOfAttention(before->scores));)
    isTaken = !isTaken;
  return isTaken ? std::nullopt : found;
}

SmallVector<Operation *> kernels::innerOpsOf(Operation *result) {
  std::optional<Attention> found = matchAttention(result);
  if (!found)
    return {};
  SmallVector<Operation *> ops{found->scores};
  llvm::append_range(ops, found->before);
  if (found->softmax)
    ops.push_back(found->softmax);
  llvm::append_range(ops, found->after);
  if (found->rounded)
    ops.push_back(found->rounded);
  return ops;
}
