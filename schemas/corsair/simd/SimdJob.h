//===- SimdJob.h - what a function of the vector device gives ---*- C++ -*-===//
//
// ISA.md section 7 as plain code over strided operands: the simulated card runs EXEC_SIMD by it, and the compiler's
// interpreter of stages the ops that become one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/corsair/Isa.h"
#include "schemas/corsair/SimdFunctions.h"

#include <cstddef>
#include <cstdint>

namespace dmx::corsair {

/// An image of `h` x `w` pixels under a kernel of `kh` x `kw`: strides, padding before the first pixel, dilations, and
/// the pixels of a row of the result.
struct Window {
  int64_t h = 1, w = 1, kh = 1, kw = 1, sh = 1, sw = 1, ph = 0, pw = 0, dh = 1, dw = 1, ow = 1;
};

/// An operand's bytes and steps.
struct SimdOperand {
  ElemKind kind = ElemKind::F16;
  std::byte *data = nullptr; ///< element (0, 0, 0, 0) of the slice's part
  int64_t step[4] = {};
  std::byte *at(const int64_t (&index)[4]) const {
    return data + index[0] * step[0] + index[1] * step[1] + index[2] * step[2] + index[3] * step[3];
  }
};

/// What one slice computes; accesses are checked already.
struct SimdJob {
  SimdFunction function = SimdFunction::Copy;
  int64_t n[4] = {};      ///< of this slice
  int64_t origin[4] = {}; ///< index of its first element in the whole
  int64_t inner = 1, causal = 0, index = 0;
  bool countPad = false;
  float imm0 = 0, imm1 = 0;
  Window window;
  SimdOperand d, a, b, c;
  bool hasB = true, hasC = true;

  int64_t rowLength() const {
    int64_t length = 1;
    for (int64_t i = 4 - inner; i < 4; ++i)
      length *= n[i];
    return length;
  }
  /// Where index `i` of dimension `dim` stands in the whole.
  int64_t place(int64_t dim, int64_t i) const { return origin[dim] + i; }
};

bool isRowFunction(SimdFunction function); ///< softmax .. rope
bool isReduction(SimdFunction function);   ///< d has one element a row
/// Softmax with valid columns: it reads no more of a row than those.
bool readsValidOnly(const SimdJob &job);
/// How many elements of the row at an index of the job count; softmax masks the others.
int64_t validColumns(const SimdJob &job, const int64_t (&index)[4]);
bool isWindowFunction(SimdFunction function);

/// Null, or why these kinds make no sense.
const char *checkKinds(const SimdJob &job);
/// Whether a pixel that the window of an output element sees is at the end of its kind.
bool windowHasEnd(const SimdJob &job, const int64_t (&i)[4]);

void computeElementwise(const SimdJob &job);
void computeRows(const SimdJob &job);
void computeWindows(const SimdJob &job);

inline constexpr float kF16Largest = 65504;

// --- elements ----------------------------------------------------------------

inline bool isFloatKind(ElemKind kind) {
  return kind == ElemKind::F16 || kind == ElemKind::F32 || kind == ElemKind::Bfp32;
}
inline bool isIntegerKind(ElemKind kind) { return kind >= ElemKind::Bool && kind <= ElemKind::I64; }

/// As the SIMD device reads it: f16 subnormal numbers are zero.
float readFloat(const std::byte *at, ElemKind kind);
/// Rounded to the kind.
void writeFloat(std::byte *at, ElemKind kind, double value);
int64_t readInteger(const std::byte *at, ElemKind kind);
/// Wrapped to the kind; bool: not 0.
void writeInteger(std::byte *at, ElemKind kind, int64_t value);
/// Towards zero, saturating; NaN gives 0, bool: not 0.
void writeTruncated(std::byte *at, ElemKind kind, double value);

} // namespace dmx::corsair
