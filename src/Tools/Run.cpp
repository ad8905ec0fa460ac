//===- Run.cpp - what dmx-run does ----------------------------------------===//
#include "dmxc/Tools/Run.h"

#include "Report.h"
#include "dmxc/Support/Visible.h"
#include "dmxc/Support/WorkCount.h"
#include "dmxc/Tools/CommandLine.h"
#include "dmxc/Tools/Compare.h"
#include "dmxc/Tools/Progress.h"
#include "dmxc/Tools/TensorDirectory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <ostream>

namespace dmxc::tools {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> namesOf(const std::vector<IoTensor> &tensors) {
  std::vector<std::string> names;
  for (const IoTensor &tensor : tensors)
    names.push_back(tensor.name);
  return names;
}

std::string listOf(const std::vector<IoTensor> &tensors) {
  std::string text;
  for (const IoTensor &tensor : tensors)
    text += (text.empty() ? "" : ", ") + ("'" + visible(tensor.name) + "'") + " (" + visible(tensor.str()) + ")";
  return text.empty() ? "none" : text;
}

Result<size_t> indexOf(const std::vector<IoTensor> &tensors, const std::string &name, const char *what) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name)
      return i;
  return usageError(std::string("the bundle has no ") + what + " '" + name + "'" + didYouMean(name, namesOf(tensors)) +
                    "; it has " + listOf(tensors));
}

std::vector<WantedTensor> wantedOf(const std::vector<IoTensor> &tensors) {
  std::vector<WantedTensor> wanted;
  for (const IoTensor &tensor : tensors)
    wanted.push_back({tensor.name, tensor.dtype});
  return wanted;
}

/// One execution of the tool: the session and what was read for it.
class Runner {
public:
  Runner(const RunOptions &options, std::ostream &out)
      : options(options), out(out), progress(options.quiet ? ProgressForm::None : progressFormOfStderr(), 0) {}
  Status execute();

private:
  Status openSession();
  Status runAll(RunReport &report);
  Status checkOutputNames();
  Status readInputs();
  Status fillRandomInputs();
  Result<Shape> randomShape(const IoTensor &tensor) const;
  Status bindInputs();
  Status writeOutputs();
  Status compareOutputs(RunReport &report);
  bool isSilent() const {
    return options.benchmark || options.quiet || !options.outputs.empty() || !options.outputDir.empty() ||
           !options.expectDir.empty();
  }
  void printOutputs();
  Status profileRun(RunReport &report);
  Status benchmark(RunReport &report);
  Status runOnce(RunReport &report);

  const RunOptions &options;
  std::ostream &out;
  std::unique_ptr<ModelSession> session;
  std::vector<Tensor> inputs;
  Progress progress;
};

Status Runner::checkOutputNames() {
  for (const auto &[name, file] : options.outputs) {
    auto index = indexOf(session->outputs(), name, "output");
    if (!index)
      return index.takeError();
    if (!file.ends_with(".npy") && !file.ends_with(".pb"))
      return usageError("--output " + name + "=" + file + ": a tensor file ends in .npy or .pb");
  }
  return Status::ok();
}

Status Runner::readInputs() {
  const std::vector<IoTensor> &wanted = session->inputs();
  inputs.assign(wanted.size(), Tensor());
  if (!options.inputsDir.empty()) {
    auto found = readTensorDirectory(options.inputsDir, TensorRole::Input, wantedOf(wanted));
    // Single files may stand in for all of a directory's.
    if (!found && options.inputs.empty() && !options.randomSeed)
      return found.takeError();
    if (found)
      inputs = std::move(*found);
  }
  for (const auto &[name, file] : options.inputs) {
    auto index = indexOf(wanted, name, "input");
    if (!index)
      return index.takeError();
    auto read = readTensorFile(file, wanted[*index].dtype);
    if (!read)
      return read.takeError();
    inputs[*index] = read->tensor;
  }
  if (options.randomSeed || options.benchmark)
    if (Status done = fillRandomInputs(); !done)
      return done;
  std::string missing;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (inputs[i].empty())
      missing += (missing.empty() ? "'" : ", '") + visible(wanted[i].name) + "' (" + visible(wanted[i].str()) + ")";
  if (!missing.empty())
    return usageError("no file was given for input " + missing +
                      "; use --input NAME=FILE, --inputs DIR or --random-inputs SEED");
  return Status::ok();
}

