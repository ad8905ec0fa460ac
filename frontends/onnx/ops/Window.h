//===- Window.h - windows as the attributes of a node say -------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

#include "frontends/common/ops/Window.h"

namespace dmxc::onnxfe {

/// All from the attributes, checked; `pads` and `auto_pad` are resolved to low and high. For an input of `shape`
/// (N x C x spatial). `kernel` empty: the attribute kernel_shape.
Window windowOf(NodeContext &c, const Dims &shape, const Dims &kernel = {});

/// A transposed one as the attributes of ConvTranspose say. `pads`: those of an operand, all at the beginning of the
/// axes first, instead of the attribute's.
Val transposedConvolution(NodeContext &c, const Val &x, const Val &weights, const Val &bias, const Dims &pads = {});
/// A convolution as the attributes of Conv say; `bias` may be null.
Val convolution(NodeContext &c, const Val &x, const Val &weights, const Val &bias);

} // namespace dmxc::onnxfe
