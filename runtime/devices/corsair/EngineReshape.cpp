//===- EngineReshape.cpp - TRANSPOSE, EXTRACT, INSERT ---------------------===//

#include "Quad.h"
#include "Region.h"

#include <cmath>
#include <cstring>

namespace dmxrt::corsair {
namespace {

constexpr __int128 kFar = __int128(1) << 60;

/// Reserves a DRE and the ports of GM and DDR for a copy through it.
Interval scheduleReshape(Quad &quad, Queue &queue, int slice, Memory from, Memory to, uint64_t readBytes,
                         uint64_t writtenBytes, uint64_t readPort, uint64_t writePort, uint64_t issue) {
  const isa::Machine &machine = quad.machine;
  Timeline &time = quad.timeline;
  std::vector<Timeline::Demand> demands;
  uint64_t longest = 0;
  auto demand = [&](uint64_t &port, uint64_t bytes, double rate) {
    uint64_t clocks = ceilClocks(static_cast<double>(bytes) / rate);
    longest = std::max(longest, clocks);
    demands.push_back({&port, clocks});
  };
  demand(time.dre[slice], std::max(readPort, writePort),
         std::min(machine.memory(Memory::DRE).read, machine.memory(Memory::DRE).write));
  if (from == Memory::GM)
    demand(time.gmRead, readPort, machine.memory(from).read);
  if (from == Memory::DDR)
    demand(time.ddr, readPort, time.ddrRate);
  if (to == Memory::GM)
    demand(time.gmWrite, writePort, machine.memory(to).write);
  if (to == Memory::DDR)
    demand(time.ddr, writePort, time.ddrRate);
  Usage &usage = queue.pending;
  usage.readBytes[static_cast<int>(from)] += readBytes;
  usage.writtenBytes[static_cast<int>(to)] += writtenBytes;
  if (from != Memory::DRE) { // through the engine's own memory
    usage.writtenBytes[static_cast<int>(Memory::DRE)] += readBytes;
    usage.readBytes[static_cast<int>(Memory::DRE)] += writtenBytes;
  }
  uint64_t latency = ceilClocks(machine.memory(from).latency + machine.memory(Memory::DRE).latency);
  Interval when = time.transfer({}, issue, ceilClocks(machine.dmaSetup), demands, longest, latency);
  quad.record(queue, Engine::Dre, slice, when.end - latency - longest, when.end - latency);
  return when;
}

/// The one kind of a region that is read, or a fault.
bool uniformKind(Quad &quad, Queue &queue, Memory memory, uint32_t unit, const Region &region, ElemKind &kind) {
  kind = ElemKind::Raw;
  bool mixed = false;
  bool good = forEachRun(region, [&](int64_t at, int64_t size) {
    if (!quad.readable(queue, memory, unit, at, size, ElemKind::Raw))
      return false;
    quad.visitKinds(memory, unit, at, size, [&](ElemKind found) {
      mixed |= kind != ElemKind::Raw && kind != found;
      kind = found;
    });
    return true;
  });
  if (good && mixed)
    return quad.raise(queue, FaultKind::FormatMismatch, "the source has elements of several kinds");
  return good;
}

bool writeRegion(Quad &quad, Queue &queue, Memory memory, uint32_t unit, const Region &region, ElemKind kind) {
  return forEachRun(
      region, [&](int64_t at, int64_t size) { return quad.writable(queue, memory, unit, at, size, kind) != nullptr; });
}

/// EXTRACT and INSERT.
class ReshapeEngine {
public:
  ReshapeEngine(Quad &quad, Queue &queue, const isa::Instruction &in) : quad(quad), queue(queue), in(in) {}
  bool run(uint64_t issue, Interval &when);

private:
  Quad &quad;
  Queue &queue;
  const isa::Instruction &in;
  const MoveConfig *config = nullptr;
  isa::Rule rule{};
  Memory from{}, to{};
  uint32_t fromUnit = 0, toUnit = 0;
  int64_t saddr = 0, daddr = 0, iaddr = 0, pix = 0, n[4] = {}, itemBytes = 0;
  uint64_t readBytes = 0, writtenBytes = 0, readPort = 0, writePort = 0;

