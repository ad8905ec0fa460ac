//===- Attention.cpp - regions of attention -----------------------------------===//
//
// A block of rows of Q at a time: their scores go to scratch, masked and scaled on the way; the softmax is taken there,
// but for the division, which the second product's epilogue does, as a rule for fewer elements; then the block of the
// result. The matrix of scores is never in memory as a whole.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "GemmTile.h"
#include "MatmulProduct.h"
#include "MatmulRegion.h"
#include "targets/common/math/VectorMath.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// The pattern
//===----------------------------------------------------------------------===//

static bool isPlainF32(Value value) {
  return getElementTypeOrSelf(value.getType()).isF32() && !dmir::layoutOf(value.getType());
}

/// Whether a product's operand will be a view of memory: what is fused into products are views.
static bool isOperand(Value value, ArrayRef<Dim> batch) {
  SmallVector<Dim> dims = dmir::dimsOf(value);
  size_t missing = batch.size() + 2 - dims.size();
  for (size_t axis = 0; axis + 2 < dims.size(); ++axis)
    if (!dims[axis].isStatic() && !(dims[axis] == batch[axis + missing]))
      return false; // a stride that depends on whether it is 1
  for (; isPlainF32(value); value = value.getDefiningOp()->getOperand(0)) {
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

std::optional<Attention> dmxc::cpu::matchAttention(Operation *op) {
  Attention found;
  found.result = dyn_cast<dmir::MatMulOp>(op);
  if (!found.result || !isPlainF32(found.result.getResult()))
    return std::nullopt;
  found.softmax = dyn_cast_or_null<dmir::SoftmaxOp>(findSource(found.result.getLhs(), found.after));
  if (!found.softmax || found.softmax.getLog() ||
      found.softmax.getAxis() + 1 != dmir::dimsOf(found.softmax.getResult()).size())
    return std::nullopt;
  found.scores = dyn_cast_or_null<dmir::MatMulOp>(findSource(found.softmax.getInput(), found.before));
  if (!found.scores)
    return std::nullopt;
  SmallVector<Dim> weights = dmir::dimsOf(found.result.getLhs()), result = dmir::dimsOf(found.result.getResult()),
                   scores = dmir::dimsOf(found.scores.getResult());
  bool filled = llvm::none_of(weights, [](Dim dim) { return dim.is(0); });
  if (!filled || batchOf(result) != batchOf(weights) || !isOperand(found.scores.getLhs(), batchOf(scores)) ||
      !isOperand(found.scores.getRhs(), batchOf(scores)) || !isOperand(found.result.getRhs(), batchOf(result)))
    return std::nullopt;
  found.zeroRows = zeroRowsOf(found.after);
  return found;
}

SmallVector<Operation *> dmxc::cpu::innerOpsOf(Operation *result) {
  std::optional<Attention> found = matchAttention(result);
  if (!found)
    return {};
  SmallVector<Operation *> ops{found->scores};
  llvm::append_range(ops, found->before);
  ops.push_back(found->softmax);
  llvm::append_range(ops, found->after);
  return ops;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

namespace {

/// Everything about it that does not depend on the level.
struct Details {
  RegionBody body;
  mutable Attention attention; ///< handles, whose accessors are not const
  MatmulProduct scores, result;
  int64_t rows = 0;     ///< of a block
  bool uniform = false; ///< all blocks have as many

  Details(const RegionBody &body, const Attention &attention)
      : body(body), attention(attention), scores(attention.scores, heavyEpilogue(attention.before), false),
        result(attention.result, heavyEpilogue(epilogue()), false) {}
  /// The ops that read the result.
  SmallVector<Operation *> epilogue() const;
  GemmSpec specOf(const MatmulProduct &product) const;
  /// Of a row of scores in scratch, in elements: room for whole tiles, and an odd number of cache lines, so that rows
  /// do not share a set.
  Dim stride() const { return Dim::ceilDiv(result.k, 64) * 64 + 16; }
  Dim blocks() const { return Dim::ceilDiv(result.m, rows); }
  void chooseRows();
};

SmallVector<Operation *> Details::epilogue() const {
  SmallVector<Operation *> ops, inner = innerOpsOf(attention.result);
  for (Operation &op : *body.block)
    if (!llvm::is_contained(inner, &op))
      ops.push_back(&op);
  return ops;
}

GemmSpec Details::specOf(const MatmulProduct &product) const {
  GemmSpec spec = product.spec(body.block->getParentOp()->getContext());
  spec.batch = 1;
  spec.m = uniform ? rows : kDynamic;
  spec.nested = true;
  return spec;
}

/// Blocks whose scores fit the second-level cache; some for a few threads to share. Each block copies K and V.
void Details::chooseRows() {
  constexpr int64_t fewest = 16, items = 8;
  int64_t m = std::max<int64_t>(1, nominal(body.block, result.m)), t = nominal(body.block, result.k);
  int64_t most = std::max(fewest, IsaLevel::nominal().caches.scores / (4 * std::max<int64_t>(t, 1)));
  int64_t blocks = ceilDivInt(m, most), batch = std::max<int64_t>(1, nominal(body.block, result.batch));
  blocks = std::max(blocks, std::min(ceilDivInt(items, batch), std::max<int64_t>(1, m / fewest)));
  rows = ceilDivInt(m, blocks);
  std::optional<int64_t> known = result.m.known();
  uniform = known && *known % rows == 0;
}

int64_t gemmBytes(const Details &d, const IsaLevel &level) {
  GemmSpec scores = d.specOf(d.scores), result = d.specOf(d.result);
  return std::max(gemmScratchBytes(scores, chooseGemmTiles(scores, level)),
                  gemmScratchBytes(result, chooseGemmTiles(result, level)));
}

class AttentionEmitter {
public:
  AttentionEmitter(CpuBuilder &b, const Details &details)
      : b(b), d(details), e(b, d.body.block), writer(e, d.body), f32(b.getF32Type()) {
    Value scratch = b.elementPtr(b.getI8Type(), b.scratch(), b.idx(gemmBytes(d, b.isa())));
    inverses = scratch;
    table = b.elementPtr(f32, scratch, b.idx(ceilDivInt(d.rows, 16) * 16));
    stride = b.idx(d.stride());
  }

  void emit();

private:
  void emitScores();
  void emitSoftmax(Value row);
  Value clearRow(Value row, Value total, Value inverse);
  void finishWeights(Value row, Value inverse);
  void emitResult();
  Value foldRow(Value row, double first, llvm::function_ref<Value(Value at, Value inside, Value sum)> step,
                llvm::function_ref<Value(Value, Value)> combine);
  GemmCallbacks storing(const std::function<void(Value row, Index column, Value sums)> &use);
  Indices indexOf(Value tensor, Value row, Index column);
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value max(Value x, Value y) {
    // A NaN is not seen here, but by the sum.
    return arith::SelectOp::create(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, y), x, y);
  }

  CpuBuilder &b;
  const Details &d;
  ElementExpr e;
  ResultWriter writer;
  Type f32;
  Value table, inverses;    ///< scratch: scores of the block; inverses of the sums of its rows
  Value stride;             ///< of a row of the table
  Value batch, first, rows; ///< the block
};

void AttentionEmitter::emit() {
  Value begin = b.begin(), end = b.end(), blocks = b.idx(d.blocks()), m = b.idx(d.result.m);
  b.forLoop(begin, end, b.idx(1), [&](Value item) {
    batch = b.floorDiv(item, blocks);
    first = b.mulC(b.rem(item, blocks), d.rows);
    rows = d.uniform ? b.idx(d.rows) : b.minS(b.idx(d.rows), b.sub(m, first));
    emitScores();
    b.forLoop(b.idx(0), rows, b.idx(1), [&](Value row) { emitSoftmax(row); });
    emitResult();
  });
}

/// The index of an element of a tensor of the scores' or the result's shape, in the present batch item.
Indices AttentionEmitter::indexOf(Value tensor, Value row, Index column) {
  SmallVector<Dim> dims = dmir::dimsOf(tensor);
  dims.truncate(dims.size() - 2);
  Indices index(dims.size(), e.at(0));
  Index rest = e.at(batch);
  for (size_t axis = dims.size(); axis-- > 1;)
    std::tie(rest, index[axis]) = e.divRem(rest, dims[axis].isStatic() ? dims[axis] : Dim::max(dims[axis], 1));
  if (!dims.empty())
    index[0] = rest;
  index.push_back(e.at(b.add(first, row)));
  index.push_back(column);
  return index;
}

/// Calls `use` with the sums of a product as they are stored, in their lanes, and the place of their columns.
GemmCallbacks AttentionEmitter::storing(const std::function<void(Value row, Index column, Value sums)> &use) {
  GemmCallbacks callbacks;
  callbacks.store = [this, use](Value, Value row, Value column, Value sums, Value mask) {
    auto vector = dyn_cast<VectorType>(sums.getType());
    int64_t lanes = vector ? vector.getNumElements() : 1;
    ElementExpr::Lanes scope(e, lanes, mask);
    e.forget();
    use(row, e.at(column, lanes, lanes > 1), sums);
  };
  return callbacks;
}

/// A matrix of this batch item, from a row on.
static GemmMatrix within(CpuBuilder &b, GemmMatrix matrix, Value batch, Value row) {
  Value offset = matrix.offset(batch);
  if (row)
    offset = b.add(offset, b.mul(row, matrix.rowStride));
  matrix.offset = [offset](Value) { return offset; };
  return matrix;
}

void AttentionEmitter::emitScores() {
  GemmSpec spec = d.specOf(d.scores);
  GemmTiles tiles = chooseGemmTiles(spec, b.isa());
  GemmCallbacks callbacks = storing([this](Value row, Index column, Value sums) {
    e.bindValue(d.scores.op.getResult(), sums);
    Value input = d.attention.softmax.getInput(), score = e.evaluate(input, indexOf(input, row, column));
    // Whole vectors: the table's rows have room, and what is beyond them is not read.
    b.store(score, table, b.add(b.mul(row, stride), column.base));
  });
  GemmMatrix q = within(b, d.scores.left(b), batch, first), k = within(b, d.scores.right(b), batch, {});
  emitGemm(b, spec, tiles, q, k, callbacks, {b.idx(1), rows, b.idx(d.scores.n), b.idx(d.scores.k)});
  e.unbind(d.scores.op.getResult());
}

/// Combines a row of the table, a vector at a time; `inside` tells the lanes of the last vector that are in the row,
/// null for all.
Value AttentionEmitter::foldRow(Value row, double start, llvm::function_ref<Value(Value, Value, Value)> step,
                                llvm::function_ref<Value(Value, Value)> combine) {
  int64_t lanes = b.isa().lanes(32);
  Value count = b.idx(d.result.k), whole = b.mulC(b.floorDiv(count, b.idx(lanes)), lanes), base = b.mul(row, stride);
  auto loop = [&](Value from, Value to, Value sum, bool partial) {
    return b.forLoop(from, to, b.idx(lanes), sum, [&](Value at, ValueRange sums) -> SmallVector<Value> {
      Value inside = partial ? b.headMask(lanes, b.sub(count, at)) : Value();
      return {step(b.add(base, at), inside, sums[0])};
    })[0];
  };
  Value sum = loop(b.idx(0), whole, b.constant(b.laneType(f32, lanes), start), false);
  std::optional<int64_t> known = d.result.k.known();
  if (lanes > 1 && (!known || *known % lanes))
    sum = loop(whole, count, sum, true);
  return lanes > 1 ? combineLanes(b, sum, combine) : sum;
}

void AttentionEmitter::emitSoftmax(Value row) {
  int64_t lanes = b.isa().lanes(32);
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  Type type = b.laneType(f32, lanes);
  VectorMath math(b, b.isa());
  auto read = [&](Value at) { return b.load(f32, table, at, lanes); };
  Value highest = foldRow(
      row, lowest,
      [&](Value at, Value inside, Value sum) {
        Value x = read(at);
        return max(inside ? arith::SelectOp::create(b, inside, x, b.constant(type, lowest)) : x, sum);
      },
      [&](Value x, Value y) { return max(x, y); });
  Value spread = b.splat(highest, lanes);
  Value total = foldRow(
      row, 0,
      [&](Value at, Value inside, Value sum) {
        Value power = math.exp(arith::SubFOp::create(b, read(at), spread));
        if (inside)
          power = arith::SelectOp::create(b, inside, power, b.constant(type, 0));
        b.store(power, table, at);
        return add(sum, power);
      },
      [&](Value x, Value y) { return add(x, y); });
  // At least 1, or NaN; 0 where there are no keys, and the result is to be zeros.
  Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, b.constant(f32, 0));
  total = arith::SelectOp::create(b, none, b.constant(f32, 1), total);
  Value inverse = arith::DivFOp::create(b, b.constant(f32, 1), total);
  if (d.attention.zeroRows) {
    inverse = clearRow(row, total, inverse);
  } else {
    finishWeights(row, b.splat(inverse, lanes));
    inverse = b.constant(f32, 1);
  }
  b.store(inverse, inverses, row);
}

/// The inverse of a row's sum, or 0 where its result is to be zeros. A weight is NaN where the sum is: a row's weights
/// are all NaN or none is.
Value AttentionEmitter::clearRow(Value row, Value total, Value inverse) {
  const ZeroRows &rows = *d.attention.zeroRows;
  if (!rows)
    return inverse;
  Value clear;
  if (rows.whereNaN) {
    clear = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, total, total);
  } else {
    dmir::SelectOp select = rows.choice;
    SmallVector<Dim> own = dmir::dimsOf(select.getCondition()), whole = dmir::dimsOf(select.getResult());
    e.forget();
    clear =
        e.evaluate(select.getCondition(), broadcastIndices(e, indexOf(select.getResult(), row, e.at(0)), own, whole));
  }
  return arith::SelectOp::create(b, clear, b.constant(f32, 0), inverse);
}

/// Divides the weights of a row and does with them what comes behind the softmax.
void AttentionEmitter::finishWeights(Value row, Value inverse) {
  int64_t lanes = b.isa().lanes(32);
  Value count = b.idx(d.result.k), softmax = d.attention.softmax.getResult(), weights = d.attention.result.getLhs();
  b.forLoop(b.idx(0), count, b.idx(lanes), [&](Value column) {
    Value at = b.add(b.mul(row, stride), column);
    // Lanes beyond the row are written, and not read.
    ElementExpr::Lanes scope(e, lanes, lanes > 1 ? b.headMask(lanes, b.sub(count, column)) : Value());
    e.forget();
    e.bindValue(softmax, arith::MulFOp::create(b, b.load(f32, table, at, lanes), inverse));
    b.store(e.evaluate(weights, indexOf(weights, row, e.at(column, lanes, lanes > 1))), table, at);
  });
  e.unbind(softmax);
}

void AttentionEmitter::emitResult() {
  GemmSpec spec = d.specOf(d.result);
  GemmTiles tiles = chooseGemmTiles(spec, b.isa());
  GemmCallbacks callbacks = storing([this](Value row, Index column, Value sums) {
    Value result = d.result.op.getResult(), inverse = b.splat(b.load(f32, inverses, row), e.lanes());
    Value value = arith::MulFOp::create(b, sums, inverse);
    if (d.attention.zeroRows && *d.attention.zeroRows) {
      Value zero = b.constant(sums.getType(), 0); // NaN times 0 is none
      Value clear = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, inverse, zero);
      value = arith::SelectOp::create(b, clear, zero, value);
    }
    e.bindValue(result, value);
    writer.write(indexOf(result, row, column));
  });
  GemmMatrix weights;
  weights.base = table;
  weights.rowStride = stride;
  weights.colStride = b.idx(1);
  GemmMatrix v = within(b, d.result.right(b), batch, {});
  emitGemm(b, spec, tiles, weights, v, callbacks, {b.idx(1), rows, b.idx(d.result.n), b.idx(d.result.k)});
  e.unbind(d.result.op.getResult());
}

} // namespace

