//===- Compare.h - the reference interpreter against a bundle ---*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Support/Diagnostic.h"

#include <iosfwd>

namespace dmxc::driver {

struct CompareRequest {
  Options options;                    ///< the model and how to compile it; `output` is not used
  std::string bundle;                 ///< "" = the model is compiled to a temporary bundle
  std::string inputs;                 ///< folder, in any layout dmx-run takes
  std::optional<uint64_t> randomSeed; ///< of inputs instead
  bool perNode = false;
  /// Evaluates what the compile is at each stop instead, and compares each with the one before.
  bool stages = false;
  std::string stageTexts; ///< folder of --dump-phases whose texts take the place of the compile's; "" = none
  /// As dmx-run takes them: where neither is given, its rule judges.
  std::optional<double> rtol, atol;
  /// Floats are judged as a whole instead, by their relative RMS error: sqrt(sum (bundle - reference)^2 / sum
  /// reference^2).
  std::optional<double> maxRms;
  unsigned threads = 0; ///< of the runtime; 0 = all
};

/// Runs the interpreter and the bundle on the same inputs and prints a line an
/// output to `out`. With `perNode` the model is compiled again with the value
/// of every node as an output, and the first node that differs is named; more
/// outputs mean less fusion, so a difference that only fused code shows is
/// reported as such. With `maxRms` the error of every node is printed instead, and the outputs alone are judged.
/// With `stages` a line a stop: what the target's own evaluator (TargetBackend::evaluate) makes of its text is equal to
/// the stop before, or as near as the first stop with the target's numbers is to the reference; the first stop that is
/// not is named, and the run of the bundle is the last one.
/// Returns the exit code: 0 equal, 5 different, others after an error that was reported to `diagnostics`.
int compareWithReference(const CompareRequest &request, Diagnostics &diagnostics, std::ostream &out);

} // namespace dmxc::driver
