//===- Cost.cpp - what a mapping costs ------------------------------------===//
#include "Cost.h"

#include "Stay.h"

using namespace dmxc;
using namespace dmxc::aie;

namespace {

constexpr int64_t kBdClocks = 4;            ///< between two BDs of a channel
constexpr int64_t kTileInstructions = 12;   ///< of a core, about a call: locks, addresses, sizes
constexpr int64_t kHops = 6;                ///< switches from a shim to a core
constexpr int64_t kTaskWords = 12 + 12 + 6; ///< of the control stream: a BD, its address, its start
constexpr int64_t kWaitWords = 4;           ///< for a token
constexpr int64_t kParameterClocks = 6;     ///< a word of a core's parameters is a write
constexpr int64_t kLeastParameters = 4;

class Cost {
public:
  /// `block`: of columns, where these differ.
  Cost(const hw::Machine &machine, const Mapping &mapping, int64_t block = 0)
      : machine(machine), p(mapping), n(mapping.numbers), a(n.m * n.k * n.bytes / 4), b(n.k * n.n * n.bytes / 4),
        c(n.m * n.n), y(c * p.resultBytes() / 4), steps(2 * mapping.pairsOf(block)), outs(p.herd.outs),
        tilesOfB(p.tilesOfB() - mapping.paddedK() / n.k + steps) {
    for (const Runs &runs : p.runs)
      mostRuns = std::max<int64_t>(mostRuns, static_cast<int64_t>(runs.size()));
    if (p.herd.stays)
      stay.emplace(machine, mapping);
  }

