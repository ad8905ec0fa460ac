//===- MemoryOps.cpp - loads, stores and atomics ------------------------------===//

#include "Decoder.h"
#include "Lanes.h"
#include "cluster/Cluster.h"

namespace dmxrt::cuda {
namespace {

bool isLocal(const Warp &w, uint32_t lane, uintptr_t address, uint32_t bytes) {
  if (!w.localBytes)
    return false;
  auto begin = reinterpret_cast<uintptr_t>(w.local) + lane * w.localBytes;
  return address >= begin && bytes <= w.localBytes && address - begin <= w.localBytes - bytes;
}

/// The same of shared memory, by its own addresses.
std::byte *locateShared(Warp &w, uint32_t lane, uint64_t address, bool isOfCluster, const Memory::Access &access) {
  std::string problem;
  std::byte *there = nullptr;
  uint32_t actor = w.block ? w.block->actors.ofWarp(w.number) : 0;
  if (address % access.align)
    problem = cat("align: it accesses ", access.bytes, " bytes at byte ", address, " of shared memory, no multiple of ",
                  access.align);
  else if (isOfCluster && w.block && w.block->cluster && address >= kWindowBytes && !access.isAtomic)
    problem = w.block->cluster->locate(w, address, access, there);
  else if (!w.block || !w.block->shared.holds(address, access.bytes))
    problem = cat("bounds: it accesses ", access.bytes, " bytes at byte ", address,
                  " of shared memory, and not all of them are there");
  else if (access.isAtomic)
    problem = "bounds: an atomic instruction of shared memory is not known here";
  else
    problem = access.isWrite ? w.block->shared.write(address, access.bytes, actor, w.block->knows[w.number])
                             : w.block->shared.read(address, access.bytes, actor, w.block->knows[w.number]);
  if (problem.empty())
    return there ? there : w.block->shared.at(address);
  w.fail(lane, std::move(problem));
  return nullptr;
}

/// Looks at one lane's access; where its bytes are, or null.
std::byte *locate(Warp &w, const Op &op, uint32_t lane, Memory::Access access) {
  uint64_t address = w.slots[op.source[0]][lane] + static_cast<uint64_t>(op.offset);
  if (op.isShared() || (op.space == GenericSpace && address - kSharedWindow < kWindowBytes))
    return locateShared(w, lane, op.isShared() ? address : address - kSharedWindow, op.space == ClusterSpace, access);
  access.address = address;
  access.thread = w.firstThread + lane;
  access.owner = w.memory->byBlock ? w.owner : access.thread;
  bool isOwn = isLocal(w, lane, address, access.bytes) && address % access.align == 0 && !access.isAtomic;
  std::string problem;
  if (!isOwn && !w.memory->check(access, w.regionHint, problem)) {
    w.fail(lane, std::move(problem));
    return nullptr;
  }
  return reinterpret_cast<std::byte *>(address);
}

uint64_t readBytes(const std::byte *from, uint32_t bytes) {
  uint64_t out = 0;
  std::memcpy(&out, from, bytes);
  return out;
}

bool load(Warp &w, const Op &op) {
  uint32_t total = op.bytes * op.results, unused = 64 - 8 * op.bytes;
  for (uint32_t left = w.active; left; left &= left - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(left));
    Memory::Access access{0, total, total, 0, 0};
    access.isConstant = op.isConstant;
    const std::byte *from = locate(w, op, lane, access);
    if (!from)
      return false;
    for (uint32_t part = 0; part < op.results; ++part) {
      uint64_t value = readBytes(from + part * op.bytes, op.bytes);
      if (op.signExtends)
        value = uint64_t(int64_t(value << unused) >> unused) << (64 - 8 * op.wideBytes) >> (64 - 8 * op.wideBytes);
      w.slots[op.result[part]][lane] = value;
    }
  }
  for (uint32_t part = 0; part < op.results; ++part)
    wrote(w, op.result[part]);
  return true;
}

bool store(Warp &w, const Op &op) {
  uint32_t parts = op.sources - 1u, total = op.bytes * parts;
  for (uint32_t left = w.active; left; left &= left - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(left));
    Memory::Access access{0, total, total, 0, 0};
    access.isWrite = true;
    std::byte *to = locate(w, op, lane, access);
    if (!to)
      return false;
    for (uint32_t part = 0; part < parts; ++part)
      std::memcpy(to + part * op.bytes, &w.slots[op.source[part + 1]][lane], op.bytes);
  }
  return true;
}

