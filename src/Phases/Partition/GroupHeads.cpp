//===- GroupHeads.cpp - products by what heads share ----------------------===//
//
// Models of grouped heads repeat keys and values for each head of a group, and the older of them scale the keys, before
// the products. A kernel that multiplies a group's heads by what they share needs none of the copies.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_GROUPHEADS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// A right operand that repeats each matrix of a batch, and what is done to the matrices on the way to the product.
struct Repeat {
  dmir::BroadcastOp broadcast;  ///< [.., heads, 1, r, c] to [.., heads, group, r, c]
  SmallVector<Operation *> ops; ///< behind it, from the product on: transposes, casts and products by a number

  SmallVector<Dim> batch() { return llvm::to_vector(ArrayRef(dmir::dimsOf(broadcast.getResult())).drop_back(2)); }
};

bool exchangesLast(dmir::TransposeOp op) {
  ArrayRef<int64_t> order = op.getPermutation();
  for (size_t i = 0; i + 2 < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i))
      return false;
  return true;
}

/// The number of a product of a tensor by one; null in other ops.
Value factorOf(Operation *op) {
  auto mul = dyn_cast<dmir::MulOp>(op);
  return mul && dmir::elementsOf(mul.getRhs().getType()).is(1) &&
                 dmir::dimsOf(mul.getLhs()) == dmir::dimsOf(op->getResult(0))
             ? mul.getRhs()
             : Value();
}

bool repeatsMatrices(dmir::BroadcastOp op) {
  SmallVector<Dim> own = dmir::dimsOf(op.getInput()), wide = dmir::dimsOf(op.getResult());
  if (own.size() != wide.size() || own.size() < 4)
    return false;
  size_t group = own.size() - 3;
  std::optional<int64_t> heads = wide[group].known();
  bool repeats = own[group].is(1) && heads && *heads > 1;
  own[group] = wide[group];
  return repeats && own == wide;
}

std::optional<Repeat> repeatOf(Value value) {
  Repeat found;
  for (Operation *op; (op = value.getDefiningOp()); value = op->getOperand(0)) {
    if (auto broadcast = dyn_cast<dmir::BroadcastOp>(op); broadcast && repeatsMatrices(broadcast)) {
      found.broadcast = broadcast;
      return found;
    }
    if (auto reshape = dyn_cast<dmir::ReshapeOp>(op)) {
      SmallVector<Dim> from = dmir::dimsOf(reshape.getInput()), to = dmir::dimsOf(reshape.getResult());
      if (from.size() < 2 || to.size() < 2 || ArrayRef(from).take_back(2) != ArrayRef(to).take_back(2))
        return std::nullopt;
      continue;
    }
    auto transpose = dyn_cast<dmir::TransposeOp>(op);
    if (!(transpose && exchangesLast(transpose)) && !isa<dmir::CastOp>(op) && !factorOf(op))
      return std::nullopt;
    found.ops.push_back(op);
  }
  return std::nullopt;
}

class Regrouping {
public:
  explicit Regrouping(dmir::MatMulOp product, Repeat repeat)
      : b(product), loc(product.getLoc()), product(product), repeat(std::move(repeat)), batch(this->repeat.batch()) {}

  bool run() {
    SmallVector<Dim> left = dmir::dimsOf(product.getLhs()), whole = dmir::dimsOf(product.getResult());
    // One left matrix for all would be another thing.
    if (left.size() != whole.size() || ArrayRef(left).drop_back(2) != ArrayRef(whole).drop_back(2) ||
        dmir::product(ArrayRef(left).drop_back(2)) != dmir::product(batch))
      return false;
    lhs = product.getLhs();
    Value right = asItLies(repeat.broadcast.getInput());
    for (Operation *op : llvm::reverse(repeat.ops))
      right = again(op, right);
    lhs = grouped(lhs);
    SmallVector<Dim> result(batch);
    llvm::append_range(result, ArrayRef(whole).take_back(2));
    Type element = elementOf(product.getResult());
    Value made = dmir::MatMulOp::create(b, loc, dmir::tensorOf(result, element), lhs, right);
    product.getResult().replaceAllUsesWith(dmir::ReshapeOp::create(b, loc, product.getType(), made));
    product.erase();
    return true;
  }

private:
  /// slice(x) with an axis of 1 more, as a slice of x with that: kernels take slices as they lie, and reshapes of
  /// buffers alone. Of a cast it is made of what is cast.
  Value asItLies(Value value) {
    auto reshape = value.getDefiningOp<dmir::ReshapeOp>();
    auto cast = reshape ? reshape.getInput().getDefiningOp<dmir::CastOp>() : dmir::CastOp();
    Value viewed = cast ? cast.getInput() : reshape ? reshape.getInput() : Value();
    auto slice = viewed ? viewed.getDefiningOp<dmir::SliceOp>() : dmir::SliceOp();
    if (!slice)
      return value;
    size_t group = batch.size() - 1;
    SmallVector<Dim> dims = dmir::dimsOf(slice.getInput()), dynamic;
    auto with = [&](auto list, auto one) {
      list.insert(list.begin() + static_cast<ptrdiff_t>(group), one);
      return list;
    };
    SmallVector<Dim> sizes = with(slice.getSizeDims(), Dim(1)), starts = with(slice.getStartDims(), Dim(0));
    if (sizes != dmir::dimsOf(value))
      return value;
    Value whole =
        dmir::ReshapeOp::create(b, loc, dmir::tensorOf(with(dims, Dim(1)), elementOf(slice)), slice.getInput());
    SmallVector<int64_t> from = dmir::splitDims(starts, dynamic), count = dmir::splitDims(sizes, dynamic),
                         steps = with(llvm::to_vector(slice.getSteps()), int64_t(1));
    Value part = dmir::SliceOp::create(b, slice.getLoc(), dmir::tensorOf(sizes, elementOf(slice)), whole, from, count,
                                       steps, dmir::dimsAttr(b.getContext(), dynamic));
    return cast ? dmir::CastOp::create(b, cast.getLoc(), value.getType(), part).getResult() : part;
  }

