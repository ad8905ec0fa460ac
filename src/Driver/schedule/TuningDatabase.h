//===- TuningDatabase.h - what dmxc tune found ------------------*- C++ -*-===//
//
// Lines of JSON, one a region, sorted; `sort -u` merges files. No names of the model, no weights, no times of day. A
// line that cannot be used is a warning, and the region has its default.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Schedule.h"

#include "dmxc/Driver/Options.h"

namespace dmxc::driver {

/// One line. `family`: the region whatever its sizes are; "" in records of before. `clocks`: of the measure that the
/// target has, for the whole model; 0 where nothing was measured.
struct TuningRecord {
  std::string region, family, target, level;
  std::string decided; ///< a JSON object
  std::string effect;  ///< the most that it changed results by
  int64_t clocks = 0, defaultClocks = 0;
  std::string line() const;
};

class TuningDatabase {
public:
  /// Adds the lines of a file. Fails where it cannot be read.
  Status read(const std::string &path, Diagnostics &diagnostics);
  /// Adds one line; `place` names it in warnings.
  void add(const std::string &line, const std::string &place, Diagnostics &diagnostics);
  /// Decides the regions of a module that there are records of: the region's own, else one of the same region at other
  /// sizes that has values the region has, where its target expects it to be no slower than the default.
  void apply(mlir::ModuleOp module, const Options &options, const PhaseContext &phases, Schedule &schedule,
             Diagnostics &diagnostics) const;
  bool has(const std::string &region, const std::string &target, const std::string &level) const;

private:
  struct Row;
  bool applyOther(dmir::RegionOp region, const TargetBackend &target, const std::string &level,
                  Schedule &schedule) const;

  struct Row {
    TuningRecord record;
    std::string place;
  };
  std::map<std::string, Row> rows; ///< by region, target, level
};

/// The same of a region whatever the extents of its tensors are.
std::string familyOf(dmir::RegionOp region);
/// "sha256:...": a region's ops, types, layouts, which operands are constants; no names, places or values.
std::string fingerprintOf(dmir::RegionOp region);
/// The levels of a target that a compile is for, as they were given; "default" where none were.
std::string levelsOf(const Options &options, llvm::StringRef target);
/// A dictionary of numbers, texts, truth values and dictionaries as JSON with sorted keys.
std::string jsonOf(mlir::DictionaryAttr decided);

} // namespace dmxc::driver
