//===- PassTimes.h - time of each pass --------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Compilation.h"

#include "mlir/Pass/PassInstrumentation.h"

#include <chrono>
#include <mutex>

namespace dmxc::driver {

using Clock = std::chrono::steady_clock;
inline double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Adds up the time of each pass over the functions it ran on and notes which
/// pass runs. Thread-safe, as passes of different functions may run at once.
class PassTimes : public mlir::PassInstrumentation {
public:
  PassTimes(std::string phase, std::vector<TimeRow> &rows) : phase(std::move(phase)), rows(rows) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override { runAfterPass(pass, op); }

private:
  std::string phase;
  std::vector<TimeRow> &rows;
  std::mutex mutex;
  std::map<std::pair<mlir::Pass *, mlir::Operation *>, Clock::time_point> running;
};

} // namespace dmxc::driver
