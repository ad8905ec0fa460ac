//===- TestSupport.cpp - packing and products of the numerics tests -------===//
#include "TestSupport.h"

#include <cstdio>
#include <cstdlib>

namespace dmx::blockfp::test {

namespace {

[[noreturn]] void die(const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

/// Block b of a run, unpacked.
struct Block {
  std::vector<int16_t> mantissas;
  BlockView view;
};

Block blockOf(const Packed &packed, int64_t run, int64_t tileOfRun, int b) {
  const TileShape &shape = packed.layout.tile;
  const std::byte *tile = packed.tile(run / kTileRuns, tileOfRun);
  int r = static_cast<int>(run % kTileRuns);
  Block block;
  block.mantissas.resize(shape.depth);
  unpackMantissas(tile + shape.scaleBytes() + r * shape.runBytes(), shape.depth, shape.format.precision,
                  block.mantissas.data());
  int size = shape.format.block;
  block.view.exponent = static_cast<uint8_t>(tile[r * shape.blocksPerRun() + b]);
  block.view.mantissas = {block.mantissas.data() + b * size, static_cast<size_t>(size)};
  block.view.precision = shape.format.precision;
  return block;
}

} // namespace

Packed pack(const char *format, Orientation orientation, const std::vector<float> &values, int64_t rows, int64_t cols,
            const TensorRounding &rounding) {
  std::string error;
  auto parsed = parseFormat(format, error);
  if (!parsed)
    die(error);
  auto layout = makeLayout(parsed->format.block, orientation, rows, cols, error);
  if (!layout)
    die(error);
  Packed packed{*layout, std::vector<std::byte>(layout->bytes())};
  if (MaybeError failure = quantizeTensor(*layout, {values.data(), cols}, rounding, packed.bytes.data()))
    die(*failure);
  return packed;
}

std::vector<float> matmul(const Packed &a, const Packed &w, int tiles, SimdLevel level) {
  int64_t m = a.layout.runs(), n = w.layout.runs();
  int64_t depth = a.layout.tilesAlongRun();
  int64_t paddedN = w.layout.tilesOverRuns() * kTileRuns;
  std::vector<float> padded(a.layout.tilesOverRuns() * kTileRuns * paddedN);
  TileMatmul unit(level);
  for (int64_t i = 0; i < a.layout.tilesOverRuns(); ++i)
    for (int64_t j = 0; j < w.layout.tilesOverRuns(); ++j)
      for (int64_t k = 0; k < depth; k += tiles) {
        std::vector<const std::byte *> aTiles, wTiles;
        for (int64_t t = k; t < std::min(depth, k + tiles); ++t) {
          aTiles.push_back(a.tile(i, t));
          wTiles.push_back(w.tile(j, t));
        }
        TileProduct product{a.layout.tile, w.layout.tile};
        product.rows = static_cast<int>(std::min<int64_t>(kTileRuns, m - i * kTileRuns));
        product.accumulate = k != 0;
        float *ob = padded.data() + i * kTileRuns * paddedN + j * kTileRuns;
        if (MaybeError error = unit.run(product, aTiles, wTiles, ob, paddedN))
          die(*error);
      }
  std::vector<float> out;
  for (int64_t i = 0; i < m; ++i)
    out.insert(out.end(), padded.begin() + i * paddedN, padded.begin() + i * paddedN + n);
  return out;
}

std::vector<float> matmulByDefinition(const Packed &a, const Packed &w, int tiles) {
  std::vector<float> out;
  int64_t depth = a.layout.tilesAlongRun();
  for (int64_t i = 0; i < a.layout.runs(); ++i)
    for (int64_t j = 0; j < w.layout.runs(); ++j) {
      float ob = 0;
      for (int64_t k = 0; k < depth; k += tiles) {
        std::vector<float> partials;
        for (int64_t t = k; t < std::min(depth, k + tiles); ++t)
          for (int b = 0; b < a.layout.tile.blocksPerRun(); ++b)
            partials.push_back(partialToF32(dotBlocks(blockOf(a, i, t, b).view, blockOf(w, j, t, b).view)));
        float reduced = roundSum(reducePartials(partials));
        ob = k == 0 ? reduced : addToSum(ob, reduced);
      }
      out.push_back(ob);
    }
  return out;
}

std::vector<uint16_t> toF16(const std::vector<float> &values) {
  std::vector<uint16_t> out;
  for (float value : values)
    out.push_back(f16Round(value));
  return out;
}

} // namespace dmx::blockfp::test
