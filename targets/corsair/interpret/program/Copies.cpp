//===- Copies.cpp - items of one memory to another ------------------------===//
#include "Tasks.h"

#include <cstring>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using namespace dmxc::corsair::stages;
using hw::ElemKind;
using hw::Memory;

namespace {

bool isFloat(ElemKind kind) { return kind == ElemKind::F16 || kind == ElemKind::F32 || kind == ElemKind::Bfp32; }
bool isOfSlices(Memory memory) { return memory != Memory::DDR && memory != Memory::GM; }

float floatAt(const std::byte *at, ElemKind kind) {
  uint16_t half = 0;
  float value = 0;
  if (kind == ElemKind::F16)
    std::memcpy(&half, at, sizeof half);
  else
    std::memcpy(&value, at, sizeof value);
  return kind == ElemKind::F16 ? hw::f16Widen(half) : value;
}

void putFloat(std::byte *at, ElemKind kind, float value) {
  const uint16_t half = hw::f16Round(value);
  value = kind == ElemKind::Bfp32 ? hw::roundToBfp32(value) : value;
  if (kind == ElemKind::F16)
    std::memcpy(at, &half, sizeof half);
  else
    std::memcpy(at, &value, sizeof value);
}

/// One end of a copy: where item (0, 0, 0, 0) is, and how its items lie.
struct End {
  Cell *cell = nullptr;
  Wide at = 0;
  int64_t row = 0, band = 0;
  ElemKind kind = ElemKind::Raw;
  bool inRows = false;
  const int64_t (*step)[4] = nullptr;
};

/// A row of a tile.
struct TileRow {
  Wide scale, mantissas;
};

class Copy {
public:
  Copy(dlir::DmaCopyOp op, const TaskSite &site) : op(op), site(site) {}

  Status run() {
    if (decode() && isMeant() && toAll())
      return Status::ok();
    return access.status();
  }

private:
  bool decode();
  bool isMeant();
  bool decodeMasks(int64_t quads);
  bool toAll();
  bool toReceivers(int64_t slice, Wide from, Wide to);
  bool copyAll(Cell &from, Wide fromAt, Cell &to, Wide toAt);
  bool copyItem(const int64_t (&i)[4]);
  int64_t existing(const int64_t (&i)[4]) const;
  std::optional<TileRow> rowOf(const End &end, const int64_t (&i)[4]);
  bool copyTileRow(const int64_t (&i)[4]);
  bool load(const int64_t (&i)[4]);
  bool store(const int64_t (&i)[4]);

