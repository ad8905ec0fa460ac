//===- WinogradTiles.cpp - when and in which blocks to filter -------------===//

#include "ConvDecisions.h"
#include "Winograd.h"
#include "WinogradScheme.h"
#include "targets/cpu/product/GemmTile.h"

#include "dmxc/Target/DecisionsMade.h"

#include <cstring>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::winograd;

constexpr int64_t kFewTiles = 14, kMostTiles = 56; ///< of a block
constexpr int64_t kLargeImage = 64;                ///< what an open size is taken for

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

/// Products of an input channel with an output channel in an image. Overhanging tiles of an only block have fewer.
static int64_t productsOf(const WinogradSpec &spec, int64_t height, int64_t width, bool oneBlock) {
  const Scheme &scheme = schemeOf(spec.stride);
  int64_t overhanging = oneBlock ? scheme.firstPositions() : scheme.in;
  auto along = [&](int64_t size) { return size / kOut * scheme.in + size % kOut * overhanging; };
  return along(height) * along(width);
}

static int64_t tilesOf(int64_t height, int64_t width) { return ceilDivInt(height, kOut) * ceilDivInt(width, kOut); }

/// Whether an image is a block.
static bool isOneBlock(const WinogradSpec &spec) {
  if (!spec.isStatic())
    return false;
  int64_t height = *spec.outHeight.known(), width = *spec.outWidth.known();
  int64_t tiles = tilesOf(height, width);
  return tiles <= kFewTiles || (tiles <= kMostTiles && productsOf(spec, height, width, true) * (spec.ic + kPad) * 4 <=
                                                           IsaLevel::nominal().caches.filteredInput);
}

bool dmxc::cpu::winogradPays(const WinogradSpec &spec) {
  DecisionsMade::check("minimal filtering");
  if (spec.ic < 32 || spec.oc < 32 || spec.outHeight.is(0) || spec.outWidth.is(0))
    return false;
  // Times of products of 16 output channels. A weight takes four on its way from L3, which small images wait for; a
  // position of a tile six for 16 input channels and five for 16 output channels, when it is transformed. Measured on
  // images of 2x2 to 56x56 outputs and 32 to 512 channels: ratios are 0.93 of these, give or take a tenth.
  constexpr double kWeight = 4, kInput = 6, kOutput = 5, kGain = 1.15;
  int64_t height = spec.outHeight.valueOr(kLargeImage), width = spec.outWidth.valueOr(kLargeImage);
  double direct = kTaps * kTaps * (height * width + kWeight);
  double positions = tilesOf(height, width) * schemeOf(spec.stride).positions();
  double filtered = productsOf(spec, height, width, isOneBlock(spec)) + kPanels * kWeight +
                    positions * (kInput / spec.oc + kOutput / spec.ic);
  return direct >= kGain * filtered;
}

WinogradTiles dmxc::cpu::tilesOfImage(const WinogradSpec &spec, const IsaLevel &isa) {
  WinogradTiles t;
  t.tilesX = Dim::ceilDiv(spec.outWidth, kOut);
  t.tilesY = Dim::ceilDiv(spec.outHeight, kOut);
  t.lanes = isa.lanes(32);
  return t;
}

int64_t dmxc::cpu::mostWinogradRows(const IsaLevel &isa, const WinogradSpec &spec, int64_t vectors) {
  TileShape most = largestConvTile(isa, spec.f32, spec.ic);
  return std::max<int64_t>(1, most.rows * most.vectors / vectors);
}

WinogradTiles dmxc::cpu::chooseWinogradTiles(const WinogradSpec &spec, const IsaLevel &isa,
                                             const DecidedFields<WinogradTiles> &decided) {
  DecisionsMade::check("a block of tiles");
  WinogradTiles t = tilesOfImage(spec, isa);
  TileShape most = largestConvTile(isa, spec.f32, spec.ic);
  t.vectors = decided[&WinogradTiles::vectors].value_or(most.vectors);
  t.rows = decided[&WinogradTiles::rows].value_or(t.vectors == most.vectors ? most.rows
                                                                            : mostWinogradRows(isa, spec, t.vectors));
  int64_t fitting = isa.caches.filteredInput / (schemeOf(spec.stride).positions() * (spec.ic + kPad) * 4);
  if (std::optional<int64_t> tiles = t.imageTiles().known()) {
    int64_t blocks = isOneBlock(spec) ? 1 : ceilDivInt(*tiles, std::clamp(fitting, kFewTiles, kMostTiles));
    t.blockTiles = ceilDivInt(*tiles, blocks);
  } else { // A small image should still be one block.
    t.blockTiles = std::clamp(fitting, 2 * kFewTiles, kMostTiles) / t.rows * t.rows;
  }
  t.blockTiles = decided[&WinogradTiles::blockTiles].value_or(t.blockTiles);
  t.blocks = Dim::ceilDiv(t.imageTiles(), t.blockTiles);
  return t;
}

Dim dmxc::cpu::winogradWorkItems(const WinogradSpec &spec, const WinogradTiles &t) {
  return spec.n * t.blocks * ceilDivInt(spec.oc, t.columns());
}

int64_t dmxc::cpu::winogradGrain(const WinogradSpec &spec, const WinogradTiles &t) {
  double flops = 2.0 * schemeOf(spec.stride).positions() * t.blockTiles * t.columns() * spec.ic;
  // Enough groups of channels to pay for the transforms of their input.
  return std::max<int64_t>(static_cast<int64_t>(4e5 / flops), std::min<int64_t>(4, ceilDivInt(spec.oc, t.columns())));
}

int64_t dmxc::cpu::winogradScratchBytes(const WinogradSpec &spec, const WinogradTiles &t) {
  int64_t row = spec.ic + kPad + t.columns();
  int64_t elements = schemeOf(spec.stride).positions() * (t.blockTiles * row + kPad) + kOut * kOut * t.columns();
  return ceilDivInt(elements * 4, 64) * 64;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

int64_t dmxc::cpu::winogradWeightBytes(int64_t outputs, int64_t inputs) {
  return ceilDivInt(outputs, 16) * kPanels * inputs * 16 * 4;
}

void dmxc::cpu::packWinogradWeights(int64_t outputs, int64_t inputs, int64_t stride, const std::byte *src,
                                    std::span<std::byte> dst) {
  auto *to = reinterpret_cast<float *>(dst.data());
  const auto &transform = schemeOf(stride).weights;
  std::fill_n(to, winogradWeightBytes(outputs, inputs) / 4, 0.0f);
  for (int64_t oc = 0; oc < outputs; ++oc)
    for (int64_t ic = 0; ic < inputs; ++ic) {
      float g[kTaps * kTaps];
      std::memcpy(g, src + static_cast<size_t>(oc * inputs + ic) * sizeof g, sizeof g);
      for (int64_t i = 0; i < kWeightRows; ++i)
        for (int64_t j = 0; j < kWeightRows; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < kTaps; ++k)
            for (int64_t l = 0; l < kTaps; ++l)
              sum += transform[i][k] * g[k * kTaps + l] * transform[j][l];
          int64_t panel = oc / 16 * kPanels + i * kWeightRows + j;
          to[(panel * inputs + ic) * 16 + oc % 16] = static_cast<float>(sum);
        }
    }
}
