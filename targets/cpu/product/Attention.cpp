//===- Attention.cpp - regions of attention -----------------------------------===//
//
// A block of rows of Q at a time: their scores go to scratch, masked and scaled on the way; the softmax is taken there,
// but for the division, which the second product's epilogue does, as a rule for fewer elements; then the block of the
// result. The matrix of scores is never in memory as a whole.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "AttentionKeys.h"
#include "GemmTile.h"
#include "MatmulProduct.h"
#include "MatmulRegion.h"
#include "targets/common/math/VectorMath.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>
#include <limits>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

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
  dmir::MaskOp mask;    ///< whose rule says which keys a block looks at; null: all
  bool all = false;     ///< it does so whatever the rule says

  Details(const RegionBody &body, const Attention &attention)
      : body(body), attention(attention), scores(attention.scores, heavyEpilogue(attention.before), false),
        result(attention.result, heavyEpilogue(epilogue()), false) {
    // Few keys are looked at faster than chosen among.
    if (auto last = this->attention.softmax.getInput().getDefiningOp<dmir::MaskOp>())
      if (result.k.valueOr(kKeyPass) >= kKeyPass)
        mask = last;
    all = mask && looksAtAllKeys(body.block);
  }
  /// The ops that read the result.
  SmallVector<Operation *> epilogue() const;
  GemmSpec specOf(const MatmulProduct &product) const;
  GemmTiles tilesOf(const GemmSpec &spec, const IsaLevel &level) const;
  double fill() const { return cast<FloatAttr>(dmir::MaskOp(mask).getFill()).getValueAsDouble(); }
  /// Whether a row may have to look at keys that the rule leaves out: where it sees none, or none above the number that
  /// replaces scores.
  bool looksAgain() const { return mask && !all && std::isfinite(fill()); }
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
  if (mask)
    (&product == &scores ? spec.n : spec.k) = kDynamic;
  return spec;
}

GemmTiles Details::tilesOf(const GemmSpec &spec, const IsaLevel &level) const {
  GemmTiles tiles = chooseGemmTiles(spec, level);
  if (mask && spec.k < 0)
    tiles.kBlock = kKeyPass;
  return tiles;
}

/// Blocks whose scores fit the second-level cache; some for a few threads to share. Each block copies K and V.
void Details::chooseRows() {
  constexpr int64_t fewest = 16, items = 8;
  int64_t m = std::max<int64_t>(1, nominal(body.block, result.m)), t = nominal(body.block, result.k);
  if (mask)
    t = std::max(widestKeys(body.block, mask), t / 4);
  int64_t most = std::max(fewest, IsaLevel::nominal().caches.scores / (4 * std::max<int64_t>(t, 1)));
  int64_t blocks = ceilDivInt(m, most), batch = std::max<int64_t>(1, nominal(body.block, result.batch));
  blocks = std::max(blocks, std::min(ceilDivInt(items, batch), std::max<int64_t>(1, m / fewest)));
  rows = ceilDivInt(m, blocks);
  std::optional<int64_t> known = result.m.known();
  uniform = known && *known % rows == 0;
}

int64_t gemmBytes(const Details &d, const IsaLevel &level) {
  GemmSpec scores = d.specOf(d.scores), result = d.specOf(d.result);
  return std::max(gemmScratchBytes(scores, d.tilesOf(scores, level)),
                  gemmScratchBytes(result, d.tilesOf(result, level)));
}

constexpr int64_t kStateBytes = 64; ///< of `state`

class AttentionEmitter {
public:
  AttentionEmitter(CpuBuilder &b, const Details &details)
      : b(b), d(details), e(b, d.body.block), writer(e, d.body), f32(b.getF32Type()) {
    Value scratch = b.elementPtr(b.getI8Type(), b.scratch(), b.idx(gemmBytes(d, b.isa())));
    inverses = scratch;
    table = b.elementPtr(f32, scratch, b.idx(ceilDivInt(d.rows, 16) * 16));
    if (d.mask) {
      state = table;
      table = b.elementPtr(f32, table, b.idx(kStateBytes / 4));
    }
    stride = b.idx(d.stride());
  }

  void emit();

private:
  void emitScores(Value from, Value to);
  void emitKeptScores(const AttentionKeys &keys);
  void chooseKeys();
  Value highestOf(Value row);
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
  Value state;              ///< scratch, where keys are chosen: the keys, and whether to look again
  Value batch, first, rows; ///< the block
  Value from, to;           ///< its keys
};

