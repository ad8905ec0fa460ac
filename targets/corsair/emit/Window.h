//===- Window.h - a window walking over an image ----------------*- C++ -*-===//
#pragma once

#include "StreamBuilder.h"

namespace dmxc::corsair {

/// Geometry of a convolution or pooling over one or two spatial dims; a missing dim is one row.
struct Window {
  /// Shapes are [n, c, (h,) w]; the others have one number a spatial dim.
  Window(llvm::ArrayRef<int64_t> image, llvm::ArrayRef<int64_t> result, llvm::ArrayRef<int64_t> kernel,
         llvm::ArrayRef<int64_t> stride, llvm::ArrayRef<int64_t> dilation, llvm::ArrayRef<int64_t> low);

  int64_t h, w, outH, outW, kh, kw, sh, sw, dh, dw, ph, pw;

  std::vector<hw::ConfigPair> keys() const;
  /// Every output pixel is the input pixel of the same place.
  bool isPointwise() const {
    return kh == 1 && kw == 1 && sh == 1 && sw == 1 && ph == 0 && pw == 0 && outH == h && outW == w;
  }
};

} // namespace dmxc::corsair
