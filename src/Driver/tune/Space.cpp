//===- Space.cpp - the candidates of a tuner ------------------------------===//
#include "Space.h"
#include "TuningDatabase.h"

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

/// Walks the decisions of a region; what is free may depend on what is decided.
class RegionWalk {
public:
  RegionWalk(const TargetBackend &target, dmir::RegionOp region, Space<std::string> &space)
      : target(target), region(region), space(space) {}

  /// Begins with what is decided already. Of more candidates than anybody tries, those remain that decide nothing of
  /// single scopes.
  Status walk() {
    uint64_t count = 1;
    for (const Decision &decision : target.decisions(region, decidedOf(region)))
      if (!decidedValue(decidedOf(region), decision))
        count = std::min<uint64_t>(count, kMostPlans + 1) * std::min<uint64_t>(decision.domain.count(), kMostPlans + 1);
    wholeOnly = count > kMostPlans;
    return walk(decidedOf(region), {}, /*isPreferred=*/true);
  }

private:
  /// `rank`: how far values are from the first of their domains.
  Status walk(DictionaryAttr decided, const Point &point, bool isPreferred, uint64_t rank = 0) {
    for (const Decision &decision : target.decisions(region, decided)) {
      if (decidedValue(decided, decision) || (wholeOnly && !decision.scope.empty()))
        continue;
      Builder b(region.getContext());
      for (uint64_t i = 0; i < decision.domain.count(); ++i) {
        Attribute value = decision.domain.at(i);
        DictionaryAttr one = b.getDictionaryAttr(b.getNamedAttr(decision.name, value));
        if (!decision.scope.empty())
          one = b.getDictionaryAttr(b.getNamedAttr(decision.scope, one));
        Point next = point;
        next.push_back(static_cast<int64_t>(i));
        // Of a whole region's numbers powers of two, which divide most extents, are all worth as much.
        uint64_t order = isa<StringAttr>(value) ? std::min<uint64_t>(i, 1) : i; // texts have no order
        uint64_t far = !decision.scope.empty() ? order : isPromising(value) ? 0 : kMostPlans;
        if (Status s = walk(mergeDecided(decided, one), next, isPreferred && value == decision.preferred, rank + far);
            !s)
          return s;
      }
      return Status::ok();
    }
    if (space.candidates.size() == kMostCandidates)
      return modelError("node '" + dmir::nodeName(region) + "' has more than " + std::to_string(kMostCandidates) +
                        " candidates; choose some in a script with transform.dmx.param, and tune that");
    space.ranks.push_back(rank);
    if (isPreferred)
      space.preferred = space.candidates.size();
    space.candidates.push_back(jsonOf(decided));
    space.points.push_back(point);
    return Status::ok();
  }

  const TargetBackend &target;
  dmir::RegionOp region;
  Space<std::string> &space;
  bool wholeOnly = false;
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

Result<std::vector<TunedRegion>> tunedRegions(const Options &options, Compilation &compilation, bool onDevicesAlone) {
  std::vector<TunedRegion> regions;
  Status done = Status::ok();
  compilation.module().walk([&](dmir::RegionOp region) {
    const TargetBackend *target = compilation.phaseContext().target(region.getDevice());
    if (!done || !target || (onDevicesAlone && target->runsOnHost()))
      return;
    TunedRegion tuned{dmir::nodeName(region), region.getDevice().str(),      levelsOf(options, region.getDevice()),
                      fingerprintOf(region),  target->decisions(region, {}), {}};
    if (llvm::any_of(regions, [&](const TunedRegion &other) {
          return other.fingerprint == tuned.fingerprint && other.device == tuned.device;
        }))
      return;
    // The product of what is free on the host is beyond all bounds, and is no space of a tuner yet.
    if (onDevicesAlone)
      done = RegionWalk(*target, region, tuned.space).walk();
    if (!tuned.decisions.empty())
      regions.push_back(std::move(tuned));
  });
  return done ? Result<std::vector<TunedRegion>>(std::move(regions)) : done.takeError();
}

} // namespace dmxc::driver
