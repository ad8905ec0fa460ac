//===- Codegen.h - the codegen phase ----------------------------*- C++ -*-===//
//
// The last phase makes bytes, not IR: kernels through the targets, constants in their packed forms, the task graph as
// the structs of Bundle. The driver writes them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Graph.h"
#include "dmxc/Bundle/Manifest.h"
#include "dmxc/Phases/Phases.h"

#include <functional>
#include <optional>

namespace dmxc {

/// What rounding a constant costs, by a packed form or in the graph.
struct RoundedConstant {
  std::string node;   ///< that reads it
  uint64_t bytes = 0; ///< in the model
  uint64_t kept = 0;  ///< bytes in the bundle
  double error = 0;   ///< see TargetBackend::roundingError
};

/// One constant of the bundle; `fill` writes its `size` bytes (packed) when the writer gets to it.
struct ConstantPayload {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t size;
  std::string form;                       ///< name of the packing; "" = as in the model
  std::optional<RoundedConstant> rounded; ///< the packing keeps other values than the model's
  std::function<Status(std::span<std::byte>)> fill;
};

/// The entry that all constants are in; who writes it fills in their offsets.
inline constexpr const char *kWeightsEntry = "weights/model.safetensors";

/// Everything a bundle is made of but the manifest's identity fields.
struct CompiledModel {
  bundle::GraphFile graph;
  std::vector<bundle::EntryPoint> entryPoints;
  std::vector<bundle::TargetDesc> targets;
  std::vector<CodeEntry> code;
  std::vector<ConstantPayload> constants;
};

/// Compiles a DLIR module. Errors name the node.
Result<CompiledModel> runCodegen(mlir::ModuleOp module, const PhaseContext &context);

} // namespace dmxc
