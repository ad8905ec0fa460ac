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
/// Returns the exit code: 0 equal, 5 different, others after an error that was reported to `diagnostics`.
int compareWithReference(const CompareRequest &request, Diagnostics &diagnostics, std::ostream &out);

} // namespace dmxc::driver
