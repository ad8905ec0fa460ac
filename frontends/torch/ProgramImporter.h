//===- ProgramImporter.h - walks graphs and imports their nodes -*- C++ -*-===//
#pragma once

#include "AtenTable.h"
#include "Program.h"

#include "dmxc/Support/Diagnostic.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace dmxc::torchfe {

/// What the names of one graph stand for. Graphs inside see nothing outside: their operands are passed.
struct Scope {
  std::map<std::string, Arg> values;
  std::string prefix;            ///< of node names
  std::set<std::string> kept;    ///< names whose values stay to the end
  std::set<std::string> defined; ///< every name so far

  /// The value a name is a view of, by names; itself where it is none. In-place operators change all views of a value.
  std::map<std::string, std::string> viewOf;
  /// Names that are the very value they view: what `detach` gives.
  std::set<std::string> sameAs;
};

/// Imports the nodes of a program in order, reporting every failure and going on after it.
class ProgramImporter {
public:
  ProgramImporter(const std::string &path, Emitter &emitter, Diagnostics &diagnostics)
      : path(path), emitter(emitter), diagnostics(diagnostics) {}

  void importNodes(const Graph &graph, Scope &scope);
  /// The argument as a value: names are looked up. Fails the node where one is defined nowhere.
  Arg resolve(const Argument &argument, const Scope &scope) const;

private:
  struct Uses;
  void importNode(const Node &node, size_t index, const Graph &graph, Scope &scope, const Uses &uses);
  void importKnown(const Node &node, const std::string &name, const Graph &graph, Scope &scope, size_t index,
                   const Uses &uses);
  std::vector<Arg> importOperator(const Node &node, const std::string &name, Scope &scope, size_t index,
                                  const Uses &uses);
  std::vector<Arg> bindArguments(const AtenOp &op, const Node &node, const Scope &scope) const;
  std::vector<Arg> importHigherOrder(const Node &node, const std::string &hop, const std::string &name, Scope &scope);
  std::vector<Arg> inlineGraph(const Graph &graph, std::vector<Arg> arguments, const std::string &prefix);
  void noteViews(const AtenOp &op, const Node &node, Scope &scope) const;
  void writeInPlace(const AtenOp &op, const Node &node, size_t parameter, const Arg &written, Scope &scope,
                    size_t index, const Uses &uses);
  void bindResults(const Node &node, std::vector<Arg> results, const Graph &graph, Scope &scope);
  void bindOne(const std::string &name, Arg value, const Graph &graph, Scope &scope);
  void checkMeta(const std::string &name, const Val &value, const Graph &graph);
  void report(const Node &node, const std::string &name, const Scope &scope, const NodeFailure &failure);

  const std::string &path;
  Emitter &emitter;
  Diagnostics &diagnostics;
  int depth = 0;
  int64_t nodeCount = 0;
};

/// A host scalar's operator (`_operator.mul`, `torch.sym_max`, ...); nothing where `target` is none.
std::optional<Arg> importSymbolic(Emitter &e, const std::string &target, const std::vector<Arg> &operands);
bool isSymbolic(const std::string &target);

} // namespace dmxc::torchfe
