//===- OnnxOperators.h - ONNX' operators for other formats ------*- C++ -*-===//
#pragma once

#include "frontends/common/OperatorSet.h"

namespace dmxc::onnxfe {

/// The operators of ONNX' default domain, which torch-dialect text may have too.
const frontend::OperatorSet &onnxOperators();

} // namespace dmxc::onnxfe
