//===- Fourier.h - Fourier transforms ---------------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

namespace dmxc::frontend {

/// Transforms are products with a matrix of sines and cosines; longer ones would make it too large.
constexpr int64_t kMaxFourierMatrix = int64_t(1) << 24;

/// Real and imaginary part of a tensor; the latter is null where there is none.
struct ComplexParts {
  Val re, im;
};

struct FourierKind {
  bool inverse = false;
  bool half = false; ///< the real side: a transform gives the first n / 2 + 1 of its results, an inverse one takes them
  enum class Scale { None, Root, Mean } scale = Scale::None; ///< times 1, 1 / sqrt(n), 1 / n
};

/// The transform of length n along an axis, which is cut or padded with zeros to fit. What an inverse one of half a
/// spectrum gives is real.
ComplexParts fourier(Emitter &e, const ComplexParts &x, int64_t axis, Dim n, const FourierKind &kind);
/// x, a part of it or filled up with zeros at its end.
Val fitted(Emitter &e, const Val &x, int64_t axis, Dim length);
/// 2 pi i / n for i in [0, count), in f64.
Val anglesOfCircle(Emitter &e, Dim count, Dim n);
/// Frames of an axis, `length` long, that begin `step` elements apart: two axes, [frames, length], in its place. Those
/// that reach over the end repeat the last element.
Val framed(Emitter &e, const Val &signal, int64_t axis, const Val &step, Dim frames, Dim length);

} // namespace dmxc::frontend
