//===- Gemm.cpp - matrix multiplication kernels -------------------------------===//
//
// Loops: work item (batch, block of rows, group of columns) > pass over k > register
// tile of rows > k. Sums stay in registers for a whole pass; with several passes they
// wait in scratch, and the epilogue then runs once over the item.
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"
#include "GemmTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace dmxc::cpu;
using namespace mlir;

namespace {

int64_t ceilDivInt(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Where the register tile finds its vectors of B: vector v of depth k is at
/// base + k*kStride + vectorOffset(v).
struct RightSource {
  Value base;
  Type element;
  int64_t kStride;
  SmallVector<Value> vectorOffset;
};

class GemmEmitter {
public:
  GemmEmitter(KernelBuilder &b, const GemmSpec &spec, const GemmTiles &tiles, const GemmMatrix &a,
              const GemmMatrix &bMatrix, const GemmCallbacks &callbacks, const GemmExtents &extents,
              int64_t scratchOffset);
  void emit();

private:
  struct Item {
    Value batch, block, column; ///< column: first of the group
    Value aBase, bBase;         ///< with the batch item's offset
    int64_t vectors;            ///< of this group
    int64_t tailColumns;        ///< valid columns when static and not full; 0 otherwise
    bool dynamicTail;           ///< every vector needs a run-time mask
    Value next;                 ///< where to prefetch this pass, or null
  };
  struct RowTile {
    Value row;      ///< first row
    Value inBlock;  ///< the same, counted from the block's first row
    Value index;    ///< number of the tile in its block; null when m is dynamic
    int64_t rows;
    bool guarded;   ///< rows beyond m are computed from row m-1 and not stored
  };
  using TileFn = llvm::function_ref<void(const RowTile &)>;

  void emitItem(Item item);
  void onePass(Item &item);
  void severalPasses(Item &item);
  void forEachTile(const Item &item, TileFn fn);
  void staticTiles(const Item &item, TileFn fn);
  void dynamicTiles(const Item &item, TileFn fn);
  RightSource rightSource(const Item &item, Value k0, Value depth);
  void packRight(const Item &item, Value k0, Value depth);
  void packVector(const Item &item, Value k0, Value depth, int64_t v);
  void packTransposed(const Item &item, Value k0, Value depth, int64_t v);
  SmallVector<Value> reduce(const Item &item, const RowTile &tile, const RightSource &right,
                            Value k0, Value depth, SmallVector<Value> acc);
  void step(const Item &item, const RowTile &tile, const RightSource &right,
            ArrayRef<Value> rowBase, Value k, MutableArrayRef<Value> acc);
  SmallVector<Value> rowPointers(const Item &item, const RowTile &tile, Value k0);
  void prefetchNext(const Item &item, const RowTile &tile, Value k, Value depth);
  void storeTile(const Item &item, const RowTile &tile, ArrayRef<Value> acc);
  void storeRow(const Item &item, Value row, llvm::function_ref<Value(int64_t)> value);
  void epilogueLoop(const Item &item, Value row, Value inBlock, Value count);

  Value mask(const Item &item, int64_t v);
  RegisterTile registers(const Item &item, int64_t rows) const {
    return {rows, item.vectors, t.lanes, spec.accType};
  }
  Value firstRow(const Item &item) { return b.mulC(item.block, t.rowsPerBlock()); }
  int64_t numTiles() const { return std::max<int64_t>(1, ceilDivInt(spec.m, t.rows)); }
  bool staticM() const { return spec.m >= 0; }

  KernelBuilder &b;
  const GemmSpec &spec;
  const GemmTiles &t;
  const GemmMatrix &a, &right;
  const GemmCallbacks &callbacks;
  Value m, n, k;
  Value packed;   ///< scratch for a block of a run-time B, in accumulator elements
  Value partials; ///< scratch for sums, [row in block][columns()]
};

//===----------------------------------------------------------------------===//
// Work items
//===----------------------------------------------------------------------===//

GemmEmitter::GemmEmitter(KernelBuilder &b, const GemmSpec &spec, const GemmTiles &tiles,
                         const GemmMatrix &a, const GemmMatrix &bMatrix,
                         const GemmCallbacks &callbacks, const GemmExtents &extents,
                         int64_t scratchOffset)
    : b(b), spec(spec), t(tiles), a(a), right(bMatrix), callbacks(callbacks) {
  m = spec.m < 0 ? extents.m : b.idx(spec.m);
  n = spec.n < 0 ? extents.n : b.idx(spec.n);
  k = spec.k < 0 ? extents.k : b.idx(spec.k);
  packed = b.elementPtr(b.getI8Type(), b.scratch(), b.idx(scratchOffset));
  int64_t packedElements = spec.packedB ? 0 : t.kBlock * t.columns();
  partials = b.elementPtr(spec.accType, packed, b.idx(packedElements));
}

void GemmEmitter::emit() {
  Value columns = b.idx(t.columns());
  Value groups = b.ceilDiv(n, columns);
  Value blocks = staticM() ? b.idx(ceilDivInt(numTiles(), t.tilesPerBlock))
                           : b.ceilDiv(m, b.idx(t.rowsPerBlock()));
  Value fullGroups = b.floorDiv(n, columns);
  b.forLoop(b.begin(), b.end(), b.idx(1), [&](Value index) {
    Item item;
    Value group = b.rem(index, groups), rest = b.floorDiv(index, groups);
    item.block = b.rem(rest, blocks);
    item.batch = b.floorDiv(rest, blocks);
    item.column = b.mulC(group, t.columns());
    item.vectors = t.vectors;
    item.tailColumns = 0;
    item.dynamicTail = false;
    Item tail = item;
    tail.dynamicTail = spec.n < 0;
    if (spec.n >= 0) {
      tail.tailColumns = spec.n % t.columns();
      tail.vectors = ceilDivInt(tail.tailColumns, t.lanes);
      if (!tail.tailColumns)
        return emitItem(item);
      if (spec.n < t.columns())
        return emitItem(tail);
    }
    b.ifThen(
        b.cmp(arith::CmpIPredicate::slt, group, fullGroups), [&] { emitItem(item); },
        [&] { emitItem(tail); });
  });
}

void GemmEmitter::emitItem(Item item) {
  auto at = [&](const GemmMatrix &matrix, Type element) {
    Value offset = matrix.offset ? matrix.offset(item.batch) : b.idx(0);
    return b.elementPtr(element, matrix.base, offset);
  };
  item.aBase = at(a, spec.aType);
  item.bBase = at(right, spec.bType);
  if (spec.packedB) {
    // Panel of the first column, and the column's place in it when groups are narrower.
    Value panel = b.floorDiv(item.column, b.idx(16)), inPanel = b.rem(item.column, b.idx(16));
    Value offset = b.add(b.mulC(b.mul(panel, k), 16), inPanel);
    item.bBase = b.elementPtr(spec.bType, item.bBase, offset);
  }
  if (spec.k >= 0 && spec.k <= t.kBlock)
    onePass(item);
  else
    severalPasses(item);
}

void GemmEmitter::onePass(Item &item) {
  if (t.prefetch && t.columns() >= 16)
    item.next = b.elementPtr(spec.bType, item.bBase, b.mulC(k, t.columns()));
  if (!spec.packedB)
    packRight(item, b.idx(0), k);
  RightSource source = rightSource(item, b.idx(0), k);
  forEachTile(item, [&](const RowTile &tile) {
    RegisterTile regs = registers(item, tile.rows);
    SmallVector<Value> acc = reduce(item, tile, source, b.idx(0), k, zeroTile(b, regs));
    if (!spec.heavyEpilogue)
      return storeTile(item, tile, acc);
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t v = 0; v < item.vectors; ++v)
        b.store(acc[r * item.vectors + v], partials, b.idx(r * t.columns() + v * t.lanes));
    Value count = tile.guarded ? b.minS(b.idx(tile.rows), b.sub(m, tile.row)) : b.idx(tile.rows);
    epilogueLoop(item, tile.row, b.idx(0), count);
  });
}

void GemmEmitter::severalPasses(Item &item) {
  Type vectorType = b.laneType(spec.accType, t.lanes);
  int64_t rows = t.rowsPerBlock();
  b.forLoop(0, rows * t.vectors, 1, [&](Value i) {
    b.store(b.constant(vectorType, 0), partials, b.mulC(i, t.lanes));
  });
  Value nextGroup = b.mulC(k, t.columns());
  b.forLoop(b.idx(0), k, b.idx(t.kBlock), [&](Value k0) {
    Value depth = b.minS(b.idx(t.kBlock), b.sub(k, k0));
    if (t.prefetch && t.columns() >= 16) {
      Value after = b.addC(k0, t.kBlock);
      Value more = b.cmp(arith::CmpIPredicate::slt, after, k);
      Value next = arith::SelectOp::create(b, more, b.mulC(after, 16), nextGroup);
      item.next = b.elementPtr(spec.bType, item.bBase, next);
    }
    if (!spec.packedB)
      packRight(item, k0, depth);
    RightSource source = rightSource(item, k0, depth);
    forEachTile(item, [&](const RowTile &tile) {
      Value base = b.elementPtr(spec.accType, partials, b.mulC(tile.inBlock, t.columns()));
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
  });
  // One sweep over the item's rows; a static m has balanced tiles, whose rows are not a
  // multiple of `rows`.
  Value first, last;
  if (staticM()) {
    int64_t tiles = numTiles(), low = spec.m / tiles, high = spec.m - low * tiles;
    auto rowOf = [&](Value tile) { // tiles of low+1 rows come first
      return b.add(b.mulC(tile, low), b.minS(tile, b.idx(high)));
    };
    Value tile = b.mulC(item.block, t.tilesPerBlock);
    first = rowOf(tile);
    last = rowOf(b.minS(b.addC(tile, t.tilesPerBlock), b.idx(tiles)));
  } else {
    first = firstRow(item);
    last = b.minS(b.addC(first, rows), m);
  }
  epilogueLoop(item, first, b.idx(0), b.sub(last, first));
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
  // Balanced: `high` tiles of low+1 rows, then tiles of low rows.
  int64_t tiles = numTiles(), low = spec.m / tiles, high = spec.m - low * tiles;
  Value first = b.mulC(item.block, t.tilesPerBlock);
  Value last = b.minS(b.addC(first, t.tilesPerBlock), b.idx(tiles));
  Value split = b.idx(high);
  auto rowOf = [&](Value tile) { return b.add(b.mulC(tile, low), b.minS(tile, b.idx(high))); };
  Value blockRow = rowOf(first);
  auto emitOne = [&](Value index, Value row, int64_t rows) {
    fn({row, b.sub(row, blockRow), b.sub(index, first), rows, /*guarded=*/false});
  };
  if (high)
    b.forLoop(first, b.minS(last, split), b.idx(1),
              [&](Value i) { emitOne(i, b.mulC(i, low + 1), low + 1); });
  if (high < tiles && low)
    b.forLoop(b.maxS(first, split), last, b.idx(1),
              [&](Value i) { emitOne(i, b.addC(b.mulC(i, low), high), low); });
}

void GemmEmitter::dynamicTiles(const Item &item, TileFn fn) {
  Value first = firstRow(item);
  Value last = b.minS(b.addC(first, t.rowsPerBlock()), m);
  Value full = b.mulC(b.floorDiv(b.sub(last, first), b.idx(t.rows)), t.rows);
  b.forLoop(b.idx(0), full, b.idx(t.rows), [&](Value i) {
    fn({b.add(first, i), i, Value(), t.rows, /*guarded=*/false});
  });
  Value left = b.sub(b.sub(last, first), full);
  // The rest goes to the smallest of a few tiles that holds it.
  SmallVector<int64_t> sizes;
  for (int64_t size : {int64_t(1), int64_t(4), t.rows - 1})
    if (size < t.rows && size > 0 && (sizes.empty() || size > sizes.back()))
      sizes.push_back(size);
  for (size_t i = 0; i < sizes.size(); ++i) {
    Value fits = b.cmp(arith::CmpIPredicate::sle, left, b.idx(sizes[i]));
    Value above = b.cmp(arith::CmpIPredicate::sgt, left, b.idx(i ? sizes[i - 1] : 0));
    b.ifThen(arith::AndIOp::create(b, fits, above), [&] {
      fn({b.add(first, full), full, Value(), sizes[i], /*guarded=*/true});
    });
  }
}

//===----------------------------------------------------------------------===//
// The register tile
//===----------------------------------------------------------------------===//

SmallVector<Value> GemmEmitter::rowPointers(const Item &item, const RowTile &tile, Value k0) {
  // With a constant stride one pointer serves all rows (the rest is displacement).
  SmallVector<Value> pointers;
  Value depth = b.mul(k0, a.colStride);
  bool shared = KernelBuilder::constantOf(a.rowStride).has_value() && !tile.guarded;
  for (int64_t r = 0; r < (shared ? 1 : tile.rows); ++r) {
    Value row = b.addC(tile.row, r);
    if (tile.guarded)
      row = b.minS(row, b.addC(m, -1));
    pointers.push_back(
        b.elementPtr(spec.aType, item.aBase, b.add(b.mul(row, a.rowStride), depth)));
  }
  return pointers;
}

void GemmEmitter::step(const Item &item, const RowTile &tile, const RightSource &source,
                       ArrayRef<Value> rowBase, Value kk, MutableArrayRef<Value> acc) {
  SmallVector<Value> vectors;
  Value kOffset = b.mulC(kk, source.kStride);
  for (int64_t v = 0; v < item.vectors; ++v) {
    Value raw = b.load(source.element, source.base, b.add(kOffset, source.vectorOffset[v]),
                       t.lanes);
    Value x = convertElements(b, {source.element, spec.accType, spec.bUnsigned}, raw);
    if (callbacks.mapB)
      x = callbacks.mapB(x, b.addC(item.column, v * t.lanes));
    vectors.push_back(x);
  }
  Value aOffset = b.mul(kk, a.colStride);
  auto left = [&](int64_t r) {
    bool shared = rowBase.size() == 1;
    Value offset = shared ? b.add(aOffset, b.mul(b.idx(r), a.rowStride)) : aOffset;
    Value raw = b.load(spec.aType, rowBase[shared ? 0 : r], offset);
    Value x = convertElements(b, {spec.aType, spec.accType, spec.aUnsigned}, raw);
    return callbacks.mapA ? callbacks.mapA(x) : x;
  };
  accumulateTile(b, registers(item, tile.rows), acc, left, vectors);
}

void GemmEmitter::prefetchNext(const Item &item, const RowTile &tile, Value kk, Value depth) {
  // The next panels' lines are spread evenly over the tiles that read the present ones.
  int64_t tiles = t.tilesPerBlock;
  Value line = b.floorDiv(b.add(b.mul(tile.index, depth), kk), b.idx(tiles));
  for (int64_t q = 0; q < ceilDivInt(t.unroll, tiles); ++q)
    for (int64_t p = 0; p < t.columns() / 16; ++p) {
      Value offset = b.add(b.mulC(b.addC(line, q), 16), b.mulC(k, p * 16));
      b.prefetch(spec.bType, item.next, offset, /*locality=*/2);
    }
}

SmallVector<Value> GemmEmitter::reduce(const Item &item, const RowTile &tile,
                                       const RightSource &source, Value k0, Value depth,
                                       SmallVector<Value> acc) {
  SmallVector<Value> rowBase = rowPointers(item, tile, k0);
  auto steps = [&](Value from, Value to, int64_t unroll, bool prefetch) {
    acc = b.forLoop(from, to, b.idx(unroll), acc, [&](Value kk, ValueRange carried) {
      SmallVector<Value> sums = llvm::to_vector(carried);
      if (prefetch)
        prefetchNext(item, tile, kk, depth);
      for (int64_t u = 0; u < unroll; ++u)
        step(item, tile, source, rowBase, b.addC(kk, u), sums);
      return sums;
    });
  };
  Value main = b.mulC(b.floorDiv(depth, b.idx(t.unroll)), t.unroll);
  steps(b.idx(0), main, t.unroll, item.next && tile.index);
  if (spec.k < 0 || spec.k % t.unroll || t.kBlock % t.unroll)
    steps(main, depth, 1, false);
  return acc;
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
    storeRow(item, b.add(row, i), [&](int64_t v) {
      return b.load(spec.accType, partials, b.addC(base, v * t.lanes), t.lanes);
    });
  });
}

//===----------------------------------------------------------------------===//
// Packing a run-time B
//===----------------------------------------------------------------------===//

RightSource GemmEmitter::rightSource(const Item &item, Value k0, Value depth) {
  RightSource source;
  if (!spec.packedB) {
    source = {packed, spec.accType, t.columns(), {}};
    for (int64_t v = 0; v < item.vectors; ++v)
      source.vectorOffset.push_back(b.idx(v * t.lanes));
    return source;
  }
  source = {b.elementPtr(spec.bType, item.bBase, b.mulC(k0, 16)), spec.bType, 16, {}};
  for (int64_t v = 0; v < item.vectors; ++v) {
    int64_t column = v * t.lanes;
    source.vectorOffset.push_back(b.addC(b.mulC(k, column / 16 * 16), column % 16));
  }
  return source;
}

void GemmEmitter::packRight(const Item &item, Value k0, Value depth) {
  for (int64_t v = 0; v < item.vectors; ++v) {
    if (KernelBuilder::constantOf(right.rowStride) == 1 &&
        KernelBuilder::constantOf(right.colStride) != 1)
      packTransposed(item, k0, depth, v);
    else
      packVector(item, k0, depth, v);
  }
}

/// One vector of columns, row by row: a vector load where columns are adjacent, else elements.
void GemmEmitter::packVector(const Item &item, Value k0, Value depth, int64_t v) {
  Value column = b.addC(item.column, v * t.lanes);
  Value lanesOn = mask(item, v);
  bool adjacent = KernelBuilder::constantOf(right.colStride) == 1;
  Value limit = b.minS(b.idx(t.lanes), b.sub(n, column));
  b.forLoop(b.idx(0), depth, b.idx(1), [&](Value i) {
    Value from = b.add(b.mul(b.add(k0, i), right.rowStride), b.mul(column, right.colStride));
    Value to = b.addC(b.mulC(i, t.columns()), v * t.lanes);
    auto convert = [&](Value raw) {
      return convertElements(b, {spec.bType, spec.accType, spec.bUnsigned}, raw);
    };
    if (adjacent) {
      Value raw = lanesOn ? b.maskedLoad(spec.bType, item.bBase, from, lanesOn)
                          : b.load(spec.bType, item.bBase, from, t.lanes);
      b.store(convert(raw), packed, to);
      return;
    }
    b.forLoop(b.idx(0), limit, b.idx(1), [&](Value j) {
      Value raw = b.load(spec.bType, item.bBase, b.add(from, b.mul(j, right.colStride)));
      b.store(convert(raw), packed, b.add(to, j));
    });
  });
}

/// One vector of columns whose elements are adjacent along k: blocks of lanes x lanes are
/// transposed in registers.
void GemmEmitter::packTransposed(const Item &item, Value k0, Value depth, int64_t v) {
  Value column = b.addC(item.column, v * t.lanes);
  ElementConversion conversion{spec.bType, spec.accType, spec.bUnsigned};
  auto source = [&](int64_t j) { // columns beyond n repeat the last one
    Value col = b.minS(b.addC(column, j), b.addC(n, -1));
    return b.add(b.mul(col, right.colStride), k0);
  };
  Value main = b.mulC(b.floorDiv(depth, b.idx(t.lanes)), t.lanes);
  b.forLoop(b.idx(0), main, b.idx(t.lanes), [&](Value i) {
    SmallVector<Value> rows;
    for (int64_t j = 0; j < t.lanes; ++j)
      rows.push_back(convertElements(
          b, conversion, b.load(spec.bType, item.bBase, b.add(source(j), i), t.lanes)));
    SmallVector<Value> turned = transposeVectors(b, rows);
    for (int64_t j = 0; j < t.lanes; ++j)
      b.store(turned[j], packed, b.addC(b.mulC(b.addC(i, j), t.columns()), v * t.lanes));
  });
  b.forLoop(main, depth, b.idx(1), [&](Value i) {
    for (int64_t j = 0; j < t.lanes; ++j) {
      Value raw = b.load(spec.bType, item.bBase, b.add(source(j), i));
      Value to = b.addC(b.mulC(i, t.columns()), v * t.lanes + j);
      b.store(convertElements(b, conversion, raw), packed, to);
    }
  });
}

} // namespace

void dmxc::cpu::emitGemm(KernelBuilder &b, const GemmSpec &spec, const GemmTiles &tiles,
                         const GemmMatrix &a, const GemmMatrix &bMatrix,
                         const GemmCallbacks &callbacks, const GemmExtents &extents,
                         int64_t scratchOffset) {
  GemmEmitter(b, spec, tiles, a, bMatrix, callbacks, extents, scratchOffset).emit();
}
