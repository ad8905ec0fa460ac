//===- Conv.h - convolution kernels -----------------------------*- C++ -*-===//
//
// Direct convolution as an implicit matrix product: a register tile is some
// adjacent output pixels of a row times some output channels, and its sums stay
// in registers through the whole reduction. Padding is never read: taps outside
// the input are left out, at compile time along a row and by loop bounds across
// rows.
//
// Layouts of activations:
//   plain      [N][C][D][H][W]
//   blocked16  [N][ceil(C/16)][D][H][W][16]; lanes beyond C hold anything
// One- and two-dimensional convolutions have leading spatial sizes of 1.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/cpu/product/Gemm.h"

#include <algorithm>
#include <array>

namespace dmxc::cpu {

enum class ConvLayout { Plain, Blocked16 };

/// A convolution as register tiles compute it: a Contraction's sizes as numbers, of always three spatial axes, and how
/// its operands lie. All are static, but for n (kDynamic); of one of open sizes the weights' alone are told.
struct ConvKernel : ProductTypes {
  ConvKernel() = default;
  explicit ConvKernel(const kernels::Contraction &conv);

  using Spatial = std::array<int64_t, 3>; ///< depth, height, width

  int64_t n = 1;
  int64_t ic = 0, oc = 0; ///< channels of all groups together
  int64_t groups = 1;     ///< divides ic and oc
  Spatial in{1, 1, 1}, out{1, 1, 1};
  Spatial kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  /// Input position of output 0 and tap 0 is -pad. The padding at the end
  /// follows from `out`; taps that fall outside the input contribute nothing.
  Spatial pad{0, 0, 0};
  ConvLayout input = ConvLayout::Blocked16;
  /// As in GemmKernel.
  bool heavyEpilogue = false;
  /// The result is plain: what an item computes is turned in scratch, and stored in vectors of adjacent pixels.
  bool turned = false;
  /// Elements are fours: four u8 of adjacent input channels and four s8 of the weights that meet them, each as one i32
  /// (all three types). ic counts fours; the input is Blocked16, and either all channels are one group or each group
  /// has whole blocks of input and output channels. Weights are packed by packConvGroups.
  bool fours = false;
  /// Elements are pairs: two bf16 of adjacent input channels, of which a group has an even number, and two of the
  /// weights that meet them, each in the bits of one f32. ic counts pairs; the rest is as of fours.
  bool pairs = false;
  Units units{true, true}; ///< that pairs are planned for

  /// Elements of a block of 16 channels of a blocked input.
  int64_t blockElements() const { return fours ? 4 : pairs ? 8 : 16; }
  /// Whether a level multiplies pairs by an instruction.
  bool dotsAt(const IsaLevel &isa) const { return pairs && units.dots && (isa.hasDots || isa.hasTiles); }
  int64_t groupIc() const { return ic / groups; }
  int64_t groupOc() const { return oc / groups; }
  int64_t outPositions() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

/// How the channels of a register tile meet the input.
enum class ConvMode {
  Broadcast, ///< one input element times many output channels
  Lanes      ///< depthwise and small groups: each lane has its own input channel
};

/// The blocking chosen for a spec; part of a region's strategy.
struct ConvTiles {
  /// What the strategy keeps; the rest follows from the level.
  static llvm::ArrayRef<TileField<ConvTiles>> fields();

  ConvMode mode = ConvMode::Broadcast;
  int64_t rows = 1;    ///< most pixels of a register tile
  int64_t vectors = 1; ///< vectors of output channels of a register tile
  int64_t lanes = 1;
  int64_t sums = 1;         ///< most accumulators; wider tiles are done in parts
  int64_t unroll = 4;       ///< input channels in one iteration
  int64_t tilesPerItem = 1; ///< register tiles of a row in one work item
  /// Small images whose channels' weights do not fit in L1: an item is a whole
  /// image, and 16 input channels at a time go over all of its rows, the sums
  /// waiting in scratch. Only for a blocked input, Broadcast, groupIc % 16 ==
  /// 0.
  bool passes = false;
  bool prefetch = false; ///< prefetch the next channels' weights
  bool words = false;    ///< weights in fours are widened to i16 in scratch, see widensFours; follows from the level