  Value grouped(Value value) {
    SmallVector<Dim> dims(batch);
    llvm::append_range(dims, ArrayRef(dmir::dimsOf(value)).take_back(2));
    return dmir::ReshapeOp::create(b, loc, dmir::tensorOf(dims, elementOf(value)), value);
  }

  /// What an op does, of what is not repeated. A number scales the left operand, which is smaller than a cache.
  Value again(Operation *op, Value value) {
    if (Value factor = factorOf(op); factor && elementOf(factor) == elementOf(lhs)) {
      lhs = dmir::MulOp::create(b, op->getLoc(), lhs, factor);
      return value;
    }
    SmallVector<Dim> dims = dmir::dimsOf(value);
    if (auto transpose = dyn_cast<dmir::TransposeOp>(op)) {
      SmallVector<int64_t> order(dims.size());
      std::iota(order.begin(), order.end(), 0);
      ArrayRef<int64_t> own = transpose.getPermutation();
      if (own.back() + 1 != static_cast<int64_t>(own.size()))
        std::swap(order[order.size() - 2], order.back());
      return dmir::TransposeOp::create(b, op->getLoc(), value, order);
    }
    Operation *copy = b.clone(*op);
    copy->setOperand(0, value);
    copy->getResult(0).setType(dmir::tensorOf(dims, elementOf(op->getResult(0))));
    return copy->getResult(0);
  }

  OpBuilder b;
  Location loc;
  dmir::MatMulOp product;
  Repeat repeat;
  SmallVector<Dim> batch;
  Value lhs;
};

/// Erases what nothing reads any more, from `value` up.
void eraseUnused(Value value) {
  for (Operation *op = value.getDefiningOp(); op && op->use_empty();) {
    Operation *next = op->getNumOperands() ? op->getOperand(0).getDefiningOp() : nullptr;
    op->erase();
    op = next;
  }
}

/// Whether a value is an input of the function with rows behind it, or a slice of a state that has such.
bool isCache(Value value) {
  if (auto cast = value.getDefiningOp<dmir::CastOp>())
    value = cast.getInput();
  if (auto slice = value.getDefiningOp<dmir::SliceOp>())
    value = slice.getInput();
  auto concat = value.getDefiningOp<dmir::ConcatOp>();
  if (!concat)
    return false;
  Value first = concat.getInputs().front();
  if (auto before = first.getDefiningOp<dmir::SliceOp>())
    first = before.getInput();
  return isa<BlockArgument>(first);
}

/// x . (c s) = (x s) . c of a cache c and a number s: scaled, the cache would be written again.
void scaleLeft(dmir::MatMulOp product) {
  SmallVector<dmir::TransposeOp> turns;
  SmallVector<Value> factors;
  Value right = product.getRhs(), cache = right;
  for (Operation *op; (op = cache.getDefiningOp()); cache = op->getOperand(0)) {
    if (Value factor = factorOf(op); factor && elementOf(factor) == elementOf(product.getLhs()))
      factors.push_back(factor);
    else if (auto transpose = dyn_cast<dmir::TransposeOp>(op))
      turns.push_back(transpose);
    else
      break;
  }
  if (factors.empty() || !isCache(cache))
    return;
  OpBuilder b(product);
  Value left = product.getLhs();
  for (Value factor : factors)
    left = dmir::MulOp::create(b, product.getLoc(), left, factor);
  for (dmir::TransposeOp turn : llvm::reverse(turns))
    cache = dmir::TransposeOp::create(b, turn.getLoc(), cache, turn.getPermutation());
  product->setOperands({left, cache});
  eraseUnused(right);
}

struct GroupHeads : dmxc::impl::GroupHeadsBase<GroupHeads> {
  explicit GroupHeads(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    SmallVector<dmir::MatMulOp> products(getOperation().getOps<dmir::MatMulOp>());
    for (dmir::MatMulOp product : products) {
      const TargetBackend *target = context.responsible(product);
      if (!target || !target->groupsHeads())
        continue;
      Value right = product.getRhs();
      std::optional<Repeat> repeat = repeatOf(right);
      if (repeat && Regrouping(product, std::move(*repeat)).run())
        eraseUnused(right);
      else if (!repeat)
        scaleLeft(product);
    }
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createGroupHeadsPass(const PhaseContext &context) {
  return std::make_unique<GroupHeads>(context);
}
} // namespace dmxc
