//===- GemmOperands.cpp - a product's operands, copied or where they lie --===//

#include "GemmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Copying a block of A
//===----------------------------------------------------------------------===//

/// Elements of A as accumulator elements, mapped.
Value GemmEmitter::loadLeft(Value base, Value offset, int64_t lanes) {
  if (spec.elementsOfStep() > 1) // moved as what it is summed to
    return LLVM::LoadOp::create(b, b.laneType(spec.accType, lanes), b.elementPtr(spec.aType, base, offset),
                                /*alignment=*/spec.aType.getIntOrFloatBitWidth() / 8);
  Value x = convertElements(b, {spec.aType, spec.accType, spec.aUnsigned}, b.load(spec.aType, base, offset, lanes));
  return callbacks.mapA ? callbacks.mapA(x) : x;
}

/// The r-th row of a tile, the last row of A for those beyond it.
Value GemmEmitter::leftRow(const RowTile &tile, int64_t r) {
  Value row = b.addC(tile.row, r);
  return tile.guarded ? b.minS(row, b.addC(m, -1)) : row;
}

/// The last four or pair of a row, what is beyond the row zero.
Value GemmEmitter::partialStep(const Item &item, Value row) {
  if (spec.dots()) {
    Value last = b.load(b.getIntegerType(16), item.aBase, b.add(b.mul(row, a.rowStride), leftDepth(b.addC(k, -1))));
    return arith::BitcastOp::create(b, spec.accType, arith::ExtUIOp::create(b, b.getI32Type(), last));
  }
  Value from = b.addC(b.mul(row, a.rowStride), (spec.depth() - 1) * 4);
  Value four = b.constantInt(spec.accType, 0);
  for (int64_t i = 0; i < spec.lastFour; ++i) {
    Value byte = convertElements(b, {spec.aType, spec.accType, true}, b.load(spec.aType, item.aBase, b.addC(from, i)));
    Value placed = arith::ShLIOp::create(b, byte, b.constantInt(spec.accType, 8 * i));
    four = arith::OrIOp::create(b, four, placed);
  }
  return four;
}

void GemmEmitter::packLeft(const Item &item) {
  if (spec.tiles())
    return packTiles(item);
  if (spec.bytes)
    return packBytes(item);
  forEachTile(item, [&](const RowTile &tile) { packLeftTile(item, tile); });
}

/// The tile's elements at depths kk .. kk+lanes as one vector a depth; rows
/// beyond the tile are arbitrary.
SmallVector<Value> GemmEmitter::loadLeftVectors(const Item &item, const RowTile &tile, Value kk) {
  SmallVector<Value> rows;
  for (int64_t r = 0; r < t.lanes; ++r) {
    if (r >= tile.rows)
      rows.push_back(rows.back());
    else
      rows.push_back(loadLeft(item.aBase, b.add(b.mul(leftRow(tile, r), a.rowStride), leftDepth(kk)), t.lanes));
  }
  return b.transposed(rows);
}

