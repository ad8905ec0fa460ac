//===- TeamChoice.cpp - how many threads share a row --------------------------===//

#include "Hopper.h"

#include "targets/common/roots/Rows.h"

#include "schemas/cuda/Limits.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

constexpr int64_t kWarp = 32, kMostThreads = 1024, kEach = 4, kFewest = 64, kUnknown = 256;

int64_t powerOf(int64_t size) {
  return static_cast<int64_t>(llvm::PowerOf2Ceil(static_cast<uint64_t>(std::max<int64_t>(size, 1))));
}

/// Numbers of blocks, threads and columns that a team may have.
std::set<int64_t> powers(int64_t from, int64_t most) {
  std::set<int64_t> all;
  for (int64_t each = from; each <= most; each *= 2)
    all.insert(each);
  return all;
}

/// Clocks of a kernel of such teams, for choosing one.
double clocksOf(const hw::Machine &machine, const RowShape &shape, const Team &team) {
  // A thread's element takes so many instructions of a pass; four loads are under way at a time.
  constexpr double instructions = 8, schedulers = 4, together = 4;
  const auto &clock = machine.clock;
  double elements = std::ceil(static_cast<double>(shape.size) / static_cast<double>(team.members())),
         issue = elements * static_cast<double>(team.threads) / kWarp * instructions * shape.passes / schedulers,
         wait = std::ceil(elements / together) * clock.memoryLatency;
  // Lines of neighbours that are no whole ones ask for as many requests.
  double line = std::min<double>(kWarp, team.columns > 1 ? static_cast<double>(team.columns) : kWarp),
         requests = elements * static_cast<double>(team.threads) / line;
  double items = std::ceil(static_cast<double>(shape.rows) / static_cast<double>(team.columns)),
         blocks = items * static_cast<double>(team.blocks),
         resident = std::max(1.0, std::floor(clock.threads / static_cast<double>(team.threads))),
         each = std::min(resident, std::ceil(blocks / machine.multiprocessors)),
         waves = std::ceil(blocks / (machine.multiprocessors * each));
  double steps = team.columns > 1 ? std::log2(static_cast<double>(team.here())) : 2,
         meeting =
             shape.passes / 2 *
             (steps * (clock.sharedLatency + clock.barrierLatency) + (team.blocks > 1 ? 2 * clock.clusterLatency : 0));
  double read = each * elements * static_cast<double>(team.threads * shape.bytes) / clock.l2BytesPerClock;
  return waves * (std::max({each * issue, each * requests, wait, read}) + meeting);
}

/// The cheapest of some teams; of equal ones the first.
void takeCheapest(const hw::Machine &machine, const RowShape &shape, ArrayRef<Team> teams, Team &best) {
  double least = std::numeric_limits<double>::infinity();
  for (const Team &team : teams)
    if (double clocks = clocksOf(machine, shape, team); clocks < 0.95 * least) {
      least = clocks;
      best = team;
    }
}

} // namespace

/// Of rows whose elements lie beside each other: four elements a thread, in whole warps, of as many blocks as pay. Of a
/// size that a run tells the threads do not depend on what is expected of it.
static Team alongOf(const hw::Machine &machine, const RowShape &shape) {
  SmallVector<Team> teams;
  for (int64_t blocks : powers(1, machine.mostCluster)) {
    int64_t wanted = shape.count.isStatic() ? llvm::divideCeil(shape.size, kEach * blocks)
                     : blocks > 1           ? kMostThreads
                                            : kUnknown;
    int64_t threads = std::clamp(powerOf(wanted), kWarp, std::min<int64_t>(kMostThreads, machine.mostThreads));
    teams.push_back({threads, blocks, 1});
  }
  Team best;
  takeCheapest(machine, shape, teams, best);
  return best;
}

/// Of rows that lie across each other: neighbouring threads have neighbouring rows, at least a sector of 32 bytes.
static Team acrossOf(const hw::Machine &machine, const RowShape &shape) {
  constexpr int64_t sector = 32, mostColumns = 32;
  SmallVector<Team> teams{{1, 1, 1}};
  int64_t beside = powerOf(shape.beside);
  for (int64_t columns : powers(std::min(std::max<int64_t>(sector / shape.bytes, 8), beside), mostColumns))
    for (int64_t threads : powers(kWarp, machine.mostThreads))
      for (int64_t blocks : powers(1, machine.mostCluster))
        if (columns <= beside && threads / columns * blocks * kEach <= powerOf(shape.size) && threads > columns &&
            threads >= blocks * columns)
          teams.push_back({threads, blocks, columns});
  Team best;
  takeCheapest(machine, shape, teams, best);
  return best;
}

Team Hopper::teamOf(const RowShape &shape) const {
  Team team;
  if (!obeyed && shape.size >= kFewest)
    team = shape.beside > 1 ? acrossOf(*machine, shape) : alongOf(*machine, shape);
  if (obeyed || team.shares())
    team = readTile(given, team);
  // Each column has a thread at least, and so has what each block is told of it.
  team.columns = std::min(team.columns, team.threads);
  team.blocks = std::min(team.blocks, team.here());
  return team;
}

/// What is free, and what is decided of it.
static FreeTile<Team> freeTeam(const hw::Machine &machine, const Team &chosen, DictionaryAttr decided,
                               MLIRContext *context) {
  FreeTile<Team> free("", context, decided);
  free.add(&Team::threads, powers(kWarp, std::min<int64_t>(kMostThreads, machine.mostThreads)), chosen.threads);
  int64_t threads = free.decided()[&Team::threads].value_or(chosen.threads);
  if (chosen.columns > 1)
    free.add(&Team::columns, powers(2, std::min(threads, kWarp)), chosen.columns);
  int64_t columns = free.decided()[&Team::columns].value_or(chosen.columns);
  free.add(&Team::blocks, powers(1, std::min<int64_t>(machine.mostCluster, threads / columns)), chosen.blocks);
  return free;
}

std::vector<Decision> dmxc::cuda::teamDecisions(const hw::Machine &machine, const Team &chosen, DictionaryAttr decided,
                                                MLIRContext *context) {
  return freeTeam(machine, chosen, decided, context).take();
}

std::string dmxc::cuda::problemOfTeam(const hw::Machine &machine, Attribute written, MLIRContext *context) {
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  Team whole = readTile(own, Team{kWarp, 1, 1}), usual{kWarp, 1, whole.columns > 1 ? int64_t{2} : int64_t{1}};
  return wrongField(written, freeTeam(machine, usual, own, context).take(), writeTile(whole, context), kTeam.str());
}

/// As many as 16 bytes have, where enough threads are left for all multiprocessors.
int64_t Hopper::neighboursOf(int64_t size, unsigned bits) const {
  constexpr int64_t wideBits = 128, threadsOfEach = 512;
  int64_t most = wideBits / std::max(bits, 8u);
  return machine && size >= most * threadsOfEach * machine->multiprocessors ? most : 1;
}
