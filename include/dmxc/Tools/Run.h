//===- Run.h - what dmx-run does --------------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Tools/Compare.h"
#include "dmxc/Tools/Runtime.h"

#include <iosfwd>
#include <optional>
#include <utility>

namespace dmxc::tools {

/// The command line of dmx-run (tools/dmx-run), one field a flag.
struct RunOptions {
  using NamedFile = std::pair<std::string, std::string>;

  std::string bundle;
  SessionSettings session;
  std::string inputsDir;
  std::vector<NamedFile> inputs;
  std::vector<NamedFile> outputs;
  std::string outputDir;
  std::string expectDir;
  Tolerance tolerance;
  std::optional<uint64_t> randomSeed;
  /// Values of symbolic dims for random inputs; others take their lower bound,
  /// at least 1.
  std::vector<std::pair<std::string, int64_t>> dims;
  std::string profileFile;
  std::string jsonFile;
  bool benchmark = false;
  uint32_t warmup = 3;
  std::optional<uint32_t> iters;
  double minTimeSeconds = 2;
  bool perTask = false;
  bool quiet = false;
  bool color = false;
};

/// Runs the bundle as asked; results go to `out`. The error says what to print
/// on stderr and, by its kind, the exit code; ErrorKind::Mismatch when --expect
/// failed.
Status runBundle(const RunOptions &options, std::ostream &out);

/// Figures of repeated runs, milliseconds. Percentiles interpolate linearly
/// between ranks, as numpy.percentile does.
struct LatencyFigures {
  size_t iters = 0;
  double min = 0, median = 0, mean = 0, p90 = 0, p99 = 0;
};
LatencyFigures latencyFigures(std::vector<double> milliseconds);

} // namespace dmxc::tools
