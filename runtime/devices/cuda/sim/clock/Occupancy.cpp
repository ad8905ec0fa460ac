//===- Occupancy.cpp - how many blocks a multiprocessor holds -----------------===//

#include "Occupancy.h"

#include <algorithm>

namespace dmxrt::cuda {

/// Lives are stretches of the text: from the first to the last mention, and to the end of each loop that a register
/// lives into.
uint32_t liveRegisters(const Program &program, const std::vector<uint8_t> &registerBits) {
  struct Life {
    uint32_t first = UINT32_MAX, last = 0;
  };
  std::vector<Life> lives(program.registers);
  auto mention = [&](uint32_t slot, uint32_t at) {
    if (slot >= program.registers)
      return;
    lives[slot].first = std::min(lives[slot].first, at);
    lives[slot].last = std::max(lives[slot].last, at);
  };
  std::vector<std::pair<uint32_t, uint32_t>> loops;
  for (uint32_t at = 0; at < program.ops.size(); ++at) {
    const Op &op = program.ops[at];
    for (uint32_t i = 0; i < op.sources; ++i)
      mention(op.source[i], at);
    for (uint32_t i = 0; i < op.results; ++i)
      mention(op.result[i], at);
    if (op.cost.effect == Effect::Multiply)
      for (const auto *list : {&program.products[op.immediate].d, &program.products[op.immediate].a})
        for (uint32_t slot : *list)
          mention(slot, at);
    if (op.flow == Op::Branch && op.target <= at)
      loops.emplace_back(op.target, at);
  }
  for (bool grew = true; grew;) {
    grew = false;
    for (auto [begin, end] : loops)
      for (Life &life : lives)
        if (life.first < begin && life.last >= begin && life.last < end) {
          life.last = end;
          grew = true;
        }
  }
  std::vector<int64_t> change(program.ops.size() + 1);
  for (uint32_t slot = 0; slot < lives.size(); ++slot)
    if (lives[slot].last > lives[slot].first) {
      int64_t words = registerBits[slot] == 64 ? 2 : registerBits[slot] ? 1 : 0;
      change[lives[slot].first] += words;
      change[lives[slot].last] -= words;
    }
  int64_t now = 0, most = 0;
  for (int64_t each : change)
    most = std::max(most, now += each);
  constexpr uint32_t beside = 8; // addresses of parameters, the stack's pointer, what an instruction is split for
  return static_cast<uint32_t>(most) + beside;
}

Occupancy occupancyOf(const Program &program, uint32_t threads, uint64_t sharedBytes, const Machine &machine) {
  Occupancy out;
  constexpr uint32_t unit = 8, most = 255;
  // What a text bounds is taken whole where warps give each other registers.
  out.estimated = !program.movesRegisters;
  uint32_t bound = program.firstRegisters ? program.firstRegisters : most;
  uint32_t needed = out.estimated ? std::min(program.liveRegisters, bound) : bound;
  out.registers = std::clamp((needed + unit - 1) / unit * unit, 16u, most + 1);
  uint32_t warps = (threads + kLanes - 1) / kLanes;
  struct Limit {
    std::string_view name;
    uint64_t blocks;
  };
  const Limit limits[] = {
      {"blocks", static_cast<uint64_t>(machine.clock.blocks)},
      {"threads", static_cast<uint64_t>(machine.clock.threads) / (uint64_t(warps) * kLanes)},
      {"registers", static_cast<uint64_t>(machine.registers) / (uint64_t(out.registers) * warps * kLanes)},
      {"shared memory", static_cast<uint64_t>(machine.clock.sharedBytes) /
                            (sharedBytes + static_cast<uint64_t>(machine.clock.reservedShared))}};
  const Limit *least =
      std::min_element(std::begin(limits), std::end(limits), [](auto &a, auto &b) { return a.blocks < b.blocks; });
  out.bound = least->name;
  out.blocks = static_cast<uint32_t>(std::max<uint64_t>(least->blocks, 1));
  return out;
}

} // namespace dmxrt::cuda
