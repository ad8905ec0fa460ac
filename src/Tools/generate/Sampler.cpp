//===- Sampler.cpp - the next token from logits ---------------------------===//
#include "Sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dmxc::tools {

std::optional<int64_t> greatest(std::span<const float> values) {
  std::optional<size_t> best;
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isnan(values[i]) && (!best || values[i] > values[*best]))
      best = i;
  return best ? std::optional(static_cast<int64_t>(*best)) : std::nullopt;
}

std::optional<int64_t> Sampler::next(std::span<const float> logits, std::span<const int64_t> seen) {
  if (options.repetitionPenalty != 1) {
    changed.assign(logits.begin(), logits.end());
    const float penalty = static_cast<float>(options.repetitionPenalty);
    for (int64_t id : seen) { // each once: from the logits as they came
      const size_t i = static_cast<size_t>(id);
      if (i < logits.size())
        changed[i] = logits[i] > 0 ? logits[i] / penalty : logits[i] * penalty;
    }
    logits = changed;
  }
  return options.temperature > 0 ? draw(logits) : greatest(logits);
}

std::optional<int64_t> Sampler::draw(std::span<const float> logits) {
  order.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    if (!std::isnan(logits[i]))
      order.push_back(static_cast<int64_t>(i));
  if (order.empty())
    return std::nullopt;
  auto value = [&](int64_t id) { return logits[static_cast<size_t>(id)]; };
  auto better = [&](int64_t a, int64_t b) { return value(a) != value(b) ? value(a) > value(b) : a < b; };
  size_t kept = order.size();
  if (options.topK > 0)
    kept = std::min(kept, static_cast<size_t>(options.topK));
  if (kept < order.size() || options.topP < 1)
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), better);
  order.resize(kept);
  const double top = value(*std::min_element(order.begin(), order.end(), better));
  shares.clear();
  for (int64_t id : order)
    shares.push_back(std::isinf(top) ? value(id) == top : std::exp((value(id) - top) / options.temperature));
  double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (options.topP < 1) { // they are sorted
    double sum = 0;
    size_t count = 0;
    while (count < shares.size() && sum < options.topP * total)
      sum += shares[count++];
    shares.resize(std::max<size_t>(count, 1));
    total = std::accumulate(shares.begin(), shares.end(), 0.0);
  }
  // 53 bits, which std::uniform_real_distribution does not promise to be the same everywhere.
  double at = static_cast<double>(random() >> 11) * 0x1p-53 * total;
  for (size_t i = 0; i < shares.size(); ++i) {
    at -= shares[i];
    if (at < 0)
      return order[i];
  }
  return order[shares.size() - 1];
}

} // namespace dmxc::tools
