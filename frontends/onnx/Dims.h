//===- Dims.h - shapes of the model's inputs --------------------*- C++ -*-===//
//
// The one place that knows how symbolic dims become numbers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "TensorReader.h"

#include "dmxc/Dialect/DMIR/Import.h"

#include <set>

namespace dmxc::onnxfe {

struct GraphInput {
  std::string name;
  DType type = DType::F32;
  std::vector<int64_t> shape;
};

/// The inputs of a graph that are not in `constants` (initializers), with all
/// dims fixed by the model, `--dim` or `--shape`. Reports one error for each
/// dim that stays unknown, for inputs that are no tensors, and for
/// `--dim`/`--shape` names and sizes that do not fit; nullopt after an error. A
/// dim without a name is called `<input>_d<axis>`.
std::optional<std::vector<GraphInput>> resolveInputs(const onnx::GraphProto &graph,
                                                     const std::set<std::string> &constants,
                                                     const ImportOptions &options, Diagnostics &diagnostics);

} // namespace dmxc::onnxfe
