//===- Space.cpp - the candidates of a tuner ------------------------------===//
#include "Space.h"
#include "../schedule/TuningDatabase.h"

#include "dmxc/Phases/Decisions.h"

#include <algorithm>

using namespace mlir;

namespace dmxc::driver {

std::string knobText(const Schedule::Values &values, const char *before) {
  std::string text;
  for (const auto &[name, value] : values) {
    auto string = dyn_cast<StringAttr>(value);
    text += (text.empty() ? "" : " ") + std::string(before) + name + "=" + (string ? string.str() : valueText(value));
  }
  return text;
}

namespace {

bool isPromising(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return !number || number.getType().isInteger(1) ||
         (number.getInt() > 0 && llvm::isPowerOf2_64(static_cast<uint64_t>(number.getInt())));
}

/// Walks the tree of the scripts' parameters.
class ScriptWalk {
public:
  ScriptWalk(Schedule &schedule, ModuleOp module, Diagnostics &diagnostics, Space<Schedule::Values> &space)
      : schedule(schedule), module(module), diagnostics(diagnostics), space(space) {}

  bool walk() {
    std::optional<Schedule::Parameter> open;
    std::optional<Schedule::Refusal> refused;
    OwningOpRef<ModuleOp> copy = module.clone();
    if (!schedule.runUpTo(*copy, values, open, refused))
      return false;
    if (refused) {
      refuse(*refused);
      return true;
    }
    if (!open) {
      if (space.candidates.size() == kMostCandidates) {
        diagnostics.report(modelError("the scripts' parameters have more than " + std::to_string(kMostCandidates) +
                                      " values together; set some with --set"),
                           "schedule-space");
        return false;
      }
      if (llvm::all_of(values, [](const auto &knob) { return isPromising(knob.second); }))
        space.promising.push_back(space.candidates.size());
      space.candidates.push_back(values);
      space.points.push_back(point);
      return true;
    }
    for (uint64_t i = 0; i < open->domain.count(); ++i) {
      values.emplace_back(open->name, open->domain.at(i));
      point.push_back(static_cast<int64_t>(i));
      if (!isRefused() && !walk())
        return false;
      values.pop_back();
      point.pop_back();
    }
    return true;
  }

private:
  /// Whether a target refused values that are among these.
  bool isRefused() const {
    return llvm::any_of(refusals, [&](const Schedule::Values &reason) {
      return llvm::all_of(reason, [&](const auto &value) { return llvm::is_contained(values, value); });
    });
  }

  /// Drops the values, and from now on all that have those which a refusal rests on; says the first few.
  void refuse(const Schedule::Refusal &refusal) {
    constexpr size_t most = 8;
    refusals.push_back(refusal.reason);
    if (++space.refused > most)
      return;
    Diagnostic warning;
    warning.severity = Severity::Warning;
    warning.id = "tune-refused";
    warning.file = refusal.place;
    warning.text = knobText(refusal.reason) + " is not tried: " + refusal.text;
    diagnostics.report(std::move(warning));
  }

  Schedule &schedule;
  ModuleOp module;
  Diagnostics &diagnostics;
  Space<Schedule::Values> &space;
  Schedule::Values values;
  Point point;
  std::vector<Schedule::Values> refusals;
};

} // namespace

bool scriptSpace(const Options &options, Compilation &compilation, Diagnostics &diagnostics,
                 Space<Schedule::Values> &space) {
  return compilation.runStep("schedule-script", [&] {
    Schedule schedule(compilation.context(), compilation.phaseContext(), diagnostics);
    if (!schedule.load(options) || !ScriptWalk(schedule, compilation.module(), diagnostics, space).walk())
      return false;
    if (space.candidates.empty())
      diagnostics.report(modelError("the targets refuse all values of the scripts' parameters"), "schedule-refused",
                         options.schedules.back());
    return !space.candidates.empty();
  });
}

std::vector<TunedRegion> tunedRegions(const Options &options, Compilation &compilation, bool onDevicesAlone) {
  std::vector<TunedRegion> regions;
  compilation.module().walk([&](dmir::RegionOp region) {
    const TargetBackend *target = compilation.phaseContext().target(region.getDevice());
    if (!target || (onDevicesAlone && target->runsOnHost()))
      return;
    TunedRegion tuned{region,
                      dmir::nodeName(region),
                      region.getDevice().str(),
                      levelsOf(options, region.getDevice()),
                      fingerprintOf(region),
                      target->decisions(region, decidedOf(region))};
    if (llvm::any_of(regions, [&](const TunedRegion &other) {
          return other.fingerprint == tuned.fingerprint && other.device == tuned.device;
        }))
      return;
    if (!tuned.decisions.empty())
      regions.push_back(std::move(tuned));
  });
  return regions;
}

} // namespace dmxc::driver