void GemmEmitter::packLeftTile(const Item &item, const RowTile &tile) {
  Value to = b.elementPtr(spec.accType, packedLeft, b.mul(tile.inBlock, k));
  // Whole vectors are stored at consecutive depths, each overwriting the excess
  // of the one before; only tiles of at most one vector are written that way.
  bool adjacent = CpuBuilder::constantOf(a.colStride) == 1 && tile.rows <= t.lanes;
  bool partial = spec.partialLast();
  Value whole = partial ? b.addC(k, -1) : k, first = b.idx(0);
  Value main = adjacent ? b.mulC(b.floorDiv(whole, b.idx(t.lanes)), t.lanes) : first, last = main;
  if (Depths depths = depthsOfRows(item, tile)) { // no others are read
    auto down = [&](Value depth) { return b.mulC(b.floorDiv(depth, b.idx(t.lanes)), t.lanes); };
    first = adjacent ? b.minS(down(depths->first), main) : depths->first;
    last = b.minS(down(b.addC(depths->second, t.lanes - 1)), main);
    main = adjacent ? main : first;
    whole = b.minS(whole, depths->second);
  }
  if (adjacent)
    b.forLoop(first, last, b.idx(t.lanes), [&](Value kk) {
      SmallVector<Value> vectors = loadLeftVectors(item, tile, kk);
      for (int64_t i = 0; i < t.lanes; ++i)
        b.store(vectors[i], to, b.mulC(b.addC(kk, i), tile.rows));
    });
  auto put = [&](Value x, Value kk, int64_t r) { b.store(x, to, b.addC(b.mulC(kk, tile.rows), r)); };
  b.forLoop(main, whole, b.idx(1), [&](Value kk) {
    for (int64_t r = 0; r < tile.rows; ++r)
      put(loadLeft(item.aBase, b.add(b.mul(leftRow(tile, r), a.rowStride), leftDepth(kk))), kk, r);
  });
  for (int64_t r = 0; partial && r < tile.rows; ++r)
    put(partialStep(item, leftRow(tile, r)), whole, r);
}

//===----------------------------------------------------------------------===//
// Packing a run-time B
//===----------------------------------------------------------------------===//

RightSource GemmEmitter::rightSource(const Item &item, Value k0, Value depth) {
  RightSource source;
  if (spec.copiesB()) {
    source = {packed, spec.accType, b.idx(t.columns()), {}};
    for (int64_t v = 0; v < item.vectors; ++v)
      source.vectorOffset.push_back(b.idx(v * t.lanes));
    return source;
  }
  if (spec.readsB()) {
    Value first = b.add(b.mul(k0, right.rowStride), item.column);
    source = {b.elementPtr(spec.bType, item.bBase, first), spec.bType, right.rowStride, {}};
    for (int64_t v = 0; v < item.vectors; ++v)
      source.vectorOffset.push_back(b.idx(v * t.lanes));
    return source;
  }
  Value first = spec.runs ? b.idx(0) : rightRow(k0);
  source = {b.elementPtr(spec.bType, item.bBase, b.mulC(first, 16)), spec.bType, b.idx(16), {}};
  for (int64_t v = 0; v < item.vectors; ++v) {
    int64_t column = v * t.lanes;
    source.vectorOffset.push_back(b.addC(b.mulC(item.panelRows, column / 16 * 16), column % 16));
  }
  return source;
}

/// Elements of B as accumulator elements.
Value GemmEmitter::rightElements(Value raw) {
  Value x = convertElements(b, {spec.bType, spec.accType, spec.bUnsigned}, raw);
  return spec.roundsB ? roundToBf16(b, x) : x;
}

void GemmEmitter::packRight(const Item &item, Value k0, Value depth) {
  if (spec.blocks)
    return unpacksByTile() ? void() : unpackBlocks(item, k0, b.idx(0), depth);
  for (int64_t v = 0; v < item.vectors; ++v) {
    if (spec.copiesPairs())
      packPairs(item, k0, depth, v);
    else if (CpuBuilder::constantOf(right.rowStride) == 1 && CpuBuilder::constantOf(right.colStride) != 1)
      packTransposed(item, k0, depth, v);
    else
      packVector(item, k0, depth, v);
  }
}

/// One vector of columns, row by row: a vector load where columns are adjacent,
/// else elements.
void GemmEmitter::packVector(const Item &item, Value k0, Value depth, int64_t v) {
  Value column = b.addC(item.column, v * t.lanes);
  Value lanesOn = mask(item, v);
  bool adjacent = CpuBuilder::constantOf(right.colStride) == 1;
  Value limit = b.minS(b.idx(t.lanes), b.sub(n, column));
  b.forLoop(b.idx(0), depth, b.idx(1), [&](Value i) {
    Value from = b.add(b.mul(b.add(k0, i), right.rowStride), b.mul(column, right.colStride));
    Value to = b.addC(b.mulC(i, t.columns()), v * t.lanes);
    if (adjacent) {
      Value raw =
          lanesOn ? b.maskedLoad(spec.bType, item.bBase, from, lanesOn) : b.load(spec.bType, item.bBase, from, t.lanes);
      b.store(rightElements(raw), packed, to);
      return;
    }
    b.forLoop(b.idx(0), limit, b.idx(1), [&](Value j) {
      Value raw = b.load(spec.bType, item.bBase, b.add(from, b.mul(j, right.colStride)));
      b.store(rightElements(raw), packed, b.add(to, j));
    });
  });
}

