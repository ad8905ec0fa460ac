//===- Winograd.h - convolution by minimal filtering ------------*- C++ -*-===//
//
// Winograd's minimal filtering F(m x m, 3 x 3) of 3x3 convolutions: the image is cut in tiles of m x m
// outputs, which read (m+2) x (m+2) inputs; transformed inputs and weights are multiplied position by position, as
// (m+2)^2 matrix products over the channels, and the sums are transformed back. m = 2 takes 16 products an output
// channel and tile where the direct way takes 36. (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
// 2015, section 4; the matrices are theirs.)
//
// A convolution of stride 2 is one of its even inputs with the outer taps, F(2, 2), plus the odd inputs times the tap
// in the middle: 3 + 2 products where the direct way takes 6 along an axis, 25 where it takes 36 in a tile.
//
// The last tile of an odd size has one output along an axis, which takes 3 products instead of 4 or 5. They are left
// out where an image is a block: 7x7 outputs take 15^2 instead of 16^2 products at stride 1, 18^2 instead of 20^2 at
// stride 2.
//
// Results differ from direct sums by rounding: transformed inputs are sums of four inputs, and outputs are sums of nine
// sums of products that may be larger than their sum. For m = 2 all coefficients of inputs and outputs are 0 or +-1, so
// an error of a product is weighed with at most 1, and the error stays within 4 times the bound of the direct way in
// the norm max |x| * sum |w|. An infinity or a NaN spoils all outputs of the tiles that read it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Conv.h"

#include "dmxc/Support/Dim.h"

namespace dmxc::cpu {

/// A 3x3 convolution of f32, blocked16 images. Sizes of images may be known at run time only.
struct WinogradSpec {
  mlir::Type f32;
  int64_t ic = 0, oc = 0; ///< ic: whole blocks of 16
  Dim n = 1, height, width, outHeight, outWidth;
  Dim padTop = 0, padLeft = 0; ///< the other sides follow from the sizes
  bool heavyEpilogue = false;  ///< as in GemmKernel
  int64_t stride = 1;          ///< of both axes, 1 or 2

  bool isStatic() const { return outHeight.known() && outWidth.known(); }
};

/// The blocking chosen for a spec. Tiles of an image are numbered row by row and cut in blocks; a work item is a block
/// times some output channels.
struct WinogradTiles {
  /// What the strategy keeps; the rest follows from the level and the image.
  static llvm::ArrayRef<TileField<WinogradTiles>> fields();

  Dim tilesX, tilesY;             ///< of an image
  Dim blocks;                     ///< of an image
  int64_t blockTiles = 1;         ///< tiles of a block; the last one may have fewer
  int64_t rows = 1;               ///< most tiles of a register tile
  int64_t vectors = 1, lanes = 1; ///< of output channels, as in ConvTiles

  Dim imageTiles() const { return tilesX * tilesY; }
  int64_t columns() const { return vectors * lanes; }
};
/// Whether that is faster than direct sums, as far as sizes are known.
bool winogradPays(const WinogradSpec &spec);
/// With what is decided, which is not checked.
WinogradTiles chooseWinogradTiles(const WinogradSpec &spec, const IsaLevel &isa,
                                  const DecidedFields<WinogradTiles> &decided = {});
/// Tiles of an image and lanes: nothing of them is chosen.
WinogradTiles tilesOfImage(const WinogradSpec &spec, const IsaLevel &isa);
/// Most rows of a register tile that is so wide, whose sums, with those of stretches before, stay in registers.
int64_t mostWinogradRows(const IsaLevel &isa, const WinogradSpec &spec, int64_t vectors);

/// The numbers of tiles that are multiplied together, in balanced register tiles. Of static sizes.
llvm::SmallVector<int64_t> tilesAtOnce(const WinogradSpec &spec, const WinogradTiles &tiles);

/// Blocks x groups of output channels, the last fastest: the transformed input of a block serves all of them.
Dim winogradWorkItems(const WinogradSpec &spec, const WinogradTiles &tiles);
int64_t winogradGrain(const WinogradSpec &spec, const WinogradTiles &tiles);
int64_t winogradScratchBytes(const WinogradSpec &spec, const WinogradTiles &tiles);

/// Emits the work items [begin, end) of the builder's kernel, as emitConv does.
void emitWinograd(CpuBuilder &b, const WinogradSpec &spec, const WinogradTiles &tiles, mlir::Value input,
                  mlir::Value weights, const ConvCallbacks &callbacks, int64_t scratchOffset = 0);

/// Bytes of the transformed weights ("convwinograd16"): per 16 output channels [4x4][input channels][16], zero
/// padded. The same for every ISA level.
int64_t winogradWeightBytes(int64_t oc, int64_t ic);
/// Transforms contiguous f32 weights [oc][ic][3][3], in f64. `dst` has winogradWeightBytes bytes.
void packWinogradWeights(int64_t oc, int64_t ic, int64_t stride, const std::byte *src, std::span<std::byte> dst);

} // namespace dmxc::cpu
