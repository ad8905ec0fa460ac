//===- GemmOperands.cpp - copies of a product's operands to scratch ------===//

#include "GemmEmitter.h"

using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Copying a block of A
//===----------------------------------------------------------------------===//

void GemmEmitter::packLeft(const Item &item) {
  forEachTile(item, [&](const RowTile &tile) { packLeftTile(item, tile); });
}

/// The tile's elements at depths kk .. kk+lanes as one vector a depth; rows
/// beyond the tile are arbitrary.
SmallVector<Value> GemmEmitter::loadLeftVectors(const Item &item, const RowTile &tile, Value kk) {
  ElementConversion conversion{spec.aType, spec.accType, spec.aUnsigned};
  SmallVector<Value> rows;
  for (int64_t r = 0; r < t.lanes; ++r) {
    if (r >= tile.rows) {
      rows.push_back(rows.back());
      continue;
    }
    Value row = b.addC(tile.row, r);
    if (tile.guarded)
      row = b.minS(row, b.addC(m, -1));
    Value offset = b.add(b.mul(row, a.rowStride), kk);
    Value x = convertElements(b, conversion, b.load(spec.aType, item.aBase, offset, t.lanes));
    rows.push_back(callbacks.mapA ? callbacks.mapA(x) : x);
  }
  return transposeVectors(b, rows);
}

void GemmEmitter::packLeftTile(const Item &item, const RowTile &tile) {
  Value to = b.elementPtr(spec.accType, packedLeft, b.mul(tile.inBlock, k));
  // Whole vectors are stored at consecutive depths, each overwriting the excess
  // of the one before; only tiles of at most one vector are written that way.
  bool adjacent = KernelBuilder::constantOf(a.colStride) == 1 && tile.rows <= t.lanes;
  Value main = adjacent ? b.mulC(b.floorDiv(k, b.idx(t.lanes)), t.lanes) : b.idx(0);
  if (adjacent)
    b.forLoop(b.idx(0), main, b.idx(t.lanes), [&](Value kk) {
      SmallVector<Value> vectors = loadLeftVectors(item, tile, kk);
      for (int64_t i = 0; i < t.lanes; ++i)
        b.store(vectors[i], to, b.mulC(b.addC(kk, i), tile.rows));
    });
  ElementConversion conversion{spec.aType, spec.accType, spec.aUnsigned};
  b.forLoop(main, k, b.idx(1), [&](Value kk) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value row = b.addC(tile.row, r);
      if (tile.guarded)
        row = b.minS(row, b.addC(m, -1));
      Value from = b.add(b.mul(row, a.rowStride), b.mul(kk, a.colStride));
      Value x = convertElements(b, conversion, b.load(spec.aType, item.aBase, from));
      b.store(callbacks.mapA ? callbacks.mapA(x) : x, to, b.addC(b.mulC(kk, tile.rows), r));
    }
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
    if (KernelBuilder::constantOf(right.rowStride) == 1 && KernelBuilder::constantOf(right.colStride) != 1)
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
  bool adjacent = KernelBuilder::constantOf(right.colStride) == 1;
  Value limit = b.minS(b.idx(t.lanes), b.sub(n, column));
  b.forLoop(b.idx(0), depth, b.idx(1), [&](Value i) {
    Value from = b.add(b.mul(b.add(k0, i), right.rowStride), b.mul(column, right.colStride));
    Value to = b.addC(b.mulC(i, t.columns()), v * t.lanes);
    auto convert = [&](Value raw) { return convertElements(b, {spec.bType, spec.accType, spec.bUnsigned}, raw); };
    if (adjacent) {
      Value raw =
          lanesOn ? b.maskedLoad(spec.bType, item.bBase, from, lanesOn) : b.load(spec.bType, item.bBase, from, t.lanes);
      b.store(convert(raw), packed, to);
      return;
    }
    b.forLoop(b.idx(0), limit, b.idx(1), [&](Value j) {
      Value raw = b.load(spec.bType, item.bBase, b.add(from, b.mul(j, right.colStride)));
      b.store(convert(raw), packed, b.add(to, j));
    });
  });
}

/// One vector of columns whose elements are adjacent along k: blocks of lanes x
/// lanes are transposed in registers.
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
      rows.push_back(convertElements(b, conversion, b.load(spec.bType, item.bBase, b.add(source(j), i), t.lanes)));
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
