//===- Launch.cpp - a kernel's blocks, one after the other --------------------===//
//
// Blocks come in an order that the seed says, and so do the warps of kernels whose threads do not wait for each other;
// Block has those that do.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"
#include "clock/Recorder.h"
#include "cluster/Cluster.h"

#include <algorithm>
#include <numeric>

namespace dmxrt::cuda {
namespace {

class Runner {
public:
  explicit Runner(const Launch &launch) : launch(launch), state(launch.seed) {}
  LaunchOutcome run();

private:
  void shuffle(std::vector<uint32_t> &order);
  bool runWarps(uint32_t block, std::vector<uint32_t> &order);

  const Launch &launch;
  uint64_t state;
  uint64_t idle = 0;               ///< instructions since a warp ended
  std::unique_ptr<WarpRun> single; ///< plays all warps, one after the other
  std::unique_ptr<Block> talking;
  std::unique_ptr<Cluster> cluster;
  LaunchOutcome outcome;
};

void Runner::shuffle(std::vector<uint32_t> &order) {
  for (size_t i = order.size(); launch.seed && i > 1; --i)
    std::swap(order[i - 1], order[nextRandom(state) % i]);
}

bool Runner::runWarps(uint32_t block, std::vector<uint32_t> &order) {
  shuffle(order);
  for (uint32_t number : order) {
    single->start(block, number);
    if (single->run(UINT64_MAX) != WarpRun::Turn::Ended) {
      outcome.fault = std::move(single->warp.fault);
      outcome.line = single->faultLine;
      outcome.thread = single->warp.firstThread + single->warp.faultLane;
      return false;
    }
    outcome.steps += single->steps;
  }
  return true;
}

LaunchOutcome Runner::run() {
  std::vector<uint32_t> blocks = Recorder::firstBlocks(launch), warps((launch.threads + kLanes - 1) / kLanes);
  std::iota(warps.begin(), warps.end(), 0u);
  if (launch.program->cluster > 1)
    cluster = std::make_unique<Cluster>(launch, idle);
  else if (launch.program->talks)
    talking = std::make_unique<Block>(launch, idle);
  else
    single = std::make_unique<WarpRun>(launch, nullptr, idle);
  launch.memory->byBlock = launch.byBlock;
  shuffle(blocks);
  for (uint32_t block : blocks) {
    if (launch.recorder)
      for (uint32_t rank = 0; rank < launch.program->cluster; ++rank)
        launch.recorder->beginBlock(block + rank);
    if (!(cluster ? cluster->run(block, outcome) : talking ? talking->run(block, outcome) : runWarps(block, warps)))
      return std::move(outcome);
  }
  std::string problem;
  if (blocks.size() * launch.program->cluster == launch.blocks && !launch.memory->findUnwritten(problem)) {
    outcome.fault = std::move(problem);
    outcome.line = launch.program->line;
  }
  return std::move(outcome);
}

} // namespace

LaunchOutcome runLaunch(const Launch &launch) { return Runner(launch).run(); }

} // namespace dmxrt::cuda
