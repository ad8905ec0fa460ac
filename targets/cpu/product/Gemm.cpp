//===- Gemm.cpp - matrix multiplication kernels --------------------------===//
//
// Loops: work item (batch, block of rows, group of columns) > pass over k >
// register tile of rows > k. Sums stay in registers for a whole pass; with
// several passes they wait in scratch, and the epilogue then runs once over the
// item. Tiles of AMX (GemmUnits.cpp) take the place of the last two loops.
//
//===----------------------------------------------------------------------===//

#include "GemmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Work items
//===----------------------------------------------------------------------===//

GemmEmitter::GemmEmitter(CpuBuilder &b, const GemmKernel &spec, const GemmTiles &tiles, const GemmMatrix &a,
                         const GemmMatrix &bMatrix, const GemmCallbacks &callbacks, const GemmExtents &extents,
                         int64_t scratchOffset)
    : b(b), spec(spec.at(b.isa())), t(tiles), a(a), right(bMatrix), callbacks(callbacks) {
  auto valueOf = [&](Dim size, Value extent) { return extent && !size.isStatic() ? extent : b.idx(size); };
  batch = b.idx(spec.batch);
  m = valueOf(spec.m, extents.m);
  n = valueOf(spec.n, extents.n);
  elements = valueOf(spec.k, extents.k);
  k = valueOf(this->spec.k, this->spec.copiesPairs() ? b.ceilDiv(elements, b.idx(2)) : elements);
  packedLeft = b.elementPtr(b.getI8Type(), b.scratch(), b.idx(scratchOffset));
  packed = b.elementPtr(b.getI8Type(), packedLeft, b.idx(packedABytes(this->spec, t)));
  int64_t packedElements = spec.copiesB() ? t.kBlock * t.columns() : 0;
  partials = b.elementPtr(spec.accType, packed, b.idx(packedElements));
}

void GemmEmitter::emit() {
  if (spec.grouped)
    return emitGroups();
  if (spec.streams(t) && !callbacks.depths)
    return emitStreams();
  if (spec.tiles())
    configureTiles();
  Value columns = b.idx(t.columns()), groups = b.ceilDiv(n, columns), fullGroups = b.floorDiv(n, columns);
  Value rowTiles = staticM() ? b.idx(numTiles()) : b.ceilDiv(m, b.idx(t.rows));
  Value blocks = b.ceilDiv(rowTiles, b.idx(t.tilesPerBlock));
  // Carried along: which block's copy of A is in scratch.
  auto body = [&](Value index, ValueRange carried) -> SmallVector<Value> {
    Item item;
    Value group = b.rem(index, groups), rest = b.floorDiv(index, groups);
    item.block = b.rem(rest, blocks);
    item.batch = b.floorDiv(rest, blocks);
    if (!staticM() || spec.tiles()) {
      // Blocks of equal size, so that equal numbers of items are equal work.
      auto rowOf = [&](Value block) { return b.mulC(b.floorDiv(b.mul(block, rowTiles), blocks), t.rows); };
      item.firstRow = rowOf(item.block);
      item.lastRow = b.minS(rowOf(b.addC(item.block, 1)), m);
    }
    item.column = b.mulC(group, t.columns());
    item.vectors = t.vectors;
    item.tailColumns = 0;
    item.dynamicTail = false;
    item.aBase = batchBase(a, spec.aType, item.batch);
    if (t.packA)
      b.ifThen(b.cmp(arith::CmpIPredicate::ne, rest, carried[0]), [&] { packLeft(item); });
    emitFullOrTail(item, b.cmp(arith::CmpIPredicate::slt, group, fullGroups), [&](const Item &one) { emitItem(one); });
    return {rest};
  };
  Value begin = spec.nested ? b.idx(0) : b.begin();
  Value end = spec.nested ? b.mul(b.mul(batch, blocks), groups) : b.end();
  bool keeps = t.packA && !spec.nested;
  Value last = b.forLoop(begin, end, b.idx(1), {keeps ? b.kept() : b.idx(-1)}, body).front();
  if (keeps)
    b.keep(last);
  if (spec.tiles())
    releaseTiles(b);
}

