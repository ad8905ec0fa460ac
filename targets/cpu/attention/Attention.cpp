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

/// Key of a strategy, and the decision.
static constexpr StringLiteral kBlockRows = "block_rows";

//===----------------------------------------------------------------------===//
// What is decided for all levels
//===----------------------------------------------------------------------===//

AttentionDetails::AttentionDetails(const RegionBody &body, const Attention &attention, int64_t given)
    : body(body), attention(attention),
      scores(MatmulProduct::nested(attention.scores, heavyEpilogue(attention.before))),
      result(MatmulProduct::nested(attention.result, heavyEpilogue(epilogue()))) {
  online = choosesTiles();
  // Few keys are looked at faster than chosen among.
  if (auto last = this->attention.softmax.getInput().getDefiningOp<dmir::MaskOp>())
    if (result.k.valueOr(kKeyPass) >= kKeyPass)
      mask = last;
  all = mask && looksAtAllKeys(body.block);
  group = headsOfGroup();
  rows = given ? std::max<int64_t>(1, given / group) * group : preferredRows();
  std::optional<int64_t> known = result.m.known();
  uniform = known && *known % places() == 0;
}

/// Heads that neighbours in both products' batch share keys and values with, where a mask is one for all of them.
int64_t AttentionDetails::headsOfGroup() const {
  if (scores.batchDims.empty() || result.batchDims.empty() || !scores.lhs)
    return 1;
  std::optional<int64_t> heads = scores.batchDims.back().known();
  bool shares = heads && *heads > 1 && result.batchDims.back() == scores.batchDims.back() && scores.rhs && result.rhs &&
                scores.rhsBatch.back().is(0) && result.rhsBatch.back().is(0);
  return shares && (!mask || isOneForHeads(mask)) ? *heads : 1;
}

Dim AttentionDetails::groups() const {
  return group == 1 ? result.batch : dmir::product(ArrayRef(result.batchDims).drop_back());
}

SmallVector<Operation *> AttentionDetails::epilogue() const {
  SmallVector<Operation *> ops, inner = innerOpsOf(attention.result);
  for (Operation &op : *body.block)
    if (!llvm::is_contained(inner, &op) && !llvm::is_contained(attention.casts, &op))
      ops.push_back(&op);
  return ops;
}

/// Rows at once are a little faster while their scores stay near; weights that are computed with need whole rows.
bool AttentionDetails::choosesTiles() const {
  constexpr int64_t most = 1024;
  return attention.zeroRows && result.n.isStatic() && result.k.valueOr(nominal(body.block, result.k)) > most;
}

GemmKernel AttentionDetails::specOf(const MatmulProduct &product, int64_t keys) const {
  GemmKernel spec = product.kernel();
  spec.batch = 1;
  spec.m = uniform ? Dim(rows) : openSize();
  spec.nested = true;
  if (&product == &scores && copiesQueries())
    spec.aType = spec.accType;
  if (online)
    spec.heavyEpilogue &= &product == &scores; // the result's is emitted once
  if (online || mask)
    (&product == &scores ? spec.n : spec.k) = keys == kDynamic ? openSize() : Dim(keys);
  return spec;
}

SmallVector<std::pair<StringRef, GemmKernel>> AttentionDetails::products() const {
  SmallVector<std::pair<StringRef, GemmKernel>> all;
  for (const MatmulProduct *product : {&scores, &result})
    for (int64_t keys : {kDynamic, kOnlineKeys})
      if (online || keys == kDynamic) {
        GemmKernel spec = specOf(*product, keys);
        all.emplace_back(nameOf(*product, spec), spec);
      }
  return all;
}

/// "_tile": of a whole tile of keys.
StringRef AttentionDetails::nameOf(const MatmulProduct &product, const GemmKernel &spec) const {
  if (&product == &scores)
    return online && spec.n.is(kOnlineKeys) ? "scores_tile" : "scores";
  return online && spec.k.is(kOnlineKeys) ? "result_tile" : "result";
}

DictionaryAttr AttentionDetails::chosenTiles(const IsaLevel &level) const {
  MLIRContext *context = body.block->getParentOp()->getContext();
  NamedAttrList tiles;
  for (const auto &[name, spec] : products())
    tiles.set(name, writeTile(chosenTiles(spec, level), context));
  return tiles.getDictionary(context);
}

GemmTiles AttentionDetails::readTiles(DictionaryAttr tiles, StringRef name, const GemmKernel &spec,
                                      const IsaLevel &level) const {
  return readGemmTiles(tiles.getAs<DictionaryAttr>(name), spec, level);
}

