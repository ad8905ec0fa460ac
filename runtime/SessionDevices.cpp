//===- SessionDevices.cpp - devices and code of a session -----------------===//
//
// A device for each target of the graph, the code each of them runs, and the
// segments that make up a run. Nothing of it changes with shapes.
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include <algorithm>

namespace dmxrt {

Status Session::loadDevices(const DeviceOptions &options) {
  auto made = createDevices(graph.targets, options);
  if (!made)
    return made.takeError();
  for (size_t i = 0; i < made->size(); ++i) {
    units.emplace_back().device = std::move((*made)[i]);
    if (i == 0 || graph.targets[i] == kHostTarget)
      sharing = units[i].device.get();
  }
  if (Status status = loadCode(options.isa); !status)
    return status;
  for (const Task &task : graph.tasks) {
    const Unit &unit = units[task.device];
    kernels.push_back(task.isCopy ? nullptr : unit.code->findKernel(task.kernel));
    if (!task.isCopy && !kernels.back())
      return badBundle("task '", task.name, "' needs kernel '", task.kernel, "', which code '", unit.target->entry,
                       "' does not have; compile the model again");
  }
  cutSegments();
  describeDevices();
  return {};
}

/// The levels there are, by target.
Error Session::noSuchLevel(std::string_view isa) const {
  std::string have;
  for (const std::string &target : graph.targets) {
    std::string levels;
    for (const TargetCode &code : bundle->manifest().targets)
      if (code.target == target)
        levels += cat(levels.empty() ? "" : ", ", code.arch);
    have += cat(have.empty() ? "" : "; ", "for ", target, " it has ", levels.empty() ? "none" : levels);
  }
  return fail(DMX_STATUS_INVALID_ARGUMENT, "the bundle has no code of ISA level '", isa,
              "' for any of the model's targets; ", have);
}

/// Copies need no code, so that a graph of copies alone, e.g. of an identity model, has none.
Status Session::loadCode(std::string_view isa) {
  std::span<const TargetCode> codes = bundle->manifest().targets;
  std::vector<bool> needsCode(units.size());
  for (const Task &task : graph.tasks)
    needsCode[task.device] = needsCode[task.device] || !task.isCopy;
  auto hasLevel = [&](size_t unit) {
    return needsCode[unit] && std::any_of(codes.begin(), codes.end(), [&](const TargetCode &code) {
             return code.target == graph.targets[unit] && code.arch == isa;
           });
  };
  // A level is one of one target's; the others choose freely. What a lone target lacks, its device says best.
  auto needing = std::count(needsCode.begin(), needsCode.end(), true);
  bool alone = needing == 1, found = isa.empty() || needing < 2;
  for (size_t i = 0; i < units.size() && !found; ++i)
    found = hasLevel(i);
  if (!found)
    return noSuchLevel(isa);
  for (size_t i = 0; i < units.size(); ++i) {
    if (!needsCode[i])
      continue;
    auto selected = units[i].device->selectCode(codes, alone || hasLevel(i) ? isa : "");
    if (!selected)
      return selected.takeError();
    auto image = bundle->code(**selected, *units[i].device);
    if (!image)
      return image.takeError();
    units[i].target = *selected;
    units[i].code = *image;
  }
  return {};
}

/// Deps point backwards, so that runs of consecutive tasks of one device may be started in their order.
void Session::cutSegments() {
  for (uint32_t i = 0; i < graph.tasks.size(); ++i) {
    uint32_t device = graph.tasks[i].device;
    Unit &unit = units[device];
    if (i == 0 || graph.tasks[i - 1].device != device) {
      turns.push_back({unit.device.get(), static_cast<uint32_t>(unit.segments.size())});
      unit.segments.push_back({i, i});
    }
    unit.segments.back().end = i + 1;
  }
}

void Session::describeDevices() {
  for (size_t i = 0; i < units.size(); ++i) {
    targetText += cat(i ? "," : "", graph.targets[i]);
    if (units[i].target)
      isaText += cat(isaText.empty() ? "" : ",", units[i].target->arch);
  }
}

} // namespace dmxrt
