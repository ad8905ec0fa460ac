//===- Recorder.cpp - keeps what the clock needs of a launch ------------------===//

#include "Recorder.h"
#include "runtime/devices/cuda/sim/Block.h"

#include <algorithm>
#include <bit>

namespace dmxrt::cuda {

static constexpr uint32_t kRegionBits = 40;

std::vector<uint32_t> Recorder::chosen(uint32_t blocks, uint32_t count) {
  std::vector<uint32_t> out(count);
  for (uint32_t i = 0; i < count; ++i)
    out[i] = static_cast<uint32_t>(uint64_t(blocks) * i / count);
  return out;
}

std::vector<uint32_t> Recorder::firstBlocks(const Launch &launch) {
  uint32_t each = launch.program->cluster, clusters = launch.blocks / each,
           most = launch.mostBlocks ? std::min((launch.mostBlocks + each - 1) / each, clusters) : clusters;
  std::vector<uint32_t> out = chosen(clusters, most);
  for (uint32_t &first : out)
    first *= each;
  return out;
}

Recorder::Recorder(const Launch &launch, uint64_t mostEvents) : launch(launch), mostEvents(mostEvents) {
  // Of the blocks that are run; of a cluster one, each time another one.
  std::vector<uint32_t> run = firstBlocks(launch);
  for (uint32_t i :
       chosen(static_cast<uint32_t>(run.size()), std::min<uint32_t>(kTraced, static_cast<uint32_t>(run.size()))))
    wanted.push_back(run[i] + static_cast<uint32_t>(wanted.size()) % launch.program->cluster);
  touched.resize(launch.memory->regions.size());
  for (size_t i = 0; i < touched.size(); ++i) {
    uint64_t words = launch.memory->regions[i].bytes / kSectorBytes / 64 + 1;
    touched[i].read.resize(words);
    touched[i].written.resize(words);
  }
  kept.reserve(wanted.size());
}

void Recorder::beginBlock(uint32_t number) {
  ++all.blocks;
  block = nullptr;
  if (std::find(wanted.begin(), wanted.end(), number) == wanted.end())
    return;
  waiting.clear();
  latest = number;
  block = &kept.emplace_back();
  block->warps.resize((launch.threads + kLanes - 1) / kLanes);
}

void Recorder::focus(uint32_t number) { block = number == latest ? &kept.back() : nullptr; }

void Recorder::add(uint32_t warp, uint32_t op, uint32_t detail) {
  if (!block)
    return;
  if (block->events == mostEvents) {
    kept.pop_back();
    block = nullptr;
    latest = UINT32_MAX;
    return;
  }
  block->warps[warp].push_back({op, detail});
  ++block->events;
}

uint64_t Recorder::place(uint64_t address, uint32_t bytes) {
  const std::vector<MemoryRegion> &regions = launch.memory->regions;
  auto holds = [&](const MemoryRegion &region) {
    return address >= region.begin && bytes <= region.bytes && address - region.begin <= region.bytes - bytes;
  };
  if (hint >= regions.size() || !regions[hint].alone || !holds(regions[hint])) {
    auto found = std::find_if(regions.begin(), regions.end(), holds);
    if (found == regions.end()) // a lane's own memory, which is cached
      return ~uint64_t(0);
    hint = static_cast<uint32_t>(found - regions.begin());
  }
  return uint64_t(hint) << kRegionBits | (address - regions[hint].begin);
}

void Recorder::touch(uint64_t sector, bool isWrite) {
  constexpr uint32_t bits = kRegionBits - 5;
  Touched &region = touched[sector >> bits];
  uint64_t at = sector & ((uint64_t(1) << bits) - 1);
  (isWrite ? region.written : region.read)[at / 64] |= uint64_t(1) << at % 64;
}

/// The sectors at hand, each once.
uint32_t Recorder::keepSectors(WarpAccess &out) {
  std::sort(sectors.begin(), sectors.end());
  sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
  for (uint64_t sector : sectors)
    touch(sector, out.isWrite);
  out.sectors = static_cast<uint32_t>(sectors.size());
  if (block) {
    out.first = static_cast<uint32_t>(block->sectors.size());
    block->sectors.insert(block->sectors.end(), sectors.begin(), sectors.end());
  }
  return out.sectors;
}

void Recorder::global(const Lanes &lanes, uint32_t bytes, bool isWrite, WarpAccess &out) {
  sectors.clear();
  for (uint32_t i = 0; i < lanes.count; ++i) {
    uint64_t at = place(lanes.at[i], bytes);
    if (at == ~uint64_t(0))
      continue;
    for (uint64_t sector = at / kSectorBytes; sector <= (at + bytes - 1) / kSectorBytes; ++sector)
      if (sectors.empty() || sectors.back() != sector)
        sectors.push_back(sector);
  }
  out.place = sectors.empty() ? WarpAccess::Local : WarpAccess::Global;
  if (sectors.empty())
    return;
  out.isWrite = isWrite;
  keepSectors(out);
  uint64_t before = ~uint64_t(0);
  out.wavefronts = 0;
  for (uint64_t sector : sectors)
    if (uint64_t line = sector / (kLineBytes / kSectorBytes); line != before) {
      ++out.wavefronts;
      before = line;
    }
  ++all.requests;
  (isWrite ? all.sectorsWritten : all.sectorsRead) += out.sectors;
  (isWrite ? all.bytesWritten : all.bytesRead) += uint64_t(bytes) * lanes.count;
}

/// 32 banks of 4 bytes; lanes of up to 128 bytes are served together: 32 of 4 bytes, 16 of 8, 8 of 16.
void Recorder::shared(const Lanes &lanes, uint32_t bytes, uint32_t &wavefronts, uint32_t &least) {
  constexpr uint32_t banks = 32;
  uint32_t together = std::max<uint32_t>(kLineBytes / std::max(bytes, 4u), 1);
  for (uint32_t first = 0; first < lanes.count; first += together) {
    std::vector<uint64_t> words;
    for (uint32_t i = first; i < std::min(lanes.count, first + together); ++i)
      for (uint64_t word = lanes.at[i] / 4; word <= (lanes.at[i] + bytes - 1) / 4; ++word)
        words.push_back(word);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    uint32_t asked[banks] = {};
    for (uint64_t word : words)
      ++asked[word % banks];
    wavefronts += *std::max_element(std::begin(asked), std::end(asked));
    ++least;
  }
}

void Recorder::access(const Warp &warp, const Op &op, uint32_t index, uint32_t active) {
  bool isAtomic = op.cost.effect == Effect::Atomic, isWrite = op.results == 0 || isAtomic;
  uint32_t bytes = op.bytes * (isAtomic ? 1u : isWrite ? op.sources - 1u : op.results);
  Lanes inGlobal, inShared;
  forLanes(active, [&](uint32_t lane) {
    uint64_t at = warp.slots[op.source[0]][lane] + static_cast<uint64_t>(op.offset);
    bool isShared = op.isShared() || (op.space == GenericSpace && at - kSharedWindow < kWindowBytes);
    Lanes &to = isShared ? inShared : inGlobal;
    to.at[to.count++] = isShared ? Block::ofShared(at) : at;
  });
  WarpAccess out;
  out.isWrite = isWrite;
  if (inGlobal.count)
    global(inGlobal, bytes, isWrite, out);
  if (inShared.count) {
    uint32_t wavefronts = 0, least = 0;
    shared(inShared, bytes, wavefronts, least);
    ++all.sharedRequests;
    all.wavefronts += wavefronts;
    all.leastWavefronts += least;
    if (!inGlobal.count) {
      out.place = op.space == ClusterSpace ? WarpAccess::Cluster : WarpAccess::Shared;
      out.wavefronts = static_cast<uint16_t>(wavefronts);
    }
  }
  add(warp.number, index, block ? static_cast<uint32_t>(block->accesses.size()) : 0);
  if (block)
    block->accesses.push_back(out);
}

/// Each matrix is 8 rows of 16 bytes.
void Recorder::matrices(const Warp &warp, const Op &op, uint32_t index) {
  uint32_t count = op.results ? op.results : op.sources - 1u, wavefronts = 0, least = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Lanes rows;
    for (uint32_t row = 0; row < 8; ++row)
      rows.at[rows.count++] = Block::ofShared(warp.slots[op.source[0]][8 * i + row] + static_cast<uint64_t>(op.offset));
    shared(rows, 16, wavefronts, least);
  }
  ++all.sharedRequests;
  all.wavefronts += wavefronts;
  all.leastWavefronts += least;
  add(warp.number, index, block ? static_cast<uint32_t>(block->accesses.size()) : 0);
  if (block)
    block->accesses.push_back({WarpAccess::Shared, op.results == 0, static_cast<uint16_t>(wavefronts), 0, 0});
}

