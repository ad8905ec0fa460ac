//===- Phases.h - what passes of all phases may ask -------------*- C++ -*-===//
//
// What a phase takes and gives is in src/Phases/README.md; each pass has its own file in that phase's folder;
// PhaseTable.h has the phases and which passes each has.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Target/TargetBackend.h"

#include "mlir/Pass/PassManager.h"

#include <functional>
#include <map>

namespace dmxc {

/// Nodes whose names match a glob (fnmatch) run on a target.
struct PlaceRule {
  std::string glob, target;

  /// Whether the op is of such a node, or of several, one of which is.
  bool matches(mlir::Operation *op) const;
  bool matches(const std::string &node) const;
};

/// What passes of all phases may ask. Outlives the pass manager; read-only but for `report`.
struct PhaseContext {
  /// Targets of this compile; the first is the default.
  std::vector<const TargetBackend *> targets;
  /// Inputs that are outputs of the run before: {input, output}.
  std::vector<std::pair<std::string, std::string>> states;
  /// Nobody asked for them: where one is no state with a length all stay inputs and outputs, and a remark says why.
  bool statesMayStay = false;
  /// What states with a length are kept in: "bf16", "f16" or "f32"; empty: as the model has them.
  std::string stateType;
  /// Where the user wants nodes to run; of the rules that match one the last counts.
  std::vector<PlaceRule> places;
  /// Globs of nodes whose weights, and operands, stay as they are, whatever the mode of --numerics rounds.
  std::vector<std::string> keptPrecision;
  bool keepsPrecision(mlir::Operation *op) const;
  /// Weights whose rounding error is larger stay as they are.
  std::optional<double> maxError;
  int optLevel = 2;
  unsigned jobs = 1;
  /// Regions with strategies come from text, or a script had them in hand: each phase that goes by them checks them
  /// first.
  bool checkStrategies = false;
  /// Why nodes are not computed by a target that computes their ops: by target and node, a clause.
  std::map<std::pair<std::string, std::string>, std::string> misfits;
  /// Takes errors of targets whose kind matters to the caller; null: they become MLIR's.
  std::function<void(const TargetBackend &, const Error &)> report;
  const TargetBackend *target(llvm::StringRef name) const {
    for (const TargetBackend *t : targets)
      if (t->name() == name)
        return t;
    return nullptr;
  }
  /// Why the target does not compute the op where it is; nullopt when it does. Graphs of branches and loops (private
  /// functions) run on the host, what the user places where he wants it if it is computed there.
  std::optional<std::string> refusal(const TargetBackend &target, mlir::Operation *op) const;
  /// The rule that counts for an op; null where none matches.
  const PlaceRule *placeOf(mlir::Operation *op) const;
  /// The first target that computes the op; null when none does.
  const TargetBackend *responsible(mlir::Operation *op) const;
  /// The first that computes the op in a region of its own, if need be where the user does not want it; null when none
  /// does.
  const TargetBackend *responsibleAlone(mlir::Operation *op) const;

private:
  /// As `refusal`, wherever the user wants the op to run.
  std::optional<std::string> refusalAlone(const TargetBackend &target, mlir::Operation *op) const;
};

} // namespace dmxc
