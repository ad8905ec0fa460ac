//===- ConvTiles.cpp - blocking and geometry of convolution --------------===//

#include "ConvDecisions.h"
#include "ConvPlan.h"
#include "targets/cpu/product/GemmTile.h"

#include "dmxc/Target/DecisionsMade.h"

#include <algorithm>

using namespace dmxc::cpu;

//===----------------------------------------------------------------------===//
// Geometry
//===----------------------------------------------------------------------===//

ConvKernel::ConvKernel(const Contraction &conv)
    : ProductTypes(conv.rhsElement, conv.lhsElement, conv.element), n(conv.batchDims[0].valueOr(kDynamic)),
      groups(conv.batchDims.size() > 1 ? *conv.batchDims[1].known() : 1) {
  ic = *conv.windows->channels.known() * groups;
  oc = *conv.m.known() * groups;
  for (auto [i, axis] : llvm::enumerate(conv.windows->axes)) {
    size_t at = 3 - conv.windows->axes.size() + i;
    in[at] = axis.in.valueOr(kDynamic), out[at] = axis.out.valueOr(kDynamic), kernel[at] = *axis.taps.known();
    stride[at] = axis.stride, dilation[at] = axis.dilation, pad[at] = axis.low.valueOr(kDynamic);
  }
}

ConvKernel dmxc::cpu::normalized(const ConvKernel &spec) {
  ConvKernel::Spatial one{1, 1, 1}, zero{0, 0, 0};
  if (spec.kernel != one || spec.stride != one || spec.pad != zero || spec.in != spec.out)
    return spec;
  ConvKernel flat = spec;
  flat.in = flat.out = {1, 1, spec.outPositions()};
  flat.dilation = one;
  return flat;
}

ConvMode dmxc::cpu::convMode(const ConvKernel &spec) {
  if (spec.groups == 1)
    return ConvMode::Broadcast;
  bool inputFits = spec.input == ConvLayout::Plain || spec.groupIc() % spec.blockElements() == 0;
  return spec.groupOc() % 16 == 0 && inputFits ? ConvMode::Broadcast : ConvMode::Lanes;
}

int64_t dmxc::cpu::weightBlock(const ConvKernel &spec) {
  return convMode(spec) == ConvMode::Broadcast && spec.input == ConvLayout::Blocked16 ? spec.blockElements() : 1;
}

int64_t dmxc::cpu::tilesOfRow(const ConvKernel &spec, int64_t rows) {
  return std::max<int64_t>(1, ceilDivInt(spec.out[2], rows));
}

/// The span of one tile.
static TileSpan planTile(const ConvKernel &spec, int64_t first, int64_t pixels) {
  TileSpan span{0, 1, first, pixels, {}, 0, 0};
  int64_t origin = first * spec.stride[2] - spec.pad[2];
  span.anchor = std::clamp<int64_t>(origin, 0, std::max<int64_t>(0, spec.in[2] - 1));
  span.shift = span.anchor - origin;
  for (int64_t kw = 0; kw < spec.kernel[2]; ++kw) {
    std::vector<int64_t> valid;
    for (int64_t r = 0; r < pixels; ++r) {
      int64_t column = origin + r * spec.stride[2] + kw * spec.dilation[2];
      if (column >= 0 && column < spec.in[2])
        valid.push_back(r);
    }
    span.valid.push_back(std::move(valid));
  }
  return span;
}

