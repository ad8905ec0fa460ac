//===- ConvWords.cpp - bytes that are multiplied as words -----------------===//
//
// For levels without an instruction that multiplies fours, and for depthwise convolutions at all: two i16 at a time, by
// vpmaddwd, whose sums of two products are exact. What several products read is widened once.
//
//===----------------------------------------------------------------------===//

#include "ConvEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>
#include <set>
#include <vector>

using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Fours
//===----------------------------------------------------------------------===//

/// bytePairs in the bits of the fours' elements.
static Value wordsOf(CpuBuilder &b, Value fours, bool odd, bool isSigned) {
  return vector::BitCastOp::create(b, fours.getType(), bytePairs(b, fours, odd, isSigned));
}

/// Widens the weights of an item's channels from `oc` on to scratch, where the last item's are not there.
void ConvEmitter::widenWeights(Value oc) {
  Value panel = b.floorDiv(oc, b.idx(kPanelColumns));
  const int64_t panels = ceilDivInt(spec.oc, kPanelColumns);
  b.ifThen(b.cmp(arith::CmpIPredicate::ne, b.kept(), panel), [&] {
    Value count = b.minS(b.idx(convWordPanels(t)), b.sub(b.idx(panels), panel));
    Value source = b.elementPtr(spec.bType, weights, b.mulC(panel, panelElements()));
    b.forLoop(b.idx(0), b.mulC(count, panelElements()), b.idx(t.lanes), [&](Value at) {
      Value fours = b.load(spec.bType, source, at, t.lanes);
      for (int64_t odd : {0, 1})
        b.store(wordsOf(b, fours, odd, /*isSigned=*/true), words, b.addC(at, odd * oddWords()));
    });
    b.keep(panel);
  });
}

struct ConvEmitter::WordColumns {
  std::vector<int64_t> at;
  int64_t column; ///< i32 of one
  /// i32 of the even, or of the odd, bytes of a block of channels.
  int64_t half() const { return static_cast<int64_t>(at.size()) * column; }
  /// i32 of the place where column `number` is, from its half's on.
  int64_t place(int64_t number) const { return (llvm::lower_bound(at, number) - at.begin()) * column; }
};

/// Adds blocks [low, high) of input channels, of which `channels` fours count. As many as there is room for are widened
/// together: what is stored just before it is loaded waits for the store.
ConvEmitter::Values ConvEmitter::wordBlocks(const Item &item, const Tile &tile, Value low, Value high, int64_t channels,
                                            const Values &acc) {
  std::set<int64_t> read;
  for (int64_t kw = 0; kw < spec.kernel[2]; ++kw)
    for (int64_t r : tile.span->valid[kw])
      read.insert(columnOffset(tile, r, kw) / columnStride());
  if (read.empty())
    return acc;
  WordColumns words{{read.begin(), read.end()}, columnStride()};
  const int64_t block = spec.blockElements(), unroll = std::min(t.unroll, channels),
                together = CpuBuilder::kTileBytes / (2 * words.half() * 4);
  return b.forLoop(low, high, b.idx(together), acc, [&](Value from, ValueRange outer) {
    Value to = b.minS(b.addC(from, together), high);
    return forTaps(item, llvm::to_vector_of<Value>(outer), [&](Value kd, Value kh, const Values &sums) {
      Value row = inputRow(item, tile, kd, kh), tapRow = b.add(b.mulC(kd, spec.kernel[1]), kh);
      auto placeOf = [&](Value index) { return b.mulC(b.sub(index, from), 2 * words.half()); };
      b.forLoop(from, to, b.idx(1), [&](Value index) {
        widenColumns(item, words, b.add(b.mulC(index, block * inPositions()), row), placeOf(index));
      });
      return b.forLoop(from, to, b.idx(1), sums, [&](Value index, ValueRange carried) {
        Value taps = b.add(b.mulC(index, block * spec.taps()), b.mulC(tapRow, spec.kernel[2] * channels));
        auto steps = [&](int64_t first, int64_t last, int64_t width, ValueRange sums) {
          return b.forLoop(b.idx(first), b.idx(last), b.idx(width), sums, [&](Value channel, ValueRange inner) {
            Values next = llvm::to_vector_of<Value>(inner);
            for (int64_t u = 0; u < width; ++u)
              wordStep(item, tile, words, b.add(placeOf(index), b.addC(channel, u)),
                       b.mulC(b.add(taps, b.addC(channel, u)), kPanelColumns), channels, next);
            return next;
          });
        };
        const int64_t main = channels / unroll * unroll;
        return steps(main, channels, 1, steps(0, main, unroll, carried));
      });
    });
  });
}

/// Widens what a tile reads of a tap row of a block of channels.
void ConvEmitter::widenColumns(const Item &item, const WordColumns &words, Value input, Value to) {
  const int64_t count = words.at.size();
  for (int64_t i = 0, run = 0; i < count; i += run) {
    // As many columns as are adjacent and a vector has, or half of them.
    for (run = t.lanes / words.column; run > 1; run /= 2)
      if (i + run <= count && words.at[i + run - 1] - words.at[i] == run - 1)
        break;
    run = std::max<int64_t>(run, 1);
    Value fours = b.load(spec.aType, item.input, b.addC(input, words.at[i] * words.column), run * words.column);
    for (int64_t odd : {0, 1})
      b.store(wordsOf(b, fours, odd, /*isSigned=*/false), b.tileBuffer(),
              b.addC(to, odd * words.half() + i * words.column));
  }
}