/// A work item is a batch item and a group of columns: all blocks of that item's rows.
void GemmEmitter::emitGroups() {
  Value columns = b.idx(t.columns()), groups = b.ceilDiv(n, columns), fullGroups = b.floorDiv(n, columns), all = m;
  auto blocksOf = [&](Item item, Value first, Value last) {
    m = last;
    b.forLoop(first, last, b.idx(t.rowsPerBlock()), [&](Value row) {
      item.firstRow = row;
      item.lastRow = b.minS(b.addC(row, t.rowsPerBlock()), last);
      emitItem(item);
    });
    Value isLast = b.cmp(arith::CmpIPredicate::eq, item.batch, b.addC(batch, -1));
    b.ifThen(isLast, [&] {
      Value zero = b.constant(b.laneType(spec.accType, t.lanes), 0);
      b.forLoop(last, all, b.idx(1), [&](Value row) { storeRow(item, row, [&](int64_t) { return zero; }); });
    });
    m = all;
  };
  b.forLoop(b.begin(), b.end(), b.idx(1), [&](Value index) {
    Value group = b.rem(index, groups);
    Item item;
    item.batch = b.floorDiv(index, groups);
    item.block = b.idx(0);
    item.column = b.mulC(group, t.columns());
    item.vectors = t.vectors;
    item.tailColumns = 0;
    item.dynamicTail = false;
    item.aBase = batchBase(a, spec.aType, item.batch);
    auto [first, last] = callbacks.rows(item.batch);
    emitFullOrTail(item, b.cmp(arith::CmpIPredicate::slt, group, fullGroups),
                   [&, first = first, last = last](const Item &one) { blocksOf(one, first, last); });
  });
}

void GemmEmitter::emitFullOrTail(const Item &item, Value isFull, ItemFn emitOne) {
  Item tail = item;
  tail.dynamicTail = spec.columns() < 0;
  if (spec.columns() >= 0) {
    tail.tailColumns = spec.columns() % t.columns();
    tail.vectors = ceilDivInt(tail.tailColumns, t.lanes);
    if (!tail.tailColumns)
      return emitOne(item);
    if (spec.columns() < t.columns())
      return emitOne(tail);
  }
  b.ifThen(isFull, [&] { emitOne(item); }, [&] { emitOne(tail); });
}

Value GemmEmitter::batchBase(const GemmMatrix &matrix, Type element, Value batch) {
  return b.elementPtr(element, matrix.base, matrix.offset ? matrix.offset(batch) : b.idx(0));
}

void GemmEmitter::emitItem(Item item) {
  item.bBase = batchBase(right, spec.bType, item.batch);
  item.panelRows = rowsOfPanels();
  if (spec.runs) {
    findRuns(item);
  } else if (spec.packedB) {
    // Panel of the first column, and the column's place in it when groups are narrower.
    Value panel = b.floorDiv(item.column, b.idx(16)), inPanel = b.rem(item.column, b.idx(16));
    Value offset = b.add(b.mulC(b.mul(panel, item.panelRows), 16), inPanel);
    item.bBase = b.elementPtr(spec.bType, item.bBase, offset);
  }
  if (spec.tiles())
    return itemOfTiles(item);
  auto passes = [&] {
    if (spec.depth() >= 0 && spec.depth() <= t.kBlock)
      onePass(item);
    else
      severalPasses(item);
  };
  if (!spec.blocks || (staticM() && !spec.skinny() && !spec.bytes))
    passes();
  else if (spec.skinny() || spec.bytes)
    forEachTile(item, [&](const RowTile &tile) { finishTile(item, tile, sumOfBlocks(item, tile)); });
  else
    b.ifThen(
        b.cmp(arith::CmpIPredicate::sle, rowsOf(item), b.idx(GemmKernel::kSkinny)), [&] { fewRowsOfBlocks(item); },
        passes);
}

void GemmEmitter::onePass(Item &item) {
  if (t.prefetch && t.columns() >= 16)
    item.next = b.elementPtr(spec.bType, item.bBase, b.mulC(item.panelRows, t.columns()));
  Depths depths = spec.copiesB() ? depthsOfItem(item) : std::nullopt;
  if (depths)
    b.ifThen(b.cmp(arith::CmpIPredicate::slt, depths->first, depths->second), [&] { packRight(item, b.idx(0), k); });
  else if (spec.copiesB())
    packRight(item, b.idx(0), k);
  RightSource source = rightSource(item, b.idx(0), k);
  forEachTile(item, [&](const RowTile &tile) {
    if (!callsMicro(item, tile))
      return finishTile(item, tile,
                        spec.sumsColumns() ? columnSums(item, tile) : reduce(item, tile, source, b.idx(0), k, {}));
    microTile(item, tile, source, b.idx(0), k, partials, /*adds=*/false);
    epilogueLoop(item, tile.row, b.idx(0), b.idx(tile.rows));
  });
}