void AttentionEmitter::emit() {
  Value begin = b.begin(), end = b.end(), blocks = b.idx(d.blocks()), m = b.idx(d.result.m);
  b.forLoop(begin, end, b.idx(1), [&](Value item) {
    batch = b.floorDiv(item, blocks);
    first = b.mulC(b.rem(item, blocks), d.rows);
    rows = d.uniform ? b.idx(d.rows) : b.minS(b.idx(d.rows), b.sub(m, first));
    from = b.idx(0), to = b.idx(d.result.k);
    if (d.mask)
      chooseKeys();
    else
      emitScores(from, to);
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

/// Scores of keys [from, to), to the table.
void AttentionEmitter::emitScores(Value from, Value to) {
  GemmSpec spec = d.specOf(d.scores);
  GemmCallbacks callbacks = storing([this, from](Value row, Index column, Value sums) {
    e.bindValue(d.scores.op.getResult(), sums);
    column.base = b.add(column.base, from);
    Value input = d.attention.softmax.getInput(), score = e.evaluate(input, indexOf(input, row, column));
    // Whole vectors: the table's rows have room, and what is beyond them is not read.
    b.store(score, table, b.add(b.mul(row, stride), column.base));
  });
  GemmMatrix q = within(b, d.scores.left(b), batch, first), k = within(b, d.scores.right(b), batch, {});
  Value offset = b.add(k.offset({}), b.mul(from, k.colStride));
  k.offset = [offset](Value) { return offset; };
  emitGemm(b, spec, d.tilesOf(spec, b.isa()), q, k, callbacks, {b.idx(1), rows, b.sub(to, from), b.idx(d.scores.k)});
  e.unbind(d.scores.op.getResult());
}

/// The same of a block's keys: where all rows keep all keys, the rule is not asked.
void AttentionEmitter::emitKeptScores(const AttentionKeys &keys) {
  dmir::MaskOp mask = d.mask;
  auto isFirst = [&](Value part) { return b.cmp(arith::CmpIPredicate::eq, part, b.idx(0)); };
  b.forLoop(b.idx(0), b.idx(2), b.idx(1), [&](Value part) {
    Value from = arith::SelectOp::create(b, isFirst(part), keys.first, keys.lastFull);
    Value to = arith::SelectOp::create(b, isFirst(part), keys.firstFull, keys.last);
    emitScores(from, to);
  });
  if (d.all)
    return;
  e.bind(mask.getResult(), [this, mask](ArrayRef<Index> index) mutable { return e.evaluate(mask.getInput(), index); });
  emitScores(keys.firstFull, keys.lastFull);
  e.unbind(mask.getResult());
}

void AttentionEmitter::chooseKeys() {
  Indices batchIndex = indexOf(dmir::MaskOp(d.mask).getResult(), b.idx(0), e.at(0));
  batchIndex.pop_back_n(2);
  AttentionKeys keys = keysOf(b, e, d.mask, batchIndex, first, rows, d.all);
  if (!d.looksAgain()) {
    from = keys.first, to = keys.last;
    return emitKeptScores(keys);
  }
  Value all = b.idx(d.result.k), slots[] = {b.idx(0), b.idx(1), b.idx(2)};
  b.store(keys.first, state, slots[0]);
  b.store(keys.last, state, slots[1]);
  b.store(b.idx(1), state, slots[2]);
  auto read = [&](int64_t slot) { return b.load(b.getI64Type(), state, slots[slot]); };
  b.forLoop(b.idx(0), b.idx(2), b.idx(1), [&](Value) {
    b.ifThen(b.cmp(arith::CmpIPredicate::ne, read(2), b.idx(0)), [&] {
      from = read(0), to = read(1);
      emitKeptScores({from, to, b.minS(b.maxS(keys.firstFull, from), to), b.minS(b.maxS(keys.lastFull, from), to)});
      b.store(b.idx(0), state, slots[2]);
      b.forLoop(b.idx(0), rows, b.idx(1), [&](Value row) {
        // What is left out would weigh exp(fill - highest), which is 0 where they are that far apart.
        Value apart = arith::SubFOp::create(b, highestOf(row), b.constant(f32, d.fill()));
        Value isNear = arith::CmpFOp::create(b, arith::CmpFPredicate::ULE, apart, b.constant(f32, 110));
        Value leavesOut = b.cmp(arith::CmpIPredicate::slt, b.sub(to, from), all);
        b.ifThen(arith::AndIOp::create(b, isNear, leavesOut), [&] {
          b.store(b.idx(0), state, slots[0]);
          b.store(all, state, slots[1]);
          b.store(b.idx(1), state, slots[2]);
        });
      });
    });
  });
  from = read(0), to = read(1);
}

/// Combines a row of the table, a vector at a time; `inside` tells the lanes of the last vector that are in the row,
/// null for all.
Value AttentionEmitter::foldRow(Value row, double start, llvm::function_ref<Value(Value, Value, Value)> step,
                                llvm::function_ref<Value(Value, Value)> combine) {
  int64_t lanes = b.isa().lanes(32);
  Value count = to, base = b.mul(row, stride);
  Value whole = b.add(from, b.mulC(b.floorDiv(b.sub(to, from), b.idx(lanes)), lanes));
  auto loop = [&](Value from, Value to, Value sum, bool partial) {
    return b.forLoop(from, to, b.idx(lanes), sum, [&](Value at, ValueRange sums) -> SmallVector<Value> {
      Value inside = partial ? b.headMask(lanes, b.sub(count, at)) : Value();
      return {step(b.add(base, at), inside, sums[0])};
    })[0];
  };
  Value sum = loop(from, whole, b.constant(b.laneType(f32, lanes), start), false);
  std::optional<int64_t> known = d.result.k.known();
  if (lanes > 1 && (!known || *known % lanes)) // chosen keys end at multiples, or with all
    sum = loop(whole, count, sum, true);
  return lanes > 1 ? combineLanes(b, sum, combine) : sum;
}

Value AttentionEmitter::highestOf(Value row) {
  int64_t lanes = b.isa().lanes(32);
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  Type type = b.laneType(f32, lanes);
  return foldRow(
      row, lowest,
      [&](Value at, Value inside, Value sum) {
        Value x = b.load(f32, table, at, lanes);
        return max(inside ? arith::SelectOp::create(b, inside, x, b.constant(type, lowest)) : x, sum);
      },
      [&](Value x, Value y) { return max(x, y); });
}

void AttentionEmitter::emitSoftmax(Value row) {
  int64_t lanes = b.isa().lanes(32);
  Type type = b.laneType(f32, lanes);
  VectorMath math(b, b.isa());
  auto read = [&](Value at) { return b.load(f32, table, at, lanes); };
  Value highest = highestOf(row);
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
  Value softmax = d.attention.softmax.getResult(), weights = d.attention.result.getLhs();
  b.forLoop(from, to, b.idx(lanes), [&](Value column) {
    Value at = b.add(b.mul(row, stride), column);
    // Lanes beyond the row are written, and not read.
    ElementExpr::Lanes scope(e, lanes, lanes > 1 ? b.headMask(lanes, b.sub(to, column)) : Value());
    e.forget();
    e.bindValue(softmax, arith::MulFOp::create(b, b.load(f32, table, at, lanes), inverse));
    b.store(e.evaluate(weights, indexOf(weights, row, e.at(column, lanes, lanes > 1))), table, at);
  });
  e.unbind(softmax);
}

void AttentionEmitter::emitResult() {
  GemmSpec spec = d.specOf(d.result);
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
  weights.base = b.elementPtr(f32, table, from);
  weights.rowStride = stride;
  weights.colStride = b.idx(1);
  GemmMatrix v = within(b, d.result.right(b), batch, from);
  emitGemm(b, spec, d.tilesOf(spec, b.isa()), weights, v, callbacks,
           {b.idx(1), rows, b.idx(d.result.n), b.sub(to, from)});
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
  plan.algorithm = !details->mask ? "attention" : details->all ? "attention-all-tiles" : "attention-tiles";
  if (details->mask)
    plan.tile = {details->rows, kKeyTile, kKeyPass};
  plan.work = details->result.batch * details->blocks();
  double flops = 2.0 * static_cast<double>(details->rows) *
                 static_cast<double>(nominal(body.block, details->result.k)) *
                 static_cast<double>(nominal(body.block, details->scores.k) + nominal(body.block, details->result.n));
  plan.grain = std::max<int64_t>(1, static_cast<int64_t>(4000 / std::max(flops / 50, 1.0))); // 4 us or more
  plan.scratch = Dim(choice.level().mostBytes([&](const IsaLevel &level) { return gemmBytes(*details, level); }) +
                     ceilDivInt(details->rows, 16) * 64 + (details->mask ? kStateBytes : 0)) +
                 details->stride() * (details->rows * 4);
  plan.emit = [details](KernelBuilder &b) { AttentionEmitter(CpuBuilder::of(b), *details).emit(); };
  return plan;
}