void Recorder::barrier(const Warp &warp, const Op &op, uint32_t index, uint32_t active) {
  BarrierUse use;
  auto lane = static_cast<uint32_t>(std::countr_zero(active));
  auto value = [&](uint32_t source) { return warp.slots[op.source[source]][lane]; };
  switch (op.cost.effect) {
  case Effect::Meet:
  case Effect::MeetOnly:
    use.at = value(0);
    use.count = op.sources > 1 ? static_cast<uint32_t>(value(1)) : warp.block->threads();
    break;
  case Effect::Initialize:
    use.count = static_cast<uint32_t>(value(1));
    use.at = Block::ofShared(value(0) + static_cast<uint64_t>(op.offset));
    break;
  default:
    use.at = Block::ofShared(value(0) + static_cast<uint64_t>(op.offset));
    if (op.cost.effect == Effect::Await) {
      use.isKnown = false; // until it goes on
      if (block)
        waiting[{warp.number, index}] = static_cast<uint32_t>(block->barriers.size());
      break;
    }
    uint64_t number = op.sources > 1 ? value(1) : 1, lanes = static_cast<uint64_t>(std::popcount(active));
    bool expects = op.cost.effect != Effect::Arrive;
    use.bytes = expects ? static_cast<int64_t>(number * lanes) : 0;
    use.count = static_cast<uint32_t>(op.cost.effect == Effect::Expect ? 0 : expects ? lanes : number * lanes);
    break;
  }
  add(warp.number, index, block ? static_cast<uint32_t>(block->barriers.size()) : 0);
  if (block)
    block->barriers.push_back(use);
}

