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

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cstdlib>
#include <numeric>

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

static constexpr int64_t kMantissa = 23; // bits of a float

static int64_t halfOf(const GemmBlocks &format) { return format.isSigned ? int64_t(1) << (format.bits - 1) : 0; }

/// What floatsAt gives besides an element, and what is subtracted from all elements.
static int64_t besides(const GemmBlocks &format, int64_t at) {
  return (int64_t(1) << (kMantissa - at)) + halfOf(format) + format.zero;
}

/// The elements that begin at a bit of words, as the mantissas of floats beneath an exponent that makes the lowest of
/// their bits count one.
Value GemmEmitter::floatsAt(Value words, int64_t at) {
  constexpr int64_t bias = 127;
  const GemmBlocks &format = *spec.blocks;
  Type vector = words.getType();
  auto number = [&](int64_t value) { return b.constantInt(vector, value); };
  const int64_t exponent = (bias + kMantissa - at) << kMantissa;
  Value bits = arith::AndIOp::create(b, words, number(((int64_t(1) << format.bits) - 1) << at));
  bits = arith::XOrIOp::create(b, bits, number(exponent | halfOf(format) << at)); // signed ones plus half
  return arith::BitcastOp::create(b, b.laneType(spec.accType, t.lanes), bits);
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
  // One shift brings as many elements under an exponent as fit; processors have more units for the rest than for shifts
  // and conversions.
  const int64_t together = kMantissa / format.bits, first = i / together * together, at = (i - first) * format.bits;
  if (first)
    words = arith::ShRUIOp::create(b, words, number(first * format.bits));
  Value above = b.constant(b.laneType(spec.accType, t.lanes), static_cast<double>(besides(format, at)));
  return arith::SubFOp::create(b, floatsAt(words, at), above);
}

//===----------------------------------------------------------------------===//
// Many rows
//===----------------------------------------------------------------------===//

/// The bits of a number above zero from its first to its last one.
static int64_t spanOf(uint64_t number) { return number ? llvm::Log2_64(number) + 1 - llvm::countr_zero(number) : 0; }

/// Where elements of words are brought, to be scaled by one multiplication that subtracts what they have besides,
/// scaled: with a scale of f16, which is finite, both products are exact, and the result is that of a subtraction and a
/// multiplication. Nothing where they are not.
SmallVector<GemmEmitter::WordPlace> GemmEmitter::wordPlaces() const {
  const GemmBlocks &format = *spec.blocks;
  constexpr int64_t digits = 11; // of f16
  if (!format.scaleType.isF16() || !b.isa().hasFma || (format.zeroType && !format.zeroType.isInteger(8)))
    return {};
  auto isExact = [&](int64_t at) {
    const int64_t most = std::abs(besides(format, at));
    return digits + spanOf(format.zeroType ? (most + 256) | 1 : most) <= kMantissa + 1;
  };
  int64_t low = 0;
  const int64_t high = kMantissa - format.bits;
  while (low <= high && !isExact(low))
    ++low;
  if (low > high)
    return {};
  SmallVector<WordPlace> places;
  for (int64_t i = 0, shift = 0; i < format.perWord(); ++i) {
    const int64_t first = i * format.bits;
    auto fits = [&](int64_t by) { return first - by >= low && first - by <= high; };
    if (!fits(shift) && !fits(0))
      shift = first - low;
    const int64_t by = fits(shift) ? shift : 0;
    places.push_back({by, first - by});
  }
  return places;
}

/// Words moved to the right by so many bits, or to the left by less than none.
Value GemmEmitter::shifted(Value words, int64_t by) {
  if (by == 0)
    return words;
  Value bits = b.constantInt(words.getType(), std::abs(by));
  return by > 0 ? Value(arith::ShRUIOp::create(b, words, bits)) : Value(arith::ShLIOp::create(b, words, bits));
}

