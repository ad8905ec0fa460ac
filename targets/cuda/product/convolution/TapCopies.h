//===- TapCopies.h - windows tap by tap to shared memory --------*- C++ -*-===//
#pragma once

#include "TapForm.h"
#include "targets/cuda/code/Words.h"
#include "targets/cuda/product/Pipeline.h"

#include "targets/cuda/code/Asynchronous.h"

namespace dmxc::cuda {

/// Terms of a convolution's windows in the order of TapForm, by the threads of the warpgroup that copies: a thread has
/// a pixel or two of the tile, eight channels of a tap at a time, which are 16 bytes of shared memory. Where it is
/// found in the image is computed once a tile, in 32 bits; a step adds what its taps add.
class TapCopies {
public:
  using Value = mlir::Value;
  TapCopies(CudaBuilder &b, const GemmProduct &product, const Pipeline &pipeline)
      : b(b), async(b), words(b, /*isWide=*/false), product(product), tile(pipeline.tile), taps(*product.taps),
        axes(product.windows->axes), atOnce(std::max<int64_t>(1, pipeline.rightPairs / kUnitPairs)) {}
  /// Pairs of terms of a unit.
  static constexpr int64_t kUnitPairs = TapForm::kUnit / 2;

  /// Finds the thread's pixels: `column`, where the tile begins; `source`: elements of the image before the batch item.
  void enter(Value column, Value source);
  /// Loads a group of the 64 terms from `k` on; what it is made of goes from one step to the next as values.
  llvm::SmallVector<Value> load(Value k, int64_t group);
  /// Groups of a step.
  int64_t groups() const;
  /// Puts a group into the tile at `to`.
  void store(llvm::ArrayRef<Value> loaded, int64_t group, Value to);

private:
  /// A column of the tile.
  struct Pixel {
    Value row;                         ///< of the tile: i64
    llvm::SmallVector<Value, 3> first; ///< along each axis, which may be outside
    Value place;                       ///< of the first tap behind `source`
    Value near;                        ///< a pixel that is there, its neighbour in memory
    Value isThere;                     ///< null: it is
  };
  /// A tap: what it adds along each axis and to the place; the first channel of what is copied, and its place.
  struct Tap {
    llvm::SmallVector<Value, 3> along;
    Value place, channel, ofChannel, isOne; ///< `isOne`: null: it is
  };
  /// Eight channels of a tap of a pixel, and what a thread has loaded of them.
  struct Unit {
    const Pixel *pixel;
    int64_t number; ///< of the step, behind the thread's share
  };
  struct Loaded {
    llvm::SmallVector<Value> terms; ///< i16, null: 0
    llvm::SmallVector<Value> has;   ///< of each; null: it is there
  };

  Pixel pixelAt(int64_t number, Value column);
  Tap tapOf(Value unit);
  Value isInside(const Pixel &pixel, const Tap &tap);
  llvm::SmallVector<Unit> unitsOf(int64_t group) const;
  Loaded load(const Pixel &pixel, const Tap &tap, Value isThere, int64_t channel);
  void store(const Loaded &loaded, const Unit &unit, Value row, Value to);
  Value share();
  Value thread();
  bool isOneTap() const { return taps.unitsOfTap() % kStepUnits == 0; }

  static constexpr int64_t kStepUnits = dmx::cuda::kTileRowElements / TapForm::kUnit;
  CudaBuilder &b;
  Asynchronous async;
  Words words;
  const GemmProduct &product;
  const GemmTile &tile;
  const TapForm &taps;
  llvm::ArrayRef<Windows::Axis> axes;
  int64_t atOnce; ///< units that are loaded before the first one is stored
  llvm::SmallVector<Pixel> pixels;
  Value source;                      ///< of the image: a pointer
  llvm::SmallVector<Loaded> pattern; ///< of a group: which of its values there are
};

} // namespace dmxc::cuda
