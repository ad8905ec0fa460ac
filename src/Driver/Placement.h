//===- Placement.h - which target computes what -----------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Phases/Phases.h"
#include "dmxc/Support/Diagnostic.h"

#include "mlir/IR/BuiltinOps.h"

namespace dmxc::driver {

struct PlacedShare {
  std::string target;
  int64_t ops = 0, tasks = 0;
  std::string reason;
};

struct Placement {
  std::vector<PlacedShare> shares; ///< in order of first use
  int64_t ops = 0;                 ///< all computed ops
  /// "cpu 57 of 57 nodes in 40 tasks"
  std::string summary() const;
};

/// Counts the tasks of a module after partition, memory (regions and their ops)
/// or schedule (dispatches and their model nodes).
Placement placementOf(mlir::ModuleOp module);

/// --placement-report: a line an op with its node, its target and why, for a
/// module after partition.
std::string placementReport(mlir::ModuleOp module, const PhaseContext &context);

/// --numerics: a table of the formats in which nodes are computed, for a module after partition; "" if all are the
/// tensors' own.
std::string formatTable(mlir::ModuleOp module, const PhaseContext &context);

/// --place and --require-target against a module after partition. Reports each
/// violation (exit code 4).
bool checkPlacement(mlir::ModuleOp module, const Options &options, const PhaseContext &context,
                    Diagnostics &diagnostics);

} // namespace dmxc::driver