/// tapStep of words: the four at `from` of the columns, and what is packed from `weights` on.
void ConvEmitter::wordStep(const Item &item, const Tile &tile, const WordColumns &words, Value from, Value weights,
                           int64_t blockChannels, Values &acc) {
  for (int64_t kw = 0; kw < spec.kernel[2]; ++kw)
    for (int64_t odd : {0, 1}) {
      if (tile.span->valid[kw].empty())
        continue;
      // LLVM would make vectors of what was stored, and elements of those.
      Value buffer = b.opaque(b.elementPtr(spec.aType, b.tileBuffer(), b.addC(from, odd * words.half())));
      Values right;
      for (int64_t v = 0; v < item.vectors; ++v)
        right.push_back(
            weightVector(item, b.addC(weights, kw * blockChannels * kPanelColumns + odd * oddWords()), v, t.lanes));
      for (int64_t r : tile.span->valid[kw]) {
        int64_t column = columnOffset(tile, r, kw) / words.column;
        Value x = b.splat(b.load(spec.aType, buffer, b.idx(words.place(column))), t.lanes);
        for (int64_t v = 0; v < item.vectors; ++v) {
          Value &sum = acc[r * item.vectors + v];
          sum = dotWords(b, x, right[v], sum);
        }
      }
    }
}

//===----------------------------------------------------------------------===//
// Depthwise
//===----------------------------------------------------------------------===//

/// Whether taps of a row are multiplied two at a time: those of bytes, each lane with its own channel.
bool ConvEmitter::joinsTaps() const {
  return blocked() && spec.groupIc() == 1 && spec.groupOc() == 1 && spec.kernel[2] > 1 && spec.aType.isInteger(8) &&
         spec.bType.isInteger(8) && spec.accType.isInteger(32) && t.lanes > 1 && !callbacks.mapA && !callbacks.mapB;
}

/// Two vectors of bytes as the words of one; null is zeros.
Value ConvEmitter::joinTaps(Value first, Value second, bool isUnsigned) {
  auto bytes = VectorType::get({t.lanes}, spec.aType);
  Type sums = b.laneType(spec.accType, t.lanes);
  auto orZeros = [&](Value x) { return x ? x : b.constantInt(bytes, 0); };
  if (2 * t.lanes * 16 <= 256) {
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < t.lanes; ++lane)
      order.append({lane, t.lanes + lane});
    Value joined = vector::ShuffleOp::create(b, orZeros(first), orZeros(second), order);
    Value wide = convertElements(b, {spec.aType, b.getI16Type(), isUnsigned}, joined);
    return vector::BitCastOp::create(b, sums, wide);
  }
  // Of 512 bits each byte is widened by itself: there is no shuffle across all of them that costs as little.
  auto wide = [&](Value x) { return convertElements(b, {spec.aType, spec.accType, isUnsigned}, orZeros(x)); };
  Value low = arith::AndIOp::create(b, wide(first), b.constantInt(sums, 0xffff));
  Value high = arith::ShLIOp::create(b, wide(second), b.constantInt(sums, 16));
  return arith::OrIOp::create(b, low, high);
}

/// All taps of one row for vector v of the item's channels. Columns that taps of several pixels read are joined once.
void ConvEmitter::tapPairs(const Item &item, const Tile &tile, int64_t v, Value position, Value weights, Values &sums) {
  struct Column {
    bool first = false, second = false;              ///< which bytes of the pair are inside the image
    std::vector<std::pair<int64_t, int64_t>> uses{}; ///< pixels and pairs of taps
  };
  std::map<int64_t, Column> columns;
  const int64_t taps = spec.kernel[2], next = spec.dilation[2] * columnStride();
  auto reads = [&](int64_t kw, int64_t r) { return kw < taps && llvm::is_contained(tile.span->valid[kw], r); };
  Values pairs;
  for (int64_t kw = 0; kw < taps; kw += 2) {
    for (int64_t r = 0; r < tile.span->pixels; ++r) {
      bool first = reads(kw, r), second = reads(kw + 1, r);
      if (!first && !second)
        continue;
      Column &column = columns[columnOffset(tile, r, kw)];
      column.first |= first, column.second |= second;
      column.uses.emplace_back(r, kw / 2);
    }
    auto tap = [&](int64_t kw) {
      Value at = b.addC(b.add(weights, b.idx(kw * kPanelColumns)),
                        v * t.lanes / kPanelColumns * panelElements() + v * t.lanes % kPanelColumns);
      return kw < taps ? b.load(spec.bType, item.weights, at, t.lanes) : Value();
    };
    pairs.push_back(joinTaps(tap(kw), tap(kw + 1), spec.bUnsigned));
  }
  // As in tapStep: no sharing of loads between rows of taps, see opaque.
  Value base = b.opaque(item.input);
  for (auto &[offset, column] : columns) {
    auto load = [&](bool inside, int64_t at) {
      return inside ? b.load(spec.aType, base, b.addC(position, at), t.lanes) : Value();
    };
    Value x = joinTaps(load(column.first, offset), load(column.second, offset + next), spec.aUnsigned);
    for (auto [r, pair] : column.uses) {
      Value &sum = sums[r * item.vectors + v];
      sum = dotWords(b, x, pairs[pair], sum);
    }
  }
}
