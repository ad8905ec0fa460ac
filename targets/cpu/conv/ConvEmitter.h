//===- ConvEmitter.h - state of one convolution being emitted ---*- C++ -*-===//
//
// Private to Conv.cpp (work items, tiles, results), ConvBroadcast.cpp and
// ConvLanes.cpp (the reductions of the two modes), and ConvWords.cpp (bytes
// that are multiplied as words).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ConvPlan.h"
#include "targets/cpu/product/GemmTile.h"

namespace dmxc::cpu {

class ConvEmitter {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  ConvEmitter(CpuBuilder &b, const ConvKernel &spec, const ConvTiles &tiles, Value input, Value weights,
              const ConvCallbacks &callbacks, Value n, int64_t scratchOffset);
  void emit();

private:
  /// One work item: a part of an output row for a group of output channels.
  struct Item {
    Value image, row, part;
    Value oc;                           ///< first output channel
    Value input;                        ///< pointer to the image's first channel of the group
    Value weights;                      ///< pointer to the first channel's weights
    Value depth, height;                ///< input position of tap 0 (may be negative)
    Value kdLow, kdHigh, khLow, khHigh; ///< taps inside the input
    int64_t vectors;                    ///< of this group, or part of one
    int64_t tailChannels;               ///< existing channels when not full, else 0
    /// Blocks of 16 input channels of a pass, null when there is only one pass.
    Value passLow, passHigh;
    int64_t firstVector = 0; ///< of the group, when this is a part
    Value firstPixel;        ///< of the item's part of the row
  };
  /// A register tile: `span` at tile number `tile` of the row.
  struct Tile {
    const TileSpan *span;
    Value index;  ///< number of the tile in its row
    Value pixel;  ///< first output column
    Value anchor; ///< input column that addresses count from
  };
  /// Where a tap row of one block of channels starts.
  struct TapRow {
    Value input;   ///< element offset of the anchor in channel 0 of the block
    Value weights; ///< element offset of tap 0 of the row
  };
  using TapFn = llvm::function_ref<Values(Value kd, Value kh, Values acc)>;

  void emitItem(int64_t vectors, int64_t tailChannels, Item item);
  void locateChannels(Item &item);
  void locateRow(Item &item);
  void emitRow(Item item);
  void emitPasses(Item &item);
  Values loadPartials(const Item &item, const Tile &tile);
  Value partialOffset(const Item &item, const Tile &tile, int64_t r, int64_t v);
  void clip(int64_t dim, Value origin, Value &low, Value &high);
  void emitTile(const Item &item, const Tile &tile);
  Item partOf(const Item &item, int64_t firstVector, int64_t vectors);
  void storeTile(const Item &item, const Tile &tile, const Values &acc);
  /// Whether results are turned: of one lane there is nothing to turn.
  bool turns() const { return spec.turned && t.lanes > 1; }
  Value firstPixelOf(Value tile);
  void storeTurned(const Item &item, Value first, Value last);
  Value mask(const Item &item, int64_t v);

  RegisterTile registers(const Item &item, const Tile &tile) const;
  Values reduceBroadcast(const Item &item, const Tile &tile, Values acc);
  Values channelBlock(const Item &item, const Tile &tile, Value block, int64_t channels, const Values &acc);
  void tapStep(const Item &item, const Tile &tile, const TapRow &row, Value channel, int64_t blockChannels,
               Values &acc);
  void prefetchWeights(const Item &item, const Tile &tile, Value progress, int64_t elements);

  /// Columns of the input, counted from the anchor, that a tile's taps of a row read.
  struct WordColumns;
  void widenWeights(Value oc);
  Values wordBlocks(const Item &item, const Tile &tile, Value low, Value high, int64_t channels, const Values &acc);
  void widenColumns(const Item &item, const WordColumns &words, Value input, Value to);
  void wordStep(const Item &item, const Tile &tile, const WordColumns &words, Value from, Value weights,
                int64_t blockChannels, Values &acc);
  /// Packed i32 from the words of the even bytes to those of the odd ones.
  int64_t oddWords() const { return convWordPanels(t) * panelElements(); }

  bool joinsTaps() const;
  Value joinTaps(Value first, Value second, bool isUnsigned);
  void tapPairs(const Item &item, const Tile &tile, int64_t v, Value position, Value weights, Values &sums);

  struct LaneInput;
  Values reduceLanes(const Item &item, const Tile &tile, const Values &acc);
  LaneInput laneInput(const Item &item, int64_t v);
  Value loadLanes(const LaneInput &in, Value base, Value position, Value j);
  Value channelOffset(Value channel);

  Values forTaps(const Item &item, const Values &acc, TapFn fn);
  Value inputRow(const Item &item, const Tile &tile, Value kd, Value kh);
  Value weightVector(const Item &item, Value offset, int64_t v, int64_t lanes);
  int64_t columnOffset(const Tile &tile, int64_t r, int64_t kw) const;
  int64_t inPositions() const { return spec.in[0] * spec.in[1] * spec.in[2]; }
  bool blocked() const { return spec.input == ConvLayout::Blocked16; }
  /// Elements from one input column to the next, and between channels of a
  /// block.
  int64_t columnStride() const { return blocked() ? spec.blockElements() : 1; }
  int64_t channelStride() const { return blocked() ? 1 : inPositions(); }
  /// Packed elements of 16 output channels.
  int64_t panelElements() const { return spec.groupIc() * spec.taps() * 16; }

  CpuBuilder &b;
  const ConvKernel spec; ///< normalized
  const ConvTiles &t;
  Value input, weights;
  const ConvCallbacks &callbacks;
  Value images;
  Value scratch, words; ///< sums that wait, widened weights
  std::vector<TileSpan> spans;
  int64_t tiles; ///< of a row
};

} // namespace dmxc::cpu
