//===- ConvOpen.h - state of a blocked convolution of open sizes -*- C++ -*-===//
//
// Private to ConvOpen.cpp (spans and tiles) and ConvOpenGather.cpp (their input in scratch).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ConvSegment.h"
#include "Convolution.h"
#include "targets/cpu/product/GemmTile.h"

#include "dmxc/Dialect/DMIR/Dims.h"

namespace dmxc::cpu {

/// Pixels of the largest tile of all levels.
constexpr int64_t kMaxPixels = 14;
/// Chains of a tile's sums: more would only be emptied more often.
constexpr int64_t kMostChains = 2;

struct OpenSpec : PixelSpec {
  /// `blocked`: the input, as it is or will be.
  OpenSpec(dmir::ConvOp op, bool blocked);

  bool blocked; ///< the input
  bool byRow;   ///< spans of a blocked input lie in one row
  int64_t steps() const { return groupIc * taps; }
  int64_t blocks() const { return ceilDivInt(groupIc, 16); }
  int64_t leadingTaps() const { return taps / kernel(); }
  /// Columns that the pixels of a tile read.
  int64_t columns(int64_t pixels) const { return (pixels - 1) * stride() + (kernel() - 1) * axes.back().dilation + 1; }
  /// Of the gathered input of a span, or of a tile.
  int64_t inputBytes() const {
    if (byRow)
      return blocks() * 16 * leadingTaps() * columns(kMaxPixels) * 4;
    // The last tile of a plain row reads up to 15 elements beyond it.
    return blocked ? blocks() * 16 * taps * segment * 4 : scratchBytes() + 64;
  }
  Dim positions() const { return dmir::product(out()); }
  /// Whether a span lies in one row.
  bool inRows() const { return byRow || !blocked; }
};

class OpenConv {
public:
  using Value = mlir::Value;

  OpenConv(CpuBuilder &b, const Convolution &conv, const OpenSpec &spec, int64_t scratchOffset);

  /// `outer`: image, number of the item's channels, leading positions where spans lie in rows, number of the span.
  void run(llvm::ArrayRef<Value> outer);

private:
  /// Some vectors of output channels.
  struct Group {
    Value oc, weights;
    int64_t vectors, tailChannels;
  };
  /// A register tile: its pixels' first elements in scratch, or in the image.
  struct Tile {
    int64_t rows;
    Value at; ///< its first pixel, counted from the span's
    bool gathered = true;
    // Where spans lie in rows of blocks: its first element, and elements from one block, and one tap of each leading
    // axis, to the next.
    Value pixels = {}, blockStride = {};
    llvm::SmallVector<Value> tapStrides = {};
  };

  void runBlocked(Value image, Value firstOc, Value first);
  void runPlain(Value image, Value firstOc, llvm::ArrayRef<Value> leading, Value first);
  void runRow(Value image, Value firstOc, llvm::ArrayRef<Value> leading, Value first);
  void gather(Value from, Value to, Value first);
  void gatherRow(Value row, Value width, Value column, int64_t stride, Value count, Value target,
                 int64_t blockElements);
  void forLeadingTaps(llvm::ArrayRef<Value> leading, llvm::function_ref<void(Value row, Value inside, Value tap)> body);
  void locate(Value image, Value firstOc);
  Value rowOf(llvm::ArrayRef<Value> leading);
  void copyTile(llvm::ArrayRef<Value> leading, Value column, int64_t pixels);
  void forGroups(Value firstOc, llvm::function_ref<void(const Group &)> body);
  void tiles(const Group &group, Value image, Value position, Value count, bool inPlace);
  llvm::SmallVector<Value> reduce(const Group &group, const Tile &tile);
  llvm::SmallVector<Value> inStretches(const Group &group, const Tile &tile, int64_t count, int64_t terms,
                                       mlir::ValueRange init,
                                       llvm::function_ref<llvm::SmallVector<Value>(Value, mlir::ValueRange)> body);
  llvm::SmallVector<Value> reduceBlocked(const Group &group, const Tile &tile, mlir::ValueRange init);
  llvm::SmallVector<Value> reduceRow(const Group &group, const Tile &tile, mlir::ValueRange init);
  llvm::SmallVector<Value> channels(const Group &group, const Tile &tile, Value from, Value weight, int64_t count,
                                    Value ahead, mlir::ValueRange init);
  llvm::SmallVector<Value> reducePlain(const Group &group, const Tile &tile, mlir::ValueRange init);
  void step(const Group &group, const RegisterTile &regs, Value pixels, int64_t distance, Value weight, int64_t term,
            llvm::MutableArrayRef<Value> acc);
  RegisterTile registers(const Group &group, const Tile &tile) const {
    return {tile.rows, group.vectors, lanes, f32, /*fours=*/false, chains};
  }
  void store(const Group &group, Value image, Value position, Value count, int64_t rows, llvm::ArrayRef<Value> acc);

  int64_t panelElements() const { return s.steps() * 16; }
  /// Elements from one block of input channels to the next in scratch, for one tap.
  int64_t tapElements() const { return s.segment * 16; }

  CpuBuilder &b;
  const Convolution &conv;
  const OpenSpec &s;
  Value weights;
  ConvWriter writer;
  SegmentCopy rows;
  mlir::Type f32;
  int64_t lanes, tileRows, vectors;
  int64_t chains;    ///< in every tile, so that equal pixels have equal results wherever they are
  Value input, sums; ///< in scratch
  Value source;      ///< the image's first channel of the group
  Value plane;       ///< positions of a channel of the input
};

} // namespace dmxc::cpu
