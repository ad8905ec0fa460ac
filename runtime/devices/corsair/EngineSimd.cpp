//===- EngineSimd.cpp - EXEC_SIMD: who computes what, and when ------------===//

#include "Simd.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace dmxrt::corsair {
namespace {

using F = SimdFunction;

class SimdEngine {
public:
  SimdEngine(Quad &quad, Queue &queue, const isa::Instruction &in) : quad(quad), queue(queue), in(in) {}
  bool run(uint64_t issue, Interval &when);

private:
  Quad &quad;
  Queue &queue;
  const isa::Instruction &in;
  const SimdConfig *config = nullptr;
  SimdJob whole;
  uint32_t slices = 1;
  int64_t address[4] = {};
  uint64_t slowest = 0, ops = 0; ///< clocks of the slowest slice; lane operations of all
  uint64_t gmReads = 0, gmWrites = 0;

  bool decode();
  bool bad(const std::string &what) { return quad.raise(queue, FaultKind::BadOperand, what); }
  bool spansFit() const;
  bool runSlice(int slice, int rank, int count);
  bool bind(SimdJob &job, int slice);
  bool bindOperand(const SimdJob &job, int number, int slice, SimdOperand &operand);
  bool touch(int number, int slice, const Region &region);
  bool touchImage(const SimdJob &job, int slice, int64_t base);
  bool touchValid(const SimdJob &job, int slice, int64_t base);
  Region regionOf(const SimdJob &job, int number, int64_t base) const;
  void charge(const SimdJob &job);
  Interval schedule(uint64_t issue);
};

bool SimdEngine::decode() {
  int64_t slot = in.get("slot");
  config = queue.simd[slot];
  if (!config)
    return quad.raise(queue, FaultKind::MissingConfig, cat("slot ", slot, " of unit SIMD is not set in this queue"));
  whole.function = static_cast<F>(in.get("fn"));
  slices = static_cast<uint32_t>(in.get("slices"));
  constexpr const char *kNames[] = {"d", "a", "b", "c"};
  for (int i = 0; i < 4; ++i)
    address[i] = quad.value(queue, in, kNames[i]);
  int64_t count = quad.value(queue, in, "n");
  whole.index = quad.value(queue, in, "index");
  whole.imm0 = std::bit_cast<float>(static_cast<uint32_t>(in.get("imm0")));
  whole.imm1 = std::bit_cast<float>(static_cast<uint32_t>(in.get("imm1")));
  if (quad.fault)
    return false;
  std::copy(std::begin(config->n), std::end(config->n), whole.n);
  if (count < -1 || count > int64_t(1) << 31)
    return bad(cat("n is ", count));
  whole.n[0] = count < 0 ? whole.n[0] : count;
  whole.inner = config->inner;
  whole.causal = config->causal;
  whole.countPad = config->countPad;
  whole.window = config->window;
  whole.d.kind = config->operands[0].kind;
  whole.a.kind = config->operands[1].kind;
  whole.b.kind = config->operands[2].kind;
  whole.c.kind = config->operands[3].kind;
  whole.hasB = whole.b.kind != ElemKind::Raw;
  whole.hasC = whole.c.kind != ElemKind::Raw;
  if (const char *wrong = checkKinds(whole))
    return quad.raise(queue, FaultKind::FormatMismatch, wrong);
  if (whole.index > int64_t(1) << 40 || whole.index < -(int64_t(1) << 40))
    return bad(cat("index is ", whole.index));
  if ((whole.function == F::Rope || whole.function == F::RopeInterleaved) && (whole.inner != 1 || whole.n[3] % 2))
    return bad("a rotation needs rows of one dimension with an even number of elements");
  if (isRowFunction(whole.function) && config->split > 4 - config->inner)
    return bad("slices cannot share a dimension of the rows");
  return spansFit() || quad.raise(queue, FaultKind::Capacity, "an operand spans more than any memory");
}

/// Whether all sums of steps stay far from overflow.
bool SimdEngine::spansFit() const {
  constexpr __int128 kLimit = __int128(1) << 60;
  __int128 elements = 1;
  for (int i = 0; i < 4; ++i) {
    elements *= std::max<int64_t>(whole.n[i], 1);
    if (elements > kLimit)
      return false;
  }
  const Window &win = whole.window;
  if (isWindowFunction(whole.function) && (win.h > 1 << 20 || win.w > 1 << 20))
    return false;
  for (int number = 0; number < 4; ++number) {
    if (isFar(address[number]))
      return false;
    for (int i = 0; i < 4; ++i) {
      __int128 trips = std::max<int64_t>(
          whole.n[i], std::max<int64_t>(i == 1 ? std::max(win.h, win.kh) : 0, i == 2 ? std::max(win.w, win.kw) : 0));
      if (trips * std::abs(config->operands[number].step[i]) > kLimit)
        return false;
    }
  }
  return true;
}

Region SimdEngine::regionOf(const SimdJob &job, int number, int64_t base) const {
  Region region;
  region.base = base;
  region.unit = isa::elementBytes(config->operands[number].kind);
  for (int i = 0; i < 4; ++i) {
    region.n[i] = job.n[i];
    region.step[i] = config->operands[number].step[i];
  }
  bool reduced = number == 0 && isReduction(job.function);
  for (int64_t i = 4 - job.inner; reduced && i < 4; ++i)
    region.n[i] = job.n[i] ? 1 : 0;
  if (number >= 2 && (job.function == F::Rope || job.function == F::RopeInterleaved))
    region.n[3] /= 2;
  if (number >= 2 && isWindowFunction(job.function)) {
    region.n[0] = 1;
    region.n[1] = number == 2 ? job.window.kh : 1;
    region.n[2] = number == 2 ? job.window.kw : 1;
  }
  return region;
}

bool SimdEngine::touch(int number, int slice, const Region &region) {
  const SimdConfig::Operand &operand = config->operands[number];
  uint32_t unit = quad.unitOf(operand.memory, slice);
  uint64_t bytes = 0;
  bool good = forEachRun(region, [&](int64_t at, int64_t size) {
    bytes += static_cast<uint64_t>(size);
    return (number ? quad.readable(queue, operand.memory, unit, at, size, operand.kind)
                   : quad.writable(queue, operand.memory, unit, at, size, operand.kind)) != nullptr;
  });
  Usage &usage = queue.pending;
  (number ? usage.readBytes : usage.writtenBytes)[static_cast<int>(operand.memory)] += bytes;
  if (operand.memory == Memory::GM)
    (number ? gmReads : gmWrites) += portBytes(region);
  return good;
}

/// The pixels that windows read: the rows and columns some tap falls on.
bool SimdEngine::touchImage(const SimdJob &job, int slice, int64_t base) {
  const Window &win = job.window;
  auto used = [](int64_t first, int64_t count, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                 int64_t size) {
    std::vector<std::pair<int64_t, int64_t>> spans; // begin, count
    std::vector<bool> hit(static_cast<size_t>(size));
    for (int64_t o = first; o < first + count; ++o)
      for (int64_t k = 0; k < kernel; ++k)
        if (int64_t at = o * stride - pad + k * dilation; at >= 0 && at < size)
          hit[static_cast<size_t>(at)] = true;
    for (int64_t at = 0; at < size; ++at)
      if (hit[static_cast<size_t>(at)]) {
        if (!spans.empty() && spans.back().first + spans.back().second == at)
          ++spans.back().second;
        else
          spans.push_back({at, 1});
      }
    return spans;
  };
  auto rows = used(job.index + job.origin[1], job.n[1], win.kh, win.sh, win.ph, win.dh, win.h);
  auto columns = used(job.origin[2], job.n[2], win.kw, win.sw, win.pw, win.dw, win.w);
  const int64_t *step = config->operands[1].step;
  for (auto [row, height] : rows)
    for (auto [column, width] : columns) {
      Region region = regionOf(job, 1, base + row * step[1] + column * step[2]);
      region.n[1] = height;
      region.n[2] = width;
      if (!touch(1, slice, region))
        return false;
    }
  return true;
}

/// Visits all rows of a job: visit(index of its first element); false ends it.
template <typename Visit> bool forEachRow(const SimdJob &job, Visit visit) {
  int64_t i[4] = {};
  for (i[0] = 0; i[0] < job.n[0]; ++i[0])
    for (i[1] = 0; i[1] < job.n[1]; ++i[1])
      for (i[2] = 0; i[2] < job.n[2]; ++i[2])
        if (!visit(i))
          return false;
  return true;
}

/// The valid columns of each row.
bool SimdEngine::touchValid(const SimdJob &job, int slice, int64_t base) {
  const int64_t *step = config->operands[1].step;
  return forEachRow(job, [&](const int64_t (&i)[4]) {
    Region region = regionOf(job, 1, base + i[0] * step[0] + i[1] * step[1] + i[2] * step[2]);
    region.n[0] = region.n[1] = region.n[2] = 1;
    region.n[3] = validColumns(job, i);
    return touch(1, slice, region);
  });
}

bool SimdEngine::bindOperand(const SimdJob &job, int number, int slice, SimdOperand &out) {
  const SimdConfig::Operand &operand = config->operands[number];
  out.kind = operand.kind;
  std::copy(std::begin(operand.step), std::end(operand.step), out.step);
  if (operand.memory != Memory::GM && operand.memory != Memory::SIMD && operand.memory != Memory::OB)
    return quad.raise(queue, FaultKind::IllegalMove,
                      cat("the SIMD device does not reach ", isa::nameOf(operand.memory)));
  if (!quad.checkAligned(queue, address[number], isa::elementBytes(operand.kind), "operand"))
    return false;
  // GM holds the whole operand, a slice's memory its own part.
  int64_t base = address[number];
  bool image = number == 1 && isWindowFunction(job.function);
  for (int i = 0; i < 4 && operand.memory == Memory::GM; ++i)
    if (!(isWindowFunction(job.function) && ((image && (i == 1 || i == 2)) || (number >= 2 && i != 3))))
      base += job.origin[i] * operand.step[i];
  out.data = quad.card.storage.data(operand.memory, quad.unitOf(operand.memory, slice)) + base;
  if (number == 1 && readsValidOnly(job))
    return touchValid(job, slice, base);
  return image ? touchImage(job, slice, base) : touch(number, slice, regionOf(job, number, base));
}

bool SimdEngine::bind(SimdJob &job, int slice) {
  int operands = isa::operandCount(job.function);
  if (operands > 0 && !bindOperand(job, 1, slice, job.a))
    return false;
  if (operands > 1 && job.hasB && !bindOperand(job, 2, slice, job.b))
    return false;
  if (operands > 2 && job.hasC && !bindOperand(job, 3, slice, job.c))
    return false;
  return bindOperand(job, 0, slice, job.d);
}

void SimdEngine::charge(const SimdJob &job) {
  const isa::Machine &machine = quad.machine;
  int64_t elements = job.n[0] * job.n[1] * job.n[2] * job.n[3];
  if (isWindowFunction(job.function))
    elements *= job.window.kh * job.window.kw;
  const int64_t all = elements;
  if (readsValidOnly(job)) {
    elements = 0;
    forEachRow(job, [&](const int64_t (&i)[4]) {
      elements += validColumns(job, i);
      return true;
    });
  }
  double weight = isa::clocksOf(job.function, machine);
  double clocks =
      std::ceil(static_cast<double>(elements) / machine.lanes) / machine.opsPerClock * weight + machine.simdOverhead;
  if (isRowFunction(job.function) && elements) {
    int64_t rows = all / job.rowLength();
    clocks += static_cast<double>(rows) * std::log2(machine.lanes);
  }
  slowest = std::max(slowest, ceilClocks(clocks));
  ops += static_cast<uint64_t>(static_cast<double>(elements) * weight);
}

bool SimdEngine::runSlice(int slice, int rank, int count) {
  SimdJob job = whole;
  if (config->split) {
    int64_t dim = config->split - 1, part = (whole.n[dim] + count - 1) / count;
    job.origin[dim] = std::min(rank * part, whole.n[dim]);
    job.n[dim] = std::min(part, whole.n[dim] - job.origin[dim]);
  }
  for (int64_t extent : job.n)
    if (extent == 0)
      return true;
  if (!bind(job, slice))
    return false;
  const SaturationCount saturation(job);
  if (isWindowFunction(job.function))
    computeWindows(job);
  else if (isRowFunction(job.function))
    computeRows(job);
  else
    computeElementwise(job);
  queue.pending.saturated += saturation.count();
  charge(job);
  return true;
}

Interval SimdEngine::schedule(uint64_t issue) {
  Timeline &time = quad.timeline;
  const isa::MemoryInfo &gm = quad.machine.memory(Memory::GM);
  std::vector<Timeline::Demand> demands;
  uint64_t reads = ceilClocks(static_cast<double>(gmReads) / gm.read),
           writes = ceilClocks(static_cast<double>(gmWrites) / gm.write);
  uint64_t clocks = std::max({slowest, reads, writes});
  if (reads)
    demands.push_back({&time.gmRead, reads});
  if (writes)
    demands.push_back({&time.gmWrite, writes});
  for (int slice = 0; slice < quad.machine.slices; ++slice)
    if (slices >> slice & 1)
      demands.push_back({&time.simd[slice], clocks});
  Interval when = time.transfer({}, issue, 0, demands, clocks, 0);
  for (int slice = 0; slice < quad.machine.slices; ++slice)
    if (slices >> slice & 1)
      quad.record(queue, Engine::Simd, slice, when.end - clocks, when.end);
  return when;
}

bool SimdEngine::run(uint64_t issue, Interval &when) {
  if (!decode())
    return false;
  int rank = 0, count = std::popcount(slices);
  for (int slice = 0; slice < quad.machine.slices; ++slice)
    if (slices >> slice & 1)
      if (!runSlice(slice, rank++, count))
        return false;
  queue.pending.simdOps += ops;
  when = schedule(issue);
  return true;
}

} // namespace

bool executeSimd(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when) {
  return SimdEngine(quad, queue, in).run(issue, when);
}

} // namespace dmxrt::corsair
