//===- GemmBlocks.cpp - right operands of few bits ------------------------===//
//
// A word (i32) holds perWord() elements of a column that follow one another along k, and a vector of words those of
// `lanes` columns: one load serves as many steps of the tile. Few rows multiply the integers as floats and scale the
// sum of a block once; for more rows a panel is unpacked, scaled, into scratch.
//
//===----------------------------------------------------------------------===//

#include "GemmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Words and scales
//===----------------------------------------------------------------------===//

/// Where vector v of the item's columns begins in a form of panels that are `depth` deep, from the first panel on.
Value GemmEmitter::panelOffset(const Item &item, int64_t v, int64_t depth) {
  Value column = b.addC(item.column, v * t.lanes);
  Value panel = b.floorDiv(column, b.idx(16)), inPanel = b.rem(column, b.idx(16));
  return b.add(b.mulC(panel, depth * 16), inPanel);
}

BlockScale GemmEmitter::scaleOfBlock(const Item &item, int64_t v, Value block) {
  const GemmBlocks &format = *spec.blocks;
  const int64_t blocks = ceilDivInt(spec.depth(), format.block);
  Value at = b.add(panelOffset(item, v, blocks), b.mulC(block, 16));
  if (spec.grouped)
    at = b.add(at, b.mulC(item.batch, ceilDivInt(spec.columns(), 16) * 16 * blocks));
  auto load = [&](Type type, Value base) {
    return convertElements(b, {type, spec.accType, !format.isSigned}, b.load(type, base, at, t.lanes));
  };
  return {load(format.scaleType, right.scales), right.zeros ? load(format.zeroType, right.zeros) : Value()};
}

/// The words of all the item's vectors, the word-th of their columns. Those of few rows go by too fast for the
/// hardware's prefetching, which starts anew on every page.
SmallVector<Value> GemmEmitter::wordsAt(const Item &item, Value word) {
  constexpr int64_t ahead = 16; // lines
  int64_t depth = ceilDivInt(spec.depth(), spec.blocks->perWord());
  SmallVector<Value> words;
  for (int64_t v = 0; v < item.vectors; ++v) {
    int64_t column = v * t.lanes;
    Value at = b.add(b.mulC(word, 16), b.idx(column / 16 * depth * 16 + column % 16));
    words.push_back(b.load(spec.bType, item.bBase, at, t.lanes));
    if (column % 16 == 0 && (!spec.bytes || spec.skinny()))
      b.prefetch(spec.bType, item.bBase, b.addC(at, ahead * 16), /*locality=*/3);
  }
  return words;
}

/// Element i of words as floats, less what is subtracted from all of them, which is exact.
Value GemmEmitter::ofWord(Value words, int64_t i) {
  const GemmBlocks &format = *spec.blocks;
  Type vector = words.getType();
  auto number = [&](int64_t value) { return b.constantInt(vector, value); };
  // Four bits at AVX-512: one instruction picks from a table of 16 floats, and ignores the higher bits.
  if (format.bits <= 4 && t.lanes == 16 && b.isa().vectorBytes == 64) {
    SmallVector<float> table;
    for (int64_t q = 0; q < 16; ++q) {
      int64_t value = q & ((1 << format.bits) - 1);
      bool isNegative = format.isSigned && value >> (format.bits - 1);
      table.push_back(static_cast<float>(value - (isNegative ? 1 << format.bits : 0) - format.zero));
    }
    auto type = VectorType::get({16}, spec.accType);
    Value values = arith::ConstantOp::create(b, DenseElementsAttr::get(type, llvm::ArrayRef<float>(table)));
    Value index = i ? Value(arith::ShRUIOp::create(b, words, number(i * format.bits))) : words;
    return LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr("llvm.x86.avx512.permvar.sf.512"),
                                         ValueRange{values, index})
        .getResult(0);
  }
  // Beneath an exponent that makes the lowest of them count one its bits are a float's mantissa. One shift brings as
  // many elements there as fit; processors have more units for the rest than for shifts and conversions.
  constexpr int64_t mantissa = 23, bias = 127;
  const int64_t together = mantissa / format.bits, first = i / together * together, at = (i - first) * format.bits;
  const int64_t power = mantissa - at, range = int64_t(1) << format.bits, half = format.isSigned ? range / 2 : 0;
  if (first)
    words = arith::ShRUIOp::create(b, words, number(first * format.bits));
  Value bits = arith::AndIOp::create(b, words, number((range - 1) << at));
  bits = arith::XOrIOp::create(b, bits, number((bias + power) << mantissa | half << at)); // signed ones plus half
  Type floats = b.laneType(spec.accType, t.lanes);
  return arith::SubFOp::create(b, Value(arith::BitcastOp::create(b, floats, bits)),
                               b.constant(floats, static_cast<double>((int64_t(1) << power) + half + format.zero)));
}

//===----------------------------------------------------------------------===//
// Many rows
//===----------------------------------------------------------------------===//

