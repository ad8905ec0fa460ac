//===- NodeContext.h - one ONNX node being imported -------------*- C++ -*-===//
#pragma once

#include "NodeAttributes.h"
#include "OpTable.h"
#include "Shared.h"
#include "reader/TensorReader.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dmxc::onnxfe {

class GraphImporter;
struct Scope;

/// Where a node stands in an ONNX file. Nodes that other formats name stand in none: they have no graphs of their own,
/// and no model declares their shapes.
struct NodePlace {
  GraphImporter &importer;
  Scope &scope;
  TensorReader &tensors;
  const onnx::NodeProto &node;
};

/// What an import function sees: operands, attributes, the emitter, results to
/// set. Every accessor fails the node with a clear clause when the model does
/// not have what is asked for; import functions need no checks of their own for
/// that.
class NodeContext {
public:
  /// `outputs`: names of the results, "" for one that nobody wants.
  NodeContext(const OpRow &row, int64_t opset, std::string name, std::vector<Val> operands, NodeAttributes attributes,
              std::vector<std::string> outputs, Emitter &e, std::optional<NodePlace> place = std::nullopt);

  Emitter &e;
  const std::string name; ///< of the node
  const int64_t opset;
  /// Version of the operator: the row's since.
  int since() const { return row.since; }

  // --- Operands
  // ---------------------------------------------------------------
  int numOperands() const { return static_cast<int>(operands.size()); }
  bool has(int i) const { return i >= 0 && i < numOperands() && operands[i]; }
  /// A tensor operand that must be there.
  Val operand(int i) const;
  /// Null when absent.
  Val optional(int i) const { return has(i) ? operand(i) : Val(); }
  /// Operand i converted to i64.
  Val cast64(int i) const { return e.cast(operand(i), DType::I64); }
  /// A sequence or a tensor.
  Val anyOperand(int i) const;
  const std::vector<Val> &allOperands() const { return operands; }
  /// Operand i as a host tensor; fails unless it is known at compile time.
  /// `what` names it in the message.
  Tensor constantOperand(int i, const char *what) const;
  std::vector<int64_t> constantInts(int i, const char *what) const;
  int64_t constantInt(int i, const char *what) const;
  double constantDouble(int i, const char *what) const;
  /// Operand i as sizes: what it is known to be, or `implied`, which is then required at run time, or symbols that a
  /// run gives their values. None is negative. `length`: how many there are, for an operand whose own dim does not say
  /// it.
  Dims sizes(int i, const char *what, const std::optional<std::vector<int64_t>> &implied = std::nullopt,
             std::optional<int64_t> length = std::nullopt);
  /// The same of an operand that is known up to symbolic dims; the numbers may be negative.
  Dims knownSizes(int i, const char *what) const;
  /// Operand i as one size.
  Dim size(int i, const char *what, std::optional<int64_t> implied = std::nullopt);

  /// Whether the node stands in a file that PyTorch wrote: see GraphImporter::isFromPytorch.
  bool isFromPytorch() const;
  /// Whether operand and result are an input and an output of the model that a session keeps as one state.
  bool isState(int operand, int result) const;
  /// The node is one of those that a row of Differences.h is about; the compile says so once for all of them.
  void noteDifference(const char *row) const;

  // --- Operands known at run time only
  // ---------------------------------------------------------------
  // Where the model declares a result's shape, that shape often leaves an operand no choice, or a few. Such an operand
  // is taken as declared and checked at run time: a run that brings another value fails.