  bool decode();
  bool spansFit() const;
  bool copy(Region source, Region destination);
  bool copyIndexed();
  bool copyWindows();
  bool zero(int64_t at);
  bool indexAt(int64_t position, int64_t &index);
  Region region(int64_t base, const int64_t (&step)[4]) const;
};

bool ReshapeEngine::spansFit() const {
  __int128 items = config->unit;
  for (int i = 0; i < 4; ++i) {
    items *= std::max<int64_t>(n[i], 1);
    __int128 trips = std::max<int64_t>(n[i], config->indexRange < int64_t(1) << 31 ? config->indexRange : 0);
    if (items > kFar || trips * std::abs(config->s[i]) > kFar || trips * std::abs(config->t[i]) > kFar)
      return false;
  }
  const Window &win = config->window;
  return items * 8 < kFar && __int128(n[0]) * config->indexPitch < kFar &&
         __int128(std::max(win.h, win.w)) * std::max(std::abs(config->s[1]), std::abs(config->s[2])) < kFar &&
         __int128(win.kh) * win.kw * std::abs(config->t[1]) < kFar && !isFar(saddr) && !isFar(daddr) && !isFar(iaddr);
}

bool ReshapeEngine::decode() {
  int64_t slot = in.get("slot");
  config = queue.gm[slot];
  if (!config)
    return quad.raise(queue, FaultKind::MissingConfig, cat("slot ", slot, " of unit GM is not set in this queue"));
  rule = static_cast<isa::Rule>(in.get("rule"));
  from = static_cast<Memory>(in.get("src"));
  to = static_cast<Memory>(in.get("dst"));
  int slice = static_cast<int>(in.get("slice"));
  fromUnit = quad.unitOf(from, slice);
  toUnit = quad.unitOf(to, slice);
  saddr = quad.value(queue, in, "saddr");
  daddr = quad.value(queue, in, "daddr");
  iaddr = quad.value(queue, in, "iaddr");
  pix = quad.value(queue, in, "pix");
  int64_t count = quad.value(queue, in, "n");
  if (quad.fault)
    return false;
  std::copy(std::begin(config->n), std::end(config->n), n);
  n[0] = count < 0 ? n[0] : count;
  if (count < -1 || count > int64_t(1) << 31 || pix < 0 || pix > int64_t(1) << 40)
    return quad.raise(queue, FaultKind::BadOperand, cat("n is ", count, ", pix ", pix));
  if (config->to != config->kind || config->srcRows || config->dstRows)
    return quad.raise(queue, FaultKind::BadOperand, "the reshape engine neither converts nor knows rows of tiles");
  if (config->kind == ElemKind::Raw)
    return quad.raise(queue, FaultKind::BadOperand, "the reshape engine needs a kind");
  int64_t element = std::max(isa::elementBytes(config->kind), 1);
  itemBytes = element * (rule == isa::Rule::Window ? config->channels : config->unit);
  if (!spansFit())
    return quad.raise(queue, FaultKind::Capacity, "the descriptor spans more than any memory");
  return quad.checkAligned(queue, saddr, element, "source") && quad.checkAligned(queue, daddr, element, "destination");
}

Region ReshapeEngine::region(int64_t base, const int64_t (&step)[4]) const {
  Region out;
  out.base = base;
  out.unit = itemBytes;
  for (int i = 0; i < 4; ++i) {
    out.n[i] = n[i];
    out.step[i] = step[i];
  }
  return out;
}

/// Copies box to box with all checks.
bool ReshapeEngine::copy(Region source, Region destination) {
  for (int64_t extent : source.n)
    if (extent <= 0)
      return true;
  bool good = forEachRun(source, [&](int64_t at, int64_t size) {
    return quad.readable(queue, from, fromUnit, at, size, config->kind) != nullptr;
  });
  if (!good || !writeRegion(quad, queue, to, toUnit, destination, config->kind))
    return false;
  readPort += portBytes(source);
  writePort += portBytes(destination);
  const std::byte *in = quad.card.storage.data(from, fromUnit) + source.base;
  std::byte *out = quad.card.storage.data(to, toUnit) + destination.base;
  const int64_t *s = source.step, *t = destination.step, *count = source.n;
  for (int64_t a = 0; a < count[0]; ++a)
    for (int64_t b = 0; b < count[1]; ++b)
      for (int64_t c = 0; c < count[2]; ++c)
        for (int64_t d = 0; d < count[3]; ++d)
          std::memmove(out + a * t[0] + b * t[1] + c * t[2] + d * t[3], in + a * s[0] + b * s[1] + c * s[2] + d * s[3],
                       static_cast<size_t>(itemBytes));
  auto bytes = static_cast<uint64_t>(count[0] * count[1] * count[2] * count[3] * itemBytes);
  readBytes += bytes;
  writtenBytes += bytes;
  return true;
}

bool ReshapeEngine::indexAt(int64_t position, int64_t &index) {
  int64_t at = iaddr + position * config->indexPitch;
  bool wide = config->indexKind == ElemKind::I64;
  if (!wide && config->indexKind != ElemKind::I32)
    return quad.raise(queue, FaultKind::BadOperand, "indices are neither i32 nor i64");
  std::byte *data = quad.readable(queue, Memory::GM, quad.number, at, wide ? 8 : 4, config->indexKind);
  if (!data)
    return false;
  int32_t narrow = 0;
  if (wide)
    std::memcpy(&index, data, 8);
  else
    std::memcpy(&narrow, data, 4);
  index = wide ? index : narrow;
  readPort += 64;
  if (index < -config->indexRange || index >= config->indexRange)
    return quad.raise(queue, FaultKind::IndexOutOfRange,
                      cat("index ", index, " at place ", position, " of an axis of ", config->indexRange));
  index += index < 0 ? config->indexRange : 0;
  return true;
}

bool ReshapeEngine::copyIndexed() {
  if (config->indexRange >= int64_t(1) << 31)
    return quad.raise(queue, FaultKind::BadOperand, "gather and scatter need the key irange");
  for (int64_t i = 0; i < n[0]; ++i) {
    int64_t index = 0;
    if (!indexAt(i, index))
      return false;
    bool gather = rule == isa::Rule::Gather;
    Region source = region(saddr + (gather ? index : i) * config->s[0], config->s);
    Region destination = region(daddr + (gather ? i : index) * config->t[0], config->t);
    source.n[0] = destination.n[0] = 1;
    if (!copy(source, destination))
      return false;
  }
  return true;
}

bool ReshapeEngine::zero(int64_t at) {
  std::byte *out = quad.writable(queue, to, toUnit, at, itemBytes, config->kind);
  if (out)
    std::memset(out, 0, static_cast<size_t>(itemBytes));
  writtenBytes += static_cast<uint64_t>(itemBytes);
  writePort += static_cast<uint64_t>(std::max<int64_t>(itemBytes, 64));
  return out != nullptr;
}

/// im2col: kernel places of each output pixel side by side.
bool ReshapeEngine::copyWindows() {
  const Window &win = config->window;
  for (int64_t i = 0; i < n[0]; ++i)
    for (int64_t kh = 0; kh < win.kh; ++kh)
      for (int64_t kw = 0; kw < win.kw; ++kw) {
        int64_t p = pix + i, ih = p / win.ow * win.sh - win.ph + kh * win.dh,
                iw = p % win.ow * win.sw - win.pw + kw * win.dw;
        Region source, destination;
        destination.base = daddr + i * config->t[0] + (kh * win.kw + kw) * config->t[1];
        if (ih < 0 || ih >= win.h || iw < 0 || iw >= win.w) {
          if (!zero(destination.base))
            return false;
          continue;
        }
        source.base = saddr + ih * config->s[1] + iw * config->s[2];
        source.unit = destination.unit = itemBytes;
        if (!copy(source, destination))
          return false;
      }
  return true;
}

bool ReshapeEngine::run(uint64_t issue, Interval &when) {
  if (!decode())
    return false;
  bool good = rule == isa::Rule::Strided  ? copy(region(saddr, config->s), region(daddr, config->t))
              : rule == isa::Rule::Window ? copyWindows()
                                          : copyIndexed();
  if (!good)
    return false;
  when = scheduleReshape(quad, queue, static_cast<int>(in.get("slice")), from, to, readBytes, writtenBytes, readPort,
                         writePort, issue);
  return true;
}

template <typename T>
void transpose(const std::byte *in, std::byte *out, int64_t rows, int64_t cols, int64_t spitch, int64_t dpitch) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      std::memcpy(out + c * dpitch + r * static_cast<int64_t>(sizeof(T)),
                  in + r * spitch + c * static_cast<int64_t>(sizeof(T)), sizeof(T));
}

} // namespace

