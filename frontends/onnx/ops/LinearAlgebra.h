//===- LinearAlgebra.h - helpers around matrix products ---------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// Bytes as i32, what a product adds up. Constant matrices stay ops on their bytes instead of being folded here: the
/// compiler's products of bytes look for them.
Val widenedBytes(Emitter &e, const Val &bytes);

} // namespace dmxc::onnxfe