/// Writes elements [k0, k0 + depth) of the item's columns to scratch; k0 and scratch's depth are whole words.
void GemmEmitter::unpackBlocks(const Item &item, Value k0, Value depth) {
  const int64_t perWord = spec.blocks->perWord();
  // Scales are read once a block where passes have whole ones, or one is all there is.
  const int64_t size = spec.blocks->block, run = size >= spec.depth()   ? t.kBlock
                                                 : t.kBlock % size == 0 ? size
                                                                        : perWord;
  b.forLoop(b.idx(0), depth, b.idx(run), [&](Value first) {
    Value block = b.floorDiv(b.add(k0, first), b.idx(spec.blocks->block));
    SmallVector<BlockScale> scales;
    for (int64_t v = 0; v < item.vectors; ++v)
      scales.push_back(scaleOfBlock(item, v, block));
    b.forLoop(first, b.minS(b.addC(first, run), depth), b.idx(perWord), [&](Value kk) {
      SmallVector<Value> words = wordsAt(item, b.floorDiv(b.add(k0, kk), b.idx(perWord)));
      for (int64_t v = 0; v < item.vectors; ++v)
        for (int64_t i = 0; i < perWord; ++i) {
          Value x = ofWord(words[v], i);
          if (scales[v].zeros)
            x = arith::SubFOp::create(b, x, scales[v].zeros);
          x = arith::MulFOp::create(b, x, scales[v].scale);
          b.store(x, packed, b.addC(b.mulC(b.addC(kk, i), t.columns()), v * t.lanes));
        }
    });
  });
}

//===----------------------------------------------------------------------===//
// Few rows
//===----------------------------------------------------------------------===//

/// Chains of a block's sums that registers hold beside the totals, the words and what is made of one of these.
int64_t GemmEmitter::chainsOfBlock(int64_t rows) const {
  int64_t fitting = chains();
  const int64_t sums = rows * t.vectors, others = sums + t.vectors + 4;
  while (fitting > 1 && fitting * sums + others > static_cast<int64_t>(b.isa().vectorRegisters))
    fitting /= 2;
  return fitting;
}

/// totals += the products of a block of `depth` elements, scaled. `rows` are pointers to the rows of A.
void GemmEmitter::sumOfBlock(const Item &item, const RowTile &tile, Value block, int64_t depth, ArrayRef<Value> rows,
                             MutableArrayRef<Value> totals) {
  const int64_t perWord = spec.blocks->perWord(), words = ceilDivInt(depth, perWord);
  RegisterTile regs = registers(item, tile.rows);
  regs.chains = chainsOfBlock(tile.rows);
  Value first = b.mulC(block, spec.blocks->block), firstWord = b.floorDiv(first, b.idx(perWord));
  SmallVector<BlockScale> scales;
  for (int64_t v = 0; v < item.vectors; ++v)
    scales.push_back(scaleOfBlock(item, v, block));
  auto sumWord = [&](Value word, int64_t count, SmallVector<Value> sums) {
    SmallVector<Value> vectors = wordsAt(item, b.add(firstWord, word));
    for (int64_t i = 0; i < count; ++i) {
      b.fence();
      Value kk = b.addC(b.add(first, b.mulC(word, perWord)), i);
      SmallVector<Value> columns;
      for (int64_t v = 0; v < item.vectors; ++v) {
        Value x = ofWord(vectors[v], i);
        columns.push_back(scales[v].zeros ? Value(arith::SubFOp::create(b, x, scales[v].zeros)) : x);
      }
      auto left = [&](int64_t r) { return loadLeft(rows[r], leftDepth(kk)); };
      accumulateTile(b, regs, sums, left, columns, i % regs.chains);
    }
    return sums;
  };
  SmallVector<Value> sums = zeroTile(b, regs);
  int64_t whole = depth / perWord;
  sums = b.forLoop(b.idx(0), b.idx(whole), b.idx(1), sums,
                   [&](Value word, ValueRange carried) { return sumWord(word, perWord, llvm::to_vector(carried)); });
  if (words > whole)
    sums = sumWord(b.idx(whole), depth % perWord, sums);
  sums = sumChains(b, regs, sums);
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t v = 0; v < item.vectors; ++v) {
      Value &total = totals[r * item.vectors + v];
      total = multiplyAdd(b, sums[r * item.vectors + v], scales[v].scale, total);
    }
}

/// The sums of a tile that reads B as it is packed: of at most kSkinny rows, or of rows of integers.
SmallVector<Value> GemmEmitter::sumOfBlocks(const Item &item, const RowTile &tile) {
  if (spec.bytes)
    return sumOfBytes(item, tile);
  const int64_t block = spec.blocks->block, whole = spec.depth() / block;
  SmallVector<Value> rows;
  for (int64_t r = 0; r < tile.rows; ++r)
    rows.push_back(b.elementPtr(spec.aType, item.aBase, b.mul(leftRow(tile, r), a.rowStride)));
  RegisterTile regs = registers(item, tile.rows);
  regs.chains = 1;
  SmallVector<Value> totals =
      b.forLoop(b.idx(0), b.idx(whole), b.idx(1), zeroTile(b, regs), [&](Value index, ValueRange carried) {
        SmallVector<Value> sums = llvm::to_vector(carried);
        sumOfBlock(item, tile, index, block, rows, sums);
        return sums;
      });
  if (spec.depth() % block)
    sumOfBlock(item, tile, b.idx(whole), spec.depth() % block, rows, totals);
  return totals;
}

/// The rows of a product that turns out to have at most kSkinny.
void GemmEmitter::fewRowsOfBlocks(const Item &item) {
  auto run = [&](int64_t rows) {
    RowTile tile{spec.grouped ? item.firstRow : b.idx(0), b.idx(0), Value(), rows, /*guarded=*/rows > 1};
    finishTile(item, tile, sumOfBlocks(item, tile));
  };
  b.ifThen(b.cmp(arith::CmpIPredicate::eq, rowsOf(item), b.idx(1)), [&] { run(1); }, [&] { run(GemmKernel::kSkinny); });
}