bool executeTranspose(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when) {
  auto source = static_cast<Memory>(in.get("src"));
  int slice = static_cast<int>(in.get("slice"));
  int64_t size = in.get("esize"), spitch = in.get("spitch"), dpitch = in.get("dpitch"), sbatch = in.get("sbatch"),
          dbatch = in.get("dbatch");
  int64_t saddr = quad.value(queue, in, "saddr"), daddr = quad.value(queue, in, "daddr"),
          rows = quad.value(queue, in, "rows"), cols = quad.value(queue, in, "cols"),
          batch = quad.value(queue, in, "batch");
  if (quad.fault)
    return false;
  constexpr int64_t kMany = int64_t(1) << 31;
  if (rows < 0 || cols < 0 || batch < 0 || rows > kMany || cols > kMany || batch > kMany)
    return quad.raise(queue, FaultKind::BadOperand, cat(rows, " x ", cols, " elements, ", batch, " matrices"));
  if (isFar(saddr) || isFar(daddr) || isFar(sbatch) || isFar(dbatch) || __int128(rows) * cols * size > kFar ||
      __int128(batch) * std::max(std::abs(sbatch), std::abs(dbatch)) > kFar)
    return quad.raise(queue, FaultKind::Capacity, "the matrices span more than any memory");
  if (!quad.checkAligned(queue, saddr, size, "source") || !quad.checkAligned(queue, daddr, size, "destination"))
    return false;
  uint32_t unit = quad.unitOf(source, slice);
  Region from{saddr, cols * size, {batch, rows, 1, 1, 1}, {sbatch, spitch}},
      to{daddr, rows * size, {batch, cols, 1, 1, 1}, {dbatch, dpitch}};
  ElemKind kind = ElemKind::Raw;
  bool empty = !rows || !cols || !batch;
  if (!empty && (!uniformKind(quad, queue, source, unit, from, kind) ||
                 !writeRegion(quad, queue, Memory::GM, quad.number, to, kind)))
    return false;
  for (int64_t i = 0; i < batch && !empty; ++i) {
    const std::byte *s = quad.card.storage.data(source, unit) + saddr + i * sbatch;
    std::byte *d = quad.card.storage.data(Memory::GM, quad.number) + daddr + i * dbatch;
    auto run = size == 1   ? transpose<uint8_t>
               : size == 2 ? transpose<uint16_t>
               : size == 4 ? transpose<uint32_t>
                           : transpose<uint64_t>;
    run(s, d, rows, cols, spitch, dpitch);
  }
  auto bytes = static_cast<uint64_t>(batch * rows * cols * size);
  when = scheduleReshape(quad, queue, slice, source, Memory::GM, bytes, bytes, empty ? 0 : portBytes(from),
                         empty ? 0 : portBytes(to), issue);
  return true;
}

bool executeReshape(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when) {
  return ReshapeEngine(quad, queue, in).run(issue, when);
}

} // namespace dmxrt::corsair
