//===- Window.h - windows as the attributes of a node say -------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

#include "frontends/common/ops/Window.h"

namespace dmxc::onnxfe {

/// All from the attributes, checked; `pads` and `auto_pad` are resolved to low and high. For an input of `shape`
/// (N x C x spatial). `kernel` empty: the attribute kernel_shape.
Window windowOf(NodeContext &c, const Dims &shape, const Dims &kernel = {});

} // namespace dmxc::onnxfe
