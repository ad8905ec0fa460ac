//===- Attention.cpp - regions of attention -----------------------------------===//
//
// A block of rows of Q at a time: their scores go to scratch, masked and scaled on the way; the softmax is taken there,
// but for the division, which is done on the block of the result, as a rule for fewer elements. The matrix of scores is
// never in memory as a whole.
//
//===----------------------------------------------------------------------===//

#include "AttentionEmitter.h"

#include "targets/cpu/product/GemmDecisions.h"
#include "targets/cpu/product/MatmulRegion.h"

#include "dmxc/Target/DecisionsMade.h"

#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// What both schemes do
//===----------------------------------------------------------------------===//

AttentionEmitter::AttentionEmitter(CpuBuilder &b, const AttentionDetails &details, DictionaryAttr tiles)
    : b(b), d(details), tiles(tiles), e(b, d.body.block), writer(e, d.body), f32(b.getF32Type()) {
  Value next = b.elementPtr(b.getI8Type(), b.scratch(), b.idx(d.gemmBytes(tiles, b.isa())));
  auto take = [&](int64_t floats) {
    Value taken = next;
    next = b.elementPtr(f32, next, b.idx(floats));
    return taken;
  };
  inverses = take(d.column());
  if (d.mask)
    state = take(kStateBytes / 4);
  if (d.online) {
    highest = take(d.column()), totals = take(d.column()), scales = take(d.column());
    results = take(d.rows * d.resultStride());
    if (d.weighs())
      leftOut = take(d.resultStride());
  }
  table = next;
  stride = b.idx(d.stride());
  if (d.copiesQueries())
    queries = b.elementPtr(f32, table, b.mulC(stride, d.rows));
  origin = b.idx(0);
}

void AttentionEmitter::emit() {
  Value begin = b.begin(), end = b.end(), blocks = b.idx(d.blocks()), m = b.idx(d.result.m);
  b.forLoop(begin, end, b.idx(1), [&](Value item) {
    batch = b.mulC(b.floorDiv(item, blocks), d.group);
    first = b.mulC(b.rem(item, blocks), d.places());
    rows = d.uniform ? b.idx(d.rows) : b.mulC(b.minS(b.idx(d.places()), b.sub(m, first)), d.group);
    if (queries)
      copyQueries();
    if (d.online)
      emitTiles();
    else
      emitRows();
  });
}

std::pair<Value, Value> AttentionEmitter::placeOf(Value row) {
  Value heads = b.idx(d.group);
  return {b.add(batch, b.rem(row, heads)), b.add(first, b.floorDiv(row, heads))};
}

