//===- ChoosePlan.cpp - spreading a product over slices and cores ---------===//

#include "Decide.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace dmxc::corsair;

/// num_imc, groups and segment: the fewest array clocks win; of equals the widest reduction, which adds least often.
static void chooseCores(const hw::Machine &machine, Spread &plan, PlanChoice choice) {
  const int64_t chunks = std::min(plan.kChunks, plan.segment);
  const int64_t cores = machine.cores, // a reduction is over 2^ppr_mode of them
      widest = std::min<int64_t>(llvm::bit_floor(uint64_t(cores)), int64_t(1) << machine.maxPprMode);
  const int64_t tiles = (plan.tilesN() + plan.columnSlices() - 1) / plan.columnSlices();
  Spread best = plan;
  double least = 0;
  for (int64_t imc = std::min(chunks, widest); imc >= 1; --imc) {
    if (choice.imc.value_or(imc) != imc)
      continue;
    Spread next = plan;
    next.imc = static_cast<int>(imc);
    next.groups = static_cast<int>(std::min({cores / imc, int64_t(4), tiles})); // OB holds four tiles of sums
    next.ppr = static_cast<int>(llvm::Log2_64_Ceil(static_cast<uint64_t>(imc)));
    if (next.kChunks > next.segment) // a product reads whole groups of chunks
      next.segment = next.segment / imc * imc;
    if (const double clocks = arrayClocks(machine, next); least == 0 || clocks < least)
      best = next, least = clocks;
  }
  plan = best;
}

/// Of a strip of weights: each slice has some of a band's rows, and takes as many blocks of K at a time as there are
/// cores.
static Spread spreadBand(const hw::Machine &machine, Spread plan, PlanChoice choice, bool narrow) {
  plan.sharing = Sharing::Rows;
  plan.slices = machine.slices;
  plan.pitch = Spread::pitchOf(plan.sliceRows());
  plan.segment = std::min<int64_t>(plan.longestSegment(), narrow ? machine.cores / 2 : machine.cores);
  chooseCores(machine, plan, choice);
  return plan;
}

/// What takes fewest clocks where rounds of columns leave out what is zero in them, if that is a tenth less than all of
/// it takes, as `whole`: the fewer columns a round has the more, which speaks for slices that share rows.
static Spread leaveOut(const hw::Machine &machine, const Spread &product, const Spread &whole, PlanChoice choice) {
  Spread best = whole;
  double least = 0.9 * arrayClocks(machine, whole);
  const auto room = static_cast<int64_t>(machine.memory(hw::Memory::ST).size);
  const int64_t most = std::max(whole.bytesPerSlice(), room / 8);
  for (Sharing sharing : {Sharing::Columns, Sharing::Rows}) {
    if (choice.sharing.value_or(sharing) != sharing)
      continue;
    Spread plan = product;
    plan.sharing = sharing;
    const int64_t parts = sharing == Sharing::Columns ? plan.tilesN() : plan.tilesM();
    plan.slices = static_cast<int>(std::clamp<int64_t>(parts, 1, machine.slices));
    for (int imc = 1; imc <= machine.cores && imc <= std::min(plan.kChunks, plan.segment); imc *= 2) {
      if (choice.imc.value_or(imc) != imc)
        continue;
      Spread next = plan;
      chooseCores(machine, next, {imc, sharing});
      if (next.bytesPerSlice() > room) // --sparsity off has all of it, in the same order
        continue;
      next.kept = roundsOf(next, *product.columns, /*all=*/false);
      const double clocks = arrayClocks(machine, next);
      if (next.bytesPerSlice() <= most && clocks < least)
        best = next, least = clocks;
    }
  }
  return best;
}

static Spread spreadFastest(const hw::Machine &machine, const Spread &product, PlanChoice choice) {
  Spread best;
  for (Sharing sharing : {Sharing::Columns, Sharing::Rows, Sharing::Batch}) {
    if (choice.sharing.value_or(sharing) != sharing)
      continue;
    Spread plan = product;
    const int64_t parts = sharing == Sharing::Columns ? plan.tilesN()
                          : sharing == Sharing::Rows  ? plan.tilesM()
                                                      : std::max<int64_t>(plan.batch, 1);
    plan.sharing = sharing;
    plan.slices = static_cast<int>(std::clamp<int64_t>(parts, 1, machine.slices));
    chooseCores(machine, plan, choice);
    // Columns first: weights that are spread are loaded once and streamed from all slices.
    if (best.k == 0 || plan.steps() < best.steps())
      best = plan;
  }
  return best;
}

/// Of one image of a convolution, with what brings its rows to the arrays. Whole windows are copied twice by the vector
/// device, with zeros around the image and row by row, and packed while others are multiplied.
static double imageClocks(const hw::Machine &machine, const Spread &plan) {
  const double rate = machine.memory(hw::Memory::GM).write, array = arrayClocks(machine, plan);
  constexpr double row = 65, // of a tile, with its exponent
      instructions = 300;    // that fill, copy and pack before the first is multiplied
  const auto m = static_cast<double>(plan.m), image = static_cast<double>(plan.rows.image),
             laid = m * static_cast<double>(plan.rows.perPixel);
  if (!plan.windows)
    return array + row * static_cast<double>(plan.rows.tiles) / rate;
  return instructions + 2 * (image + laid) / rate + std::max(array, row * m * static_cast<double>(plan.kChunks) / rate);
}

Spread dmxc::corsair::chooseSpread(const hw::Machine &machine, Spread product, PlanChoice choice, bool narrow) {
  DecisionsMade::check("a plan");
  if (product.sharesBand && choice.sharing.value_or(Sharing::Rows) == Sharing::Rows)
    return spreadBand(machine, product, choice, narrow);
  const bool strip = std::exchange(product.sharesBand, false);
  product.pitch = product.conv ? Spread::kTileBytes : Spread::pitchOf(product.m);
  product.segment = product.longestSegment();
  Spread best = spreadFastest(machine, product, choice);
  if (product.rows.chunks && product.rows.chunks < product.kChunks) {
    const Spread whole = spreadFastest(machine, product.byWindows(), choice);
    if (best.k == 0 || (whole.k != 0 && imageClocks(machine, whole) < imageClocks(machine, best)))
      best = whole;
  }
  if (narrow && !strip)
    best.groups = std::min(best.groups, 2);
  return product.columns ? leaveOut(machine, product, best, choice) : best;
}

double dmxc::corsair::arrayClocks(const hw::Machine &machine, const Spread &plan) {
  // A tile comes from ST in as many clocks as eight rows take, unless it stays for all rows.
  const double load = plan.isStationary() ? 0 : Spread::kTileBytes / machine.memory(hw::Memory::WB).write;
  const double rows = machine.rowClocks8 * static_cast<double>(std::min<int64_t>(plan.m, 64));
  return plan.steps() * std::max(rows, load) + 100;
}
