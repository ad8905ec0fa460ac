//===- Manifest.h - a bundle's manifest.json --------------------*- C++ -*-===//
//
// Plain structs, field for field those of schemas/FORMAT.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Graph.h"

#include <utility>
#include <variant>

namespace dmxc::bundle {

/// The format this library writes; COMPATIBILITY.md has the rule for readers.
inline constexpr int64_t formatMajor = 1;
inline constexpr int64_t formatMinor = 6;

/// A tensor at the border of an entry point. Dims are integers, names of the
/// entry point's `dims`, or expressions over them.
struct TensorDesc {
  std::string name;
  DType dtype = DType::F32;
  std::vector<Expr> shape;
  std::string description; ///< what the model says of it, for people; "" = nothing
};

/// A symbolic dim of the inputs with inclusive bounds.
struct SymbolicDim {
  std::string name;
  int64_t min = 0;
  int64_t max = INT64_MAX;
};

struct EntryPoint {
  std::string name = "main";
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<SymbolicDim> dims;
};

/// One code object: which machine it needs and where it lies.
struct TargetDesc {
  std::string target; ///< "cpu"
  std::string arch;   ///< "x86-64-v3"
  std::string entry;  ///< "code/cpu/x86-64-v3/kernels.so"
  std::vector<std::string> features;
  std::string common; ///< entry of the kernels that are the same at several levels; "" = none
};

struct PlacementDesc {
  std::string target;
  int64_t ops = 0;
  std::string reason;
};

/// Code in the bundle that a user wrote.
struct UserCodeDesc {
  std::string kernel; ///< "acme.argmax"
  std::string target, arch;
  std::string file, symbol, sha256; ///< what it was compiled from, without the path
};

/// A row of the table of entries; the Writer fills it.
struct EntryDesc {
  std::string name;
  uint64_t size = 0;
  std::string sha256; ///< 64 lower-case hex digits
};

using OptionValue = std::variant<bool, int64_t, std::string>;

/// "0.1.0"
const char *versionOfThisBuild();

struct Manifest {
  int64_t major = formatMajor;
  int64_t minor = 0; ///< see requireFeaturesOf
  std::string minRuntime = "0.1.0";
  std::string producerName = "dmxc";
  std::string producerVersion = versionOfThisBuild();
  std::string modelName;
  std::string modelSha256; ///< of the model file
  std::string modelSource; ///< "onnx"
  /// Free text the model carried, e.g. its producer or the labels of its classes; order is kept.
  std::vector<std::pair<std::string, std::string>> modelMetadata;
  /// Options that shaped the bundle; order is kept. Never a path, a date or
  /// the number of jobs: equal inputs must give equal bytes.
  std::vector<std::pair<std::string, OptionValue>> options;
  std::vector<TargetDesc> targets;
  std::vector<EntryPoint> entryPoints;
  std::vector<PlacementDesc> placement;
  std::vector<UserCodeDesc> userCode;
  /// Features a reader must know to run this bundle.
  std::vector<std::string> required;
  std::vector<EntryDesc> entries;

  const EntryPoint *findEntryPoint(std::string_view name) const;
  const EntryDesc *findEntry(std::string_view name) const;
};

/// Sets `required` and the lowest minor for the graphs and the manifest's targets. To be called by whoever
/// writes a bundle.
void requireFeaturesOf(const GraphFile &graphs, Manifest &manifest);

/// The features that the manifest's targets use, and the minor that has a feature.
std::vector<std::string> featuresOf(const Manifest &manifest);
int64_t minorOf(std::string_view feature);
/// The minor that the descriptions of inputs and outputs need; 0 when there are none. Who does not know them may
/// ignore them, so no feature is required.
int64_t minorOfDescriptions(const Manifest &manifest);

/// The names that `required` may have.
const std::vector<std::string> &knownFeatures();

/// Deterministic text, keys in FORMAT.md's order, ends with a newline.
std::string toJson(const Manifest &manifest);

/// Parses and checks types, presence and the version rule. Unknown fields are
/// ignored. Errors are ErrorKind::Model and name the place and what to do.
Result<Manifest> parseManifest(std::string_view json);

} // namespace dmxc::bundle
