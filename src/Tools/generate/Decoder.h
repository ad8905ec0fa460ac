//===- Decoder.h - a bundle that gives logits of the next token -*- C++ -*-===//
//
// Private to the Tools room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Facts.h"
#include "Memory.h"

#include <functional>

namespace dmxc::tools {

/// A session over a decoder, and the tokens that it has computed so far.
class Decoder {
public:
  static Result<std::unique_ptr<Decoder>> open(const GenerateOptions &options);

  /// Computes more tokens, at least one, in as many runs as it takes. Between runs `stop` is asked whether to go on.
  /// `room` is not to be exceeded.
  Status append(std::span<const int64_t> ids, const std::function<bool()> &stop = nullptr);
  /// Logits of what follows the token that is `back` before the last one of the last run; valid until the next call.
  Result<std::span<const float>> logits(int64_t back = 0);
  /// Forgets all tokens but the first `kept`; other numbers than 0 only where forgetsSingleTokens.
  Status truncate(int64_t kept);

  int64_t length() const { return static_cast<int64_t>(history.size()); }
  /// Logits are of ids below this.
  int64_t vocabulary() const { return roles.vocabulary; }
  const DecoderFacts &facts() const { return said; }
  /// Most tokens, prompt and answer together; kNoLimit where none is known.
  int64_t room() const { return mostTokens; }
  /// Whether several tokens in one run give logits of each, and single ones can be forgotten.
  bool checksGuesses() const;
  int64_t mostInOneRun() const { return mostInRun; }
  bool recomputes() const { return memory->recomputes(); }
  ModelSession &session() { return *model; }
  /// Of all runs so far: how many, the bytes of caches that they read and wrote, their milliseconds.
  uint64_t runs() const { return runCount; }
  uint64_t cacheBytes() const { return movedBytes; }
  double milliseconds() const { return runMs; }

private:
  Decoder() = default;
  Status findLimits(int64_t context);
  Status run(std::span<const int64_t> ids);
  Status bindIds(std::span<const int64_t> ids, int64_t before);
  Status bindMask(int64_t before, int64_t count);
  /// Whether the mask is of a run's tokens alone.
  bool maskIsOfRun() const;
  Status bindPositions(int64_t before, int64_t count);
  Status bindIntegers(size_t input, const Shape &shape, std::span<const int64_t> values);

  std::unique_ptr<ModelSession> model;
  DecoderFacts said;
  Roles roles;
  std::unique_ptr<Memory> memory;
  int64_t mostTokens = kNoLimit, mostInRun = kNoLimit;
  std::vector<int64_t> history;
  int64_t lastCount = 0, lastPadding = 0; ///< tokens of the last run, and those behind them that stand for none
  std::vector<float> converted;
  uint64_t runCount = 0, movedBytes = 0;
  double runMs = 0;
};

} // namespace dmxc::tools