GemmTiles AttentionDetails::chosenTiles(const GemmKernel &spec, const IsaLevel &level) const {
  GemmTiles tiles = chooseGemmTiles(spec, level);
  if (!online && mask && !spec.k.isStatic())
    tiles.kBlock = kKeyPass;
  if (online && !spec.k.isStatic())
    tiles.kBlock = kOnlineKeys;
  return tiles;
}

int64_t AttentionDetails::gemmBytes(DictionaryAttr tiles, const IsaLevel &level) const {
  int64_t most = 0;
  for (const auto &[name, spec] : products())
    most = std::max(most, gemmScratchBytes(spec, readTiles(tiles, name, spec, level)));
  return most;
}

Dim AttentionDetails::scratch(int64_t gemm) const {
  int64_t columns = online ? 4 : 1, fixed = online ? rows * resultStride() * 4 : 0;
  Dim queries = copiesQueries() ? queryStride() * (rows * 4) : Dim(0);
  return stride() * (rows * 4) + queries + (gemm + columns * column() * 4 + fixed + (mask ? kStateBytes : 0));
}

/// Blocks whose scores fit the second-level cache; some for a few threads to share. Each block copies K and V.
int64_t AttentionDetails::preferredRows() const {
  DecisionsMade::check("a block of rows");
  constexpr int64_t fewestRows = 16, items = 8, mostOfTiles = 128;
  const int64_t fewest = ceilDivInt(fewestRows, group);
  int64_t m = std::max<int64_t>(1, nominal(body.block, result.m)), t = nominal(body.block, result.k);
  if (mask)
    t = std::max(widestKeys(body.block, mask), t / 4);
  int64_t most = std::max(fewest, IsaLevel::nominal().caches.scores / (4 * std::max<int64_t>(t, 1)) / group);
  if (online)
    most = ceilDivInt(mostOfTiles, group);
  int64_t blocks = ceilDivInt(m, most), batch = std::max<int64_t>(1, nominal(body.block, groups()));
  blocks = std::max(blocks, std::min(ceilDivInt(items, batch), std::max<int64_t>(1, m / fewest)));
  return ceilDivInt(m, blocks) * group;
}

/// Any number would do; scratch is bounded.
Decision AttentionDetails::rowsDecision() const {
  constexpr int64_t mostScratch = 4 << 20, mostRows = 512;
  MLIRContext *context = body.block->getParentOp()->getContext();
  int64_t preferred = preferredRows(), row = 4 * std::max<int64_t>(1, nominal(body.block, stride()));
  int64_t most = std::max<int64_t>(1, std::clamp<int64_t>(mostScratch / row, 1, mostRows) / group);
  std::set<int64_t> values{preferred};
  if (std::optional<int64_t> m = result.m.known())
    for (int64_t places : evenParts(*m, most))
      values.insert(places * group);
  for (int64_t places = 8; places <= most && !result.m.isStatic(); places *= 2)
    values.insert(places * group);
  return {kBlockRows.str(),
          "",
          numbersOf(values, context),
          Builder(context).getI64IntegerAttr(preferred),
          Effect::Order,
          "rows of a block, whose scores wait in scratch"};
}

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

GemmTiles AttentionEmitter::tilesOf(const MatmulProduct &product, const GemmKernel &spec) const {
  return d.readTiles(tiles, d.nameOf(product, spec), spec, b.isa());
}

GemmMatrix AttentionEmitter::queriesOfBlock() const {
  if (!queries)
    return matrixWithin(b, d.scores.left(b), batch, first);
  GemmMatrix copy;
  copy.base = queries;
  copy.rowStride = b.idx(d.queryStride());
  copy.colStride = b.idx(1);
  return copy;
}

/// The block's rows of Q as they are multiplied, once for all keys.
void AttentionEmitter::copyQueries() {
  GemmMatrix q = matrixWithin(b, d.scores.left(b), batch, first);
  Type element = d.scores.lhsElement;
  Value base = b.elementPtr(element, q.base, q.offset({})), depth = b.idx(d.scores.k), heads = b.idx(d.group);
  Dim headStride = d.group == 1 ? Dim(0) : d.scores.lhsBatch.back();
  int64_t lanes = CpuBuilder::constantOf(q.colStride) == 1 ? b.isa().lanes(32) : 1;
  Value whole = b.mulC(b.floorDiv(depth, b.idx(lanes)), lanes);
  b.forLoop(b.idx(0), rows, b.idx(1), [&](Value row) {
    Value head = b.mul(b.rem(row, heads), b.idx(headStride)), place = b.mul(b.floorDiv(row, heads), q.rowStride);
    Value from = b.add(head, place), to = b.mul(row, b.idx(d.queryStride()));
    auto copy = [&](Value column, int64_t lanes) {
      Value x = b.load(element, base, b.add(from, b.mul(column, q.colStride)), lanes);
      x = convertElements(b, {element, f32, false}, x);
      b.store(d.scores.roundsLhs ? roundToBf16(b, x) : x, queries, b.add(to, column));
    };
    b.forLoop(b.idx(0), whole, b.idx(lanes), [&](Value column) { copy(column, lanes); });
    if (lanes > 1)
      b.forLoop(whole, depth, b.idx(1), [&](Value column) { copy(column, 1); });
  });
}