/// Results of a tile whose sums are complete.
void GemmEmitter::finishTile(const Item &item, const RowTile &tile, ArrayRef<Value> acc) {
  if (!spec.heavyEpilogue)
    return storeTile(item, tile, acc);
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t v = 0; v < item.vectors; ++v)
      b.store(acc[r * item.vectors + v], partials, b.idx(r * t.columns() + v * t.lanes));
  Value count = tile.guarded ? b.minS(b.idx(tile.rows), b.sub(m, tile.row)) : b.idx(tile.rows);
  epilogueLoop(item, tile.row, b.idx(0), count);
}

void GemmEmitter::severalPasses(Item &item) {
  Type vectorType = b.laneType(spec.accType, t.lanes);
  int64_t rows = t.rowsPerBlock();
  b.forLoop(0, rows * t.vectors, 1, [&](Value i) { b.store(b.constant(vectorType, 0), partials, b.mulC(i, t.lanes)); });
  Value nextGroup = b.mulC(item.panelRows, t.columns());
  auto pass = [&](Value k0) {
    Value depth = b.minS(b.idx(t.kBlock), b.sub(k, k0));
    if (t.prefetch && t.columns() >= 16) {
      Value after = b.addC(k0, t.kBlock);
      Value more = b.cmp(arith::CmpIPredicate::slt, after, k);
      Value next = arith::SelectOp::create(b, more, b.mulC(rightRow(after), 16), nextGroup);
      item.next = b.elementPtr(spec.bType, item.bBase, next);
    }
    if (spec.copiesB())
      packRight(item, k0, depth);
    RightSource source = rightSource(item, k0, depth);
    forEachTile(item, [&](const RowTile &tile) {
      Value base = b.elementPtr(spec.accType, partials, b.mulC(tile.inBlock, t.columns()));
      if (callsMicro(item, tile))
        return microTile(item, tile, source, k0, depth, base, /*adds=*/true);
      SmallVector<Value> acc;
      auto offset = [&](int64_t r, int64_t v) { return b.idx(r * t.columns() + v * t.lanes); };
      for (int64_t r = 0; r < tile.rows; ++r)
        for (int64_t v = 0; v < item.vectors; ++v)
          acc.push_back(b.load(spec.accType, base, offset(r, v), t.lanes));
      acc = reduce(item, tile, source, k0, depth, acc);
      for (int64_t r = 0; r < tile.rows; ++r)
        for (int64_t v = 0; v < item.vectors; ++v)
          b.store(acc[r * item.vectors + v], base, offset(r, v));
    });
  };
  forEachPass(item, pass);
  auto [first, last] = rowsOfItem(item); // one sweep over them
  epilogueLoop(item, first, b.idx(0), b.sub(last, first));
}

/// Balanced, or as many as can be of the rows that a micro-kernel has.
GemmEmitter::RowCut GemmEmitter::cutRows() const {
  if (spec.micro)
    return {spec.rows() / t.rows, t.rows, spec.rows() % t.rows};
  int64_t tiles = numTiles(), low = spec.rows() / tiles;
  return {spec.rows() - low * tiles, low + 1, low};
}

Value GemmEmitter::firstRowOf(Value tile) {
  RowCut cut = cutRows();
  return b.add(b.mulC(tile, cut.low), b.mulC(b.minS(tile, b.idx(cut.high)), cut.tall - cut.low));
}

/// The first row of an item, and the one behind its last. Tiles of a static m are not all of `rows` rows.
std::pair<Value, Value> GemmEmitter::rowsOfItem(const Item &item) {
  if (!staticM())
    return {item.firstRow, item.lastRow};
  Value tile = b.mulC(item.block, t.tilesPerBlock);
  Value beyond = b.minS(b.addC(tile, t.tilesPerBlock), b.idx(numTiles()));
  Value first = firstRowOf(tile);
  return {first, firstRowOf(beyond)};
}

/// The depths that an item needs, and those that a tile needs of a pass; nothing where that is all of them.
GemmEmitter::Depths GemmEmitter::depthsOf(const Item &item, Value row, Value rows) {
  if (!callbacks.depths)
    return std::nullopt;
  return callbacks.depths({item.batch, row, rows, item.column, b.idx(item.vectors * t.lanes)});
}