  int64_t columns() const { return vectors * lanes; }
  /// Vectors of a tile of so many pixels whose sums fit in the registers: as many are done at once.
  int64_t vectorsAtOnce(int64_t pixels) const {
    int64_t most = 1;
    while (2 * most * pixels <= sums)
      most *= 2;
    return std::min(most, vectors);
  }
};

struct ConvCallbacks {
  /// Takes `value` = vector<lanes x accType> of the output channels
  /// oc..oc+lanes at `position` = (d*OH + h)*OW + w of image n. `mask` is null
  /// when all channels exist; oc is a multiple of lanes.
  std::function<void(mlir::Value n, mlir::Value oc, mlir::Value position, mlir::Value value, mlir::Value mask)> store;
  /// Instead, where results are turned: `value` has adjacent pixels of channel oc, from `position` on; `mask` is null
  /// where all belong to the row.
  decltype(store) storePixels;
  /// Optional change of input elements (a scalar or a vector of accType), e.g.
  /// minus a zero point; padding counts as zero after the change.
  std::function<mlir::Value(mlir::Value elements)> mapA;
  /// Optional change of weights (a vector of accType) of channels from oc on.
  std::function<mlir::Value(mlir::Value vector, mlir::Value oc)> mapB;
};

/// Whether a level without an instruction for fours multiplies them as words that wait in scratch: weights of an item's
/// channels, which all of its tiles and often the next item read. Else they are widened at each step.
bool widensFours(const ConvKernel &spec, const IsaLevel &isa);

/// With what is decided, which is not checked.
ConvTiles chooseConvTiles(const ConvKernel &spec, const IsaLevel &isa, const DecidedFields<ConvTiles> &decided = {});

/// Work items: groups of output channels x images x rows x parts of a row, the
/// last fastest, so that adjacent items share weights. For a dynamic n this is
/// the number of items of one image, to be multiplied by n.
int64_t convWorkItems(const ConvKernel &spec, const ConvTiles &tiles);
/// Fewest work items worth a call of their own.
int64_t convGrain(const ConvKernel &spec, const ConvTiles &tiles);
int64_t convScratchBytes(const ConvKernel &spec, const ConvTiles &tiles);

/// Emits the work items [begin, end) of the builder's kernel. `input` and
/// `weights` (packed) are pointers, `n` the number of images when dynamic.
void emitConv(CpuBuilder &b, const ConvKernel &spec, const ConvTiles &tiles, mlir::Value input, mlir::Value weights,
              const ConvCallbacks &callbacks, mlir::Value n = {}, int64_t scratchOffset = 0);

/// Bytes of the packed weights ("convpanel16"): per 16 output channels
/// [blocks of input channels][KD][KH][KW][channels of the block][16], zero
/// padded. A block has 16 channels for a blocked input, one for a plain input
/// and for ConvMode::Lanes. The same for every ISA level.
int64_t packedConvWeightBytes(const ConvKernel &spec);
/// Packs weight (oc, ic in its group, d, h, w), found at src + the sum of index
/// times stride (in elements, may be negative). `dst` has
/// packedConvWeightBytes bytes. The spec's bType tells the element's size.
void packConvWeights(const ConvKernel &spec, const std::byte *src, std::array<int64_t, 5> strides,
                     std::span<std::byte> dst);
/// The same for a spec of fours or of pairs: `src` has bytes, or bf16, `channels` of them a group; those that fill up a
/// four are zero.
void packConvGroups(const ConvKernel &spec, int64_t channels, const std::byte *src, std::array<int64_t, 5> strides,
                    std::span<std::byte> dst);

} // namespace dmxc::cpu