/// A phase of all blocks of the cluster, which are taken to come when this one does.
void Recorder::atCluster(const Warp &warp, const Op &op, uint32_t index) {
  add(warp.number, index, block ? static_cast<uint32_t>(block->barriers.size()) : 0);
  if (!block)
    return;
  BarrierUse use;
  use.at = kClusterBarrier;
  use.count = op.cost.effect == Effect::ClusterArrive ? kLanes : 0;
  if (op.cost.effect == Effect::ClusterAwait)
    use.phase = block->clusterPhases[warp.number]++;
  block->barriers.push_back(use);
}

void Recorder::goesOn(const Warp &warp, const Op &op, uint32_t index) {
  if (!block || op.cost.effect != Effect::Await)
    return;
  auto found = waiting.find({warp.number, index});
  if (found == waiting.end())
    return;
  BarrierUse &use = block->barriers[found->second];
  waiting.erase(found);
  std::string none;
  const Mbarrier *barrier = warp.block->barriers.find(use.at, none);
  // What it waited for is the phase that ended last.
  if (barrier && barrier->phase > 0 && (warp.predicates[op.predicateResult] & warp.active)) {
    use.phase = barrier->phase - 1;
    use.isKnown = true;
  }
}

void Recorder::bulk(const Warp &warp, const BulkCopy &copy) {
  sectors.clear();
  BulkEngine::forRows(copy, [&](uint64_t address, uint64_t bytes) {
    uint64_t at = place(address, static_cast<uint32_t>(bytes));
    if (at == ~uint64_t(0))
      return;
    for (uint64_t sector = at / kSectorBytes; sector <= (at + bytes - 1) / kSectorBytes; ++sector)
      sectors.push_back(sector);
  });
  WarpAccess access;
  access.isWrite = copy.stores;
  keepSectors(access);
  BulkMove move{copy.stores, copy.barrier, copy.map.boxBytes(), access.first, access.sectors};
  (copy.stores ? all.bulkWritten : all.bulkRead) += move.bytes;
  (copy.stores ? all.bulkSectorsWritten : all.bulkSectorsRead) += access.sectors;
  if (!block)
    return;
  // Behind the instruction that is at hand: one an active lane.
  block->bulks.push_back(move);
  add(warp.number, bulkOp, static_cast<uint32_t>(block->bulks.size() - 1));
}

void Recorder::issue(const Warp &warp, const Op &op, uint32_t index, uint32_t active) {
  ++all.instructions;
  all.issues += op.cost.issues;
  switch (op.cost.effect) {
  case Effect::Access:
  case Effect::Atomic:
    return access(warp, op, index, active);
  case Effect::Matrices:
    return matrices(warp, op, index);
  case Effect::Initialize:
  case Effect::Arrive:
  case Effect::Expect:
  case Effect::ArriveExpecting:
  case Effect::Await:
  case Effect::Meet:
  case Effect::MeetOnly:
    return barrier(warp, op, index, active);
  case Effect::ClusterArrive:
  case Effect::ClusterAwait:
    return atCluster(warp, op, index);
  case Effect::BulkCopy:
    bulkOp = index;
    return;
  case Effect::Multiply: {
    const ProductForm &form = launch.program->products[op.immediate];
    ++all.wgmma;
    (form.type == ProductForm::Tf32 ? all.macsTf32 : all.macs16) += uint64_t(16) * form.columns * form.depth();
    break;
  }
  default:
    if (op.cost.isFma)
      all.macsF32 += static_cast<uint64_t>(std::popcount(active));
  }
  add(warp.number, index);
}

std::vector<Recorder::Footprint> Recorder::footprints() const {
  std::vector<Footprint> out;
  auto count = [](const std::vector<uint64_t> &bits) {
    uint64_t sum = 0;
    for (uint64_t word : bits)
      sum += static_cast<uint64_t>(std::popcount(word));
    return sum;
  };
  for (size_t i = 0; i < touched.size(); ++i)
    out.push_back({count(touched[i].read), count(touched[i].written),
                   (launch.memory->regions[i].bytes + kSectorBytes - 1) / kSectorBytes});
  return out;
}

} // namespace dmxrt::cuda
