//===- GemmBytes.cpp - rows as integers in the blocks of the right operand ===//
//
// Rows of floats become s8 with a scale a block (dmir.round_blocks) as they are copied to scratch, once for all columns
// of a call. The integers of a block are multiplied and summed exactly, in i32; the sum is scaled by both scales and
// added to the row's in f32, blocks in order. VNNI multiplies u8 by s8: a weight is read as 128 more than it is, so the
// sum of a block begins with -128 times that of the row's integers. Elsewhere bytes are widened to i16, the even and
// the odd ones of four apart.
//
//===----------------------------------------------------------------------===//

#include "targets/cpu/product/GemmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void GemmEmitter::packBytes(const Item &item) {
  const ByteRows layout(spec);
  const int64_t block = spec.blocks->block, rest = spec.depth() % block;
  auto [first, last] = rowsOfItem(item);
  b.forLoop(first, last, b.idx(1), [&, first = first](Value row) {
    Value from = b.elementPtr(spec.aType, item.aBase, b.mul(row, a.rowStride));
    Value to = b.elementPtr(b.getI8Type(), packedLeft, b.mulC(b.sub(row, first), layout.bytes));
    b.forLoop(0, spec.depth() / block, 1, [&](Value index) { packByteBlock(from, to, index, block); });
    if (rest)
      packByteBlock(from, to, b.idx(layout.blocks - 1), rest);
  });
}

/// A vector of a row of A from `from` on, zeros behind the `valid` ones.
Value GemmEmitter::leftVector(Value from, int64_t valid) {
  valid = std::min(valid, t.lanes);
  if (CpuBuilder::constantOf(a.colStride) == 1)
    return valid == t.lanes ? b.load(spec.aType, from, b.idx(0), t.lanes)
                            : b.maskedLoad(spec.aType, from, b.idx(0), b.headMask(t.lanes, valid));
  SmallVector<Value> elements;
  for (int64_t i = 0; i < t.lanes; ++i)
    elements.push_back(i < valid ? b.load(spec.aType, from, b.mulC(a.colStride, i)) : b.constant(spec.aType, 0));
  return vector::FromElementsOp::create(b, VectorType::get({t.lanes}, spec.aType), elements);
}

