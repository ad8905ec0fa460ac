//===- Sampler.h - the next token from logits -------------------*- C++ -*-===//
//
// Private to the Tools room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Tools/Generate.h"

#include <random>
#include <span>
#include <vector>

namespace dmxc::tools {

/// The place of the greatest; of equal ones the first. Nothing where no value is a number.
std::optional<int64_t> greatest(std::span<const float> values);

/// In the order of transformers: the penalty, the temperature, the best K, the best share P.
class Sampler {
public:
  Sampler(const SamplingOptions &options, uint64_t seed) : options(options), random(seed) {}
  /// `seen`: tokens of prompt and answer so far. Nothing where no logit is a number.
  std::optional<int64_t> next(std::span<const float> logits, std::span<const int64_t> seen);

private:
  std::optional<int64_t> draw(std::span<const float> logits);

  const SamplingOptions &options;
  std::mt19937_64 random;
  std::vector<float> changed;
  std::vector<int64_t> order;
  std::vector<double> shares;
};

} // namespace dmxc::tools
