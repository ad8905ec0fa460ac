//===- ModelMutator.h - other models from a model ---------------*- C++ -*-===//
#pragma once

#include "TextMutator.h"

#include <onnx/onnx_pb.h>

namespace dmxfuzz {

/// One change that keeps the protobuf well-formed: types, shapes, attributes, operators, edges, nodes of `other`.
void changeModel(onnx::ModelProto &model, Random &random);
/// One change of a tensor: type, dims, values, where its data lies. Half of the time the data has the right size again.
void changeTensor(onnx::TensorProto &tensor, Random &random);
/// Appends nodes, inputs and weights of `other`.
void joinModels(onnx::ModelProto &model, const onnx::ModelProto &other, Random &random);

} // namespace dmxfuzz
