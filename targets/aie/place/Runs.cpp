//===- Runs.cpp - tiles of b that are zero and stay away ------------------===//
#include "Runs.h"

#include "Cost.h"

#include "schemas/aie/Kernels.h"

#include "llvm/Support/MathExtras.h"

using namespace dmxc;
using namespace dmxc::aie;
using llvm::ArrayRef;
using llvm::SmallVector;

/// Of a block of columns as few as there may be: the nearest become one.
static Runs joined(const Runs &runs, size_t most) {
  Runs fewer(runs);
  while (fewer.size() > most) {
    auto gap = [&](size_t at) { return fewer[at + 1].first - fewer[at].second; };
    size_t least = 0;
    for (size_t at = 1; at + 1 < fewer.size(); ++at)
      if (gap(at) < gap(least))
        least = at;
    fewer[least].second = fewer[least + 1].second;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(least) + 1);
  }
  return fewer;
}

/// The runs with so many pairs, of all that there are: some that are zero go along, nearest first.
static Runs widened(const Runs &runs, int64_t count, int64_t all) {
  Runs wider(runs);
  if (wider.empty())
    wider.emplace_back(0, 0);
  for (int64_t missing = count - kernels::lengthOf(wider); missing > 0; missing = count - kernels::lengthOf(wider)) {
    int64_t end = wider.size() > 1 ? wider[1].first : all, begin = wider[0].first;
    int64_t behind = std::min(missing, end - wider[0].second), before = std::min(missing - behind, begin);
    wider[0] = {begin - before, wider[0].second + behind};
    if (wider.size() > 1 && wider[0].second == wider[1].first) {
      wider[0].second = wider[1].second;
      wider.erase(wider.begin() + 1);
    }
  }
  return kernels::lengthOf(wider) ? wider : Runs();
}

/// As many blocks beside each other take the same number of pairs.
static void even(std::vector<Runs> &all, int64_t together, int64_t pairs) {
  for (size_t first = 0; first < all.size(); first += static_cast<size_t>(together)) {
    const size_t end = std::min(all.size(), first + static_cast<size_t>(together));
    int64_t most = 0;
    for (size_t at = first; at < end; ++at)
      most = std::max(most, kernels::lengthOf(all[at]));
    for (size_t at = first; at < end; ++at)
      all[at] = widened(all[at], most, pairs);
  }
}

int64_t Mapping::pairsOf(int64_t columnBlock) const {
  return runs.empty() ? paddedK() / (2 * numbers.k) : kernels::lengthOf(runs[static_cast<size_t>(columnBlock)]);
}

int64_t Mapping::depthBefore(int64_t columnBlock) const {
  int64_t pairs = 0;
  for (int64_t block = 0; block < columnBlock; ++block)
    pairs += pairsOf(block);
  return pairs * 2 * numbers.k;
}

SmallVector<Stretch> aie::stretchesOf(const Mapping &p) {
  SmallVector<Stretch> all;
  for (int64_t block = 0; block < std::max<int64_t>(1, static_cast<int64_t>(p.runs.size())); ++block)
    if (int64_t pairs = p.pairsOf(block); !all.empty() && all.back().pairs == pairs)
      ++all.back().blocks;
    else
      all.push_back({1, pairs});
  return all;
}

/// Of a core's program at most: what it does for a result, so often as it takes for stretches and slots of rings.
static int64_t programBytes(const hw::Machine &machine, const Mapping &p, ArrayRef<Stretch> stretches) {
  constexpr int64_t kOfSums = 32, kOfRow = 14, kOfResidual = 76, kOfCall = 6, kOfNarrow = 12;
  int64_t each = kOfSums + kOfRow * (p.has(Part::Bias) + p.has(Part::Scales)) + kOfResidual * p.has(Part::Residual) +
                 kOfCall * (p.relu + p.floats + 2 * !p.steps.empty()) + kOfNarrow * p.narrows();
  int64_t bodies = 0, blocks = 0;
  for (const Stretch &one : stretches) {
    bodies += one.blocks % 2 + (one.blocks > 1 ? 2 : 0);
    blocks += one.blocks;
  }
  bodies *= 1 + blocks % 2;
  const bool hasSteps = p.narrows() || !p.steps.empty() || p.has(Part::Residual);
  const int64_t kernels = (hasSteps ? 9 : 4) << 10;
  return bodies * each * machine.instructionBytes + kernels;
}

