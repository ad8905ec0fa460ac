//===- PassTimes.cpp - time of each pass ----------------------------------===//
#include "PassTimes.h"
#include "../compile/Work.h"

#include "dmxc/Support/WorkCount.h"

#include "mlir/Pass/Pass.h"

namespace dmxc::driver {

void PassTimes::runBeforePass(mlir::Pass *pass, mlir::Operation *op) {
  if (pass->getArgument().empty()) // MLIR's adaptor that walks into functions
    return;
  std::lock_guard lock(mutex);
  setCurrentWork(phase, {pass->getArgument().data(), pass->getArgument().size()});
  noteWork(pass->getArgument());
  running[{pass, op}] = Clock::now();
}

void PassTimes::runAfterPass(mlir::Pass *pass, mlir::Operation *op) {
  std::lock_guard lock(mutex);
  auto started = running.find({pass, op});
  if (started == running.end())
    return;
  double seconds = secondsSince(started->second);
  running.erase(started);
  std::string name = pass->getArgument().str();
  for (TimeRow &row : rows)
    if (row.phase == phase && row.pass == name) {
      row.seconds += seconds;
      return;
    }
  rows.push_back({phase, name, seconds});
}

} // namespace dmxc::driver
