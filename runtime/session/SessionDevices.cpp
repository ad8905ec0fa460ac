//===- SessionDevices.cpp - devices and code of a session -----------------===//
//
// A device for each target of the graph and the code each of them runs. Nothing of it
// changes with shapes.
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include <algorithm>

namespace dmxrt {

Status Session::useDevices(std::vector<std::unique_ptr<Device>> devices, std::string_view isa) {
  machinery.targets = graph.targets;
  for (size_t i = 0; i < devices.size(); ++i) {
    machinery.units.emplace_back().device = std::move(devices[i]);
    if (i == 0 || runsOnHost(graph.targets[i]))
      machinery.sharing = machinery.units[i].device.get();
  }
  if (Status status = loadCode(isa); !status)
    return status;
  describeDevices();
  return {};
}

/// The levels there are, by target.
Error Session::noSuchLevel(std::string_view isa) const {
  std::string have;
  for (const std::string &target : graph.targets) {
    std::string levels;
    for (const TargetCode &code : machinery.bundle->manifest().targets)
      if (code.target == target)
        levels += cat(levels.empty() ? "" : ", ", code.arch);
    have += cat(have.empty() ? "" : "; ", "for ", target, " it has ", levels.empty() ? "none" : levels);
  }
  return fail(DMX_STATUS_INVALID_ARGUMENT, "the bundle has no code of ISA level '", isa,
              "' for any of the model's targets; ", have);
}

/// Marks the units that run kernels of a graph or of those below it.
void Session::noteCode(const Graph &part, std::vector<bool> &needed) const {
  for (const Task &task : part.tasks) {
    if (task.hasKernel())
      needed[static_cast<size_t>(std::find(graph.targets.begin(), graph.targets.end(), part.targets[task.device]) -
                                 graph.targets.begin())] = true;
    for (uint32_t nested : task.graphs)
      if (nested != kNone)
        noteCode(machinery.bundle->graph(nested), needed);
  }
}

/// Copies need no code, so that a graph of copies alone, e.g. of an identity model, has none.
Status Session::loadCode(std::string_view isa) {
  std::span<const TargetCode> codes = machinery.bundle->manifest().targets;
  std::vector<bool> needsCode(machinery.units.size());
  noteCode(graph, needsCode);
  auto hasLevel = [&](size_t unit) {
    return needsCode[unit] && std::any_of(codes.begin(), codes.end(), [&](const TargetCode &code) {
             return code.target == graph.targets[unit] && code.arch == isa;
           });
  };
  // A level is one of one target's; the others choose freely. What a lone target lacks, its device says best.
  auto needing = std::count(needsCode.begin(), needsCode.end(), true);
  bool alone = needing == 1, found = isa.empty() || needing < 2;
  for (size_t i = 0; i < machinery.units.size() && !found; ++i)
    found = hasLevel(i);
  if (!found)
    return noSuchLevel(isa);
  for (size_t i = 0; i < machinery.units.size(); ++i) {
    if (!needsCode[i])
      continue;
    auto selected = machinery.units[i].device->selectCode(codes, alone || hasLevel(i) ? isa : "");
    if (!selected)
      return selected.takeError();
    Unit &unit = machinery.units[i];
    unit.target = *selected;
    if (Status status = loadImage(unit.target->entry, *unit.device, unit.code); !status)
      return status;
    if (!unit.target->common.empty())
      if (Status status = loadImage(unit.target->common, *unit.device, unit.common); !status)
        return status;
    if (const char *better = unit.device->betterLevel(codes))
      betterIsa = better;
  }
  return {};
}

Status Session::loadImage(const std::string &entry, Device &device, std::shared_ptr<const CodeImage> &image) const {
  auto loaded = machinery.bundle->code(entry, device, machinery.rehearsal == Rehearsal::No);
  if (!loaded)
    return loaded.takeError();
  image = std::move(*loaded);
  return {};
}

/// A program for each stage of each graph that has tasks for a device.
void Session::countPrograms() {
  for (const Unit &unit : machinery.units)
    unit.device->setProgramCount(std::max(unit.programs, 1u));
}

void Session::describeDevices() {
  for (size_t i = 0; i < machinery.units.size(); ++i) {
    targetText += cat(i ? "," : "", graph.targets[i]);
    if (machinery.units[i].target)
      isaText += cat(isaText.empty() ? "" : ",", machinery.units[i].target->arch);
    const char *machine = machinery.units[i].device->machine();
    machineText += cat(machineText.empty() || !*machine ? "" : ", ", machine);
  }
}

} // namespace dmxrt