/// Those that a tile's rows need for any columns.
GemmEmitter::Depths GemmEmitter::depthsOfRows(const Item &item, const RowTile &tile) {
  if (!callbacks.depths)
    return std::nullopt;
  return callbacks.depths({item.batch, tile.row, b.idx(tile.rows), b.idx(0), n});
}

GemmEmitter::Depths GemmEmitter::depthsOfItem(const Item &item) {
  if (!callbacks.depths)
    return std::nullopt;
  auto [first, last] = rowsOfItem(item);
  return depthsOf(item, first, b.sub(last, first));
}

GemmEmitter::Depths GemmEmitter::depthsOfTile(const Item &item, const RowTile &tile, Value k0) {
  Depths depths = depthsOf(item, tile.row, b.idx(tile.rows));
  if (depths)
    depths = {b.maxS(b.sub(depths->first, k0), b.idx(0)), b.sub(depths->second, k0)};
  return depths;
}

/// Passes over k, those that have some of what the item needs and, of a B in runs, some of it.
void GemmEmitter::forEachPass(Item &item, llvm::function_ref<void(Value k0)> pass) {
  Value low = b.idx(0), high = k;
  if (Depths depths = depthsOfItem(item))
    low = b.mulC(b.floorDiv(depths->first, b.idx(t.kBlock)), t.kBlock), high = depths->second;
  if (!spec.runs)
    return b.forLoop(low, high, b.idx(t.kBlock), pass);
  Value beyond = callbacks.depths ? runBeyond(item.run, low) : item.run;
  b.forLoop(low, high, b.idx(t.kBlock), {beyond}, [&](Value k0, ValueRange run) -> SmallVector<Value> {
    Value end = b.addC(k0, t.kBlock);
    item.run = run[0];
    b.ifThen(hasRunBefore(item.run, end), [&] { pass(k0); });
    return {runBeyond(item.run, end)};
  });
}

//===----------------------------------------------------------------------===//
// Tiles of rows
//===----------------------------------------------------------------------===//

void GemmEmitter::forEachTile(const Item &item, TileFn fn) {
  if (staticM())
    staticTiles(item, fn);
  else
    dynamicTiles(item, fn);
}

void GemmEmitter::staticTiles(const Item &item, TileFn fn) {
  const int64_t tiles = numTiles();
  const RowCut cut = cutRows();
  Value first = b.mulC(item.block, t.tilesPerBlock);
  Value last = b.minS(b.addC(first, t.tilesPerBlock), b.idx(tiles));
  Value split = b.idx(cut.high);
  Value blockRow = firstRowOf(first);
  auto emitOne = [&](Value index, Value row, int64_t rows) {
    fn({row, b.sub(row, blockRow), b.sub(index, first), rows,
        /*guarded=*/false, /*share=*/Value()});
  };
  if (cut.high)
    b.forLoop(first, b.minS(last, split), b.idx(1), [&](Value i) { emitOne(i, b.mulC(i, cut.tall), cut.tall); });
  int64_t tallRows = cut.high * (cut.tall - cut.low);
  if (cut.high < tiles && cut.low)
    b.forLoop(b.maxS(first, split), last, b.idx(1),
              [&](Value i) { emitOne(i, b.addC(b.mulC(i, cut.low), tallRows), cut.low); });
}

void GemmEmitter::dynamicTiles(const Item &item, TileFn fn) {
  Value all = b.sub(item.lastRow, item.firstRow);
  cutInTiles(b, all, t.rows, {1, 4}, [&](int64_t rows, Value at, Value left) {
    RowTile tile{b.add(item.firstRow, at), at, Value(), rows, /*guarded=*/bool(left), Value()};
    if (rows == t.rows && !left) {
      tile.index = b.floorDiv(at, b.idx(rows));
      tile.share = b.floorDiv(b.idx(1 << 16), b.ceilDiv(all, b.idx(rows)));
    }
    fn(tile);
  });
}

//===----------------------------------------------------------------------===//
// The register tile
//===----------------------------------------------------------------------===//

SmallVector<Value> GemmEmitter::rowPointers(const Item &item, const RowTile &tile, Value k0) {
  SmallVector<Value> pointers;
  if (t.packA) {
    Value offset = b.add(b.mul(tile.inBlock, k), b.mulC(k0, tile.rows));
    return {b.elementPtr(spec.accType, packedLeft, offset)};
  }
  // With a constant stride one pointer serves all rows (the rest is displacement).
  Value depth = leftDepth(k0);
  bool shared = CpuBuilder::constantOf(a.rowStride).has_value() && !tile.guarded;
  for (int64_t r = 0; r < (shared ? 1 : tile.rows); ++r) {
    Value offset = b.add(b.mul(leftRow(tile, r), a.rowStride), depth);
    pointers.push_back(b.elementPtr(spec.aType, item.aBase, offset));
  }
  return pointers;
}