/// A block's scales of a vector of columns, and what a multiplication by them leaves of what elements have besides.
GemmEmitter::UnpackedScale GemmEmitter::unpackedScale(const Item &item, int64_t v, Value block, WordPlaces places) {
  UnpackedScale scale;
  static_cast<BlockScale &>(scale) = scaleOfBlock(item, v, block);
  for (const WordPlace &place : places) {
    Value &rest = scale.rest[place.at];
    if (rest)
      continue;
    rest = b.constant(b.laneType(spec.accType, t.lanes), -static_cast<double>(besides(*spec.blocks, place.at)));
    if (scale.zeros)
      rest = arith::SubFOp::create(b, rest, scale.zeros);
    rest = arith::MulFOp::create(b, rest, scale.scale);
  }
  return scale;
}

/// The elements of words, scaled.
SmallVector<Value> GemmEmitter::scaledElements(Value words, const UnpackedScale &scale, WordPlaces places) {
  SmallVector<Value> elements;
  for (int64_t i = 0; places.empty() && i < spec.blocks->perWord(); ++i) {
    Value x = ofWord(words, i);
    if (scale.zeros)
      x = arith::SubFOp::create(b, x, scale.zeros);
    elements.push_back(arith::MulFOp::create(b, x, scale.scale));
  }
  llvm::SmallDenseMap<int64_t, Value> moved; // by so many bits
  for (auto [by, at] : places) {
    Value &from = moved[by];
    from = from ? from : shifted(words, by);
    elements.push_back(b.fma(floatsAt(from, at), scale.scale, scale.rest.lookup(at)));
  }
  return elements;
}

/// Writes elements [k0 + from, k0 + to) of the item's columns to scratch, where k0 lies first. k0, `from` and scratch's
/// depth are whole words; blocks that are read in parts are cut where stretches are.
void GemmEmitter::unpackBlocks(const Item &item, Value k0, Value from, Value to) {
  const int64_t perWord = spec.blocks->perWord(), size = spec.blocks->block;
  // Scales are read once a block where passes have whole ones, or one is all there is.
  const int64_t run = size >= spec.depth() ? stretch() : t.kBlock % size == 0 ? std::gcd(size, stretch()) : perWord;
  const SmallVector<WordPlace> places = wordPlaces();
  b.forLoop(from, to, b.idx(run), [&](Value first) {
    Value block = b.floorDiv(b.add(k0, first), b.idx(size));
    SmallVector<UnpackedScale> scales;
    for (int64_t v = 0; v < item.vectors; ++v)
      scales.push_back(unpackedScale(item, v, block, places));
    b.forLoop(first, b.minS(b.addC(first, run), to), b.idx(perWord), [&](Value kk) {
      SmallVector<Value> words = wordsAt(item, b.floorDiv(b.add(k0, kk), b.idx(perWord)));
      for (int64_t v = 0; v < item.vectors; ++v)
        for (auto [i, x] : llvm::enumerate(scaledElements(words[v], scales[v], places)))
          b.store(x, packed, b.addC(b.mulC(b.addC(kk, i), t.columns()), v * t.lanes));
    });
  });
}

/// `init` plus what `loop` adds for [low, high). The first tile of a block of rows unpacks what it multiplies next
/// while its sums before are still computed: that waits for memory, and processors look ahead a few hundred
/// instructions.
GemmEmitter::Values GemmEmitter::sumUnpacking(const Item &item, const RowTile &tile, Value k0, Value low, Value high,
                                              ValueRange init, RangeSum loop) {
  constexpr int64_t steps = 32;
  const int64_t perWord = spec.blocks->perWord();
  Value isFirst = b.cmp(arith::CmpIPredicate::eq, tile.inBlock, b.idx(0));
  Value end = arith::SelectOp::create(b, isFirst, high, low);
  Values sums = b.forLoop(low, end, b.idx(steps), init, [&](Value from, ValueRange carried) {
    Value word = b.mulC(b.ceilDiv(from, b.idx(perWord)), perWord); // what begins in one before is there
    Value to = b.minS(b.addC(from, steps), end);
    unpackBlocks(item, k0, word, to);
    return loop(from, to, carried);
  });
  return loop(end, high, sums);
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
