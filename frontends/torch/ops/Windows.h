//===- Windows.h - geometry of convolutions and pools -----------*- C++ -*-===//
#pragma once

#include "Math.h"

#include "frontends/common/ops/Window.h"

namespace dmxc::torchfe {

/// [c, spatial..] as a batch of one; torch takes both forms.
struct Batched {
  Val value;
  bool added = false;
};
Batched withBatch(AtenContext &c, const Val &x, size_t spatial);
Val withoutBatch(Emitter &e, const Val &y, bool added);

/// The window of a pool by its arguments: kernel_size, stride, padding, dilation, ceil_mode.
Window poolWindow(AtenContext &c, const Val &x, size_t spatial);
/// Number of windows along spatial axis i.
Dim windowsAlong(const Val &x, const Window &w, size_t i);

/// The sum of windows: `columns` is [n, c, kernel.., out..]; the result [n, c, size..] has, at each position, what all
/// windows say of it. The inverse of taking windows apart, and the gradient of it.
Val addWindows(AtenContext &c, const Val &columns, const Window &w, const Dims &sizes);

} // namespace dmxc::torchfe
