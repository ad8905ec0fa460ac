//===- EngineMove.cpp - MOVE: who copies to whom, and when ----------------===//

#include "MoveCopy.h"

#include <bit>

namespace dmxrt::corsair {
namespace {

bool isSliceScoped(Memory memory) { return memory != Memory::DDR && memory != Memory::GM; }

/// One MOVE: spreads a descriptor over slices, cores and quads.
class MoveEngine {
public:
  MoveEngine(Quad &quad, Queue &queue, const isa::Instruction &in) : quad(quad), queue(queue), in(in) {}
  bool run(uint64_t issue, Interval &when);

private:
  Quad &quad;
  Queue &queue;
  const isa::Instruction &in;
  const MoveConfig *config = nullptr;
  Memory from{}, to{};
  uint32_t slices = 1, cores = 1, quads = 0;
  MoveEnd source, destination;

  bool decode(int64_t &n0);
  bool copyAll(MoveCopy &copy);
  bool copyToQuads(MoveCopy &copy);
  Interval schedule(const MoveCopy &copy, uint64_t issue);
  Engine engine() const;
  void demandShared(const MoveCopy::Traffic &in, const MoveCopy::Traffic &out);
  void demandSlices(const MoveCopy::Traffic &in, const MoveCopy::Traffic &out);
  void demand(uint64_t &port, uint64_t bytes, double rate);
  double rate(Memory memory, bool write) const {
    const isa::MemoryInfo &info = quad.machine.memory(memory);
    return write ? info.write : info.read;
  }

