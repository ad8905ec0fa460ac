//===- ProductPlan.cpp - how a quad works off its result tiles ------------===//
#include "ProductPlan.h"

using namespace dmxc;

/// The largest divisor of `value` up to `limit`: rounds are all alike.
static int64_t divisor(int64_t value, int64_t limit) {
  int64_t best = std::clamp<int64_t>(limit, 1, value);
  while (value % best)
    --best;
  return best;
}

static double rowClocks(const hw::Machine &machine, const ProductKernel &kernel) {
  int a = hw::tileOf(kernel.activationKind)->format.precision, w = hw::tileOf(kernel.weightKind)->format.precision;
  return a == 16 ? machine.rowClocks16 : a == 4 && w == 4 ? machine.rowClocks4 : machine.rowClocks8;
}

ProductPlan dmxc::planProduct(const hw::Machine &machine, const ProductKernel &kernel, int64_t rows, int64_t columns) {
  ProductPlan plan;
  plan.rows = rows;
  plan.columns = columns;
  int64_t imc = 1;
  for (const ProductKernel::Chunk &chunk : kernel.chunks)
    imc = std::max(imc, chunk.imc);
  auto room = [&](hw::Memory memory) { return static_cast<int64_t>(machine.memory(memory).size); };
  int64_t sums = kernel.rows * 256; // bytes of a result tile's sums
  plan.groups = divisor(columns, std::min(machine.coresPerSlice() / imc, room(hw::Memory::OB) / sums));
  // Sharing columns leaves each slice its own weights; sharing rows, all slices hold all of them.
  int64_t byColumns = divisor(columns / plan.groups, machine.slicesPerQuad()),
          byRows = divisor(rows, machine.slicesPerQuad());
  (byColumns >= byRows ? plan.sliceColumns : plan.sliceRows) = std::max(byColumns, byRows);
  double load = static_cast<double>(kernel.weightTile()) / machine.memory(hw::Memory::WB).write;
  plan.streamed = static_cast<double>(kernel.rows) * rowClocks(machine, kernel) < load;
  if (plan.streamed)
    plan.steps = divisor(plan.columnRounds(), std::max<int64_t>(1, room(hw::Memory::OB) / 2 / (plan.groups * sums)));
  auto halves = [&](hw::Memory memory, int64_t bytes) { return 2 * bytes <= room(memory) ? int64_t(2) : int64_t(1); };
  plan.inputHalves = halves(hw::Memory::IB, imc * kernel.activationTile());
  plan.weightHalves = plan.streamed ? 1 : halves(hw::Memory::WB, (kernel.weightTile() + 63) / 64 * 64);
  plan.resultHalves = halves(hw::Memory::OB, plan.steps * plan.groups * sums);
  return plan;
}
