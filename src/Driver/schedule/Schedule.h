//===- Schedule.h - the --schedule transform scripts ------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/Transform/Transform.h"
#include "dmxc/Driver/Options.h"
#include "dmxc/Phases/Phases.h"
#include "dmxc/Support/Diagnostic.h"

#include "mlir/Dialect/Transform/IR/TransformOps.h"

#include <map>
#include <set>

namespace dmxc::driver {

/// The scripts of a compile: read once, run as often as somebody wants to know what they do. Messages go to MLIR's
/// diagnostics of the context, with the scripts' places.
class Schedule final : public transform::ScheduleHost {
public:
  static constexpr llvm::StringLiteral kPartition = "partition";
  using Values = std::vector<std::pair<std::string, mlir::Attribute>>;
  /// A parameter that a run came by.
  struct Parameter {
    std::string name;
    Domain domain;
    mlir::Operation *op = nullptr;
  };

  /// What a target refused of the values of parameters, in a run of an enumeration.
  struct Refusal {
    std::string place, text;
    Values reason; ///< the values that it rests on
  };

  Schedule(mlir::MLIRContext &context, const PhaseContext &phases, Diagnostics &diagnostics);
  ~Schedule() override;

  /// Reads the scripts, and what they include.
  bool load(const Options &options);
  /// Runs those of a stop on what is there behind it; a parameter that is not set has its default.
  bool run(mlir::ModuleOp module, llvm::StringRef stop = kPartition);
  bool hasScriptsAt(llvm::StringRef stop) const;
  /// Files that scripts include, in the order in which they were read.
  const std::vector<std::string> &includedFiles() const { return included; }
  /// Which forms ops of the scripts that ran needed, and what was done for them; a line each.
  const std::string &normalizations() const { return log; }
  /// The ops that may have changed what there was behind a stop, with their places; "" where none ran.
  std::string changesAt(llvm::StringRef stop) const;
  /// Runs them on a module with these values besides those that are set, up to the first parameter without one, which
  /// is returned; nullopt after a whole run. Where a target refuses what some of the values decide, that is returned
  /// and nothing is said. False where the scripts fail.
  bool runUpTo(mlir::ModuleOp module, const Values &values, std::optional<Parameter> &open,
               std::optional<Refusal> &refused);

  /// A script that decides all that is decided of the module, which is behind partition, and does what else the scripts
  /// did: it makes the same bundle without them, parameters or records.
  std::string saved(mlir::ModuleOp module) const;

  /// Who decided something of a region: the place in a script; "" where none did. `scope` as in Decision.
  std::string decider(dmir::RegionOp region, const std::string &scope, const std::string &name) const;

  Status decide(mlir::Operation *op, mlir::DictionaryAttr decided, transform::DecideOp by) override;
  /// The same of a region where `who` is no script.
  Status decide(dmir::RegionOp region, mlir::DictionaryAttr decided, const std::string &who);
  bool hasDecision(mlir::Operation *op, llvm::StringRef name) const override;
  Result<mlir::Attribute> parameter(transform::ParamOp op, const Domain &domain, mlir::Attribute preferred) override;
  std::vector<std::string> passNames() const override;

private:
  /// A sequence that runs behind a stop.
  struct Entry {
    mlir::transform::NamedSequenceOp sequence;
    std::string stop;
  };

  struct Script {
    std::string path, text;
    mlir::OwningOpRef<mlir::ModuleOp> module;
    std::vector<Entry> entries; ///< of different stops, one at least
    /// What runs behind a stop; null for nothing.
    mlir::transform::NamedSequenceOp at(llvm::StringRef stop) const;
  };

  /// Names in a script, and the files that have them.
  using Owners = llvm::StringMap<std::string>;

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &path, std::string &text);
  /// Reads a script and, before it, what it includes; `within`: the files that include it, the first one first.
  bool read(const std::string &path, const std::vector<std::string> &within, const Options &options);
  bool include(Script &script, transform::IncludeOp op, const std::vector<std::string> &within, Owners &owners,
               const Options &options);
  bool isSoundScript(Script &script);
  bool checkPaths(const std::vector<std::string> &paths);
  bool addSymbol(Script &script, mlir::Operation *op, const std::string &path, Owners &owners);
  bool checkStops(const Script &script, const Options &options);
  std::string stopNames() const;
  std::string nearStop(mlir::StringAttr name) const;
  /// A script that another one includes need not run anything itself.
  bool findEntries(Script &script, bool isIncluded);
  bool addEntry(Script &script, mlir::transform::NamedSequenceOp sequence, const std::string &stop);
  bool guard(Script &script);
  mlir::LogicalResult interpret(mlir::transform::NamedSequenceOp entry, mlir::ModuleOp module,
                                std::vector<mlir::Diagnostic> &messages);
  bool apply(mlir::ModuleOp module, llvm::StringRef stop = kPartition);
  bool checkKnobs();
  /// Names and types of what can be called of a model.
  using Entries = std::vector<std::pair<std::string, mlir::Attribute>>;
  static Entries entriesOf(mlir::ModuleOp module);
  /// `untouched`: what the scripts of the stop began with.
  bool checkModel(mlir::ModuleOp module, const Entries &before, mlir::ModuleOp untouched, llvm::StringRef stop);
  std::string culprit(mlir::ModuleOp untouched, llvm::StringRef stop);
  Values reasonsOf(transform::DecideOp by) const;
  void rewrite(mlir::Diagnostic &diagnostic);
  mlir::Operation *opAt(mlir::Location place) const;
  std::string missingSequence(mlir::Location place) const;
  std::string handleAt(mlir::Location place) const;

  mlir::MLIRContext &context;
  const PhaseContext &phases;
  Diagnostics &diagnostics;
  std::vector<Script> scripts;
  std::vector<std::string> included;
  std::string log;
  std::vector<std::pair<std::string, std::string>> set;
  std::map<std::string, Parameter> seen;         ///< parameters of the run
  std::map<std::string, mlir::Attribute> chosen; ///< their values
  std::string decidedBefore; ///< what was decided when the scripts of partition began, as lines of a script
  Values values;             ///< of an enumeration
  bool enumerates = false;
  std::optional<Parameter> open;
  std::optional<Refusal> refused;                                            ///< the last one of an enumeration
  std::map<std::pair<mlir::Operation *, std::string>, std::string> deciders; ///< {region, "scope.name"}
};

/// "s.mlir:3:7", or without the column; "" for what is of no file.
std::string placeText(mlir::Location place, bool column = true);

/// Where targets' schedules lie: beside the program, share/dmxc/schedules/TARGET.
std::string shippedSchedules();

/// Takes off an op of a region what a target wrote to it when it chose the region's strategy: attributes of dialects of
/// its own.
void forgetDerived(mlir::Operation *op);

/// Of --save-schedule: lines of a script, `%m` its handle of the module, that decide what regions have, or all of it
/// with what is left to targets.
enum class SavedValues { Decided, All };
std::string decidingLines(mlir::ModuleOp module, const PhaseContext &context, const Schedule &schedule,
                          Diagnostics &diagnostics, SavedValues which);

/// For each region every decision with its values, the one it has and who chose that. `schedule` may be null.
std::string explainDecisions(mlir::ModuleOp module, const PhaseContext &context, const Schedule *schedule);

} // namespace dmxc::driver