Result<KernelPlan> dmxc::cpu::planAttention(const RegionBody &body, const Attention &attention, const Choice &choice) {
  auto details = std::make_shared<Details>(body, attention);
  if (!details->scores.direct() || !details->result.rhs || details->result.unclear)
    return Error{ErrorKind::Internal,
                 "node '" + dmir::nodeName(body.root) + "': an operand of attention is no view of memory"};
  details->chooseRows();
  KernelPlan plan;
  plan.algorithm = "attention";
  plan.work = details->result.batch * details->blocks();
  double flops = 2.0 * static_cast<double>(details->rows) *
                 static_cast<double>(nominal(body.block, details->result.k)) *
                 static_cast<double>(nominal(body.block, details->scores.k) + nominal(body.block, details->result.n));
  plan.grain = std::max<int64_t>(1, static_cast<int64_t>(4000 / std::max(flops / 50, 1.0))); // 4 us or more
  plan.scratch = Dim(choice.level().mostBytes([&](const IsaLevel &level) { return gemmBytes(*details, level); }) +
                     ceilDivInt(details->rows, 16) * 64) +
                 details->stride() * (details->rows * 4);
  plan.emit = [details](KernelBuilder &b) { AttentionEmitter(CpuBuilder::of(b), *details).emit(); };
  return plan;
}