/// One vector of columns whose elements are adjacent along k: blocks of lanes x
/// lanes are transposed in registers.
void GemmEmitter::packTransposed(const Item &item, Value k0, Value depth, int64_t v) {
  Value column = b.addC(item.column, v * t.lanes);
  auto source = [&](int64_t j) { // columns beyond n repeat the last one
    Value col = b.minS(b.addC(column, j), b.addC(n, -1));
    return b.add(b.mul(col, right.colStride), k0);
  };
  Value main = b.mulC(b.floorDiv(depth, b.idx(t.lanes)), t.lanes);
  b.forLoop(b.idx(0), main, b.idx(t.lanes), [&](Value i) {
    SmallVector<Value> rows;
    for (int64_t j = 0; j < t.lanes; ++j)
      rows.push_back(rightElements(b.load(spec.bType, item.bBase, b.add(source(j), i), t.lanes)));
    SmallVector<Value> turned = b.transposed(rows);
    for (int64_t j = 0; j < t.lanes; ++j)
      b.store(turned[j], packed, b.addC(b.mulC(b.addC(i, j), t.columns()), v * t.lanes));
  });
  b.forLoop(main, depth, b.idx(1), [&](Value i) {
    for (int64_t j = 0; j < t.lanes; ++j) {
      Value raw = b.load(spec.bType, item.bBase, b.add(source(j), i));
      Value to = b.addC(b.mulC(i, t.columns()), v * t.lanes + j);
      b.store(rightElements(raw), packed, to);
    }
  });
}

//===----------------------------------------------------------------------===//
// One row times columns that lie along k
//===----------------------------------------------------------------------===//

/// Adds neighbours until one is left.
static Value sumOf(CpuBuilder &b, SmallVector<Value> terms) {
  while (terms.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i + 1 < terms.size(); i += 2)
      next.push_back(arith::AddFOp::create(b, terms[i], terms[i + 1]));
    if (terms.size() % 2)
      next.push_back(terms.back());
    terms = std::move(next);
  }
  return terms.front();
}

/// Of columns from `first` on, beyond the last one that again: a vector each whose lanes are to be added.
GemmEmitter::Values GemmEmitter::columnsBeside(const Item &item, Value left, Value first, int64_t count) {
  const int64_t chains = b.isa().vectorRegisters >= 32 ? 4 : 2, step = chains * t.lanes,
                whole = spec.depth() / step * step;
  Values from;
  for (int64_t j = 0; j < count; ++j) {
    Value column = b.minS(b.addC(first, j), b.addC(n, -1));
    from.push_back(b.elementPtr(spec.bType, item.bBase, b.mul(column, right.colStride)));
  }
  auto add = [&](Value kk, ValueRange sums, int64_t parts) {
    Values next = llvm::to_vector(sums);
    for (int64_t part = 0; part < parts; ++part) {
      Value at = b.addC(kk, part * t.lanes), x = b.load(spec.aType, left, at, t.lanes);
      for (int64_t j = 0; j < count; ++j) {
        Value &sum = next[j * chains + part];
        sum = b.fma(x, b.load(spec.bType, from[j], at, t.lanes), sum);
      }
    }
    return next;
  };
  Values sums(count * chains, b.constant(b.laneType(spec.accType, t.lanes), 0));
  sums = b.forLoop(b.idx(0), b.idx(whole), b.idx(step), sums,
                   [&](Value kk, ValueRange init) { return add(kk, init, chains); });
  sums = b.forLoop(b.idx(whole), k, b.idx(t.lanes), sums, [&](Value kk, ValueRange init) { return add(kk, init, 1); });
  Values columns;
  for (int64_t j = 0; j < count; ++j)
    columns.push_back(sumOf(b, Values(ArrayRef(sums).slice(j * chains, chains))));
  return columns;
}