/// The old value; the new one is stored where the old one is what was expected.
bool compareAndSwap(Warp &w, const Op &op) {
  auto &expected = w.slots[op.source[1]], &value = w.slots[op.source[2]];
  for (uint32_t left = w.active; left; left &= left - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(left));
    Memory::Access access{0, op.bytes, op.bytes, 0, 0};
    access.isWrite = access.isAtomic = true;
    std::byte *at = locate(w, op, lane, access);
    if (!at)
      return false;
    uint64_t old = readBytes(at, op.bytes);
    if (old == expected[lane])
      std::memcpy(at, &value[lane], op.bytes);
    if (op.results)
      w.slots[op.result[0]][lane] = old;
  }
  if (op.results)
    wrote(w, op.result[0]);
  return true;
}

bool copyParameter(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]];
  forLanes(w.active, [&](uint32_t i) { to[i] = a[i]; });
  return wrote(w, op.result[0]);
}

/// The space of an address, where it is said.
void takeSpace(Decoder &d, Op &op) {
  if (d.take("shared::cluster"))
    op.space = ClusterSpace;
  else if (d.takeAny({"shared", "shared::cta"}))
    op.space = SharedSpace;
  else
    op.space = d.takeAny({"global", "local", "const"}) ? GlobalSpace : GenericSpace;
}

bool decodeParameter(Decoder &d, Op &op) {
  PtxType t = d.takeType();
  op.step = copyParameter;
  return t.bits >= 32 && d.hasOperands(2) && d.result(op, 0, t) && d.address(op, d.operand(1), true) &&
         (op.offset == 0 || d.refuseForm()) &&
         (d.parameterBits(op) == t.bits || d.refuse("a parameter of another width is read"));
}

/// A register, or the registers of a vector.
template <typename Take> bool takeParts(Decoder &d, const PtxOperand &operand, size_t count, Take take) {
  if (count == 1)
    return take(operand);
  if (operand.kind != PtxOperand::Vector || operand.parts.size() != count)
    return d.refuseForm();
  for (const PtxOperand &part : operand.parts)
    if (!take(part))
      return false;
  return true;
}

bool decodeAtomic(Decoder &d, Op &op) {
  d.takeAny({"relaxed"});
  d.takeAny({"gpu", "sys"});
  if (!d.take("global") || !d.take("cas"))
    return false;
  PtxType t = d.takeType();
  op.space = GlobalSpace;
  op.step = compareAndSwap;
  op.bytes = static_cast<uint8_t>(t.bytes());
  bool sinks = d.operands() == 4 && d.operand(0).kind == PtxOperand::Nothing;
  return t.kind == 'b' && t.bits >= 32 && d.hasOperands(4) && (sinks || d.result(op, 0, t)) &&
         d.address(op, d.operand(1), false) && d.source(op, 2, t) && d.source(op, 3, t);
}

} // namespace

bool decodeMemory(Decoder &d, std::string_view root, Op &op) {
  if (root == "atom")
    return decodeAtomic(d, op);
  bool loads = root == "ld";
  if (!loads && root != "st")
    return false;
  if (loads && d.take("param"))
    return decodeParameter(d, op);
  takeSpace(d, op);
  op.isConstant = loads && d.take("nc");
  size_t count = d.take("v2") ? 2 : d.take("v4") ? 4 : 1;
  PtxType t = d.takeType();
  if (t.bits < 8 || !d.hasOperands(2))
    return false;
  op.step = loads ? load : store;
  op.bytes = static_cast<uint8_t>(t.bytes());
  op.signExtends = t.isSigned();
  const PtxOperand &data = d.operand(loads ? 0 : 1);
  const PtxOperand &address = d.operand(loads ? 1 : 0);
  if (!(op.isShared() ? d.sharedAddress(op, address, op.offset) : d.address(op, address, false)))
    return false;
  if (!takeParts(d, data, count, [&](const PtxOperand &part) {
        return loads ? d.result(op, part, t, /*wider=*/true) : d.source(op, part, t, /*wider=*/true);
      }))
    return false;
  op.wideBytes = static_cast<uint8_t>(loads && count == 1 ? d.registerBits(data) / 8 : op.bytes);
  return true;
}

} // namespace dmxrt::cuda