std::vector<TileSpan> dmxc::cpu::planRow(const ConvKernel &spec, int64_t rows) {
  std::vector<TileSpan> spans;
  int64_t tiles = tilesOfRow(spec, rows), low = spec.out[2] / tiles;
  int64_t high = spec.out[2] - low * tiles; // this many have low+1 pixels
  for (int64_t t = 0, first = 0; t < tiles; ++t) {
    int64_t pixels = low + (t < high);
    TileSpan span = planTile(spec, first, pixels);
    span.firstTile = t;
    first += pixels;
    bool same = !spans.empty() && spans.back().pixels == pixels && spans.back().shift == span.shift &&
                spans.back().valid == span.valid;
    if (same)
      ++spans.back().count;
    else
      spans.push_back(std::move(span));
  }
  return spans;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

bool dmxc::cpu::canPass(const ConvKernel &spec, ConvMode mode) {
  return mode == ConvMode::Broadcast && spec.input == ConvLayout::Blocked16 && !spec.turned &&
         spec.groupIc() % spec.blockElements() == 0 && spec.taps() > 1;
}

bool dmxc::cpu::widensFours(const ConvKernel &spec, const IsaLevel &isa) {
  constexpr int64_t mostBytes = 512 << 10; // of 16 channels, that a second-level cache keeps beside the image
  if (!spec.fours || isa.hasVnni || 2 * spec.groupIc() * spec.taps() * kPanelColumns * 4 > mostBytes)
    return false;
  // What a register tile reads of a row must fit in its buffer.
  const int64_t rows = largestConvTile(isa, spec.accType, 0, /*fours=*/true).rows, taps = spec.kernel[2],
                between = (rows - 1) * spec.stride[2] + (taps - 1) * spec.dilation[2] + 1;
  return std::min(rows * taps, between) * spec.blockElements() * 8 <= CpuBuilder::kTileBytes;
}

ConvTiles dmxc::cpu::chooseConvTiles(const ConvKernel &original, const IsaLevel &isa,
                                     const DecidedFields<ConvTiles> &decided) {
  DecisionsMade::check("a convolution's blocking");
  ConvKernel spec = normalized(original);
  ConvTiles t;
  t.mode = convMode(spec);
  t.lanes = isa.lanes(spec.accType.getIntOrFloatBitWidth());
  t.words = widensFours(spec, isa);
  // The few terms of lanes with inputs of their own are not cut in stretches.
  int64_t terms = t.mode == ConvMode::Broadcast ? spec.groupIc() * spec.taps() : 0;
  TileShape most = largestConvTile(isa, spec.accType, terms, spec.fours);
  if (spec.pairs && !spec.dotsAt(isa)) // registers for both halves of every operand
    most.rows = std::max<int64_t>(1, most.rows * 2 / 3);
  int64_t width = std::max<int64_t>(1, spec.out[2]);
  t.rows = decided[&ConvTiles::rows].value_or(ceilDivInt(width, ceilDivInt(width, most.rows)));
  t.vectors = most.vectors;
  t.sums = most.rows * most.vectors;
  if (t.mode == ConvMode::Lanes) {
    t.vectors = std::max<int64_t>(1, std::min(t.vectors, 16 / t.lanes));
  } else {
    // Few pixels: more channels, as far as registers and channels go.
    if (4 * t.rows <= t.sums && spec.groupOc() >= 4 * t.lanes)
      t.vectors = 4;
    while (t.vectors > 1 &&
           (spec.groups > 1 ? spec.groupOc() % t.columns() != 0 : (t.vectors / 2) * t.lanes >= spec.oc))
      t.vectors /= 2;
    t.vectors = decided[&ConvTiles::vectors].value_or(t.vectors);
  }
  // Without taps along the row there is little code in an iteration; of fours that take several instructions, enough.
  t.unroll = decided[&ConvTiles::unroll].value_or(spec.fours && !isa.hasVnni && !(t.words && spec.kernel[2] == 1) ? 1
                                                  : spec.kernel[2] == 1                                           ? 16
                                                                                                                  : 4);
  int64_t tiles = tilesOfRow(spec, t.rows);
  int64_t rowCount = spec.out[0] * spec.out[1];
  // A weight is used once a register tile: with flat tiles that is more than L2
  // delivers.
  t.passes = decided[&ConvTiles::passes].value_or(canPass(spec, t.mode) && t.rows <= 7 && rowCount > 1 &&
                                                  spec.outPositions() <= 64 && spec.groupIc() >= 64);
  t.prefetch = decided[&ConvTiles::prefetch].value_or(t.mode == ConvMode::Broadcast && !t.words);
  if (t.passes) {
    t.tilesPerItem = tiles;
    return t;
  }
  // Enough items for a few threads even when there is one long row.
  int64_t parts = rowCount >= 8 ? 1 : std::min(tiles, ceilDivInt(16, rowCount));
  if (spec.turned) // what is turned stays near
    parts = std::max(parts, ceilDivInt(tiles, std::max<int64_t>(1, kMostTurned / 8 / t.rows)));
  t.tilesPerItem = decided[&ConvTiles::tilesPerItem].value_or(ceilDivInt(tiles, parts));
  return t;
}

int64_t dmxc::cpu::convWorkItems(const ConvKernel &original, const ConvTiles &t) {
  ConvKernel spec = normalized(original);
  if (spec.n == 0 || spec.oc == 0 || spec.outPositions() == 0)
    return 0;
  int64_t parts = ceilDivInt(tilesOfRow(spec, t.rows), t.tilesPerItem);
  int64_t images = ceilDivInt(spec.oc, t.columns()) * std::max<int64_t>(spec.n, 1);
  return t.passes ? images : images * spec.out[0] * spec.out[1] * parts;
}

int64_t dmxc::cpu::convGrain(const ConvKernel &spec, const ConvTiles &t) {
  double pixels = t.passes ? spec.outPositions() : t.rows * t.tilesPerItem;
  double flops = 2.0 * pixels * t.columns() * std::max<int64_t>(1, spec.groupIc() * spec.taps());
  return std::max<int64_t>(1, static_cast<int64_t>(4e5 / flops));
}

int64_t dmxc::cpu::pixelsOfItem(const ConvTiles &t, const ConvKernel &spec) {
  return t.tilesPerItem * ceilDivInt(spec.out[2], tilesOfRow(spec, t.rows));
}

int64_t dmxc::cpu::convSumBytes(const ConvKernel &original, const ConvTiles &t) {
  const ConvKernel spec = normalized(original);
  if (spec.turned) // whole vectors of pixels, and a block that is turned
    return ceilDivInt(((pixelsOfItem(t, spec) + t.lanes) * t.columns() + t.lanes * t.lanes) * 4, 64) * 64;
  if (!spec.heavyEpilogue && !t.passes)
    return 0;
  int64_t pixels = t.passes ? spec.outPositions() : t.rows;
  int64_t bytes = pixels * t.columns() * spec.accType.getIntOrFloatBitWidth() / 8;
  return ceilDivInt(bytes, 64) * 64;
}

int64_t dmxc::cpu::convScratchBytes(const ConvKernel &spec, const ConvTiles &t) {
  return convSumBytes(spec, t) +
         (t.words ? 2 * convWordPanels(t) * spec.groupIc() * spec.taps() * kPanelColumns * 4 : 0);
}
