//===- Stay.cpp - rows of a that stay in memory tiles ---------------------===//
#include "Stay.h"

using namespace dmxc;
using namespace dmxc::aie;

Stay::Stay(const hw::Machine &machine, const Mapping &p) {
  if (p.open)
    why = "rows of a stay in memory tiles where its sizes are fixed";
  else if (p.herd.panels > 1 && (p.herd.panels != 2 || p.herd.rows % 2))
    why = "panels of b are shared by pairs of cores, of " + std::to_string(p.herd.panels) +
          " panels and so many rows of cores: " + std::to_string(p.herd.rows);
  else
    layOut(machine, p);
  if (!why)
    choose(machine, p);
}

void Stay::layOut(const hw::Machine &machine, const Mapping &p) {
  const Numbers &n = p.numbers;
  const hw::MatrixStep &step = n.step;
  int64_t most = machine.tile(hw::TileKind::Memory).largestLength;
  if (!p.image) {
    slot = n.m * p.paddedK();
    walks = {{0, {{p.paddedK() / step.k, step.k}, {n.m, p.paddedK()}}}};
  } else {
    const ImageWalk &image = *p.image;
    int64_t window = image.step();
    length = p.reachOfWindows() + (n.m - 1) * window;
    length = (length + window - 1) / window * window;
    planes = p.planesOfWindows();
    slot = planes * length;
    auto inSlot = [&](int64_t place) { return place / image.plane() * length + place % image.plane(); };
    for (const ImageTask &task : tasksOf(image, n.k)) {
      if (task.tiles > 1 && task.tile != n.k)
        why = "columns of the kernel that are dilated are tiles of their own, which no BD of a memory tile walks over";
      walks.push_back({inSlot(task.offset),
                       {{task.steps, inSlot(task.stride)}, {task.tiles * n.k / step.k, step.k}, {n.m, window}}});
    }
    if (p.hasTileOfZeros()) // weights of zero meet any numbers
      walks.push_back({0, {{n.k / step.k, step.k}, {n.m, window}}});
    int64_t wrap = machine.tile(hw::TileKind::Shim).largestWrap;
    if (window * n.bytes / 4 > wrap || length / window > wrap)
      why = "a part of the image is " + std::to_string(length / window) + " pixels of " +
            std::to_string(window * n.bytes / 4) + " words, a dim of a shim's BD has " + std::to_string(wrap);
  }
  for (const Walk &walk : walks) {
    auto isWord = [&](int64_t place) { return place * n.bytes % 4 == 0; };
    if (!isWord(walk.offset) || !llvm::all_of(walk.dims, [&](auto dim) { return isWord(dim.second); }))
      why = "windows begin between the words that a memory tile moves";
    int64_t words = n.bytes * step.k / 4;
    for (auto [count, apart] : walk.dims)
      words *= count;
    if (std::max(words, slot * n.bytes / 4) > most)
      why = "rows of a are " + std::to_string(std::max(words, slot * n.bytes / 4)) +
            " words, a BD of a memory tile moves " + std::to_string(most);
  }
}

/// Whether BDs, locks and memory of a tile are enough.
bool Stay::holds(const hw::Machine &machine, const Mapping &p) const {
  const Numbers &n = p.numbers;
  const hw::TileInfo &memory = machine.tile(hw::TileKind::Memory);
  int64_t parts = p.herd.parts(), panels = p.herd.panels, bds[2] = {0, 0}, each = static_cast<int64_t>(walks.size());
  auto take = [&](int64_t channel, int64_t number) { bds[channel % 2] += number; };
  int64_t panel = chunkRows(p) * n.n * n.bytes;
  if (panels == 1) {
    take(0, parts * turns);
    take(1, 2);
    panel = n.k * n.n * n.bytes;
  }
  for (int64_t channel = 0; panels > 1 && channel < panels; ++channel) // slots are two, so that BDs go round them
    take(channel,
         once ? partsOf(p.herd, channel) + 2 : (partsOf(p.herd, channel) + uses * chunks) * (1 + uses * chunks % 2));
  for (int64_t row = 0; row < p.herd.rows; ++row)
    take(2 + row, 2);
  for (int64_t part = 0; part < parts; ++part)
    take(part, turns == 1 ? each : turns * uses * each);
  for (int64_t channel = 0; channel < panels; ++channel)
    take(parts + channel, 2);
  for (int64_t out = 0; out < p.herd.outs; ++out)
    take(parts + panels + out, 2 * (p.herd.rows * (out + 1) / p.herd.outs - p.herd.rows * out / p.herd.outs));
  int64_t bytes = turns * parts * slot * n.bytes + 2 * panels * panel + 2 * p.herd.rows * n.m * n.n * p.resultBytes();
  return std::max(bds[0], bds[1]) <= memory.bds / 2 && bytes <= memory.dataBytes &&
         uses * each <= machine.largestLock && panel / 4 <= memory.largestLength;
}

/// As many blocks as there are beside each other, if they can be; the next rows meanwhile, if there are some; pieces of
/// a panel as small as BDs allow, since a piece is there when all of it is.
void Stay::choose(const hw::Machine &machine, const Mapping &p) {
  int64_t beside = p.paddedN() / p.blockN(), tiles = p.tilesOfB(), bands = p.blocks() / beside;
  for (uses = beside; uses > 0; --uses) {
    if (beside % uses)
      continue;
    bool isLast = bands * beside == uses, shares = p.herd.panels > 1;
    once = shares && isLast;
    int64_t most = !shares ? 1 : once ? tiles : std::min(tiles, machine.tile(hw::TileKind::Memory).bds / 2 / uses);
    for (turns = shares || isLast ? 1 : 2; turns > 0; --turns)
      for (chunks = most; chunks > (once ? tiles - 1 : 0); --chunks)
        if (tiles % chunks == 0 && holds(machine, p))
          return;
  }
  once = false;
  uses = turns = chunks = 1;
  why = "rows of a along all of k are " + std::to_string(slot * p.numbers.bytes) + " bytes of each of " +
        std::to_string(p.herd.parts()) + " parts, which a memory tile does not hold beside the rest";
}