Result<Shape> Runner::randomShape(const IoTensor &tensor) const {
  Shape shape;
  for (const IoDim &dim : tensor.dims) {
    int64_t extent = dim.name.empty() ? dim.min : std::max<int64_t>(dim.min, 1);
    for (const auto &[name, value] : options.dims)
      if (name == dim.name)
        extent = value;
    shape.push_back(extent);
  }
  return shape;
}

Status Runner::fillRandomInputs() {
  std::vector<std::string> known;
  for (const IoTensor &tensor : session->inputs())
    for (const IoDim &dim : tensor.dims)
      if (!dim.name.empty())
        known.push_back(dim.name);
  for (const auto &[name, value] : options.dims)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return usageError("--dim " + name + ": the inputs have no such symbolic dim" + didYouMean(name, known));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].empty())
      continue;
    auto shape = randomShape(session->inputs()[i]);
    if (!shape)
      return shape.takeError();
    auto tensor = newTensor(session->inputs()[i].dtype, *shape, "input '" + session->inputs()[i].name + "'");
    if (!tensor)
      return tensor.takeError();
    fillRandom(*tensor, options.randomSeed.value_or(0) * 1000 + i);
    inputs[i] = std::move(*tensor);
  }
  return Status::ok();
}

Status Runner::bindInputs() {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (Status done = session->bindInput(i, inputs[i]); !done)
      return done;
  return session->allocateOutputs();
}

Status Runner::writeOutputs() {
  for (const auto &[name, file] : options.outputs) {
    auto index = indexOf(session->outputs(), name, "output");
    if (!index)
      return index.takeError();
    if (Status done = writeTensorFile(file, {name, session->output(*index)}); !done)
      return done;
  }
  if (options.outputDir.empty())
    return Status::ok();
  std::error_code error;
  fs::create_directories(options.outputDir, error);
  if (error)
    return ioError("cannot make the directory '" + options.outputDir + "': " + error.message());
  for (size_t i = 0; i < session->outputs().size(); ++i) {
    const std::string &name = session->outputs()[i].name;
    std::string file = options.outputDir + "/" + tensorFileName(TensorRole::Output, name);
    if (Status done = writeTensorFile(file, {name, session->output(i)}); !done)
      return done;
  }
  return Status::ok();
}

Status Runner::compareOutputs(RunReport &report) {
  const std::vector<IoTensor> &outputs = session->outputs();
  auto expected = readTensorDirectory(options.expectDir, TensorRole::Output, wantedOf(outputs));
  if (!expected)
    return expected.takeError();
  bool pass = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if ((*expected)[i].empty())
      return ioError("'" + options.expectDir + "' has no expected tensor for output '" + outputs[i].name + "'");
    Comparison c = compareTensors(session->output(i), (*expected)[i], options.tolerance);
    pass &= c.pass;
    if (!options.quiet || !c.pass)
      out << visible(outputs[i].name) << ": " << (c.pass ? "ok, " : "")
          << describe(c, session->output(i), (*expected)[i]) << "\n";
    report.comparisons.emplace_back(outputs[i].name, c);
  }
  if (!options.quiet || !pass)
    out << "rule: " << ruleText(options.tolerance) << "\n";
  report.rule = ruleText(options.tolerance);
  const char *code = pass ? "\033[1;32m" : "\033[1;31m";
  out << (options.color ? code : "") << (pass ? "PASS" : "FAIL") << (options.color ? "\033[0m" : "") << "\n";
  return Status::ok();
}

void Runner::printOutputs() {
  for (size_t i = 0; i < session->outputs().size(); ++i)
    out << visible(session->outputs()[i].name) << ": " << tensorSummary(session->output(i)) << "\n";
}

