//===- Case.h - one ONNX test case ------------------------------*- C++ -*-===//
#pragma once

#include "Transform.h"

#include <string>
#include <vector>

namespace dmxc::conformance {

/// A folder with model.onnx and its data sets (test_data_set_*, or the zoo's
/// set*).
struct Case {
  std::string name; ///< the folder's name
  std::string folder;
  std::vector<std::string> sets;
};

enum class Outcome { Pass, Refused, Wrong, Crash };
const char *outcomeName(Outcome outcome);

struct Verdict {
  Outcome outcome = Outcome::Crash;
  std::string node;   ///< Refused: the node that the refusal names
  std::string reason; ///< empty for Pass
};

/// What becomes of dims that the model leaves open.
enum class OpenDims {
  Fixed, ///< where the compiler refuses them, each data set's shapes fix them: a bundle a set
  Open   ///< they stay open: one bundle for all sets, and a refusal is a refusal
};

struct CheckOptions {
  double rtol = 1e-3, atol = 1e-7;
  bool perturb = false;                  ///< negative control: one element of each expected
                                         ///< output is changed before the comparison
  Transform transform = Transform::None; ///< Constant looks at data set 0 only
  OpenDims dims = OpenDims::Fixed;
  std::string scratch;             ///< folder for bundles
  bool guard = false;              ///< run every data set under guard memory as well (dmx.h, cpu.guard), in all ways
  std::vector<std::string> levels; ///< what the CPU target compiles for, and runs guarded; empty: its default, the best
  std::string target;              ///< another target, on which every op must run; empty: the CPU
};

/// All cases below `folder`, sorted by name.
std::vector<Case> findCases(const std::string &folder);

/// Compiles, runs and compares one case in this process. Never throws.
Verdict checkCase(const Case &testCase, const CheckOptions &options);

/// The op the case is about: the op type of a model with one node (constants
/// aside), else "(several ops)".
std::string opOf(const Case &testCase);

} // namespace dmxc::conformance
