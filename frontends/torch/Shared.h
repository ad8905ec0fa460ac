//===- Shared.h - what this frontend takes from the ONNX one ----*- C++ -*-===//
//
// Both frontends build DMIR with the same emitter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontends/onnx/Emitter.h"

namespace dmxc::torchfe {

using onnxfe::Dims;
using onnxfe::dimsString;
using onnxfe::Emitter;
using onnxfe::fail;
using onnxfe::mayEqual;
using onnxfe::NodeFailure;
using onnxfe::Val;

} // namespace dmxc::torchfe