  dlir::DmaCopyOp op;
  const TaskSite &site;
  Accesses access;
  Walked walked;
  Memory from = Memory::GM, to = Memory::GM;
  Wide fromPlace = 0, toPlace = 0;
  int64_t slices = 1, cores = 1, peers = 0, count = 0; ///< count: elements of an item
  End source, target;
  std::vector<float> values; ///< of an item that is converted
};

bool Copy::decode() {
  from = memoryOf(op.getBuffers()[0]), to = memoryOf(op.getBuffers()[1]);
  const TaskNumbers numbers(op, site, access);
  if (!walked.read(op.getDescriptor().getDefiningOp<dlir::DescriptorOp>(), access) ||
      !walked.replaceCount(numbers.of(op.getCount(), -1), access))
    return false;
  fromPlace = numbers.place(0), toPlace = numbers.place(1);
  source.row = numbers.of(op.getRows(), 0, 0), target.row = numbers.of(op.getRows(), 0, 1);
  source.band = walked.sourceBand, target.band = walked.targetBand;
  source.kind = walked.kind, target.kind = walked.to;
  source.inRows = walked.sourceRows, target.inRows = walked.targetRows;
  source.step = &walked.s, target.step = &walked.t;
  const int64_t quads = numbers.of(op.getPeers(), 0);
  return static_cast<bool>(access.status()) && decodeMasks(quads);
}

bool Copy::decodeMasks(int64_t quads) {
  const hw::Machine &machine = site.machine();
  slices = given(op.getUnits(), hw::Opcode::Move, "slices");
  cores = given(op.getSubunits(), hw::Opcode::Move, "cores");
  peers = quads;
  const int64_t chiplet = (int64_t(1) << machine.quads) - 1, own = site.quad / machine.quads * machine.quads;
  if (peers && from == Memory::DDR && peers >= 0 && (peers & ~(chiplet << own)))
    return access.fail("names peers " + std::to_string(peers) + ", DDR reaches the quads of its chiplet");
  return (!peers || isMaskOf(peers, machine.quadCount(), "peers", access)) &&
         isMaskOf(slices, machine.slices, "units", access) && isMaskOf(cores, machine.cores, "subunits", access);
}

/// What ISA.md (5) says of descriptors.
bool Copy::isMeant() {
  const bool rows = source.inRows || target.inRows, same = hw::sameBytes(walked.kind, walked.to),
             converts = walked.kind != walked.to && !walked.retype;
  auto tiled = [](const End &end) { return !end.inRows || hw::isTiled(end.kind); };
  auto linear = [](const End &end) { return end.inRows || isFloat(end.kind); };
  if (walked.retype ? !same : walked.kind != walked.to && same)
    return access.fail(walked.retype ? "exchanges kinds of other bytes" : "converts between kinds of the same bytes");
  if (converts && !hw::mayConvert(from, to))
    return access.fail("converts where one end is DDR");
  const bool bounded =
      llvm::any_of(llvm::seq(4), [&](int k) { return walked.low[k] > 0 || walked.high[k] < walked.n[k]; });
  if (walked.kind == ElemKind::Raw && (rows || converts || bounded || walked.tail))
    return access.fail("copies raw bytes otherwise than as they lie");
  if (!tiled(source) || !tiled(target))
    return access.fail("walks rows of what is not made of tiles");
  if ((rows || converts) && (!linear(source) || !linear(target)))
    return access.fail("converts what are no floats");
  if (source.inRows && target.inRows && hw::tileOf(walked.kind)->depth != hw::tileOf(walked.to)->depth)
    return access.fail("copies rows between tiles of different depth");
  count = rows ? hw::tileOf(source.inRows ? walked.kind : walked.to)->depth : walked.unit;
  return true;
}

bool Copy::toAll() {
  if (!isOfSlices(from) && !isOfSlices(to))
    return toReceivers(0, fromPlace, toPlace);
  return eachOf(slices, site.machine().slices, [&](int64_t slice, int64_t rank) {
    const Wide at = fromPlace + Wide(rank) * walked.sourceUnit, into = toPlace + Wide(rank) * walked.targetUnit;
    if (to != Memory::WB)
      return toReceivers(slice, at, into);
    return eachOf(cores, site.machine().cores, [&](int64_t core, int64_t number) {
      return copyAll(site.card.cellOf(op.getBuffers()[0], site.quad, slice), at + Wide(number) * walked.sourceSubunit,
                     site.card.cellOf(op.getBuffers()[1], site.quad, slice, core), into);
    });
  });
}

bool Copy::toReceivers(int64_t slice, Wide at, Wide into) {
  Cell &own = site.card.cellOf(op.getBuffers()[0], site.quad, slice);
  if (!peers)
    return copyAll(own, at, site.card.cellOf(op.getBuffers()[1], site.quad, slice), into);
  return eachOf(peers, site.machine().quadCount(), [&](int64_t peer, int64_t) {
    return copyAll(own, at, site.card.cellOf(op.getBuffers()[1], peer), into);
  });
}

bool Copy::copyAll(Cell &fromCell, Wide fromAt, Cell &toCell, Wide toAt) {
  source.cell = &fromCell, source.at = fromAt;
  target.cell = &toCell, target.at = toAt;
  for (const End *end : {&source, &target})
    if (!access.isAligned(*end->cell, end->at, end->inRows ? 64 : unitBytes(end->kind)) ||
        (end->inRows &&
         (!access.isAligned(*end->cell, end->band, 64) || !access.isAligned(*end->cell, (*end->step)[3], 64))))
      return false;
  if (!target.inRows && Wide(count) * unitBytes(target.kind) > toCell.size() && !llvm::is_contained(walked.n, 0))
    return access.fail("writes items of more bytes than " + toCell.name() + " has");
  return eachItem(walked.n, [&](const int64_t (&i)[4]) { return copyItem(i); });
}

/// How many elements of an item exist; the others are zeros.
int64_t Copy::existing(const int64_t (&i)[4]) const {
  for (int k = 0; k < 4; ++k)
    if (i[k] < walked.low[k] || i[k] >= walked.high[k])
      return 0;
  return walked.tail && i[3] == walked.n[3] - 1 ? std::min(walked.tail, count) : count;
}

bool Copy::copyItem(const int64_t (&i)[4]) {
  const Wide at = source.at + dot(i, walked.s), into = target.at + dot(i, walked.t);
  if (walked.kind == ElemKind::Raw)
    return access.copy(*source.cell, at, *target.cell, into, walked.unit);
  const bool same = walked.kind == walked.to || walked.retype;
  if (same && source.inRows && target.inRows)
    return copyTileRow(i);
  if (!same || source.inRows || target.inRows)
    return load(i) && store(i);
  const int64_t size = unitBytes(walked.to), valid = existing(i);
  const std::byte *in = valid ? access.read(*source.cell, at, valid * size, walked.kind) : nullptr;
  std::byte *out = in || !valid ? access.write(*target.cell, into, count * size, walked.to) : nullptr;
  if (!out)
    return false;
  if (valid)
    std::memmove(out, in, valid * size);
  std::memset(out + valid * size, 0, (count - valid) * size);
  return true;
}

std::optional<TileRow> Copy::rowOf(const End &end, const int64_t (&i)[4]) {
  const int64_t (&step)[4] = *end.step;
  const Wide row = end.row + Wide(i[0]) * step[0] + Wide(i[1]) * step[1] + Wide(i[2]) * step[2];
  if (row < 0) {
    access.fail("walks to a row before the first one of " + end.cell->name());
    return std::nullopt;
  }
  const Wide tile = end.at + row / 64 * end.band + Wide(i[3]) * step[3];
  return TileRow{tile + row % 64, tile + 64 + row % 64 * hw::tileOf(end.kind)->runBytes()};
}

/// Rows of one format, with their codes.
bool Copy::copyTileRow(const int64_t (&i)[4]) {
  const int64_t bytes = hw::tileOf(walked.kind)->runBytes(), valid = existing(i);
  std::optional<TileRow> in = valid ? rowOf(source, i) : TileRow(), out = in ? rowOf(target, i) : std::nullopt;
  if (!out)
    return false;
  const std::pair<Wide, Wide> parts[] = {{in->scale, out->scale}, {in->mantissas, out->mantissas}};
  for (auto [at, into] : parts) {
    const int64_t size = into == out->scale ? 1 : bytes;
    const std::byte *from = valid ? access.read(*source.cell, at, size, walked.kind) : nullptr;
    std::byte *made = from || !valid ? access.write(*target.cell, into, size, walked.to) : nullptr;
    if (!made)
      return false;
    valid ? std::memmove(made, from, size) : std::memset(made, 0, size);
  }
  return true;
}

/// The numbers of an item, those that do not exist as zeros.
bool Copy::load(const int64_t (&i)[4]) {
  const int64_t valid = existing(i);
  values.assign(count, 0.0F);
  if (source.inRows && valid) {
    const hw::TileShape shape = *hw::tileOf(source.kind);
    std::optional<TileRow> row = rowOf(source, i);
    const std::byte *scale = row ? access.read(*source.cell, row->scale, 1, source.kind) : nullptr,
                    *mantissas =
                        scale ? access.read(*source.cell, row->mantissas, shape.runBytes(), source.kind) : nullptr;
    if (!mantissas)
      return false;
    hw::dequantizeRun(shape, {scale, mantissas}, values.data());
    std::fill(values.begin() + valid, values.end(), 0.0F);
    return true;
  }
  const int64_t size = unitBytes(source.kind),
                pitch = target.inRows && walked.elementStride ? walked.elementStride : size;
  const Wide at = source.at + dot(i, walked.s);
  if (pitch == size && valid) {
    const std::byte *all = access.read(*source.cell, at, valid * size, source.kind);
    for (int64_t k = 0; all && k < valid; ++k)
      values[k] = floatAt(all + k * size, source.kind);
    return all != nullptr;
  }
  for (int64_t k = 0; k < valid; ++k) {
    const std::byte *one = access.read(*source.cell, at + Wide(k) * pitch, size, source.kind);
    if (!one)
      return false;
    values[k] = floatAt(one, source.kind);
  }
  return true;
}

bool Copy::store(const int64_t (&i)[4]) {
  if (target.inRows) {
    const hw::TileShape shape = *hw::tileOf(target.kind);
    std::optional<TileRow> row = rowOf(target, i);
    std::byte *scale = row ? access.write(*target.cell, row->scale, 1, target.kind) : nullptr,
              *mantissas = scale ? access.write(*target.cell, row->mantissas, shape.runBytes(), target.kind) : nullptr;
    return mantissas && (hw::quantizeRun(shape, values.data(), hw::Rounding::Nearest, nullptr, scale, mantissas) ||
                         access.fail("quantises what has no code"));
  }
  const int64_t size = unitBytes(target.kind),
                pitch = source.inRows && walked.elementStride ? walked.elementStride : size;
  const Wide into = target.at + dot(i, walked.t);
  for (int64_t k = 0; k < count; ++k) {
    std::byte *one = access.write(*target.cell, into + Wide(k) * pitch, size, target.kind);
    if (!one)
      return false;
    putFloat(one, target.kind, values[k]);
  }
  return true;
}

} // namespace

Status dmxc::corsair::stages::runTask(dlir::DmaCopyOp op, const TaskSite &site) { return Copy(op, site).run(); }
