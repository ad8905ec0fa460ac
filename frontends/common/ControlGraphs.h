//===- ControlGraphs.h - graphs that branches and loops own -----*- C++ -*-===//
#pragma once

#include "Emitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::frontend {

/// A graph while it is being emitted.
struct Emitter::Frame {
  mlir::func::FuncOp function;
  size_t given = 0; ///< arguments before the captures
  /// What the arguments behind the given ones stand for, in the graphs around.
  std::vector<Val> captures;
  /// Captures, constants and sizes as they are in this graph; `kept` keeps their keys alive.
  llvm::DenseMap<const void *, mlir::Value> values;
  std::vector<Val> kept;
};

/// Emission into a new private function, from construction until `finish` or destruction.
class Emitter::OwnedGraph {
public:
  /// `suffix` tells it from other graphs of the node; the captures of `sibling`, if given, are its own from the start.
  OwnedGraph(Emitter &e, const std::string &suffix, llvm::ArrayRef<mlir::RankedTensorType> arguments,
             const OwnedGraph *sibling = nullptr);
  ~OwnedGraph();
  OwnedGraph(const OwnedGraph &) = delete;

  std::vector<Val> arguments;
  /// Ends it with these results and goes back to the graph around it, where captures for its symbols are made.
  void finish(llvm::ArrayRef<Val> results);
  /// Appends arguments until it has the captures of the other graph, which began with its own.
  void adoptCaptures(const OwnedGraph &other);
  /// Leaves it in the module, for the op that owns it; without that it is erased with the graphs that it owns.
  void keep() { kept = true; }

  llvm::ArrayRef<Val> captures() const { return frame.captures; }
  llvm::ArrayRef<mlir::Type> resultTypes() { return frame.function.getResultTypes(); }
  mlir::FlatSymbolRefAttr symbol() { return mlir::FlatSymbolRefAttr::get(frame.function.getSymNameAttr()); }
  /// Whether the dim has one value, known around the graph: it mentions no symbol that the graph defines.
  bool knownOutside(Dim dim) const;
  /// Symbols of given arguments that only this graph has.
  std::set<std::string> own;

private:
  void leave();
  std::vector<std::string> missingSymbols();
  void addCapture(const Val &value);

  Emitter &e;
  Frame frame;
  mlir::Block *outerBlock;
  std::string node; ///< whose graph it is
  bool active = true, kept = false;
};

class Emitter::Checkpoint {
  friend class Emitter;
  mlir::Block *block;
  mlir::Operation *last; ///< null: none before
  std::string node;
};

} // namespace dmxc::frontend
