//===- StageTable.cpp - what a compile means at each of its stops ---------===//
#include "StageTable.h"

#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Driver/StageEvaluation.h"
#include "dmxc/Tools/Compare.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstring>
#include <ostream>

using namespace mlir;

namespace dmxc::driver {

Status checkStages(const PhaseContext &context) {
  for (const TargetBackend *target : context.targets)
    if (!target->evaluatesStages() && (!target->runsOnHost() || context.targets.size() == 1))
      return usageError("target '" + target->name().str() +
                        "' evaluates no stages: --stages is for targets that do, as 'dmx-compare --help' says");
  return Status::ok();
}

void StageTable::add(const std::string &stop) {
  auto row = llvm::find_if(rows, [&](const Row &each) { return each.stop == stop; });
  // What comes again, since nodes have moved to the host, makes what came behind it void.
  rows.erase(row, rows.end());
  std::string file;
  for (const Stop &each : stops(compilation.phaseContext()))
    if (each.name == stop)
      file = each.file;
  rows.push_back({stop, file, OwningOpRef<ModuleOp>(compilation.module().clone())});
}

/// Where the folder has no text of a stop, that is the compile's.
Status StageTable::replaceByText(Row &row) {
  const std::string path = texts + "/" + row.file;
  if (texts.empty() || !llvm::sys::fs::exists(path))
    return Status::ok();
  Status status = Status::ok();
  compilation.runStep(row.stop.c_str(), [&] {
    row.module = parseSourceFile<ModuleOp>(path, &compilation.context());
    if (row.module)
      dmir::resolveDataFiles(*row.module, [&](Operation *, const Error &error) { status = error; });
    return static_cast<bool>(row.module);
  });
  return row.module ? std::move(status) : Status(modelError("'" + path + "' is no text of a stop"));
}

Result<std::vector<Tensor>> StageTable::evaluate(Row &row) {
  if (Status replaced = replaceByText(row); !replaced)
    return replaced.takeError();
  return reference::evaluateEntry(*row.module, entry, inputs, stageEvaluators(compilation.phaseContext()));
}

/// Equal bits, or no numbers both.
static bool isEqual(const Tensor &a, const Tensor &b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape())
    return false;
  if (std::memcmp(a.data(), b.data(), a.byteSize()) == 0)
    return true;
  if (!isFloat(a.dtype()))
    return false;
  for (int64_t i = 0, count = a.numElements(); i < count; ++i) {
    const double x = a.asDouble(i), y = b.asDouble(i);
    if (x != y && !(std::isnan(x) && std::isnan(y)))
      return false;
  }
  return true;
}

StageTable::Difference StageTable::differenceOf(const std::vector<Tensor> &now,
                                                const std::vector<Tensor> &before) const {
  Difference worst{true, INFINITY, ""};
  if (now.size() != before.size())
    return {false, -INFINITY, "has " + std::to_string(now.size()) + " outputs, not " + std::to_string(before.size())};
  for (size_t i = 0; i < now.size(); ++i) {
    if (isEqual(now[i], before[i]))
      continue;
    worst.isEqual = false;
    tools::Tolerance exact;
    exact.rtol = exact.atol = 0;
    const tools::Comparison result = tools::compareTensors(now[i], before[i], exact);
    const double sqnr = result.structural.empty() ? result.sqnr : -INFINITY;
    if (!worst.what.empty() && sqnr >= worst.sqnr)
      continue;
    worst.sqnr = sqnr;
    worst.what = "output " + std::to_string(i) + ": " + tools::describe(result, now[i], before[i]);
  }
  return worst;
}

void StageTable::judge(const std::string &stop, const std::vector<Tensor> &now, std::ostream &out) {
  const Difference difference = differenceOf(now, last);
  std::string text = "equal to the bit";
  if (!difference.isEqual)
    text = llvm::formatv("{0:f1} dB", difference.sqnr).str();
  const bool begins = !rounding; // the first stop in the target's numbers
  if (begins) {
    rounding = difference.isEqual ? INFINITY : difference.sqnr;
    text += ", the numbers of the target";
  } else if (!difference.isEqual && !(difference.sqnr >= *rounding && std::isfinite(difference.sqnr))) {
    text += ", WRONG";
    if (wrong.empty())
      wrong = "first stage that is wrong: " + stop + ", beside " + lastStop + ": " + difference.what;
  }
  out << llvm::formatv("{0,-18}  {1}\n", stop, text).str();
  last = now;
  lastStop = stop;
}

Status StageTable::compare(const std::vector<Tensor> &ran, std::ostream &out) {
  out << "stop                beside the stop before\n";
  for (Row &row : rows) {
    Result<std::vector<Tensor>> now = evaluate(row);
    if (!now && now.error().kind == ErrorKind::Constraint) {
      out << llvm::formatv("{0,-18}  not evaluated: {1}\n", row.stop, now.error().message).str();
      continue;
    }
    if (!now) {
      out << llvm::formatv("{0,-18}  WRONG: {1}\n", row.stop, now.error().message).str();
      if (wrong.empty())
        wrong = "first stage that is wrong: " + row.stop + ": " + now.error().message;
      continue;
    }
    if (lastStop.empty()) {
      out << llvm::formatv("{0,-18}  the first\n", row.stop).str();
      // A text that is resumed is in the target's numbers already.
      if (row.stop != phases().front().name)
        rounding = INFINITY;
      last = std::move(*now);
      lastStop = row.stop;
      continue;
    }
    judge(row.stop, *now, out);
  }
  if (!ran.empty())
    judge("run", ran, out);
  return wrong.empty() ? Status::ok() : Status(Error{ErrorKind::Mismatch, wrong});
}

} // namespace dmxc::driver