/// The u-th step of an iteration that begins at depth `from`, whose row of B is `shift` further on where that is one.
void GemmEmitter::step(const Item &item, const RowTile &tile, const RightSource &source, ArrayRef<Value> rowBase,
                       Value from, Value shift, int64_t u, const RegisterTile &regs, MutableArrayRef<Value> acc) {
  b.fence();
  SmallVector<Value> vectors;
  Value kk = b.addC(from, u);
  Value row = asFloats() ? b.addC(rightRow(from), u / 2) : shift ? b.add(kk, shift) : kk;
  Value kOffset = b.mul(row, source.kStride);
  for (int64_t v = 0; v < item.vectors; ++v) {
    Value at = b.add(kOffset, source.vectorOffset[v]), inside = spec.readsB() ? mask(item, v) : Value();
    Value raw = inside ? b.maskedLoad(source.element, source.base, at, inside)
                       : b.load(source.element, source.base, at, t.lanes);
    Value x = asFloats()    ? halfOfPairs(b, raw, u % 2)
              : spec.dots() ? raw
                            : convertElements(b, {source.element, spec.accType, spec.bUnsigned}, raw);
    if (callbacks.mapB)
      x = callbacks.mapB(x, b.addC(item.column, v * t.lanes));
    vectors.push_back(x);
  }
  Value aOffset = t.packA ? b.mulC(kk, tile.rows) : leftDepth(kk);
  auto left = [&](int64_t r) -> Value {
    if (t.packA)
      return b.load(spec.accType, rowBase[0], b.addC(aOffset, r));
    bool shared = rowBase.size() == 1;
    Value offset = shared ? b.add(aOffset, b.mul(b.idx(r), a.rowStride)) : aOffset;
    return loadLeft(rowBase[shared ? 0 : r], offset);
  };
  accumulateTile(b, regs, acc, left, vectors, u % regs.chains);
}

/// The next rows of a B that is read where it lies: they are on pages of their own, where the hardware foresees
/// nothing.
void GemmEmitter::prefetchRows(const Item &item, const RightSource &source, Value kk) {
  constexpr int64_t ahead = 8, line = 64;
  int64_t bytes = spec.bType.getIntOrFloatBitWidth() / 8;
  for (int64_t u = 0; u < t.unroll; ++u) {
    Value row = b.mul(b.addC(kk, ahead + u), source.kStride);
    for (int64_t column = 0; column < item.vectors * t.lanes; column += std::max<int64_t>(1, line / bytes))
      b.prefetch(spec.bType, source.base, b.addC(row, column), /*locality=*/3);
  }
}

void GemmEmitter::prefetchNext(const Item &item, const RowTile &tile, Value kk, Value depth) {
  // The next panels' lines are spread evenly over the tiles that read the present ones. How many these are when m is
  // dynamic a run tells; where they are few, some of the lines are left to the hardware.
  int64_t perRow = asFloats() ? 2 : 1, tiles = (tile.index ? t.tilesPerBlock : 1) * perRow;
  int64_t depthsOfLine = std::max<int64_t>(1, 64 / (16 * spec.bType.getIntOrFloatBitWidth() / 8));
  Value line = rightRow(kk);
  int64_t lines = ceilDivInt(t.unroll, tiles);
  if (tile.index) {
    Value step = b.add(b.mul(tile.index, depth), kk);
    line = tile.share ? b.floorDiv(b.mul(step, tile.share), b.idx(perRow << 16)) : b.floorDiv(step, b.idx(tiles));
    lines = tile.share ? 2 : lines;
  }
  for (int64_t q = 0; q < lines; q += depthsOfLine)
    for (int64_t p = 0; p < t.columns() / 16; ++p) {
      Value offset = b.add(b.mulC(b.addC(line, q), 16), b.mulC(item.panelRows, p * 16));
      b.prefetch(spec.bType, item.next, offset, /*locality=*/2);
    }
}