/// The index of an element of a tensor of the scores' or the result's shape, in the present block.
Indices AttentionEmitter::indexOf(Value tensor, Value row, Index column) {
  SmallVector<Dim> dims = dmir::dimsOf(tensor);
  dims.truncate(dims.size() - 2);
  Indices index(dims.size(), e.at(0));
  auto [item, place] = placeOf(row);
  Index rest = e.at(item);
  for (size_t axis = dims.size(); axis-- > 1;)
    std::tie(rest, index[axis]) = e.divRem(rest, dims[axis].isStatic() ? dims[axis] : Dim::max(dims[axis], 1));
  if (!dims.empty())
    index[0] = rest;
  index.push_back(e.at(place));
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

GemmMatrix dmxc::cpu::matrixWithin(CpuBuilder &b, GemmMatrix matrix, Value batch, Value row) {
  Value offset = matrix.offset(batch);
  if (row)
    offset = b.add(offset, b.mul(row, matrix.rowStride));
  matrix.offset = [offset](Value) { return offset; };
  return matrix;
}

GemmTiles AttentionEmitter::tilesOf(const MatmulProduct &product, int64_t ofTile) const {
  return d.readTiles(tiles, d.nameOf(product, ofTile), d.specOf(product, ofTile), b.isa());
}

GemmMatrix AttentionEmitter::queriesOfBlock() {
  GemmMatrix all;
  if (queries) {
    all.base = queries;
    all.rowStride = b.idx(d.queryStride() * (d.inPairs(d.scores, b.isa()) ? 2 : 1));
    all.colStride = b.idx(1);
  } else {
    all = matrixWithin(b, d.scores.left(b), batch, first);
  }
  if (!rowLine.first)
    return all;
  Value shift = b.mul(rowLine.first, all.rowStride), offset = all.offset ? b.add(all.offset({}), shift) : shift;
  all.offset = [offset](Value) { return offset; };
  all.rowStride = b.mulC(all.rowStride, rowLine.step);
  return all;
}

/// The block's rows of Q as they are multiplied, once for all keys.
void AttentionEmitter::copyQueries() {
  GemmMatrix q = matrixWithin(b, d.scores.left(b), batch, first);
  Type element = d.scores.lhsElement;
  Value base = b.elementPtr(element, q.base, q.offset({})), depth = b.idx(d.scores.k), heads = b.idx(d.group);
  Dim headStride = d.group == 1 ? Dim(0) : d.scores.lhsBatch.back();
  int64_t lanes = CpuBuilder::constantOf(q.colStride) == 1 ? b.isa().lanes(32) : 1;
  Value whole = b.mulC(b.floorDiv(depth, b.idx(lanes)), lanes);
  const bool pairs = d.inPairs(d.scores, b.isa());
  Value rowStride = b.idx(d.queryStride() * (pairs ? 2 : 1));
  b.forLoop(b.idx(0), rows, b.idx(1), [&](Value row) {
    Value head = b.mul(b.rem(row, heads), b.idx(headStride)), place = b.mul(b.floorDiv(row, heads), q.rowStride);
    Value from = b.add(head, place), to = b.mul(row, rowStride);
    auto copy = [&](Value column, int64_t lanes) {
      Value x = b.load(element, base, b.add(from, b.mul(column, q.colStride)), lanes);
      x = convertElements(b, {element, f32, false}, x);
      Value rounded = pairs ? bf16Of(b, x) : d.scores.roundsLhs ? roundToBf16(b, x) : x;
      b.store(rounded, queries, b.add(to, column));
    };
    b.forLoop(b.idx(0), whole, b.idx(lanes), [&](Value column) { copy(column, lanes); });
    if (lanes > 1)
      b.forLoop(whole, depth, b.idx(1), [&](Value column) { copy(column, 1); });
    if (pairs && d.scores.k.valueOr(1) % 2) // of a pair that the row ends in
      b.store(b.constantInt(b.getI16Type(), 0), queries, b.add(to, depth));
  });
}

/// Scores of keys [from, to), to the table.
void AttentionEmitter::emitScores(Value from, Value to, int64_t ofTile) {
  const GemmTiles tiles = tilesOf(d.scores, ofTile);
  GemmCallbacks callbacks = storing([&](Value row, Index column, Value sums) {
    e.bindValue(d.scores.result(), sums);
    if (!d.online) // the rows that come next
      fetchMatrices(b.addC(row, tiles.rows), b.add(column.base, from), e.lanes());
    row = at(rowLine, row), column.base = b.add(column.base, from);
    Index key = keyLine.first ? e.at(at(keyLine, column.base), 1, column.stride * keyLine.step) : column;
    Value input = d.weightsSource(), score = e.evaluate(input, indexOf(input, row, key));
    // Whole vectors: the table's rows have room, and what is beyond them is not read.
    b.store(score, table, b.add(b.mul(row, stride), b.sub(column.base, origin)));
  });
  GemmMatrix q = queriesOfBlock(), k = matrixWithin(b, d.scores.right(b), batch, {});
  Value offset = b.add(k.offset({}), b.mul(at(keyLine, from), k.colStride));
  k.offset = [offset](Value) { return offset; };
  k.colStride = b.mulC(k.colStride, keyLine.step);
  emitGemm(b, d.specOf(d.scores, ofTile), tiles, q, k, callbacks, {.m = rowCount(), .n = b.sub(to, from)});
  e.unbind(d.scores.result());
}

/// The bounds of what the rule says of rows of the block.
void AttentionEmitter::testRows(Value from, Value count) {
  Indices outer = indexOf(d.weightsSource(), b.idx(0), e.at(0));
  outer.pop_back_n(2);
  Value heads = b.idx(d.group);
  tests.emplace(b, e, d.mask, d.rule(), outer, b.add(first, b.floorDiv(from, heads)), b.floorDiv(count, heads));
}

/// Calls `look` with the keys of the block; once more with all of them, where a row has no score that is clearly above
/// the number that replaces scores. `highestOfRow` is asked then.
void AttentionEmitter::chooseKeys(llvm::function_ref<void(const AttentionKeys &)> look,
                                  llvm::function_ref<Value(Value row)> highestOfRow) {
  Value all = b.idx(d.result.k);
  if (!d.mask || d.all)
    return look({b.idx(0), all, b.idx(0), d.all ? b.idx(0) : all});
  testRows(b.idx(0), rows);
  AttentionKeys keys = keysOf(b, *tests, d.mask, d.tile(), d.asksNumbers() && !d.online);
  if (!d.looksAgain())
    return look(keys);
  Value slots[] = {b.idx(0), b.idx(1), b.idx(2)};
  b.store(keys.first, state, slots[0]);
  b.store(keys.last, state, slots[1]);
  b.store(b.idx(1), state, slots[2]);
  auto read = [&](int64_t slot) { return b.load(b.getI64Type(), state, slots[slot]); };
  b.forLoop(b.idx(0), b.idx(2), b.idx(1), [&](Value time) {
    b.ifThen(b.cmp(arith::CmpIPredicate::ne, read(2), b.idx(0)), [&] {
      Value from = read(0), to = read(1), again = b.cmp(arith::CmpIPredicate::ne, time, b.idx(0));
      look({from, to, b.minS(b.maxS(keys.firstFull, from), to), b.minS(b.maxS(keys.lastFull, from), to), again});
      b.store(b.idx(0), state, slots[2]);
      b.forLoop(b.idx(0), rows, b.idx(1), [&](Value row) {
        // What is left out would weigh exp(fill - highest), which is 0 where they are that far apart.
        Value apart = arith::SubFOp::create(b, highestOfRow(row), b.constant(f32, d.fill()));
        Value isNear = arith::CmpFOp::create(b, arith::CmpFPredicate::ULE, apart, b.constant(f32, 110));
        // Tiles that are asked about may lie between others.
        Value leavesOut =
            d.asksNumbers() ? b.constantInt(b.getI1Type(), 1) : b.cmp(arith::CmpIPredicate::slt, b.sub(to, from), all);
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
  if (lanes > 1 && (anyCount || !known || *known % lanes)) // chosen keys end at multiples, or with all
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

/// The sum of a row's powers of what is above `shift`, which take the place of the scores; rounded, as weights are.
Value AttentionEmitter::powersOf(Value row, Value shift, bool areWeights) {
  int64_t lanes = b.isa().lanes(32);
  Type type = b.laneType(f32, lanes);
  VectorMath math(b, b.isa());
  Value spread = b.splat(shift, lanes), base = b.mul(row, stride);
  return foldRow(
      row, 0,
      [&](Value at, Value inside, Value sum) {
        Value power = math.exp(arith::SubFOp::create(b, b.load(f32, table, at, lanes), spread));
        if (inside)
          power = arith::SelectOp::create(b, inside, power, b.constant(type, 0));
        if (areWeights)
          storeWeights(power, row, b.sub(at, base));
        else
          b.store(power, table, at);
        return add(sum, power);
      },
      [&](Value x, Value y) { return add(x, y); });
}

/// Stores weights where scores were, as they are multiplied. Those of bf16 lie before the scores that are still to be
/// read.
void AttentionEmitter::storeWeights(Value weights, Value row, Value column) {
  if (d.inPairs(d.result, b.isa()))
    return b.store(bf16Of(b, weights), table, b.add(b.mulC(b.mul(row, stride), 2), column));
  b.store(d.result.runPairs ? roundToBf16(b, weights) : weights, table, b.add(b.mul(row, stride), column));
}

/// The block's weights from a column on.
GemmMatrix AttentionEmitter::weightsFrom(Value column) {
  const bool pairs = d.inPairs(d.result, b.isa());
  GemmMatrix weights;
  weights.base = b.elementPtr(pairs ? Type(b.getBF16Type()) : f32, table, column);
  weights.rowStride = pairs ? b.mulC(stride, 2) : stride;
  weights.colStride = b.idx(1);
  return weights;
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

/// Writes sums of a row's weighted values, divided by the row's sum.
void AttentionEmitter::writeSums(Value row, Index column, Value sums) {
  Value result = d.result.result(), inverse = b.splat(b.load(f32, inverses, row), e.lanes());
  Value value = mul(sums, inverse);
  if (d.attention.zeroRows && *d.attention.zeroRows) {
    Value zero = b.constant(sums.getType(), 0); // NaN times 0 is none
    Value clear = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, inverse, zero);
    value = arith::SelectOp::create(b, clear, zero, value);
  }
  e.bindValue(result, value);
  writer.write(indexOf(result, row, column));
}

/// Whether a run tells how much of an axis a slice leaves out.
static bool leavesOutRows(dmir::SliceOp slice) {
  SmallVector<Dim> from = dmir::dimsOf(slice.getInput()), to = dmir::dimsOf(slice.getResult());
  for (auto [whole, part] : llvm::zip(from, to))
    if (!(whole == part) && !part.isStatic())
      return true;
  return false;
}

/// Bytes of arguments of which the keys and values take rows that a run tells: of a cache the others are not read.
static Dim unreadBytes(Attention attention) {
  Dim bytes = 0;
  llvm::SmallPtrSet<Value, 2> seen; // keys and values may be one
  for (Value operand : {attention.scores.getRhs(), attention.result.getRhs()})
    for (Operation *op; (op = operand.getDefiningOp()); operand = op->getOperand(0)) {
      auto slice = dyn_cast<dmir::SliceOp>(op);
      if (!slice || !mlir::isa<BlockArgument>(slice.getInput()) || !leavesOutRows(slice) ||
          !seen.insert(slice.getInput()).second)
        continue;
      Dim others = dmir::elementsOf(slice.getInput().getType()) - dmir::elementsOf(slice.getType());
      bytes += others * (elementOf(slice.getInput()).getIntOrFloatBitWidth() / 8);
    }
  return bytes;
}

static std::string algorithmOf(const AttentionDetails &details) {
  if (details.isLinear())
    return "attention-linear";
  if (!details.mask)
    return "attention";
  return std::string(details.all ? kLooksAtAll : "attention") + (details.classes ? "-classes" : "-tiles");
}

Result<KernelPlan> dmxc::cpu::planAttention(const RegionBody &body, const Attention &attention, const Choice &choice) {
  // What a strategy is completed with is decided as where it is chosen.
  std::optional<int64_t> rows = numberIn(choice.chooses() ? choice.decided.all : choice.strategy, kBlockRows);
  const Units units = choice.unitsFor(/*bf16=*/true);
  auto details = std::make_shared<AttentionDetails>(body, attention, choice.chooses() ? 0 : *rows, units);
  if (!details->scores.direct() || !details->result.rhs || details->result.unclear)
    return Error{ErrorKind::Internal,
                 "node '" + dmir::nodeName(body.root) + "': an operand of attention is no view of memory"};
  KernelPlan plan;
  MLIRContext *context = body.root->getContext();
  if (choice.chooses()) {
    plan.free.push_back(details->rowsDecision());
    if (Attribute value = choice.decided.all ? choice.decided.all.get(kBlockRows) : Attribute();
        value && plan.free.front().domain.contains(value))
      details = std::make_shared<AttentionDetails>(body, attention, *rows, units);
  }
  if (details->hasPairs() && (units.any() || choice.namesUnits))
    plan.own.set(kUnits, unitNames(units, context));
  plan.own.set(kBlockRows, Builder(context).getI64IntegerAttr(details->rows));
  plan.tiles = [details](const Processor &processor) { return details->chosenTiles(Decided::levelOf(processor)); };
  plan.algorithm = algorithmOf(*details);
  if (details->isLinear()) {
    double part = kernels::keptPart(*attention.keep, typeOf(details->weightsSource()).getShape());
    int64_t all = 2 * *(details->scores.multiplyAdds() + details->result.multiplyAdds()).known();
    plan.savedOperations = static_cast<int64_t>(std::round(static_cast<double>(all) * (1 - part)));
  }
  if (details->mask || details->isLinear()) {
    dmir::TileSize tile = details->tile();
    if (!details->classes) // what is left out of classes is not whole tiles
      plan.tile = {tile.rows, tile.columns, tile.pass};
    if (!details->all)
      plan.skips.push_back("scores");
  }
  plan.work = details->groups() * details->blocks();
  plan.savedBytes = unreadBytes(details->attention);
  double flops = 2.0 * static_cast<double>(details->rows) *
                 static_cast<double>(nominal(body.block, details->result.k)) *
                 static_cast<double>(nominal(body.block, details->scores.k) + nominal(body.block, details->result.n));
  plan.grain = std::max<int64_t>(1, static_cast<int64_t>(4000 / std::max(flops / 50, 1.0))); // 4 us or more
  if (choice.chooses())
    plan.scratch = details->scratch(choice.mostBytes(
        [&](const IsaLevel &level) { return details->gemmBytes(details->chosenTiles(level), level); }));
  else
    choice.readSizes(plan);
  plan.emit = [details, strategy = choice.strategy](KernelBuilder &b) {
    CpuBuilder &builder = CpuBuilder::of(b);
    AttentionEmitter(builder, *details, levelTiles(strategy, builder.isa())).emit();
  };
  return plan;
}
