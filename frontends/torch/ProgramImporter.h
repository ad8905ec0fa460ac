//===- ProgramImporter.h - walks graphs and imports their nodes -*- C++ -*-===//
#pragma once

#include "AtenTable.h"
#include "Program.h"

#include "dmxc/Support/Diagnostic.h"

#include "llvm/ADT/StringSet.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dmxc::torchfe {

/// A value that shares storage with another.
struct View {
  std::string base;
  const AtenOp *op = nullptr; ///< what gives it from its base; null: torch may have copied, as `reshape` does
  std::vector<Arg> arguments;
  bool same = false; ///< it is its base: what `detach` gives
};

/// What the names of one graph stand for. Graphs inside see nothing outside: their operands are passed.
struct Scope {
  std::map<std::string, Arg> values;
  std::string prefix;            ///< of node names
  std::set<std::string> kept;    ///< names whose values stay to the end
  std::set<std::string> defined; ///< every name so far
  std::set<std::string> given;   ///< those that no node of the graph computes: inputs, parameters

  // In-place operators change all views of a value; see InPlace.cpp.
  std::map<std::string, View> views;
  std::vector<std::string> viewOrder; ///< their names, each behind that of its base
  std::set<std::string> outer;        ///< values of the graph around this one
};

/// Imports the nodes of a program in order, reporting every failure and going on after it.
class ProgramImporter {
public:
  ProgramImporter(const std::string &path, Emitter &emitter, Diagnostics &diagnostics)
      : path(path), emitter(emitter), diagnostics(diagnostics) {}

  void importNodes(const Graph &graph, Scope &scope);
  /// The argument as a value: names are looked up. Fails the node where one is defined nowhere.
  Arg resolve(const Argument &argument, const Scope &scope) const;
  static const Arg &valueOf(const std::string &name, const Scope &scope);
  static void append(const Element &element, const Scope &scope, Arg &arg);

  /// Of all nodes met so far.
  const llvm::StringSet<> &nodeNames() const { return names; }

private:
  /// Position of the last node that reads each name; the graph's outputs are read after all of them.
  struct Uses {
    explicit Uses(const Graph &graph);
    bool after(const std::string &name, size_t index) const {
      auto found = last.find(name);
      return found != last.end() && found->second > index;
    }
    /// Of each result of a node whether something reads it.
    std::vector<bool> read(const Node &node, size_t index) const;
    std::map<std::string, size_t> last;
    std::vector<bool> dead; ///< nodes whose values nothing reads
    bool inPlace = false;   ///< some node changes a value

  private:
    void findDead(const Graph &graph);
  };
  void importNode(const Node &node, size_t index, const Graph &graph, Scope &scope, const Uses &uses);
  void importKnown(const Node &node, const std::string &name, const Graph &graph, Scope &scope, size_t index,
                   const Uses &uses);
  std::vector<Arg> importOperator(const Node &node, const std::string &name, Scope &scope, size_t index,
                                  const Uses &uses);
  std::vector<Arg> bindArguments(const AtenOp &op, bool inPlace, const Node &node, const Scope &scope) const;
  /// `read`: of each result whether something reads it.
  std::vector<Arg> importHigherOrder(const Node &node, const std::string &hop, const std::string &name, Scope &scope,
                                     const std::vector<bool> &read);
  std::vector<Arg> importFlexAttention(const std::vector<Arg> &before, const std::vector<Arg> &behind,
                                       const std::vector<const Graph *> &graphs, const std::string &name,
                                       const std::vector<bool> &read);
  Val atAllPlaces(const Graph &graph, std::vector<Arg> arguments, const std::string &prefix);
  std::vector<Arg> inlineGraph(const Graph &graph, std::vector<Arg> arguments, const std::string &prefix);
  void noteViews(const AtenOp &op, const Node &node, const std::vector<Arg> &arguments, const std::vector<Arg> &results,
                 Scope &scope) const;
  void writeInPlace(const AtenOp &op, const Node &node, size_t parameter, const Arg &written, Scope &scope,
                    size_t index, const Uses &uses);
  /// Whether nothing but the view itself is read after a node of what shares its storage: then it is one whether it is
  /// a copy or not.
  static bool isAlone(const std::string &view, const Scope &scope, size_t index, const Uses &uses);
  /// The base with `value` in the place of its view; null where that is not known.
  Val putBack(const View &view, const Val &base, const Val &value);
  Val undone(const View &view, const Val &base, const Val &value);
  void reshapeInPlace(const AtenOp &op, const Node &node, const std::vector<Arg> &arguments, const Arg &result,
                      Scope &scope);
  static void nameResults(const Node &node, const std::string &changed, Scope &scope);
  Val callOperator(const AtenOp &op, std::vector<Arg> arguments);
  Val asStored(const Val &value, const Val &before);
  void bindResults(const Node &node, std::vector<Arg> results, const Graph &graph, Scope &scope, size_t index,
                   const Uses &uses);
  void bindOne(const std::string &name, Arg value, const Graph &graph, Scope &scope);
  void checkMeta(const std::string &name, const Val &value, const Graph &graph);
  void report(const Node &node, const std::string &name, const Scope &scope, const NodeFailure &failure);

  const std::string &path;
  Emitter &emitter;
  Diagnostics &diagnostics;
  int depth = 0;
  int64_t nodeCount = 0;
  llvm::StringSet<> names;
};

/// Names an argument reads or a node writes.
template <typename Visit> void forEachName(const Argument &argument, Visit visit) {
  for (const Element &element : argument.elements)
    if (element.kind == Element::Kind::Name)
      visit(element.text);
}

/// The operator that a node changes its first argument with, or one whose signature says that it does; else null.
const AtenOp *inPlaceOperator(const Node &node);
/// Whether a node, like transpose_, gives its first argument another shape and leaves the storage as it is.
bool changesShape(const Node &node);
/// The values whose storage in-place operators of the graph change: those that are no views themselves.
std::set<std::string> changedValues(const Graph &graph);

/// Whether a tensor among an argument's has hidden axes, as inside of torch.vmap (Batching.cpp).
bool isBatched(const Arg &arg);
/// What an operator gives for each sample.
std::vector<Arg> callWithLevels(const AtenOp &op, const std::vector<Arg> &arguments, const std::string &name,
                                Emitter &e);
/// The tensor with all of `all` in front, in that order, of size 1 where it lacks one, and `rank` axes of its sample.
Val withLevels(Emitter &e, const Val &x, const std::vector<int64_t> &own, const std::vector<int64_t> &all,
               int64_t rank);
/// A call of torch._functorch.predispatch, which begins or ends a vmap.
std::vector<Arg> importBatching(Emitter &e, const std::string &call, const std::vector<Arg> &operands);

/// A host scalar's operator (`_operator.mul`, `torch.sym_max`, ...); nothing where `target` is none.
std::optional<Arg> importSymbolic(Emitter &e, const std::string &target, const std::vector<Arg> &operands);
bool isSymbolic(const std::string &target);

} // namespace dmxc::torchfe
