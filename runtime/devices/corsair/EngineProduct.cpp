//===- EngineProduct.cpp - MATMUL and CONV --------------------------------===//
//
// ISA.md section 6. The arithmetic is the numerics library's tile product; here
// is which tiles go into it, what is checked, and how long it takes.
//
//===----------------------------------------------------------------------===//

#include "Quad.h"
#include "Region.h"

#include "schemas/blockfp/DotProduct.h"

#include <algorithm>
#include <cstring>

namespace dmxrt::corsair {
namespace {

constexpr int kMaxCores = 16;

class ProductEngine {
public:
  ProductEngine(Quad &quad, Queue &queue, const isa::Instruction &in)
      : quad(quad), queue(queue), in(in), isConv(in.opcode == isa::Opcode::Conv) {}
  bool run(uint64_t issue, Interval &when);

private:
  Quad &quad;
  Queue &queue;
  const isa::Instruction &in;
  const bool isConv;
  const ArrayConfig *config = nullptr;
  isa::TileProduct product;
  uint32_t slices = 1;
  int core = 0, imc = 1, groups = 1;
  bool stream = false;
  int64_t rows = 64, k0 = 0, steps = 1, ob = 0, wb = 0, st = 0, acc = 0;
  int64_t ib = 0, row = 0;                  // MATMUL
  int64_t image = 0, imageRow = 0, pix = 0; // CONV
  int64_t tileBytes = 0, runBytes = 0;      // of an activation tile
  int64_t weightBytes = 0;
  int64_t pprMode = 0;     ///< levels of the tree over cores
  uint64_t imageBytes = 0; ///< read by CONV
  uint64_t macs = 0;

