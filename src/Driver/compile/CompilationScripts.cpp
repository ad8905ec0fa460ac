//===- CompilationScripts.cpp - what schedules and records of tuning decide ===//
#include "../reports/DiagnosticRouter.h"
#include "../schedule/Schedule.h"
#include "../schedule/TuningDatabase.h"

#include "dmxc/Driver/Compilation.h"

using namespace mlir;

namespace dmxc::driver {

bool Compilation::hasSchedules() const {
  return !options.schedules.empty() || !options.tuningDatabases.empty() || !options.tuningRecords.empty();
}

bool Compilation::loadSchedules() {
  schedule = std::make_unique<Schedule>(*mlirContext, phaseCtx, diagnostics);
  return schedule->load(options);
}

bool Compilation::applyDatabases() {
  TuningDatabase database;
  for (const std::string &path : options.tuningDatabases)
    if (Status read = database.read(path, diagnostics); !read) {
      diagnostics.report(read.error(), "io", path);
      return false;
    }
  for (const std::string &record : options.tuningRecords)
    database.add(record, "", diagnostics);
  database.apply(*theModule, options, *schedule, diagnostics);
  return true;
}

bool Compilation::applySchedules(StringRef stop) {
  if (!hasSchedules())
    return true;
  return guarded("schedule-script", ErrorKind::Model, [&] {
    const bool plans = stop == Schedule::kPartition; // anew, where nodes have moved
    const bool done = (schedule && !plans ? true : loadSchedules()) && (!plans || applyDatabases()) &&
                      (!schedule->hasScriptsAt(stop) || schedule->run(*theModule, stop));
    if (!done) // whatever a script leaves behind, it is the script's fault
      router->flush(ErrorKind::Model, "schedule-script");
    return done;
  });
}

std::string Compilation::scheduleLog() const { return schedule ? schedule->normalizations() : ""; }

void Compilation::noteSchedules(StringRef stop) {
  if (!schedule)
    return;
  std::string before;
  for (const Stop &each : stops(phaseCtx)) {
    if (each.name == stop)
      break;
    if (std::string changes = schedule->changesAt(each.name); !changes.empty() && each.name != Schedule::kPartition)
      before += (before.empty() ? "" : "; ") + ("behind " + each.name + " " + changes);
  }
  if (before.empty())
    return;
  Diagnostic note;
  note.severity = Severity::Note;
  note.id = "schedule-invalid";
  note.file = options.model;
  note.text = "scripts changed what " + stop.str() + " was given: " + before;
  diagnostics.report(std::move(note));
}

std::string Compilation::explainDecisions() {
  return dmxc::driver::explainDecisions(*theModule, phaseCtx, schedule.get());
}

std::string Compilation::savedSchedule() {
  std::string text = std::string("// What decides how this is computed: ") + shownModel(options);
  for (const TargetChoice &choice : options.targets)
    text += " -t " + choice.name + (choice.levels.empty() ? "" : ":" + llvm::join(choice.levels, "+"));
  for (const auto &[name, bounds] : options.dims)
    text += " --dim " + name + "=" + std::to_string(bounds.min) +
            (bounds.min == bounds.max ? "" : ".." + std::to_string(bounds.max));
  if (!schedule && !loadSchedules())
    return "";
  return text + "\n" + schedule->saved(*theModule);
}

} // namespace dmxc::driver