/// The `depth` numbers of a block of a row, and zeros up to a whole vector.
void GemmEmitter::packByteBlock(Value from, Value to, Value block, int64_t depth) {
  const ByteRows layout(spec);
  Type i8 = b.getI8Type(), i16 = b.getI16Type(), i32 = b.getI32Type();
  Value first = b.mulC(block, spec.blocks->block);
  SmallVector<Value> vectors;
  for (int64_t at = 0; at < depth; at += t.lanes)
    vectors.push_back(leftVector(b.elementPtr(spec.aType, from, leftDepth(b.addC(first, at))), depth - at));
  Value bits = magnitudeBits(b, vectors.front());
  for (Value x : ArrayRef(vectors).drop_front())
    bits = arith::MaxSIOp::create(b, bits, magnitudeBits(b, x));
  Value scale = scaleOfGreatest(b, vector::ReductionOp::create(b, vector::CombiningKind::MAXSI, bits));
  b.store(scale, b.elementPtr(i8, to, b.idx(layout.scales)), block);
  Value wide = b.splat(scale, t.lanes), sum;
  for (auto [i, x] : llvm::enumerate(vectors)) {
    Value whole = arith::FPToSIOp::create(b, b.laneType(i32, t.lanes), wholeOverScale(b, x, wide));
    Value at = b.addC(first, static_cast<int64_t>(i) * t.lanes);
    if (!spec.bytePairs) {
      b.store(arith::TruncIOp::create(b, b.laneType(i8, t.lanes), whole), to, at);
      sum = sum ? Value(arith::AddIOp::create(b, sum, whole)) : whole;
      continue;
    }
    SmallVector<int64_t> order; // of each four the even ones, then the odd ones
    for (int64_t four = 0; four < t.lanes; four += 4)
      order.append({four, four + 2, four + 1, four + 3});
    Value words = arith::TruncIOp::create(b, b.laneType(i16, t.lanes), whole);
    b.store(vector::ShuffleOp::create(b, words, words, order), to, at);
  }
  if (!spec.bytePairs) {
    sum = vector::ReductionOp::create(b, vector::CombiningKind::ADD, sum);
    b.store(arith::MulIOp::create(b, sum, b.constantInt(i32, -128)), b.elementPtr(i8, to, b.idx(layout.starts)), block);
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// sums[r][v] += the products of a four of each of `count` rows and of each column.
void GemmEmitter::byteStep(const Item &item, Value rows, int64_t count, Value word, MutableArrayRef<Value> sums) {
  const ByteRows layout(spec);
  const int64_t parts = spec.bytePairs ? 2 : 1;
  b.fence();
  SmallVector<SmallVector<Value>> columns(parts);
  for (Value w : wordsAt(item, word)) {
    if (!spec.bytePairs) {
      columns[0].push_back(arith::XOrIOp::create(b, w, b.constantInt(w.getType(), static_cast<int32_t>(0x80808080))));
      continue;
    }
    for (bool odd : {false, true})
      columns[odd].push_back(bytePairs(b, w, odd, /*isSigned=*/true));
  }
  for (int64_t r = 0; r < count; ++r)
    for (int64_t part = 0; part < parts; ++part) {
      Value at = b.addC(b.mulC(word, parts), part + r * layout.bytes / 4);
      Value x = b.splat(b.load(b.getI32Type(), rows, at), t.lanes);
      for (int64_t v = 0; v < item.vectors; ++v) {
        Value &sum = sums[r * item.vectors + v];
        sum = spec.bytePairs ? dotWords(b, x, columns[part][v], sum) : dotFours(b, columns[part][v], x, sum);
      }
    }
}

/// totals[r][v] += the scaled sums of a block of `words` fours. `rows`: the first of `count` in scratch.
void GemmEmitter::sumOfByteBlock(const Item &item, Value rows, int64_t count, Value block, int64_t words,
                                 MutableArrayRef<Value> totals) {
  constexpr int64_t mostUnrolled = 8;
  const ByteRows layout(spec);
  Type i32 = b.getI32Type();
  auto ofBlock = [&](Type type, int64_t r, int64_t part) {
    Value base = b.elementPtr(b.getI8Type(), rows, b.idx(r * layout.bytes + part));
    return b.splat(b.load(type, base, block), t.lanes);
  };
  SmallVector<Value> sums;
  for (int64_t r = 0; r < count; ++r) {
    Value start = spec.bytePairs ? b.constantInt(b.laneType(i32, t.lanes), 0) : ofBlock(i32, r, layout.starts);
    sums.append(item.vectors, start);
  }
  Value first = b.mulC(block, spec.blocks->block / 4);
  const int64_t unrolled = std::min(words, mostUnrolled), whole = words / unrolled * unrolled;
  auto steps = [&](Value from, int64_t number, SmallVector<Value> carried) {
    for (int64_t i = 0; i < number; ++i)
      byteStep(item, rows, count, b.addC(from, i), carried);
    return carried;
  };
  sums = b.forLoop(b.idx(0), b.idx(whole), b.idx(unrolled), sums, [&](Value word, ValueRange carried) {
    return steps(b.add(first, word), unrolled, llvm::to_vector(carried));
  });
  sums = steps(b.addC(first, whole), words - whole, sums);
  SmallVector<Value> scales;
  for (int64_t v = 0; v < item.vectors; ++v)
    scales.push_back(scaleOfBlock(item, v, block).scale);
  for (int64_t r = 0; r < count; ++r) {
    Value scale = ofBlock(spec.accType, r, layout.scales);
    for (int64_t v = 0; v < item.vectors; ++v) {
      Value sum = arith::SIToFPOp::create(b, scale.getType(), sums[r * item.vectors + v]);
      Value &total = totals[r * item.vectors + v];
      total = b.fma(sum, Value(arith::MulFOp::create(b, scale, scales[v])), total);
    }
  }
}

/// The sums of a tile: of rows beyond the block's last one arbitrary ones.
SmallVector<Value> GemmEmitter::sumOfBytes(const Item &item, const RowTile &tile) {
  const ByteRows layout(spec);
  const int64_t block = spec.blocks->block, rest = spec.depth() % block;
  Value rows = b.elementPtr(b.getI8Type(), packedLeft, b.mulC(tile.inBlock, layout.bytes));
  SmallVector<Value> totals(tile.rows * item.vectors, b.constant(b.laneType(spec.accType, t.lanes), 0));
  totals = b.forLoop(b.idx(0), b.idx(spec.depth() / block), b.idx(1), totals, [&](Value index, ValueRange carried) {
    SmallVector<Value> next = llvm::to_vector(carried);
    sumOfByteBlock(item, rows, tile.rows, index, block / 4, next);
    return next;
  });
  if (rest)
    sumOfByteBlock(item, rows, tile.rows, b.idx(layout.blocks - 1), ceilDivInt(rest, 4), totals);
  return totals;
}