  bool decode();
  isa::MaybeError checkProduct() const;
  bool decodeKinds();
  bool decodeSource();
  bool runSlice(int slice, int rank);
  bool runStep(int slice, int rank, int64_t step);
  int chunksOf(int64_t step) const;
  bool gatherRows(int slice, int64_t step, int chunks, const std::byte *(&tiles)[kMaxCores]);
  bool gatherImage(int slice, int64_t step, int chunks, int64_t firstPixel, int64_t count,
                   const std::byte *(&tiles)[kMaxCores]);
  bool gatherChunk(int slice, int64_t chunk, int64_t firstPixel, int64_t count, std::byte *tile);
  bool weightsOf(int slice, int64_t step, int group, int chunks, const std::byte *(&tiles)[kMaxCores]);
  bool store(int slice, int64_t step, int group, int64_t count, int chunks,
             const std::byte *const (&activations)[kMaxCores]);
  bool invalidate(int slice);
  Interval schedule(uint64_t issue);
};

/// What the array computes, and that one of its reduction trees takes so many cores.
isa::MaybeError ProductEngine::checkProduct() const {
  constexpr int64_t kMaxPprMode = 6; // a tree of 64 leaves
  if (isa::MaybeError wrong = isa::checkTileProduct(product, 1))
    return wrong;
  if (pprMode < 0 || pprMode > kMaxPprMode)
    return cat("ppr_mode is 0 to 6, not ", pprMode);
  if (imc < 1 || imc > int64_t(1) << pprMode)
    return cat("num_imc ", imc, " is not within 1 to 2^ppr_mode of ppr_mode ", pprMode);
  return std::nullopt;
}

bool ProductEngine::decodeKinds() {
  std::optional<isa::TileShape> acts = isa::tileOf(config->acts), weights = isa::tileOf(config->weights);
  bool orientation =
      acts && weights && !(static_cast<int>(config->acts) & 1) && (static_cast<int>(config->weights) & 1);
  if (!orientation)
    return quad.raise(queue, FaultKind::FormatMismatch,
                      cat("activations are ", isa::nameOf(config->acts), " and weights ", isa::nameOf(config->weights),
                          ", an R and a C kind are needed"));
  product.activation = *acts;
  product.weight = *weights;
  product.rows = static_cast<int>(rows);
  pprMode = in.get("ppr");
  if (isa::MaybeError wrong = checkProduct())
    return quad.raise(queue, FaultKind::FormatMismatch, *wrong);
  tileBytes = acts->bytes();
  runBytes = acts->runBytes();
  weightBytes = weights->bytes();
  return true;
}

bool ProductEngine::decodeSource() {
  if (isConv) {
    image = quad.value(queue, in, "img");
    imageRow = quad.value(queue, in, "irow");
    pix = quad.value(queue, in, "pix");
    if (config->imgMemory != Memory::GM && config->imgMemory != Memory::IB)
      return quad.raise(queue, FaultKind::BadOperand, cat("img_mem is ", isa::nameOf(config->imgMemory)));
    const Window &win = config->window;
    constexpr int64_t kMany = int64_t(1) << 40;
    if (pix < 0 || pix > kMany || imageRow < -kMany || imageRow > kMany)
      return quad.raise(queue, FaultKind::BadOperand, cat("pix is ", pix, ", irow ", imageRow));
    __int128 last = (__int128(win.h) * win.w + imageRow) / 64 + 1;
    if (last * std::abs(config->imgBand) > __int128(1) << 60 ||
        __int128(config->imgBlocks) * std::abs(config->imgChunk) > __int128(1) << 60 || isFar(image))
      return quad.raise(queue, FaultKind::Capacity, "the image spans more than any memory");
    return quad.checkAligned(queue, image, 64, "image") && quad.checkAligned(queue, config->imgBand, 64, "img_band") &&
           quad.checkAligned(queue, config->imgChunk, 64, "img_chunk");
  }
  ib = quad.value(queue, in, "ib");
  row = quad.value(queue, in, "row");
  if (isFar(ib))
    return quad.raise(queue, FaultKind::Capacity, cat("IB address ", ib));
  if (row < 0 || row > 64 || row + rows > 64)
    return quad.raise(queue, FaultKind::BadOperand, cat("rows ", row, "..", row + rows, " of tiles of 64"));
  return quad.checkAligned(queue, ib, 64, "IB") && quad.checkAligned(queue, config->ibChunk, 64, "ib_chunk") &&
         quad.checkAligned(queue, config->ibStep, 64, "ib_step");
}

bool ProductEngine::decode() {
  int64_t slot = in.get("slot");
  config = queue.array[slot];
  if (!config)
    return quad.raise(queue, FaultKind::MissingConfig, cat("slot ", slot, " of unit AC is not set in this queue"));
  slices = static_cast<uint32_t>(in.get("slices"));
  core = static_cast<int>(in.get("core"));
  imc = static_cast<int>(in.get("imc"));
  groups = static_cast<int>(in.get("groups"));
  stream = in.get("stream");
  rows = quad.value(queue, in, "rows");
  k0 = quad.value(queue, in, "k0");
  ob = quad.value(queue, in, "ob");
  wb = quad.value(queue, in, "wb");
  st = quad.value(queue, in, "st");
  acc = quad.value(queue, in, "acc");
  steps = quad.value(queue, in, "steps");
  if (quad.fault)
    return false;
  auto bad = [&](const char *name, int64_t value) {
    return quad.raise(queue, FaultKind::BadOperand, cat(name, " is ", value));
  };
  if (rows < 1 || rows > 64)
    return bad("rows", rows);
  if (steps < 0 || steps > int64_t(1) << 20)
    return bad("steps", steps);
  if (k0 < 0 || k0 > int64_t(1) << 40)
    return bad("k0", k0);
  for (int64_t address : {ob, wb, st})
    if (address < 0 || isFar(address))
      return quad.raise(queue, FaultKind::Capacity, cat("address ", address));
  return decodeSource() && decodeKinds() && quad.checkAligned(queue, ob, 4, "OB") &&
         quad.checkAligned(queue, config->obRow, 4, "ob_row") && quad.checkAligned(queue, wb, 64, "WB") &&
         (!stream || quad.checkAligned(queue, st, 64, "ST"));
}

/// K chunks of a step that exist.
int ProductEngine::chunksOf(int64_t step) const {
  int64_t first = k0 + (config->stepAccumulates ? step * imc : 0);
  return static_cast<int>(std::clamp<int64_t>(config->chunks - first, 0, imc));
}

/// Activation tiles of a MATMUL step: in place, or gathered when they do not begin at row 0.
bool ProductEngine::gatherRows(int slice, int64_t step, int chunks, const std::byte *(&tiles)[kMaxCores]) {
  uint32_t unit = quad.unitOf(Memory::IB, slice);
  std::vector<std::byte> &room = quad.scratch->tiles;
  room.resize(static_cast<size_t>(tileBytes) * kMaxCores);
  for (int i = 0; i < chunks; ++i) {
    int64_t tile = ib + step * config->ibStep + i * config->ibChunk;
    std::byte *exponents = quad.readable(queue, Memory::IB, unit, tile + row, rows, config->acts);
    std::byte *mantissas =
        exponents ? quad.readable(queue, Memory::IB, unit, tile + 64 + row * runBytes, rows * runBytes, config->acts)
                  : nullptr;
    if (!mantissas)
      return false;
    tiles[i] = exponents - row;
    if (row == 0)
      continue;
    std::byte *copy = room.data() + i * tileBytes;
    std::memcpy(copy, exponents, static_cast<size_t>(rows));
    std::memcpy(copy + 64, mantissas, static_cast<size_t>(rows * runBytes));
    tiles[i] = copy;
  }
  return true;
}

/// One chunk of the im2col rows of `count` output pixels.
bool ProductEngine::gatherChunk(int slice, int64_t chunk, int64_t firstPixel, int64_t count, std::byte *tile) {
  const Window &win = config->window;
  int64_t block = chunk % config->imgBlocks, kw = chunk / config->imgBlocks % win.kw,
          kh = chunk / config->imgBlocks / win.kw;
  uint32_t unit = quad.unitOf(config->imgMemory, slice);
  int64_t base = image + block * config->imgChunk;
  // Neighbouring pixels are neighbouring rows of a tile as long as stride and band allow.
  for (int64_t r = 0; r < count;) {
    int64_t oh = (firstPixel + r) / win.ow, ow = (firstPixel + r) % win.ow;
    int64_t ih = oh * win.sh - win.ph + kh * win.dh, iw = ow * win.sw - win.pw + kw * win.dw;
    if (ih < 0 || ih >= win.h || iw < 0 || iw >= win.w) {
      tile[r] = std::byte{0};
      std::memset(tile + 64 + r * runBytes, 0, static_cast<size_t>(runBytes));
      ++r;
      continue;
    }
    int64_t source = imageRow + ih * win.w + iw, run = 1;
    if (win.sw == 1)
      run = std::min({count - r, win.ow - ow, win.w - iw, 64 - source % 64});
    if (source < 0)
      return quad.raise(queue, FaultKind::BadOperand, cat("row ", source, " of the image"));
    int64_t at = base + source / 64 * config->imgBand;
    std::byte *exponents = quad.readable(queue, config->imgMemory, unit, at + source % 64, run, config->acts);
    std::byte *mantissas = exponents ? quad.readable(queue, config->imgMemory, unit, at + 64 + source % 64 * runBytes,
                                                     run * runBytes, config->acts)
                                     : nullptr;
    if (!mantissas)
      return false;
    std::memcpy(tile + r, exponents, static_cast<size_t>(run));
    std::memcpy(tile + 64 + r * runBytes, mantissas, static_cast<size_t>(run * runBytes));
    imageBytes += static_cast<uint64_t>(run * (runBytes + 1));
    r += run;
  }
  return true;
}

bool ProductEngine::gatherImage(int slice, int64_t step, int chunks, int64_t firstPixel, int64_t count,
                                const std::byte *(&tiles)[kMaxCores]) {
  std::vector<std::byte> &room = quad.scratch->tiles;
  room.resize(static_cast<size_t>(tileBytes) * kMaxCores);
  int64_t first = k0 + (config->stepAccumulates ? step * imc : 0);
  const Window &win = config->window;
  for (int i = 0; i < chunks; ++i) {
    std::byte *tile = room.data() + i * tileBytes;
    if (first + i >= win.kh * win.kw * config->imgBlocks)
      return quad.raise(queue, FaultKind::BadOperand,
                        cat("K chunk ", first + i, " of ", win.kh * win.kw * config->imgBlocks));
    if (!gatherChunk(slice, first + i, firstPixel, count, tile))
      return false;
    tiles[i] = tile;
  }
  return true;
}

/// The weight tiles of a group: from WB, or in stream mode from ST.
bool ProductEngine::weightsOf(int slice, int64_t step, int group, int chunks, const std::byte *(&tiles)[kMaxCores]) {
  for (int i = 0; i < chunks; ++i) {
    if (stream) {
      int64_t at = st + step * config->stStep + group * config->stGroup + i * config->stChunk;
      tiles[i] =
          quad.checkAligned(queue, at, 64, "ST")
              ? quad.readable(queue, Memory::ST, quad.unitOf(Memory::ST, slice), at, weightBytes, config->weights)
              : nullptr;
    } else {
      tiles[i] = quad.readable(queue, Memory::WB, quad.unitOf(Memory::WB, slice, core + group * imc + i), wb,
                               weightBytes, config->weights);
    }
    if (!tiles[i])
      return false;
  }
  return true;
}

bool ProductEngine::store(int slice, int64_t step, int group, int64_t count, int chunks,
                          const std::byte *const (&activations)[kMaxCores]) {
  const std::byte *weights[kMaxCores];
  if (!weightsOf(slice, step, group, chunks, weights))
    return false;
  uint32_t unit = quad.unitOf(Memory::OB, slice);
  int64_t at = ob + step * config->obStep + group * config->obGroup;
  bool add = acc != 0 || (config->stepAccumulates && step > 0);
  std::byte *out = nullptr;
  bool dense = config->obRow == 256;
  for (int64_t r = 0; r < (dense ? 1 : count); ++r) {
    int64_t from = at + r * config->obRow, size = dense ? count * 256 : 256;
    if (add && !quad.readable(queue, Memory::OB, unit, from, size, ElemKind::Bfp32))
      return false;
    std::byte *data = quad.writable(queue, Memory::OB, unit, from, size, ElemKind::Bfp32);
    if (!data)
      return false;
    out = r ? out : data;
  }
  auto *values = reinterpret_cast<float *>(out);
  auto stride = static_cast<ptrdiff_t>(config->obRow / 4);
  if (chunks == 0) { // all partials are missing: +0
    for (int64_t r = 0; r < count && !add; ++r)
      std::fill_n(values + r * stride, 64, 0.0f);
    return true;
  }
  product.rows = static_cast<int>(count);
  product.accumulate = add;
  isa::MaybeError wrong = quad.scratch->product.run(product, {activations, static_cast<size_t>(chunks)},
                                                    {weights, static_cast<size_t>(chunks)}, values, stride);
  macs += static_cast<uint64_t>(count * chunks * product.activation.depth) * 64;
  return !wrong || quad.raise(queue, FaultKind::BadOperand, *wrong);
}

bool ProductEngine::runStep(int slice, int rank, int64_t step) {
  const std::byte *activations[kMaxCores];
  int chunks = chunksOf(step);
  int64_t count = rows;
  if (isConv) {
    int64_t first = pix + rank * config->pixSlice;
    count = std::clamp<int64_t>(config->pixels - first, 0, rows);
    if (!gatherImage(slice, step, chunks, first, count, activations))
      return false;
  } else if (!gatherRows(slice, step, chunks, activations)) {
    return false;
  }
  for (int group = 0; group < groups && count > 0; ++group)
    if (!store(slice, step, group, count, chunks, activations))
      return false;
  return true;
}

/// Streaming leaves the two halves of WB undefined.
bool ProductEngine::invalidate(int slice) {
  int64_t half = (weightBytes + 127) / 128 * 128,
          halves = 2 * half <= static_cast<int64_t>(quad.machine.memory(Memory::WB).size) - wb ? 2 : 1;
  for (int i = 0; i < groups * imc; ++i)
    if (!quad.discard(queue, Memory::WB, quad.unitOf(Memory::WB, slice, core + i), wb,
                      (halves - 1) * half + weightBytes))
      return false;
  return true;
}

bool ProductEngine::runSlice(int slice, int rank) {
  if (stream && !invalidate(slice))
    return false;
  for (int64_t step = 0; step < steps; ++step)
    if (!runStep(slice, rank, step))
      return false;
  return true;
}

Interval ProductEngine::schedule(uint64_t issue) {
  const isa::Machine &machine = quad.machine;
  Timeline &time = quad.timeline;
  int p = product.activation.format.precision, q = product.weight.format.precision;
  double rowClocks = p == 16 ? machine.rowClocks16 : p == 4 && q == 4 ? machine.rowClocks4 : machine.rowClocks8;
  uint64_t step = ceilClocks(static_cast<double>(rows) * rowClocks), compute = step * static_cast<uint64_t>(steps);
  uint64_t cores = static_cast<uint64_t>(groups) * static_cast<uint64_t>(imc), load = 0, lead = 0;
  std::vector<Timeline::Demand> demands;
  if (stream && steps > 0) {
    double port = static_cast<double>(weightBytes) / machine.memory(Memory::WB).write;
    double stash = static_cast<double>(weightBytes) * static_cast<double>(cores) / machine.memory(Memory::ST).read;
    load = ceilClocks(std::max(port, stash));
    lead = ceilClocks(machine.memory(Memory::ST).latency) + load;
    bool halves = 2 * ((weightBytes + 127) / 128 * 128) <= static_cast<int64_t>(machine.memory(Memory::WB).size) - wb;
    uint64_t rest = static_cast<uint64_t>(steps - 1);
    compute = lead + step + rest * (halves ? std::max(step, load) : step + load);
  }
  uint64_t imageClocks = ceilClocks(static_cast<double>(imageBytes) / machine.memory(Memory::GM).read);
  compute = std::max(compute, config->imgMemory == Memory::GM ? imageClocks : 0);
  for (int slice = 0; slice < machine.slices; ++slice)
    if (slices >> slice & 1) {
      demands.push_back({&time.dimc[slice], compute});
      if (stream)
        demands.push_back({&time.stRead[slice], load * static_cast<uint64_t>(steps)});
    }
  if (isConv && config->imgMemory == Memory::GM)
    demands.push_back({&time.gmRead, imageClocks});
  uint64_t latency = ceilClocks(machine.fillLatency + static_cast<double>(pprMode) * machine.pprLevelLatency);
  Interval when = time.transfer({}, issue, 0, demands, compute, latency);
  for (int slice = 0; slice < machine.slices; ++slice)
    if (slices >> slice & 1) {
      uint64_t end = when.end - latency;
      // Useful array time is that of the rows; what waits for weights is not.
      quad.record(queue, Engine::Dimc, slice, end - step * static_cast<uint64_t>(steps), end);
      if (stream)
        quad.record(queue, Engine::ToWb, slice, end - compute, end - compute + load * static_cast<uint64_t>(steps));
    }
  return when;
}

bool ProductEngine::run(uint64_t issue, Interval &when) {
  if (!decode())
    return false;
  int rank = 0;
  for (int slice = 0; slice < quad.machine.slices; ++slice)
    if (slices >> slice & 1)
      if (!runSlice(slice, rank++))
        return false;
  when = schedule(issue);
  Usage &usage = queue.pending;
  uint64_t weightReads = static_cast<uint64_t>(weightBytes * groups * imc * steps) * static_cast<uint64_t>(rank);
  uint64_t actBytes = static_cast<uint64_t>(rows * (runBytes + 1) * imc * steps) * static_cast<uint64_t>(rank);
  usage.readBytes[static_cast<int>(isConv ? config->imgMemory : Memory::IB)] += isConv ? imageBytes : actBytes;
  usage.readBytes[static_cast<int>(Memory::WB)] += weightReads;
  if (stream) {
    usage.readBytes[static_cast<int>(Memory::ST)] += weightReads;
    usage.writtenBytes[static_cast<int>(Memory::WB)] += weightReads;
  }
  usage.writtenBytes[static_cast<int>(Memory::OB)] +=
      static_cast<uint64_t>(rows * 256 * groups * steps) * static_cast<uint64_t>(rank);
  int p = product.activation.format.precision, q = product.weight.format.precision;
  (p == 16 ? usage.macs16 : p == 4 && q == 4 ? usage.macs4 : usage.macs8) += macs;
  return true;
}

} // namespace

bool executeProduct(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when) {
  return ProductEngine(quad, queue, in).run(issue, when);
}

} // namespace dmxrt::corsair
