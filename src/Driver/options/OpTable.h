//===- OpTable.h - DMIR ops x {verifier, interpreter, targets} --*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Support/Result.h"

namespace dmxc::driver {

/// What is known of one op. The columns are asked of the code, with a sample of
/// the op (OpSamples.mlir): the verifier must accept the sample, the
/// interpreter must know the op, and each target must not refuse the sample.
struct OpRow {
  std::string name;
  bool verifier = false, interpreter = false;
  bool control = false;                             ///< names graphs, which the runtime runs: no target is asked
  std::vector<std::optional<std::string>> refusals; ///< a target each; nullopt = computed
};

struct OpTable {
  std::vector<std::string> targets;
  std::vector<OpRow> rows; ///< every computational op of DMIR, by name
};

/// Asks the targets of `options` (all of this build without -t).
Result<OpTable> makeOpTable(const Options &options);
std::string toMarkdown(const OpTable &table);
std::string toJson(const OpTable &table);

} // namespace dmxc::driver