SmallVector<Value> GemmEmitter::reduce(const Item &item, const RowTile &tile, const RightSource &source, Value k0,
                                       Value depth, SmallVector<Value> acc) {
  SmallVector<Value> rowBase = rowPointers(item, tile, k0);
  RegisterTile regs = registers(item, tile.rows);
  bool prefetch = item.next && (tile.index || (tile.guarded && t.prefetchRest));
  auto steps = [&](int64_t unroll, bool prefetch, Value shift, Value kk, ValueRange carried) {
    SmallVector<Value> sums = llvm::to_vector(carried);
    if (prefetch)
      prefetchNext(item, tile, kk, depth);
    if (spec.asksAhead() && unroll == t.unroll)
      prefetchRows(item, source, kk);
    for (int64_t u = 0; u < unroll; ++u)
      step(item, tile, source, rowBase, kk, shift, u, regs, sums);
    return sums;
  };
  Value next = spec.runs ? runSlot(item) : Value();
  Depths depths = depthsOfTile(item, tile, k0);
  auto sum = [&](Value low, Value high, int64_t unroll, bool prefetch, ValueRange init) {
    if (depths)
      low = b.maxS(low, depths->first), high = b.minS(high, depths->second);
    if (spec.runs)
      return sumOfRuns(next, k0, low, high, unroll, init, [&](Value shift, Value kk, ValueRange sums) {
        return steps(unroll, prefetch, shift, kk, sums);
      });
    auto loop = [&](Value from, Value to, ValueRange sums) {
      auto body = [&](Value kk, ValueRange carried) { return steps(unroll, prefetch, {}, kk, carried); };
      return b.forLoop(from, to, b.idx(unroll), sums, body);
    };
    return unpacksByTile() ? sumUnpacking(item, tile, k0, low, high, init, loop) : loop(low, high, init);
  };
  Value main = b.mulC(b.floorDiv(depth, b.idx(t.unroll)), t.unroll);
  // Whole stretches that nothing needs would add zeros.
  Value low = depths ? b.mulC(b.floorDiv(depths->first, b.idx(stretch())), stretch()) : b.idx(0);
  Value high = depths ? b.minS(main, depths->second) : main;
  acc = sumInStretches(b, regs, low, high, stretch(), beginChains(b, regs, acc),
                       [&](Value from, Value to, ValueRange init) { return sum(from, to, t.unroll, prefetch, init); });
  bool whole = spec.depth() >= 0 && spec.depth() % t.unroll == 0 && t.kBlock % t.unroll == 0;
  Value even = main;
  if (!whole && asFloats()) // both halves of a pair
    acc = sum(main, even = b.mulC(b.floorDiv(depth, b.idx(2)), 2), 2, false, acc);
  if (!whole)
    acc = sum(even, depth, 1, false, acc);
  return sumChains(b, regs, acc);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value GemmEmitter::mask(const Item &item, int64_t v) {
  if (t.lanes == 1)
    return {};
  if (item.dynamicTail)
    return b.headMask(t.lanes, b.sub(n, b.addC(item.column, v * t.lanes)));
  int64_t valid = item.tailColumns ? item.tailColumns - v * t.lanes : t.lanes;
  return valid < t.lanes ? b.headMask(t.lanes, valid) : Value();
}

void GemmEmitter::storeRow(const Item &item, Value row, llvm::function_ref<Value(int64_t)> value) {
  for (int64_t v = 0; v < item.vectors; ++v)
    callbacks.store(item.batch, row, b.addC(item.column, v * t.lanes), value(v), mask(item, v));
}

void GemmEmitter::storeTile(const Item &item, const RowTile &tile, ArrayRef<Value> acc) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    Value row = b.addC(tile.row, r);
    auto store = [&] { storeRow(item, row, [&](int64_t v) { return acc[r * item.vectors + v]; }); };
    if (tile.guarded)
      b.ifThen(b.cmp(arith::CmpIPredicate::slt, row, m), store);
    else
      store();
  }
}

void GemmEmitter::epilogueLoop(const Item &item, Value row, Value inBlock, Value count) {
  b.forLoop(b.idx(0), count, b.idx(1), [&](Value i) {
    Value base = b.mulC(b.add(inBlock, i), t.columns());
    storeRow(item, b.add(row, i),
             [&](int64_t v) { return b.load(spec.accType, partials, b.addC(base, v * t.lanes), t.lanes); });
  });
}

void dmxc::cpu::emitGemm(CpuBuilder &b, const GemmKernel &spec, const GemmTiles &tiles, const GemmMatrix &a,
                         const GemmMatrix &bMatrix, const GemmCallbacks &callbacks, const GemmExtents &extents,
                         int64_t scratchOffset) {
  GemmEmitter(b, spec, tiles, a, bMatrix, callbacks, extents, scratchOffset).emit();
}