  /// The shape that the model declares for result i, where all its dims are numbers.
  std::optional<Shape> declaredShape(int i = 0) const;
  /// Whether it is known up to symbolic dims.
  /// The rank that the model declares for result i.
  std::optional<int64_t> declaredRank(int i = 0) const;
  /// Operand i as an i64 vector of `length` numbers, which is checked at run time where it is not known before.
  Val vector(int i, const char *what, std::optional<int64_t> length);
  bool isConstant(int i) const {
    return operand(i).hasSizes() || operand(i).isConstant() || operand(i).elements().is(0);
  }
  /// A value that may be anything.
  static constexpr int64_t kAny = INT64_MIN;
  /// Operand i as integers: what it is, or else `implied`, which is then required at run time.
  std::vector<int64_t> impliedInts(int i, const char *what, const std::optional<std::vector<int64_t>> &implied);
  int64_t impliedInt(int i, const char *what, std::optional<int64_t> implied);
  /// One dim of a declared shape, for impliedInt.
  std::optional<int64_t> declaredDim(int result, int64_t axis) const;
  /// The key [n] (i64) is one of `candidates` at run time: `make` of that one. A null value from `make` leaves it at
  /// requiring that.
  Val chosen(const Val &key, const std::vector<std::vector<int64_t>> &candidates,
             const std::function<Val(const std::vector<int64_t> &)> &make);
  /// Which of `rank` axes the integer operand i names, a 1 for each (i64 [rank]); an axis outside or named twice fails.
  Val namedAxes(int i, int64_t rank);
  /// The ways to name `count` of `rank` axes that `fits` accepts, in the form of namedAxes.
  static std::vector<std::vector<int64_t>> axisSets(int64_t rank, int64_t count,
                                                    const std::function<bool(const std::vector<int64_t> &)> &fits);
  /// Every element of a bool tensor must be true at run time, or the run fails.
  void requireAtRun(const Val &condition);
  /// The value; a run where an element of the condition is not true fails and says `what`.
  Val required(const Val &value, const Val &condition, const std::string &what);
  /// Ties the requirements to the results; called once, after the import.
  void tieRequirements();

  // --- Attributes
  // ---------------------------------------------------------------
  bool hasAttr(const char *name) const { return attributes.count(name) != 0; }
  int64_t attrInt(const char *name, int64_t otherwise) const;
  int64_t attrInt(const char *name) const; ///< required
  /// One that is 0 or 1.
  bool attrFlag(const char *name, bool otherwise) const;
  double attrFloat(const char *name, double otherwise) const;
  std::string attrString(const char *name, const std::string &otherwise) const;
  std::string attrString(const char *name) const;
  std::optional<std::vector<int64_t>> attrInts(const char *name) const;
  std::vector<int64_t> attrInts(const char *name, std::vector<int64_t> otherwise) const;
  std::optional<std::vector<double>> attrFloats(const char *name) const;
  std::optional<std::vector<std::string>> attrStrings(const char *name) const;
  Val attrTensor(const char *name) const; ///< required
  Val attrSparseTensor(const char *name) const;
  const onnx::GraphProto &attrGraph(const char *name) const;
  /// An element type given as a TensorProto.DataType.
  DType attrType(const char *name, DType otherwise) const;
  DType attrType(const char *name) const;

  // --- Checks
  // -------------------------------------------------------------------
  /// Fails as op-attribute unless the condition holds.
  void requireAttr(bool condition, const std::string &clause) const;
  /// Fails as op-shape unless the condition holds.
  void requireShape(bool condition, const std::string &clause) const;
  /// `axis` with negative values counted from the end; fails when outside
  /// [-rank, rank).
  int64_t normalizeAxis(int64_t axis, int64_t rank) const;
  /// Sorted and unique.
  std::vector<int64_t> normalizeAxes(std::vector<int64_t> axes, int64_t rank) const;

  // --- Results
  // ------------------------------------------------------------------
  int numResults() const { return static_cast<int>(outputs.size()); }
  bool wants(int i) const { return i < numResults() && !outputs[i].empty(); }
  void result(int i, Val value);
  void result(Val value) { result(0, std::move(value)); }
  const std::map<int, Val> &results() const { return produced; }

  // --- Subgraphs
  // ----------------------------------------------------------------
  /// Imports a graph in place with its inputs bound to `inputs`; its outputs.
  std::vector<Val> inlineGraph(const onnx::GraphProto &graph, const std::vector<Val> &inputs,
                               const std::string &suffix) const;
  /// The same of a graph without inputs that may not be what runs: what is to be said of its nodes goes to `problems`.
  std::vector<Val> tryGraph(const onnx::GraphProto &graph, const std::string &suffix,
                            std::vector<Diagnostic> &problems) const;
  void report(Diagnostic diagnostic) const;

private:
  template <typename T> const T &typed(const char *name) const;
  template <typename Proto> Val storedTensor(const char *name, const Proto &proto) const;
  /// A bool that is true in runs that do not fail.
  Val heldAtRun(const std::vector<Val> &conditions, const std::string &what);

  const OpRow &row;
  std::vector<Val> operands;
  NodeAttributes attributes;
  std::vector<std::string> outputs;
  std::optional<NodePlace> place;
  std::map<int, Val> produced;
  std::vector<Val> requirements; ///< bool, any shape
};

} // namespace dmxc::onnxfe
