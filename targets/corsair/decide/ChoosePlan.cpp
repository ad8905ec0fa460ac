//===- ChoosePlan.cpp - spreading a product over slices and cores ---------===//

#include "Decide.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace dmxc::corsair;

/// num_imc and groups: the fewest array clocks a tile win; of equals the widest reduction, which adds least often.
static void chooseCores(const hw::Machine &machine, MatmulPlan &plan, PlanChoice choice) {
  const int64_t chunks = std::min(plan.kChunks, plan.segment);
  const int64_t cores = machine.cores, // a reduction is over 2^ppr_mode of them
      widest = std::min<int64_t>(llvm::bit_floor(uint64_t(cores)), int64_t(1) << machine.maxPprMode);
  const int64_t tiles = (plan.tilesN() + plan.columnSlices() - 1) / plan.columnSlices();
  double best = 0;
  for (int64_t imc = std::min(chunks, widest); imc >= 1; --imc) {
    if (choice.imc.value_or(imc) != imc)
      continue;
    int64_t groups = std::min({cores / imc, int64_t(4), tiles}); // OB holds four tiles of sums
    int64_t rounds = (chunks + imc - 1) / imc;
    double clocks = static_cast<double>(rounds) / static_cast<double>(groups);
    if (best != 0 && clocks >= best)
      continue;
    best = clocks;
    plan.imc = static_cast<int>(imc);
    plan.groups = static_cast<int>(groups);
    plan.ppr = static_cast<int>(llvm::Log2_64_Ceil(static_cast<uint64_t>(imc)));
  }
  if (plan.kChunks > plan.segment) // a product reads whole groups of chunks
    plan.segment = plan.segment / plan.imc * plan.imc;
}

static int64_t bandsOf(int64_t rows) { return (rows + 63) / 64; }

static MatmulPlan choosePlan(const hw::Machine &machine, MatmulPlan base, int64_t batch, PlanChoice choice) {
  MatmulPlan best;
  for (Sharing sharing : {Sharing::Columns, Sharing::Rows, Sharing::Batch}) {
    if (choice.sharing.value_or(sharing) != sharing)
      continue;
    MatmulPlan plan = base;
    int64_t parts = sharing == Sharing::Columns ? plan.tilesN() : sharing == Sharing::Rows ? bandsOf(plan.m) : batch;
    plan.sharing = sharing;
    plan.slices = static_cast<int>(std::clamp<int64_t>(parts, 1, machine.slices));
    chooseCores(machine, plan, choice);
    // Columns first: weights that are spread are loaded once and streamed from all slices.
    if (best.k == 0 || plan.steps(batch) < best.steps(batch))
      best = plan;
  }
  return best;
}

MatmulPlan dmxc::corsair::planMatmul(const hw::Machine &machine, int64_t m, int64_t n, int64_t k, int64_t batch,
                                     PlanChoice choice) {
  DecisionsMade::check("a plan");
  MatmulPlan plan;
  plan.m = m, plan.n = n, plan.k = k;
  plan.kChunks = (k + 63) / 64;
  plan.pitch = MatmulPlan::pitchOf(m);
  plan.segment = MatmulPlan::longestSegment(m);
  return choosePlan(machine, plan, batch, choice);
}

MatmulPlan dmxc::corsair::planWeighted(const hw::Machine &machine, const ProductDims &dims, int64_t blocks,
                                       PlanChoice choice) {
  if (choice.sharing.value_or(Sharing::Rows) != Sharing::Rows)
    return planMatmul(machine, dims.m, dims.n, dims.k, 1, choice);
  MatmulPlan plan;
  plan.m = dims.m, plan.n = dims.n, plan.k = dims.k, plan.kChunks = dims.kChunks;
  plan.sharing = Sharing::Rows;
  plan.slices = machine.slices;
  plan.sharesBand = true;
  plan.pitch = MatmulPlan::pitchOf(plan.sliceRows());
  plan.segment = std::min(MatmulPlan::longestSegment(plan.sliceRows()), blocks);
  chooseCores(machine, plan, choice);
  return plan;
}

MatmulPlan dmxc::corsair::planConv(const hw::Machine &machine, int64_t pixels, int64_t channelsOut, int64_t kChunks,
                                   PlanChoice choice) {
  DecisionsMade::check("a plan");
  MatmulPlan plan;
  plan.m = pixels, plan.n = channelsOut, plan.k = kChunks * 64;
  plan.kChunks = plan.segment = kChunks; // nothing passes through IB
  return choosePlan(machine, plan, 1, choice);
}

double dmxc::corsair::arrayClocks(const hw::Machine &machine, const MatmulPlan &plan, int64_t batch) {
  // A tile comes from ST in as many clocks as eight rows take, unless it stays for all rows.
  const double load = plan.isStationary() ? 0 : MatmulPlan::kTileBytes / machine.memory(hw::Memory::WB).write;
  const double rows = machine.rowClocks8 * static_cast<double>(std::min<int64_t>(plan.m, 64));
  return plan.steps(batch) * std::max(rows, load) + 100;
}
