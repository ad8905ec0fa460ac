//===- Placement.h - which target computes what -----------------*- C++ -*-===//
//
// Nodes are those of the model file, by name. One counts for each target that computes at least one op of it, so that a
// node's ops on two targets are seen on both.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Driver/Options.h"
#include "dmxc/Phases/Phases.h"
#include "dmxc/Support/Diagnostic.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace dmxc::driver {

/// What one target computes, and why not the rest.
struct PlacedShare {
  std::string target;
  bool isNamed = false; ///< by -t, not added as the host
  llvm::StringSet<> nodes;
  int64_t tasks = 0;
  double multiplyAdds = 0;
  /// The most frequent reason of the others, of products where it computes none; "" where there are none or it is the
  /// host's.
  std::string reason;
  size_t refused = 0;       ///< nodes that have it
  dmir::SymbolSet openDims; ///< of all that it refuses

  bool hasProducts() const { return multiplyAdds > 0; }
};

struct Placement {
  std::vector<PlacedShare> shares; ///< in the order of -t, the host behind them where it has something to do
  int64_t nodes = 0;               ///< of the model file
  llvm::StringSet<> placed;        ///< those that some target computes
  double multiplyAdds = 0;         ///< of all, open dims at their nominal sizes

  /// "corsair 13 of 286 nodes, 4 % of multiply-adds, in 2 tasks; cpu ..."
  std::string summary() const;
  /// "13 of 286 nodes, 4 % of multiply-adds"
  std::string countText(const PlacedShare &share) const;
  /// How many nodes a target computes from beginning to end.
  size_t nodesAlone(llvm::StringRef target) const;
};

/// Of a module after partition.
Placement placementOf(mlir::ModuleOp module, const PhaseContext &context, const Options &options);

/// Keeps it in the module (dmir::kPlacementAttr) for the bundle.
void keepPlacement(mlir::ModuleOp module, const Placement &placement);

/// --placement-report: a line an op with its node, its target and why, for a
/// module after partition.
std::string placementReport(mlir::ModuleOp module, const PhaseContext &context, const Placement &placement);

/// Which nodes do not fit a target that computes their ops, and why: "4 nodes do not fit corsair: a, b, c and 1 more
/// (GM holds ...)", a line a reason.
std::vector<std::string> misfitLines(const PhaseContext &context);

/// --place and --require-target against a module after partition. Reports each
/// violation (exit code 4).
bool checkPlacement(mlir::ModuleOp module, const Options &options, const PhaseContext &context,
                    const Placement &placement, Diagnostics &diagnostics);

/// Warns of each target that was named and computes no node, or no product of a model that has some: why, and what to
/// paste. `takesDims`: --dim has a meaning for the model's format.
void warnOfIdleTargets(mlir::ModuleOp module, const Options &options, const Placement &placement, bool takesDims,
                       Diagnostics &diagnostics);

} // namespace dmxc::driver
