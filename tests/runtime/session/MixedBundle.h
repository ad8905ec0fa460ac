//===- MixedBundle.h - a graph for the host and a card ----------*- C++ -*-===//
#pragma once

#include "../RuntimeTest.h"

namespace dmxtest {

/// Tasks in turns: 0 `scale` on the CPU, 1 `collect` on the card, 2 `gather` and 3 `add` on the CPU, 4 `collect` again,
/// 5 a copy of the card's queue, 6 `pick` on the card, 7 `scale` on the CPU over a symbolic extent.
///
///   0: doubled = 2 * x      1: total += doubled; seen = total + 2 * w     (init doubles w on the card)
///   2: moved = seen[index]  3: both = moved + x   4: total += both; result = total + 2 * w
///   5: y = result           6: p = result[at]     7: v = 3 * u
///
/// Inputs: x f32[64], index i64[64], at i64[4], u f32["n"]; outputs: y f32[64], p f32[4], v f32["n"].
TestBundle mixedBundle();

/// Work of the card before and after a branch whose result's size only the run tells:
///
///   0: doubled = 2 * x      1: total += doubled; seen = total + 2 * w on the card
///   2: r = c ? seen[at] : 2 * seen     3: v = 3 * r     4: p = seen[at] on the card
///
/// Inputs: x f32[64], at i64[4], c bool; outputs: v f32["k"], p f32[4].
TestBundle branchedBundle();

/// The same numbers, computed here.
struct MixedModel {
  std::vector<float> x = iota<float>(64), total = std::vector<float>(64), y = total, p = std::vector<float>(4);
  std::vector<int64_t> index = iota<int64_t>(64), at = {0, 21, 42, 63};

  /// A whole run, or the part of it before task `end`.
  void run(int end = 8);
};

/// A session with vectors of the model's shapes bound; `n` is the symbolic extent.
struct MixedSession {
  MixedModel model;
  std::vector<float> y = std::vector<float>(64), p = std::vector<float>(4), u, v;
  SessionPtr session;

  explicit MixedSession(const dmx_bundle *bundle, uint32_t threads = 1,
                        dmx_session_options options = DMX_SESSION_OPTIONS_INIT, int64_t n = 10);
  void bindExtent(int64_t n);
  /// What the last run left in the outputs is what the model says.
  void expectResults() const;
  /// A run on both sides, compared.
  void runAndCompare();
  /// A run that fails in task `task` of the model; gives the message.
  std::string runAndFail(int task);
};

} // namespace dmxtest