Status Runner::profileRun(RunReport &report) {
  // Room for every thread taking part in every task of each profiled run.
  auto info = session->info();
  if (!info)
    return info.takeError();
  uint32_t runs = options.benchmark ? 10 : 1;
  uint64_t capacity = uint64_t(info->task_count) * info->threads * runs + 64;
  if (Status done = session->profile(static_cast<uint32_t>(std::min<uint64_t>(capacity, 1u << 24))); !done)
    return done;
  beginWork("runs", runs);
  for (uint32_t i = 0; i < runs; ++i, advanceWork())
    if (Status done = session->run(); !done)
      return done;
  auto events = session->takeEvents(report.droppedEvents);
  if (!events)
    return events.takeError();
  auto tasks = session->tasks();
  if (!tasks)
    return tasks.takeError();
  report.tasks = std::move(*tasks);
  report.profiledRuns = runs;
  if (options.profileFile.empty())
    return Status::ok();
  return writeChromeTrace(options.profileFile, report.model, *events, report.tasks);
}

Status Runner::benchmark(RunReport &report) {
  for (uint32_t i = 0; i < options.warmup; ++i)
    if (Status done = session->run(); !done)
      return done;
  std::vector<double> times;
  if (options.iters)
    beginWork("runs", *options.iters);
  double begin = nowMs();
  // With a time to fill, at least five runs, so that percentiles mean
  // something.
  auto enough = [&] {
    return options.iters ? times.size() >= *options.iters
                         : times.size() >= 5 && nowMs() - begin >= options.minTimeSeconds * 1000;
  };
  while (!enough()) {
    double start = nowMs();
    if (Status done = session->run(); !done)
      return done;
    times.push_back(nowMs() - start);
    advanceWork();
  }
  report.latency = latencyFigures(std::move(times));
  return Status::ok();
}

Status Runner::runOnce(RunReport &report) {
  double start = nowMs();
  if (Status done = session->run(); !done)
    return done;
  report.runMs = nowMs() - start;
  auto hold = holdProgress(); // stdout may be the same terminal
  if (Status done = writeOutputs(); !done)
    return done;
  if (!options.expectDir.empty())
    return compareOutputs(report);
  if (!isSilent())
    printOutputs();
  return Status::ok();
}

Status Runner::openSession() {
  progress.step("open", options.bundle);
  auto opened = ModelSession::open(options.bundle, options.session);
  if (!opened)
    return opened.takeError();
  session = std::move(*opened);
  progress.step("read", "the inputs");
  for (auto step : {&Runner::checkOutputNames, &Runner::readInputs, &Runner::bindInputs})
    if (Status done = (this->*step)(); !done)
      return done;
  return Status::ok();
}

Status Runner::runAll(RunReport &report) {
  progress.step("run", report.model);
  if (Status done = runOnce(report); !done)
    return done;
  if (options.benchmark) {
    progress.step("benchmark", report.model);
    if (Status done = benchmark(report); !done)
      return done;
  }
  if (options.perTask || !options.profileFile.empty()) {
    progress.step("profile", report.model);
    if (Status done = profileRun(report); !done)
      return done;
  }
  return Status::ok();
}

Status Runner::execute() {
  if (Status done = openSession(); !done)
    return done;
  if (!options.quiet)
    if (Status done = noteMachine(*session); !done)
      return done;
  RunReport report;
  report.bundle = options.bundle;
  report.model = fs::path(options.bundle).filename().string();
  report.loadMs = session->loadMs();
  report.sessionMs = session->sessionMs();
  Status ran = runAll(report);
  progress.finish();
  if (!ran)
    return ran;
  auto info = session->info();
  if (!info)
    return info.takeError();
  report.setInfo(*info);
  if (info->remarks && *info->remarks && !options.quiet)
    std::cerr << "dmx-run: warning: " << info->remarks << " (see the target's README: numbers)\n";
  if (options.benchmark)
    printBenchmark(report, out);
  else if (!isSilent() && !report.isa.empty() && report.machine.empty())
    out << "ran on " << report.target << " " << levelText(report) << "\n";
  if (options.perTask)
    printTaskTable(report, out);
  if (!options.jsonFile.empty())
    if (Status done = writeReportJson(options.jsonFile, report, options.perTask); !done)
      return done;
  for (const auto &[name, comparison] : report.comparisons)
    if (!comparison.pass)
      return Error{ErrorKind::Mismatch, "output '" + name + "' differs from '" + options.expectDir + "'"};
  return Status::ok();
}

} // namespace

Status runBundle(const RunOptions &options, std::ostream &out) { return Runner(options, out).execute(); }

} // namespace dmxc::tools
