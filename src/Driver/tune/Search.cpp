//===- Search.cpp - which candidates a tuner tries ------------------------===//
#include "Search.h"

#include <algorithm>
#include <numeric>

namespace dmxc::driver {

namespace {

class Search {
public:
  Search(const std::vector<Point> &space, size_t trials, const Measure &measure)
      : space(space), measure(measure), left(std::min(trials, space.size())), tried(space.size(), false) {}

  bool hasMore() const { return left > 0; }

  void attempt(size_t candidate) {
    if (tried[candidate] || !left)
      return;
    tried[candidate] = true;
    --left;
    ++result.trials;
    std::optional<double> value = measure(candidate);
    if (value && (!found || *value < result.value || (*value == result.value && candidate < result.best))) {
      found = true;
      result.best = candidate;
      result.value = *value;
    }
  }

  /// Some of these candidates, with equal distances, the ends among them; all where there are no more than `count`.
  void spread(const std::vector<size_t> &among, size_t count) {
    count = std::min(count, among.size());
    for (size_t i = 0; i < count && hasMore(); ++i)
      attempt(among[count == 1 ? among.size() / 2 : i * (among.size() - 1) / (count - 1)]);
  }

  /// Those nearest to the best that were not tried, until no step improves it.
  void climb() {
    while (hasMore()) {
      std::vector<size_t> order(space.size());
      std::iota(order.begin(), order.end(), 0);
      const Point &best = space[result.best];
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return distance(space[a], best) < distance(space[b], best); });
      auto next = std::find_if(order.begin(), order.end(), [&](size_t i) { return !tried[i]; });
      if (next == order.end())
        return;
      attempt(*next);
    }
  }

  std::optional<SearchResult> take() const { return found ? std::optional(result) : std::nullopt; }

private:
  static int64_t distance(const Point &a, const Point &b) {
    int64_t sum = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      sum += std::abs(a[i] - b[i]);
    return sum + static_cast<int64_t>(std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
  }

  const std::vector<Point> &space;
  const Measure &measure;
  size_t left;
  std::vector<bool> tried;
  bool found = false;
  SearchResult result;
};

} // namespace

std::optional<SearchResult> searchSpace(const std::vector<Point> &space, size_t first,
                                        const std::vector<size_t> &promising, size_t trials, const Measure &measure) {
  if (space.empty() || trials == 0)
    return std::nullopt;
  Search search(space, trials, measure);
  search.attempt(first);
  std::vector<size_t> all(space.size());
  std::iota(all.begin(), all.end(), 0);
  if (trials < space.size())
    search.spread(promising, trials - trials / 4);
  search.spread(all, trials >= space.size() ? space.size() : promising.empty() ? trials / 2 : 0);
  search.climb();
  return search.take();
}

} // namespace dmxc::driver