  int64_t first() const {
    int64_t late = std::max<int64_t>(0, control() + start() - fill()); // cores, behind their first tiles
    return late + alone();
  }
  int64_t next() const {
    return std::max({core(), streams() + stalls(), drain() + stalls(), ddr(), control(), alone() / flights()});
  }
  /// What blocks take longer than others that wait for rows of a: their memory is free when cores have multiplied the
  /// last ones, while results leave.
  int64_t refills() const {
    int64_t times = stay && stay->turns == 1 ? p.blocks() / stay->uses - 1 : 0;
    return times > 0 ? times * std::max<int64_t>(0, load() + firstOfPanel() + std::max(products(), streams()) - next())
                     : 0;
  }

private:
  int64_t alone() const { return fill() + std::max(core(), streams()) + y + drain(); }
  /// Of a shim that brings rows of a that stay: its words by the busier channel, and where it stops for a run of them.
  int64_t load() const {
    return Stay::partsOf(p.herd, 0) * stay->slot * n.bytes / 4 +
           p.herd.parts() * (p.image ? stay->planes : n.m) * machine.shimRunClocks;
  }
  /// What of a panel of b has to be there before cores get the first tile of it.
  int64_t firstOfPanel() const { return p.herd.panels > 1 ? tilesOfB * b / stay->chunks : 0; }
  int64_t call(std::string_view kernel, std::array<int64_t, hw::kScalars> scalars) const {
    return hw::clocksOf(machine, {*hw::kernelNamed(kernel), {}, scalars}) + kTileInstructions;
  }
  int64_t products() const { return steps * call(n.matmul, {n.m, n.k, n.n}); }
  /// Of a core for a block: its multiplications and what stands before and behind them.
  int64_t core() const {
    int64_t all = call(n.zero, {c}) + products();
    if (p.has(Part::Bias))
      all += call(n.bias, {n.m, n.n});
    if (p.has(Part::Residual) && !p.addsBytes())
      all += call("residual_f32", {n.m, n.n});
    if (p.relu)
      all += call(n.relu, {c});
    if (p.has(Part::Scales))
      all += call("scale_i8_i32", {n.m, n.n});
    else if (p.floats)
      all += call("float_i32", {c});
    if (p.addsBytes())
      return all + call("add_narrow_f32_i8", {n.m, n.n});
    if (p.narrows())
      return all + call(p.narrow.kernel, {c});
    return p.steps.empty() ? all : all + call(n.steps, {c});
  }
  /// Of a bias and scales that are not packed, for a panel.
  int64_t runsOfRows() const {
    int64_t rows = 0;
    for (Part row : {Part::Bias, Part::Scales})
      rows += p.has(row) && !p.packs(row);
    return rows * (p.biasWords() / p.biasRun());
  }
  /// Of a shim that brings operands, and of a core that takes them: the busier channel, and what shims stop for at each
  /// run of words.
  int64_t streams() const {
    int64_t rows = p.has(Part::Residual) * p.residualTiles() * n.m + p.herd.panels * runsOfRows();
    int64_t ofB = tilesOfB * (b + kBdClocks), stops = rows * machine.shimRunClocks;
    if (stay) {
      int64_t ofA = stay->turns > 1 ? load() / stay->uses : 0; // while others are used
      return std::max({steps * (a + kBdClocks), ofB, ofA}) + stops;
    }
    bool joins = p.image && p.image->step() == n.k; // a window's tile with the next one's
    stops += steps * p.herd.parts() * (joins ? 1 : n.m) * machine.shimRunClocks;
    return std::max(steps * p.herd.parts() * (a + kBdClocks), ofB) + stops;
  }
  int64_t drain() const { return (p.herd.rows + outs - 1) / outs * (y + kBdClocks); } // of a column's busier channel
  /// Words of a block that shims read, and that they write.
  int64_t read() const {
    int64_t ofA = p.herd.rows * steps * a;
    if (stay)
      ofA = p.herd.bringing() * p.herd.parts() * (stay->slot * n.bytes / 4) / stay->uses;
    return ofA + p.herd.columns * p.herd.panels * tilesOfB * b;
  }
  int64_t written() const { return p.herd.columns * p.herd.rows * y; }
  int64_t ddr() const { return 4 * (read() + written()) / machine.ddrBytesPerClock; }
  /// While results leave, all channels of shims together may ask for more than DDR has: by so much each is late.
  int64_t stalls() const {
    int64_t most = machine.ddrBytesPerClock / 4,
            asked = read() / std::max<int64_t>(1, streams()) + p.herd.columns * outs;
    return asked > most ? written() / (p.herd.columns * outs) * (asked - most) / most : 0;
  }
  /// Tasks for a block of the channels that bring rows of a and columns of b.
  int64_t tasksOfA() const {
    return !p.runs.empty() ? mostRuns
           : p.image       ? static_cast<int64_t>(tasksOf(*p.image, n.k).size()) + p.hasTileOfZeros()
                           : 1;
  }
  int64_t tasksOfB() const { return 1 + p.has(Part::Bias) + p.has(Part::Residual) + p.has(Part::Scales); }
  /// Blocks that are begun before the first has to be done, as BDs allow, and queues where they are not waited for.
  int64_t flights() const {
    int64_t ofA = stay ? 1 : tasksOfA(), ofB = tasksOfB(), bds = machine.tile(hw::TileKind::Shim).bds;
    int64_t all = p.herd.panels > 1 ? 2 * (ofB + 1) + outs : ofA + ofB + outs;
    int64_t ofQueue = machine.queueDepth / std::max(ofA, ofB);
    return std::max<int64_t>(1, std::min(bds / all, p.open ? ofQueue : machine.queueDepth));
  }
  /// Of the controller, which starts a block's tasks and waits for them.
  int64_t control() const {
    int64_t ofA = stay ? p.herd.panels : tasksOfA(), uses = stay ? stay->uses : 1;
    int64_t tasks = p.herd.bringing() * ofA / uses + p.herd.columns * (p.herd.panels * tasksOfB() + outs);
    return machine.controlClocks * (tasks * kTaskWords + p.herd.columns * outs * kWaitWords);
  }
  /// Of cores' parameters, which are written behind the first tasks.
  int64_t start() const {
    bool hasSteps = !p.steps.empty() || p.narrows() || p.has(Part::Residual);
    int64_t words = kLeastParameters + (hasSteps ? hw::kMostSteps * hw::kStepWords : 0);
    return machine.controlClocks * p.herd.rows * p.herd.columns * (words + 1) * kParameterClocks;
  }
  /// Until all cores have their first tiles.
  int64_t fill() const {
    int64_t first = std::max(p.herd.parts() * a + a, 2 * b);
    if (stay)
      first = std::max(load() + firstOfPanel() + a, 2 * b);
    return control() + first + kHops * machine.hopClocks;
  }

  const hw::Machine &machine;
  const Mapping &p;
  const Numbers &n;
  int64_t a, b, c, y; ///< words of a tile; of sums, and of results
  int64_t steps;      ///< tiles along k
  int64_t outs;       ///< channels of a column's results
  int64_t mostRuns = 0;
  int64_t tilesOfB; ///< of a column and block, with those that a bias, scales and a residual are
  std::optional<Stay> stay;
};

} // namespace

int64_t aie::clocksOf(const hw::Machine &machine, const Mapping &mapping) {
  const Cost cost(machine, mapping);
  if (mapping.runs.empty())
    return cost.first() + (mapping.blocks() - 1) * cost.next() + cost.refills();
  const auto columns = static_cast<int64_t>(mapping.runs.size());
  int64_t band = 0; // of the blocks beside each other
  for (int64_t block = 0; block < columns; ++block)
    band += Cost(machine, mapping, block).next();
  return cost.first() - cost.next() + mapping.blocks() / columns * band;
}
