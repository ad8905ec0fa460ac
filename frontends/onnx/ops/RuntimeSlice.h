//===- RuntimeSlice.h - Slice and Pad by numbers known at run time -*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// Slice whose operands give the declared shape; a run where they do not fails.
void importRuntimeSlice(NodeContext &c, const std::optional<Shape> &declared);
/// Pad likewise.
void importRuntimePad(NodeContext &c, const std::optional<Shape> &declared, const Val &fill, dmir::PadMode mode);

} // namespace dmxc::onnxfe
