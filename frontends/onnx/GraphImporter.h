//===- GraphImporter.h - walks graphs and imports their nodes ---*- C++ -*-===//
#pragma once

#include "NodeContext.h"
#include "OpTable.h"
#include "Shared.h"
#include "reader/DeclaredShapes.h"
#include "reader/TensorReader.h"

#include "dmxc/Dialect/DMIR/Import.h"
#include "dmxc/Support/Diagnostic.h"

#include "llvm/ADT/StringSet.h"
#include <map>
#include <string>
#include <vector>

namespace dmxc::dmir {
struct KernelDecl; // Kernels.h
} // namespace dmxc::dmir

namespace dmxc::onnxfe {

using AttributeMap = std::map<std::string, const onnx::AttributeProto *>;
using OpsetMap = std::map<std::string, int64_t>;

/// Names visible to the nodes of one graph. Subgraphs see their parents;
/// functions see nothing outside.
struct Scope {
  Scope *parent = nullptr;
  const OpsetMap *opsets = nullptr;
  const AttributeMap *functionAttributes = nullptr; ///< of the function call being inlined; null outside
  std::string prefix;                               ///< of node names: "call/" inside functions and bodies
  std::map<std::string, Val> values = {};
  const DeclaredShapes *declared = nullptr;              ///< of the main graph's values; null elsewhere
  const std::map<std::string, int64_t> *ranks = nullptr; ///< the same, where not all dims are known

  /// Null when the name is defined nowhere.
  const Val *find(const std::string &name) const;
  Val lookup(const std::string &name) const;
};

/// Imports the nodes of a model in order, reporting every failure and going on
/// after it.
class GraphImporter {
public:
  GraphImporter(const onnx::ModelProto &model, const ImportOptions &options, TensorReader &tensors, Emitter &emitter,
                Diagnostics &diagnostics);

  /// Scope of the main graph, with its initializers.
  Scope mainScope();
  void bindInitializers(const onnx::GraphProto &graph, Scope &scope);
  void importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                   const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> &outputs, Scope &scope);
  std::vector<Val> inlineGraph(const onnx::GraphProto &graph, Scope &outer, const std::vector<Val> &inputs,
                               const std::string &prefix);
  /// The same of a graph that may not be what runs: what is to be said of its nodes goes to `problems`.
  std::vector<Val> tryGraph(const onnx::GraphProto &graph, Scope &outer, const std::string &prefix,
                            std::vector<Diagnostic> &problems);
  void report(Diagnostic diagnostic);

  /// Whether PyTorch wrote the file, whose exporters mean what torch does where ONNX's reference differs.
  bool isFromPytorch() const { return fromPytorch; }

  /// Whether an input of the model and an output are a pair of ImportOptions::states.
  bool isState(const std::string &input, const std::string &output) const;

  /// A node that a row of Differences.h is about.
  void noteDifference(const std::string &row, const std::string &node);
  /// One note for each of those rows.
  void reportDifferences();

  /// Of all nodes met so far, those of functions and graphs with the names of who runs them before theirs.
  const llvm::StringSet<> &nodeNames() const { return names; }

private:
  struct Function {
    const onnx::FunctionProto *proto;
    OpsetMap opsets;
    std::vector<onnx::AttributeProto> defaults;
  };
  using NodeList = std::vector<const onnx::NodeProto *>;

  void importNode(const onnx::NodeProto &node, int index, Scope &scope);
  void importKnown(const onnx::NodeProto &node, const std::string &domain, const std::string &name, Scope &scope);
  void importOperator(const OpRow &row, const onnx::NodeProto &node, const std::string &domain, const std::string &name,
                      NodeAttributes attributes, std::vector<Val> operands, Scope &scope);
  void inlineFunction(const Function &function, const onnx::NodeProto &node, const AttributeMap &attributes,
                      const std::vector<Val> &operands, const std::string &name, Scope &scope);
  /// Of a kernel that a user wrote for the operator; null where there is none.
  const dmir::KernelDecl *findKernel(const onnx::NodeProto &node, const std::string &domain, const Scope &scope) const;
  void importKernel(const dmir::KernelDecl &kernel, const onnx::NodeProto &node, const std::string &name,
                    const NodeAttributes &attributes, const std::vector<Val> &operands, Scope &scope);
  const OpRow &findRow(const onnx::NodeProto &node, const std::string &domain, Scope &scope) const;
  const Function *findFunction(const onnx::NodeProto &node, const std::string &domain) const;
  AttributeMap resolveAttributes(const onnx::NodeProto &node, const Scope &scope) const;
  void bind(Scope &scope, const std::string &name, Val value);
  void report(const onnx::NodeProto &node, const std::string &domain, const std::string &name, const Scope &scope,
              const NodeFailure &failure, const std::vector<Val> &operands);

  const ImportOptions &options;
  TensorReader &tensors;
  Emitter &emitter;
  Diagnostics &diagnostics;
  std::vector<Diagnostic> *waiting = nullptr; ///< where what is said of nodes goes; null: to `diagnostics`
  OpsetMap opsets;
  std::map<std::string, Function> functions; ///< by "domain:name:overload"
  DeclaredShapes declared;
  std::map<std::string, int64_t> ranks;
  int depth = 0;
  bool fromPytorch = false;
  int64_t nodeCount = 0;
  std::map<std::string, std::vector<std::string>> differing; ///< nodes by row of Differences.h
  llvm::StringSet<> names;
};

} // namespace dmxc::onnxfe
