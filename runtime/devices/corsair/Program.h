//===- Program.h - streams made ready for execution -------------*- C++ -*-===//
//
// CONFIG instructions become structs with every key resolved, LOOPs know their
// ends. Immutable; shared by the quads that run a stream.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Shadow.h"
#include "schemas/corsair/Image.h"
#include "schemas/corsair/simd/SimdJob.h"

#include <memory>
#include <vector>

namespace dmxrt::corsair {

using isa::Window;

/// A slot of unit GM or ST.
struct MoveConfig {
  ElemKind kind, to;
  bool retype, srcRows, dstRows;
  int64_t unit, n[4], s[4], t[4], lo[4], hi[4];
  int64_t sband, dband, sslice, dslice, score, tail, estride;
  ElemKind indexKind;
  int64_t indexPitch, indexRange, channels;
  Window window;
};

/// A slot of unit AC.
struct ArrayConfig {
  ElemKind acts, weights;
  int64_t ibChunk, ibStep, obRow, obGroup, obStep, stChunk, stGroup, stStep, chunks;
  bool stepAccumulates;
  int64_t imgBand, imgChunk, imgBlocks, pixSlice, pixels;
  Memory imgMemory;
  Window window;
};

/// A slot of unit SIMD. Operands: 0 d, 1 a, 2 b, 3 c.
struct SimdConfig {
  int64_t n[4];
  struct Operand {
    ElemKind kind;
    Memory memory;
    int64_t step[4];
  } operands[4];
  int64_t inner, split, causal;
  bool countPad;
  Window window;
};

/// An instruction with what follows from it.
struct Decoded {
  const isa::Instruction *in = nullptr;
  uint32_t match = 0; ///< LOOP: its ENDLOOP; ENDLOOP: its LOOP
  std::shared_ptr<const MoveConfig> move;
  std::shared_ptr<const ArrayConfig> array;
  std::shared_ptr<const SimdConfig> simd;
};

struct Stream {
  std::vector<Decoded> code;
  bool usesDdr = false; ///< takes part in its chiplet's DDR
};

/// The verified streams of an image.
std::vector<Stream> decodeStreams(const isa::Image &image);

} // namespace dmxrt::corsair
