//===- PatchProduct.h - convolutions by patches of the image ----*- C++ -*-===//
//
// Convolutions of groups of few channels, depthwise ones above all, and others that are too small for tiles of a
// product: a block has a rectangle of the result for some outputs. The patch of the image that it is read from comes to
// shared memory once, a thread sums a few pixels, one below the other, of a few outputs of a group.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/cuda/product/Gemm.h"

#include "targets/common/roots/Contraction.h"

namespace dmxc::cuda {

/// The algorithm, and the key of a strategy that has its tile.
inline constexpr llvm::StringLiteral kConvByPatches = "conv-by-patches", kPatches = "patches";

/// What a block computes at a time.
struct PatchTile {
  int64_t columns = 32, rows = 8; ///< pixels of the rectangle
  int64_t parts = 1;              ///< runs of outputs, each of one group
  int64_t outputs = 1, own = 4;   ///< of a thread: outputs, and pixels one below the other

  static llvm::ArrayRef<kernels::TileField<PatchTile>> fields();
  int64_t threads() const { return columns * (rows / own) * parts; }
};

/// A convolution of floats whose operands lie in memory.
struct PatchProduct : Contraction {
  /// An axis of the image, of which a block has `size` outputs.
  struct Axis {
    Windows::Axis window;
    int64_t taps = 1;

    /// Pixels that so many neighbouring outputs read.
    int64_t reach(int64_t outputs) const { return (outputs - 1) * window.stride + (taps - 1) * window.dilation + 1; }
  };
  /// How a tile lies in shared memory: floats, of one buffer.
  struct Room {
    int64_t groups; ///< whose patches a block has
    int64_t chunks; ///< runs of outputs of a group
    int64_t depth;  ///< channels of a step
    int64_t width, height, pitch;
    int64_t patches; ///< floats: all patches, then the weights
    int64_t weights;
    int64_t steps, buffers;
    int64_t conflicts; ///< wavefronts of a warp's load of a patch

    int64_t buffer() const { return patches + weights; }
    int64_t bytes() const { return buffers * buffer() * 4; }
  };

  /// Nothing where the kernel cannot compute it.
  static std::shared_ptr<const PatchProduct> of(mlir::Operation *root, const hw::Machine &machine);
  /// Whether it is expected to be faster than what takes so many clocks.
  bool pays(const hw::Machine &machine, double others) const { return clocks(machine, choose(machine, {})) < others; }
  Room room(const PatchTile &tile) const;
  Dim blocks(const PatchTile &tile) const;
  /// Loads of a thread for a step: of patches and of weights.
  std::pair<int64_t, int64_t> copies(const PatchTile &tile, const Room &room) const;
  /// Terms of a channel.
  int64_t tapsOfChannel() const { return depthAxis.taps * down.taps * across.taps; }
  /// Whether all places of an image fit 31 bits, as far as that is known.
  bool isNarrow() const;
  Launch launch(const PatchTile &tile) const { return {blocks(tile), tile.threads(), room(tile).bytes()}; }

  /// The tile of the least clocks, but what is decided of its domains.
  PatchTile choose(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
  std::vector<Decision> decisions(const hw::Machine &machine, mlir::DictionaryAttr decided) const;
  double clocks(const hw::Machine &machine, const PatchTile &tile) const;
  Result<PatchTile> read(const hw::Machine &machine, mlir::Attribute written, llvm::StringRef key) const;

  int64_t groups = 1, outputs = 1, channels = 1; ///< outputs and channels of a group
  Axis depthAxis, down, across;                  ///< the outermost first; one that is not there has one pixel
  size_t imageAxes = 0;

private:
  explicit PatchProduct(mlir::Operation *root) : Contraction(Contraction::of(root)) {}
  bool placeAxes();
  bool fits(const hw::Machine &machine, const PatchTile &tile) const;
  int64_t nominally(Dim size) const { return std::max<int64_t>(nominal(op->getBlock(), size), 1); }
  kernels::FreeTile<PatchTile> freeTile(mlir::DictionaryAttr decided) const;
  void findTiles(const hw::Machine &machine);

  std::vector<std::pair<double, PatchTile>> tiles; ///< all that a block can compute, by their clocks
};

KernelPlan planPatches(const RegionBody &body, const std::shared_ptr<const PatchProduct> &product,
                       const PatchTile &tile);
/// The same as a strategy says.
Result<KernelPlan> patchesIn(const RegionBody &body, const CudaRequest &request);
void emitPatches(CudaBuilder &b, const RegionBody &body, const PatchProduct &product, const PatchTile &tile);

} // namespace dmxc::cuda
