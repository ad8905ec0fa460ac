//===- Help.cpp - what the command line says of the target ----------------===//
#include "dmxc/Target/TargetHelp.h"

namespace dmxc {
TargetHelp helpCpuTarget() {
  return {"host, x86-64-v2, -v3, -v4, -v4-vnni, znver4, sapphirerapids; default x86-64-v3+x86-64-v4, also -v4-vnni for "
          "quantised models, znver4+sapphirerapids for bf16: dmx-run takes the best that the processor has",
          "strict (default); bf16 multiplies matrices, those of attention too, in bf16 and sums in f32; bf16-convs "
          "does so with convolutions, too (a deep network of them is off by some 4e-3), which pays on processors whose "
          "bf16 is twice as fast as f32, as AMD's from Zen 4 on: a Xeon took 1.4 times strict's time; "
          "bf16-weights keeps constant f32 weights that products of few rows wait for as bf16, int8-columns as s8 with "
          "a scale a column; int8-weights[:BLOCK] and "
          "int4-weights[:BLOCK] keep constant weights of all products, and rows of tables, as integers with a scale "
          "of f16 for 32 (16, 64, 128, 256) along a row; int8-weights-zeros and int4-weights-zeros with zero points; "
          "int8[:BLOCK] rounds what such "
          "products read to s8 in blocks, too, and sums integers: many rows are fastest so",
          {{"x86-64-v2+x86-64-v4", "code for these instruction sets in one bundle"},
           {"host", "for this machine's processor alone"}},
          "strict"};
}
} // namespace dmxc