  std::vector<Timeline::Demand> demands;
  uint64_t longest = 0;           ///< clocks of the longest demand
  bool near = false, far = false; ///< leaves the quad, the chiplet
  // How often the traffic of one slice and core passes a port outside of the slices.
  uint64_t sliceCount = 1, coreCount = 1, reads = 1;
};

bool MoveEngine::decode(int64_t &n0) {
  from = static_cast<Memory>(in.get("src"));
  to = static_cast<Memory>(in.get("dst"));
  int64_t slot = in.get("slot");
  bool stash = from == Memory::ST || to == Memory::ST;
  config = stash ? queue.st[slot] : queue.gm[slot];
  if (!config)
    return quad.raise(queue, FaultKind::MissingConfig,
                      cat("slot ", slot, " of unit ", stash ? "ST" : "GM", " is not set in this queue"));
  source = {from, 0, quad.value(queue, in, "saddr"), quad.value(queue, in, "srow")};
  destination = {to, 0, quad.value(queue, in, "daddr"), quad.value(queue, in, "drow")};
  int64_t count = quad.value(queue, in, "n"), mask = quad.value(queue, in, "quads");
  slices = static_cast<uint32_t>(in.get("slices"));
  cores = static_cast<uint32_t>(in.get("cores"));
  if (quad.fault)
    return false;
  if (count < -1 || count > int64_t(1) << 31)
    return quad.raise(queue, FaultKind::BadOperand, cat("n is ", count));
  n0 = count < 0 ? config->n[0] : count;
  if (mask < 0 || mask >> quad.machine.quadCount())
    return quad.raise(queue, FaultKind::BadOperand, cat("quads is ", mask));
  quads = static_cast<uint32_t>(mask);
  auto chipletMask = ((uint64_t(1) << quad.machine.quads) - 1)
                     << (quad.chiplet() * static_cast<uint32_t>(quad.machine.quads));
  if (from == Memory::DDR && (quads & ~chipletMask))
    return quad.raise(queue, FaultKind::BadOperand, cat("quads is ", mask, ", DDR reaches only quads of its chiplet"));
  if (isFar(source.address) || isFar(destination.address))
    return quad.raise(queue, FaultKind::Capacity, "an address lies beyond any memory");
  constexpr int64_t kRows = int64_t(1) << 40;
  if (source.row > kRows || source.row < -kRows || destination.row > kRows || destination.row < -kRows)
    return quad.raise(queue, FaultKind::BadOperand, cat("srow is ", source.row, ", drow ", destination.row));
  return true;
}

bool MoveEngine::copyToQuads(MoveCopy &copy) {
  if (to != Memory::GM || !quads) {
    destination.unit = to == Memory::WB ? destination.unit : to == Memory::GM ? quad.number : destination.unit;
    return copy.run(source, destination);
  }
  for (uint32_t peer = 0; peer < 32; ++peer)
    if (quads >> peer & 1) {
      destination.unit = peer;
      if (!copy.run(source, destination))
        return false;
    }
  return true;
}

bool MoveEngine::copyAll(MoveCopy &copy) {
  if (!isSliceScoped(from) && !isSliceScoped(to)) {
    source.unit = quad.unitOf(from, 0);
    destination.unit = quad.unitOf(to, 0);
    return copyToQuads(copy);
  }
  int64_t saddr = source.address, daddr = destination.address;
  int64_t rank = 0;
  for (int slice = 0; slice < quad.machine.slices; ++slice) {
    if (!(slices >> slice & 1))
      continue;
    source.unit = quad.unitOf(from, slice);
    destination.address = daddr + rank * config->dslice;
    source.address = saddr + rank++ * config->sslice;
    if (to != Memory::WB) {
      destination.unit = quad.unitOf(to, slice);
      if (!copyToQuads(copy))
        return false;
      continue;
    }
    for (int core = 0; core < quad.machine.cores; ++core) {
      if (!(cores >> core & 1))
        continue;
      destination.unit = quad.unitOf(Memory::WB, slice, core);
      if (!copy.run(source, destination))
        return false;
      source.address += config->score;
    }
  }
  return true;
}

Engine MoveEngine::engine() const {
  if (from == Memory::DDR)
    return Engine::DdrIn;
  if (to == Memory::DDR)
    return Engine::DdrOut;
  if (to == Memory::WB)
    return Engine::ToWb;
  if (from == Memory::GM && to == Memory::IB)
    return Engine::ToIb;
  if (from == Memory::OB)
    return Engine::FromOb;
  return Engine::OtherDma;
}

void MoveEngine::demand(uint64_t &port, uint64_t bytes, double bytesPerClock) {
  uint64_t clocks = ceilClocks(static_cast<double>(bytes) / bytesPerClock);
  longest = std::max(longest, clocks);
  demands.push_back({&port, clocks});
}

/// Ports of DDR, GM and the links.
void MoveEngine::demandShared(const MoveCopy::Traffic &in, const MoveCopy::Traffic &out) {
  const isa::Machine &machine = quad.machine;
  Timeline &time = quad.timeline;
  uint64_t writes = isSliceScoped(to) ? 1 : sliceCount;
  if (from == Memory::DDR)
    demand(time.ddr, in.port, time.ddrRate);
  if (from == Memory::GM)
    demand(time.gmRead, in.port * reads, rate(from, false));
  if (to == Memory::DDR)
    demand(time.ddr, out.port * writes, std::min(time.ddrRate, rate(to, true)));
  if (to != Memory::GM)
    return;
  if (!quads || (quads >> quad.number & 1))
    demand(time.gmWrite, out.port * writes, rate(to, true));
  for (uint32_t peer = 0; peer < 32; ++peer)
    if ((quads >> peer & 1) && peer != quad.number)
      (peer / static_cast<uint32_t>(machine.quads) == quad.chiplet() ? near : far) = true;
  // A package's die-to-die bandwidth is shared equally by its quads.
  double share = std::min(machine.d2d.bytesPerClock / (machine.chiplets * machine.quads), machine.noc.bytesPerClock);
  if (near || far)
    demand(time.link, out.port * writes, far ? share : machine.noc.bytesPerClock);
}

void MoveEngine::demandSlices(const MoveCopy::Traffic &in, const MoveCopy::Traffic &out) {
  Timeline &time = quad.timeline;
  Timeline::PerSlice *source = from == Memory::ST ? &time.stRead : from == Memory::OB ? &time.obRead : nullptr;
  Timeline::PerSlice *target = nullptr;
  switch (to) {
  case Memory::ST:
    target = &time.stWrite;
    break;
  case Memory::OB:
    target = &time.obWrite;
    break;
  case Memory::IB:
    target = &time.ibWrite;
    break;
  case Memory::SIMD:
    target = &time.simdWrite;
    break;
  case Memory::DRE:
    target = &time.dreWrite;
    break;
  case Memory::WB:
    target = &time.wbWrite;
    break;
  default:
    break;
  }
  for (int slice = 0; slice < quad.machine.slices; ++slice) {
    if (!(slices >> slice & 1))
      continue;
    if (source)
      demand((*source)[slice], in.port * (config->score ? coreCount : 1), rate(from, false));
    if (target)
      demand((*target)[slice], out.port, rate(to, true));
  }
}

/// Reserves ports and the channel; see ISA.md section 11.
Interval MoveEngine::schedule(const MoveCopy &copy, uint64_t issue) {
  const isa::Machine &machine = quad.machine;
  MoveCopy::Traffic in = copy.sourceTraffic(), out = copy.destinationTraffic();
  if (isSliceScoped(from) || isSliceScoped(to))
    sliceCount = static_cast<uint64_t>(std::popcount(slices));
  if (to == Memory::WB)
    coreCount = static_cast<uint64_t>(std::popcount(cores));
  // From GM one read serves all slices and cores unless they get different bytes.
  reads = (!isSliceScoped(from) && config->sslice ? sliceCount : 1) * (config->score ? coreCount : 1);
  demandShared(in, out);
  demandSlices(in, out);
  uint64_t peers = quads ? static_cast<uint64_t>(std::popcount(quads)) : 1;
  Usage &usage = queue.pending;
  usage.readBytes[static_cast<int>(from)] +=
      in.bytes * (isSliceScoped(from) ? sliceCount * (config->score ? coreCount : 1) : reads);
  usage.writtenBytes[static_cast<int>(to)] += out.bytes * sliceCount * coreCount * peers;
  usage.nocBytes += near ? out.bytes : 0;
  usage.d2dBytes += far ? out.bytes : 0;
  uint64_t latency = ceilClocks(machine.memory(from).latency + (near || far ? machine.noc.latency : 0) +
                                (far ? machine.d2d.latency : 0));
  Engine which = engine();
  Timeline &time = quad.timeline;
  Interval when = time.transfer(time.channels[static_cast<int>(which)], issue, ceilClocks(machine.dmaSetup), demands,
                                longest, latency);
  // Busy is the data phase, which ends a latency before the instruction.
  bool perSlice = isSliceScoped(from) || isSliceScoped(to);
  for (int slice = 0; slice < (perSlice ? machine.slices : 1); ++slice)
    if (!perSlice || slices >> slice & 1)
      quad.record(queue, which, slice, when.end - latency - longest, when.end - latency);
  return when;
}

bool MoveEngine::run(uint64_t issue, Interval &when) {
  int64_t n0 = 0;
  if (!decode(n0))
    return false;
  MoveCopy copy(quad, queue, *config, n0);
  if (!copy.check(from, to) || !copyAll(copy))
    return false;
  when = schedule(copy, issue);
  return true;
}

} // namespace

bool executeMove(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when) {
  return MoveEngine(quad, queue, in).run(issue, when);
}

} // namespace dmxrt::corsair
