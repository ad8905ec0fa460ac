//===- ConvBench.cpp - convolutions to measure ---------------------------===//

#include "KernelBench.h"

#include "targets/cpu/conv/Conv.h"

#include <cstdio>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::bench;
using mlir::Value;

/// A square 2-D convolution with "same"-like padding.
static ConvKernel specFor(mlir::Builder &b, const ConvShape &shape) {
  ConvKernel s;
  s.ic = shape.ic, s.oc = shape.oc, s.groups = shape.groups;
  s.in = {1, shape.size, shape.size};
  s.kernel = {1, shape.kernel, shape.kernel};
  s.stride = {1, shape.stride, shape.stride};
  s.pad = {0, shape.kernel / 2, shape.kernel / 2};
  int64_t out = (shape.size + 2 * (shape.kernel / 2) - shape.kernel) / shape.stride + 1;
  s.out = {1, out, out};
  s.aType = s.bType = s.accType = b.getF32Type();
  s.input = shape.ic < 16 ? ConvLayout::Plain : ConvLayout::Blocked16;
  return s;
}

/// Multiplications by elements inside the input (padding is not counted).
static double realFlops(const ConvKernel &s) {
  auto inside = [&](int dim) {
    int64_t count = 0;
    for (int64_t o = 0; o < s.out[dim]; ++o)
      for (int64_t k = 0; k < s.kernel[dim]; ++k) {
        int64_t x = o * s.stride[dim] - s.pad[dim] + k;
        count += x >= 0 && x < s.in[dim];
      }
    return static_cast<double>(count);
  };
  return 2.0 * s.groupIc() * s.oc * inside(1) * inside(2);
}

BenchKernel dmxc::cpu::bench::convKernel(const IsaLevel &isa, const ConvShape &shape, const std::string &tuning) {
  BenchKernel bench;
  mlir::MLIRContext context;
  mlir::Builder types(&context);
  ConvKernel spec = specFor(types, shape);
  ConvTiles tiles = chooseConvTiles(spec, isa);
  override(tuning, "rows", tiles.rows);
  override(tuning, "vectors", tiles.vectors);
  override(tuning, "unroll", tiles.unroll);
  override(tuning, "tilesPerItem", tiles.tilesPerItem);
  override(tuning, "passes", tiles.passes);
  override(tuning, "sums", tiles.sums);
  override(tuning, "prefetch", tiles.prefetch);
  int64_t positions = spec.outPositions(), blocks = (spec.oc + 15) / 16;
  bench.kernel = test::makeKernel("conv", isa, 3, 0, [&](CpuBuilder &b) {
    ConvCallbacks callbacks;
    callbacks.store = [&](Value, Value oc, Value position, Value value, Value) {
      Value block = b.mulC(b.floorDiv(oc, b.idx(16)), positions);
      Value at = b.add(b.mulC(b.add(block, position), 16), b.rem(oc, b.idx(16)));
      b.store(value, b.buffer(2), at);
    };
    emitConv(b, specFor(b, shape), tiles, b.buffer(0), b.buffer(1), callbacks);
  });
  int64_t inBlocks = (spec.ic + 15) / 16, area = shape.size * shape.size;
  bench.buffers = {randomF32({inBlocks, area, 16}, 1), randomF32({packedConvWeightBytes(spec) / 4}, 2),
                   Tensor(DType::F32, {blocks, positions, 16})};
  bench.work = convWorkItems(spec, tiles);
  bench.scratchBytes = convScratchBytes(spec, tiles);
  bench.flops = realFlops(spec);
  char text[128];
  snprintf(text, sizeof text, "%s [%ldx%ld un %ld tpi %ld]", shape.name.c_str(), (long)tiles.rows,
           (long)tiles.columns(), (long)tiles.unroll, (long)tiles.tilesPerItem);
  bench.name = text;
  return bench;
}