std::optional<std::string> aie::refusesRuns(const hw::Machine &machine, const Mapping &p) {
  constexpr size_t kMostStretches = 24; // each has a word of a core's parameters
  const int64_t pairs = p.paddedK() / (2 * p.numbers.k), blocks = p.paddedN() / p.blockN();
  if (p.runs.empty())
    return std::nullopt;
  if (p.image || p.matrices > 1 || p.herd.stays || !p.packs(Part::B) || (p.open && !p.pairs().isStatic()))
    return "tiles of zeros are left out of one packed matrix whose rows of a do not stay";
  if (static_cast<int64_t>(p.runs.size()) != blocks)
    return "its columns are " + std::to_string(blocks) + " blocks, there are runs of " + std::to_string(p.runs.size());
  for (const Runs &runs : p.runs) {
    if (const dmir::Run *run = kernels::firstOutOfOrder(runs, pairs))
      return "runs of pairs of tiles ascend, apart, to " + std::to_string(pairs) + ", and one is from " +
             std::to_string(run->first) + " to " + std::to_string(run->second);
    if (static_cast<int64_t>(runs.size()) > machine.queueDepth)
      return "a block of columns has " + std::to_string(runs.size()) + " runs, the queue of a shim's channel holds " +
             std::to_string(machine.queueDepth);
  }
  if (p.runs[0].empty()) // for which cores wait when they have done all
    return "the first block of columns has no pair of tiles, and needs one";
  SmallVector<Stretch> stretches = stretchesOf(p);
  int64_t bytes = stretches.size() > 1 ? programBytes(machine, p, stretches) : 0;
  if (int64_t has = machine.tile(hw::TileKind::Core).programBytes; bytes > has)
    return "blocks of columns have so many numbers of pairs of tiles that a core's program takes " +
           std::to_string(bytes) + " bytes, there are " + std::to_string(has);
  if (stretches.size() > kMostStretches)
    return "blocks of columns have " + std::to_string(stretches.size()) +
           " numbers of pairs of tiles, cores count by " + std::to_string(kMostStretches);
  return std::nullopt;
}

void aie::leaveOut(const hw::Machine &machine, Mapping &p) {
  p.runs.clear();
  if (!p.held || p.image || p.matrices > 1 || p.herd.stays || !p.packs(Part::B))
    return;
  const int64_t pairs = p.paddedK() / (2 * p.numbers.k), wide = p.blockN();
  std::vector<Runs> held;
  int64_t all = 0;
  for (int64_t column = 0; column < p.paddedN(); column += wide) {
    held.push_back(p.held->rowRuns({column, column + wide}, 2 * p.numbers.k));
    all += kernels::lengthOf(held.back());
  }
  if (all == pairs * static_cast<int64_t>(held.size()))
    return;
  if (held[0].empty())
    held[0].emplace_back(0, 1);
  int64_t least = clocksOf(machine, p);
  Mapping tried = p;
  for (size_t most : {4, 2, 1})
    for (int64_t together = 1; together < 2 * static_cast<int64_t>(held.size()); together *= 2) {
      tried.runs.clear();
      for (const Runs &runs : held)
        tried.runs.push_back(joined(runs, most));
      even(tried.runs, together, pairs);
      if (refusesRuns(machine, tried))
        continue;
      if (int64_t clocks = clocksOf(machine, tried); clocks < least)
        p.runs = tried.runs, least = clocks;
      break; // more together cost more
    }
}

Dim aie::issuedMacs(const Mapping &p) {
  if (p.runs.empty())
    return p.open ? p.open->macs : Dim(p.macs);
  const int64_t pair = 2 * p.numbers.k;
  int64_t kept = 0; // elements of b
  for (auto [block, runs] : llvm::enumerate(p.runs)) {
    int64_t column = static_cast<int64_t>(block) * p.blockN(), wide = std::min(p.blockN(), p.n - column);
    for (auto [from, to] : runs)
      kept += std::max<int64_t>(0, wide) * std::max<int64_t>(0, std::min(p.k, to * pair) - from * pair);
  }
  return (p.open ? p.open->m : Dim(p.m)) * kept;
}

double aie::shareLeftOut(const Mapping &p) {
  int64_t blocks = p.paddedN() / p.blockN(), all = p.paddedK() * blocks;
  return p.runs.empty() || !all ? 0 : 1 - static_cast<double>(p.depthBefore(blocks)) / static_cast<double>(all);
}
