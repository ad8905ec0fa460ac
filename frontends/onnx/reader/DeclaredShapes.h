//===- DeclaredShapes.h - shapes that the model states --------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Tensor.h"

#include <onnx/onnx_pb.h>

#include <map>
#include <string>

namespace dmxc::onnxfe {

/// Static shapes by the name of a value.
using DeclaredShapes = std::map<std::string, Shape>;

/// The shapes that a graph declares for its outputs and values in between, as far as all dims are numbers, and those
/// that follow backwards through operators whose result has their operand's shape.
DeclaredShapes declaredShapes(const onnx::GraphProto &graph);

/// The ranks that a graph declares for its outputs and values in between, and those that follow in the same way.
std::map<std::string, int64_t> declaredRanks(const onnx::GraphProto &graph);

} // namespace dmxc::onnxfe