/// The sums of a tile of one row: few columns at a time, as each is a stream of its own.
GemmEmitter::Values GemmEmitter::columnSums(const Item &item, const RowTile &tile) {
  constexpr int64_t streams = 4;
  Value left = b.elementPtr(spec.aType, item.aBase, b.mul(tile.row, a.rowStride));
  Values sums;
  for (int64_t v = 0; v < item.vectors; ++v) {
    Values columns;
    for (int64_t j = 0; j < t.lanes; j += streams)
      columns.append(columnsBeside(item, left, b.addC(item.column, v * t.lanes + j), std::min(streams, t.lanes - j)));
    sums.push_back(sumOf(b, t.lanes > 1 ? b.transposed(columns) : columns));
  }
  return sums;
}

//===----------------------------------------------------------------------===//
// One row times rows that lie as they are
//===----------------------------------------------------------------------===//
//
// Memory gives what it can where few long pieces are read one after the other: the hardware foresees what comes on a
// page, not where the next row's page is. So rows of B are read as far as the call's columns go, several beside each
// other, and sums wait in scratch, in a near cache. They are those of a register tile: the same chains and stretches.

/// Where sums of `count` columns wait: of a stretch, then those of all stretches before it, each chain by chain.
Value GemmEmitter::streamSums(bool ofAll, int64_t chain) {
  return b.elementPtr(spec.accType, partials, b.idx(((ofAll ? chains() : 0) + chain) * spec.streamColumns(t)));
}

/// Runs `body` for every vector of the columns [0, count) behind the item's first, the last of which may be masked.
void GemmEmitter::forVectors(Value count, llvm::function_ref<void(Value at, Value mask)> body) {
  Value whole = b.mulC(b.floorDiv(count, b.idx(t.lanes)), t.lanes);
  b.forLoop(b.idx(0), whole, b.idx(t.lanes), [&](Value at) { body(at, {}); });
  if (t.lanes == 1 || (spec.columns() >= 0 && spec.columns() % t.lanes == 0))
    return;
  b.ifThen(b.cmp(arith::CmpIPredicate::slt, whole, count),
           [&] { body(whole, b.headMask(t.lanes, b.sub(count, whole))); });
}

/// Adds what `depths` rows of B from depth kk on give to the sums of a stretch, or of all: those of a stretch's rows
/// take turns with the chains.
void GemmEmitter::addStreams(const Item &item, Value kk, int64_t depths, Value count, bool ofAll) {
  SmallVector<Value> factors, rows;
  for (int64_t r = 0; r < depths; ++r) {
    Value depth = b.addC(kk, r);
    factors.push_back(b.splat(loadLeft(item.aBase, leftDepth(depth)), t.lanes));
    rows.push_back(b.elementPtr(spec.bType, item.bBase, b.add(b.mul(depth, right.rowStride), item.column)));
  }
  const int64_t used = std::min(depths, chains());
  forVectors(count, [&](Value at, Value mask) {
    SmallVector<Value> sums;
    for (int64_t chain = 0; chain < used; ++chain)
      sums.push_back(b.load(spec.accType, streamSums(ofAll, chain), at, t.lanes));
    for (int64_t r = 0; r < depths; ++r) {
      Value raw = mask ? b.maskedLoad(spec.bType, rows[r], at, mask) : b.load(spec.bType, rows[r], at, t.lanes);
      Value x = convertElements(b, {spec.bType, spec.accType, spec.bUnsigned}, raw);
      if (callbacks.mapB)
        x = callbacks.mapB(x, b.add(item.column, at));
      Value &sum = sums[r % used];
      sum = multiplyAdd(b, factors[r], x, sum);
    }
    for (int64_t chain = 0; chain < used; ++chain)
      b.store(sums[chain], streamSums(ofAll, chain), at);
  });
}

