//===- Search.h - which candidates a tuner tries ----------------*- C++ -*-===//
//
// Spaces are finite and exact measures cost seconds, so nothing is modelled: all of a small space; of a large one a
// sample that is spread over it, then single steps from the best.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dmxc::driver {

/// A candidate: a position in each of the space's axes. Axes may depend on others, so not all positions exist.
using Point = std::vector<int64_t>;

/// What a trial gives: the measure, less is better; nullopt where the candidate failed or computed something else.
using Measure = std::function<std::optional<double>(size_t candidate)>;

struct SearchResult {
  size_t best = 0;
  double value = 0;
  size_t trials = 0;
};

/// Searches `space`, with at most `trials` measures: candidate `first` (the default), those of `promising` (positions
/// in rising order, may be empty) or some of them, and steps from the best. nullopt where none could be measured.
/// Deterministic.
std::optional<SearchResult> searchSpace(const std::vector<Point> &space, size_t first,
                                        const std::vector<size_t> &promising, size_t trials, const Measure &measure);

} // namespace dmxc::driver
