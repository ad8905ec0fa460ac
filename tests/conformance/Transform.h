//===- Transform.h - a case's model, asked in another way -------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>

namespace dmxc::conformance {

enum class Transform {
  None,
  Dynamic,      ///< no declared dim has a number or a name
  DynamicNamed, ///< each declared dim has a name of its own
  Constant,     ///< the inputs are constants of the model with a data set's values
};

/// By the name that --transform takes; false when there is none of this name.
bool transformFromName(std::string_view name, Transform &transform);

/// Every dim that inputs, outputs and value_info declare, those of subgraphs included, becomes an unknown one. Inputs
/// that an initializer gives a value keep their shape: it says nothing that the initializer does not.
void makeDynamic(onnx::ModelProto &model, bool named);

/// Every input becomes an initializer with the value that the data set has for it. Sequences and optionals, which no
/// initializer can hold, are put together by nodes from initializers.
Status makeConstant(onnx::ModelProto &model, const std::string &dataSet);

/// Reads `model`, transforms it and writes it to `path`.
Status transformFile(const std::string &model, Transform transform, const std::string &dataSet,
                     const std::string &path);

} // namespace dmxc::conformance