/// Scores of keys [from, to), to the table.
void AttentionEmitter::emitScores(Value from, Value to, const GemmKernel &spec) {
  GemmCallbacks callbacks = storing([this, from](Value row, Index column, Value sums) {
    e.bindValue(d.scores.result(), sums);
    column.base = b.add(column.base, from);
    Value input = d.attention.softmax.getInput(), score = e.evaluate(input, indexOf(input, row, column));
    // Whole vectors: the table's rows have room, and what is beyond them is not read.
    b.store(score, table, b.add(b.mul(row, stride), b.sub(column.base, origin)));
  });
  GemmMatrix q = queriesOfBlock(), k = matrixWithin(b, d.scores.right(b), batch, {});
  Value offset = b.add(k.offset({}), b.mul(from, k.colStride));
  k.offset = [offset](Value) { return offset; };
  emitGemm(b, spec, tilesOf(d.scores, spec), q, k, callbacks, {.m = rows, .n = b.sub(to, from)});
  e.unbind(d.scores.result());
}

/// Calls `look` with the keys of the block; once more with all of them, where a row has no score that is clearly above
/// the number that replaces scores. `highestOfRow` is asked then.
void AttentionEmitter::chooseKeys(llvm::function_ref<void(const AttentionKeys &)> look,
                                  llvm::function_ref<Value(Value row)> highestOfRow) {
  Value all = b.idx(d.result.k);
  if (!d.mask || d.all)
    return look({b.idx(0), all, b.idx(0), d.all ? b.idx(0) : all});
  Indices batchIndex = indexOf(dmir::MaskOp(d.mask).getResult(), b.idx(0), e.at(0));
  batchIndex.pop_back_n(2);
  tests.emplace(b, e, d.mask, batchIndex, first, b.floorDiv(rows, b.idx(d.group)));
  AttentionKeys keys = keysOf(b, *tests, d.mask, d.tile(), d.asksTiles() && !d.online);
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
            d.asksTiles() ? b.constantInt(b.getI1Type(), 1) : b.cmp(arith::CmpIPredicate::slt, b.sub(to, from), all);
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

/// The sum of a row's powers of what is above `shift`, which take the place of the scores.
Value AttentionEmitter::powersOf(Value row, Value shift) {
  int64_t lanes = b.isa().lanes(32);
  Type type = b.laneType(f32, lanes);
  VectorMath math(b, b.isa());
  Value spread = b.splat(shift, lanes);
  return foldRow(
      row, 0,
      [&](Value at, Value inside, Value sum) {
        Value power = math.exp(arith::SubFOp::create(b, b.load(f32, table, at, lanes), spread));
        if (inside)
          power = arith::SelectOp::create(b, inside, power, b.constant(type, 0));
        b.store(power, table, at);
        return add(sum, power);
      },
      [&](Value x, Value y) { return add(x, y); });
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

Result<KernelPlan> dmxc::cpu::planAttention(const RegionBody &body, const Attention &attention, const Choice &choice) {
  // What a strategy is completed with is decided as where it is chosen.
  std::optional<int64_t> rows = numberIn(choice.chooses() ? choice.decided.all : choice.strategy, kBlockRows);
  auto details = std::make_shared<AttentionDetails>(body, attention, choice.chooses() ? 0 : *rows);
  if (!details->scores.direct() || !details->result.rhs || details->result.unclear)
    return Error{ErrorKind::Internal,
                 "node '" + dmir::nodeName(body.root) + "': an operand of attention is no view of memory"};
  KernelPlan plan;
  MLIRContext *context = body.root->getContext();
  if (choice.chooses()) {
    plan.free.push_back(details->rowsDecision());
    if (Attribute value = choice.decided.all ? choice.decided.all.get(kBlockRows) : Attribute();
        value && plan.free.front().domain.contains(value))
      details = std::make_shared<AttentionDetails>(body, attention, *rows);
  }
  plan.own.set(kBlockRows, Builder(context).getI64IntegerAttr(details->rows));
  plan.tiles = [details](const Processor &processor) { return details->chosenTiles(Decided::levelOf(processor)); };
  plan.algorithm = !details->mask ? "attention" : details->all ? "attention-all-tiles" : "attention-tiles";
  if (details->mask) {
    dmir::TileSize tile = details->tile();
    plan.tile = {tile.rows, tile.columns, tile.pass};
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
