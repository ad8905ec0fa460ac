//===- Dims.h - shapes of the model's inputs --------------------*- C++ -*-===//
//
// The one place that knows which dims of the inputs are numbers and which are symbols.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Shared.h"
#include "reader/TensorReader.h"

#include "frontends/common/SizeOptions.h"

#include <set>

namespace dmxc::onnxfe {

/// An input that is a sequence or an optional: tensors that are inputs of their own.
struct InputContainer {
  std::string name;
  bool isSequence = false, isNone = false; ///< neither: an optional's tensor
  std::vector<std::string> items;          ///< names of inputs
};

struct GraphInputs {
  std::vector<ModelInput> inputs;
  std::vector<InputContainer> containers;
  SymbolBounds symbols;
};

/// The inputs of a graph that are not in `constants` (initializers). Their dims are numbers where the model, `--dim` or
/// `--shape` fixes them, else symbols. Reports inputs that are no tensors or have no rank, and `--dim`/`--shape` names
/// and sizes that do not fit; nullopt after an error. The tensors of a sequence `x` are the inputs `x.0`, `x.1` ..;
/// `--shape` of each, or `--shape x=none`, says how many there are. A dim without a name is called `<input>_d<axis>`.
std::optional<GraphInputs> resolveInputs(const onnx::GraphProto &graph, const std::set<std::string> &constants,
                                         const ImportOptions &options, Diagnostics &diagnostics);

} // namespace dmxc::onnxfe