/// The sums of a stretch become part of those of all, and begin anew.
void GemmEmitter::endStretch(Value count) {
  Value zero = b.constant(b.laneType(spec.accType, t.lanes), 0);
  const bool isFloat = isa<FloatType>(spec.accType);
  b.forLoop(b.idx(0), count, b.idx(t.lanes), [&](Value at) {
    for (int64_t chain = 0; chain < chains(); ++chain) {
      Value all = b.load(spec.accType, streamSums(true, chain), at, t.lanes),
            part = b.load(spec.accType, streamSums(false, chain), at, t.lanes);
      Value sum = isFloat ? Value(arith::AddFOp::create(b, all, part)) : Value(arith::AddIOp::create(b, all, part));
      b.store(sum, streamSums(true, chain), at);
      b.store(zero, streamSums(false, chain), at);
    }
  });
}

/// All of k for the columns [item.column, item.column + count).
void GemmEmitter::streamItem(const Item &item, Value count) {
  constexpr int64_t beside = 8;
  Value zero = b.constant(b.laneType(spec.accType, t.lanes), 0);
  b.forLoop(b.idx(0), count, b.idx(t.lanes), [&](Value at) {
    for (int64_t chain = 0; chain < 2 * chains(); ++chain)
      b.store(zero, streamSums(false, chain), at);
  });
  const int64_t stretch =
      stepsOfStretch(productStretch(spec.depth(), /*fewRows=*/true) * chains(), 1, std::max(t.unroll, beside));
  Value main = b.mulC(b.floorDiv(k, b.idx(t.unroll)), t.unroll);
  b.forLoop(b.idx(0), main, b.idx(stretch), [&](Value from) {
    Value to = b.minS(b.addC(from, stretch), main), rest = b.sub(to, b.rem(b.sub(to, from), b.idx(beside)));
    b.forLoop(from, rest, b.idx(beside), [&](Value kk) { addStreams(item, kk, beside, count, false); });
    b.forLoop(rest, to, b.idx(t.unroll), [&](Value kk) { addStreams(item, kk, t.unroll, count, false); });
    endStretch(count);
  });
  b.forLoop(main, k, b.idx(1), [&](Value kk) { addStreams(item, kk, 1, count, true); });
  const RegisterTile regs{1, 1, t.lanes, spec.accType, /*fours=*/false, chains()};
  forVectors(count, [&](Value at, Value mask) {
    SmallVector<Value> sums;
    for (int64_t chain = 0; chain < chains(); ++chain)
      sums.push_back(b.load(spec.accType, streamSums(true, chain), at, t.lanes));
    callbacks.store(item.batch, b.idx(0), b.add(item.column, at), sumChains(b, regs, sums).front(), mask);
  });
}

/// The call's items: of each batch item its columns, as many at a time as sums have room for.
void GemmEmitter::emitStreams() {
  Value columns = b.idx(t.columns()), groups = b.maxS(b.ceilDiv(n, columns), b.idx(1));
  b.forLoop(b.floorDiv(b.begin(), groups), b.ceilDiv(b.end(), groups), b.idx(1), [&](Value index) {
    Value before = b.mul(index, groups);
    Value first = b.mulC(b.maxS(b.sub(b.begin(), before), b.idx(0)), t.columns());
    Value last = b.minS(b.mulC(b.minS(b.sub(b.end(), before), groups), t.columns()), n);
    Item item;
    item.batch = index;
    item.aBase = batchBase(a, spec.aType, index);
    item.bBase = batchBase(right, spec.bType, index);
    b.forLoop(first, last, b.idx(spec.streamColumns(t)), [&](Value column) {
      item.column = column;
      streamItem(item, b.minS(b.idx(spec.streamColumns(t)), b.sub(last, column)));
    });
  });
}
