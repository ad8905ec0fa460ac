//===- Deformed.h - convolutions whose kernels' elements move ---*- C++ -*-===//
#pragma once

#include "../Window.h"

namespace dmxc::frontend {

/// What a deformed convolution has beside its input [n, c, spatial..]. `mask` and `bias` may be null.
struct DeformedConvolution {
  Val weights; ///< [o, c / groups, kernel..]
  Val offsets; ///< [n, offset groups * kernel elements * axes, out..]: how far each element of each kernel moves
  Val mask;    ///< [n, offset groups * kernel elements, out..]: what each element that was read is multiplied with
  Val bias;    ///< [o]
  Window window;
  int64_t groups = 1, offsetGroups = 1;
};
/// A product of the weights with the columns that the moved kernels read.
Val deformedConvolution(Emitter &e, const Val &x, const DeformedConvolution &d);

} // namespace dmxc::frontend
