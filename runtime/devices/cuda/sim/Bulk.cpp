//===- Bulk.cpp - copies that a block's threads do not do themselves ----------===//

#include "Bulk.h"

#include "runtime/Error.h"

#include <cstring>

namespace dmxrt::cuda {
namespace {

constexpr uint32_t kChunk = 16; ///< bytes that a swizzle moves together

uint32_t rowsOf(const TensorMap &map) {
  uint32_t rows = 1;
  for (uint32_t i = 1; i < map.rank; ++i)
    rows *= map.boxSize(i);
  return rows;
}
uint64_t rowBytes(const TensorMap &map) { return uint64_t(map.boxSize(0)) * bytesOf(map.type); }

/// Calls each(address, bytes), which gives a problem, for where a box of so many bytes lies in shared memory: a swizzle
/// changes places within as many bytes as its span is, and what is left at the end may have places behind the box's.
template <typename Each> std::string forPlaces(const BulkCopy &copy, uint64_t bytes, Each each) {
  uint64_t whole = copy.map.swizzle ? bytes / copy.map.swizzle * copy.map.swizzle : bytes;
  std::string problem = whole ? each(copy.shared, whole) : std::string();
  for (uint64_t i = whole; i < bytes && problem.empty(); i += kChunk)
    problem = each(swizzled(copy.shared + i, copy.map.swizzle), uint64_t(kChunk));
  return problem;
}

} // namespace

void BulkEngine::reset(SharedMemory &to, Barriers &waits, Memory &global, const Actors &who) {
  shared = &to;
  barriers = &waits;
  memory = &global;
  actors = who;
  flying.clear();
  groups.clear();
  issued.assign(who.warps, 0);
}

/// Up to four pieces, in random order.
void BulkEngine::cut(BulkCopy &copy, uint64_t random) const {
  uint32_t rows = rowsOf(copy.map), count = std::min(rows, 1 + static_cast<uint32_t>(random % 4));
  for (uint32_t i = 0; i < count; ++i)
    copy.pieces.emplace_back(rows * i / count, rows * (i + 1) / count);
  for (uint32_t i = count; i > 1; --i)
    std::swap(copy.pieces[i - 1], copy.pieces[(random >> (8 + 4 * i)) % i]);
}

std::string BulkEngine::start(BulkCopy copy, const Knowledge &who, uint64_t random) {
  uint64_t bytes = copy.map.boxBytes(), align = copy.isPlain ? kChunk : 128;
  const char *verb = copy.stores ? "store" : "load";
  if (copy.shared % align)
    return cat("tma-align: the box in shared memory begins at byte ", copy.shared, ", no multiple of ", align);
  std::string problem = forPlaces(copy, bytes, [&](uint64_t at, uint64_t count) {
    return shared->holds(at, count) ? std::string()
                                    : cat("bounds: the box of a bulk ", verb, " is bytes ", at, " to ", at + count,
                                          " of shared memory, and not all of them are there");
  });
  if (!problem.empty())
    return problem;
  if (copy.stores) {
    copy.tick = ++issued[copy.warp];
    copy.group = kOpen;
    Groups &own = groups[copy.thread];
    ++own.open;
    own.line = copy.line;
    problem = forPlaces(copy, bytes, [&](uint64_t at, uint64_t count) {
      return shared->readAsync(at, count, actors.ofStores(copy.warp), copy.tick, who);
    });
    copy.room.resize(bytes);
  } else {
    const Mbarrier *barrier = barriers->findFor(copy.barrier, who, problem);
    if (barrier && !barrier->fenced && who.fenced[barrier->maker] < barrier->madeAt)
      problem = cat("mbar-init: nothing tells the async proxy of ", barriers->describe(*barrier),
                    ": fence.mbarrier_init or fence.proxy.async is missing");
    if (problem.empty())
      problem = forPlaces(copy, bytes, [&](uint64_t at, uint64_t count) { return shared->fly(at, count, who); });
  }
  if (!problem.empty())
    return problem;
  cut(copy, random);
  flying.push_back(std::move(copy));
  return {};
}

/// Where a row of the box is in global memory: `skip` bytes of the row lie before the tensor, `bytes` in it. False:
/// nothing of it does.
bool BulkEngine::rowAddress(const BulkCopy &copy, uint32_t row, uint64_t &address, uint64_t &skip, uint64_t &bytes) {
  const TensorMap &map = copy.map;
  address = map.base;
  for (uint32_t i = 1; i < map.rank; ++i) {
    int64_t place = copy.at[i] + int64_t(row % map.boxSize(i)) * map.steps[i];
    row /= map.boxSize(i);
    if (place < 0 || static_cast<uint64_t>(place) >= map.sizes[i])
      return false;
    address += static_cast<uint64_t>(place) * map.strides[i];
  }
  int64_t size = bytesOf(map.type), first = std::max<int64_t>(copy.at[0], 0),
          last = std::min<int64_t>(copy.at[0] + map.boxSize(0), static_cast<int64_t>(map.sizes[0]));
  if (first >= last)
    return false;
  address += static_cast<uint64_t>(first * size);
  skip = static_cast<uint64_t>((first - copy.at[0]) * size);
  bytes = static_cast<uint64_t>((last - first) * size);
  return true;
}

uint32_t BulkEngine::rows(const BulkCopy &copy) { return rowsOf(copy.map); }

std::string BulkEngine::landRow(BulkCopy &copy, uint32_t row) {
  std::byte line[256 * 8];
  uint64_t width = rowBytes(copy.map), begin = copy.shared + row * width, address = 0, skip = 0, bytes = 0;
  bool isThere = rowAddress(copy, row, address, skip, bytes);
  auto chunks = [&](auto each) {
    for (uint64_t i = 0; i < width; i += kChunk)
      each(i, swizzled(begin + i, copy.map.swizzle));
  };
  if (copy.stores && !copy.isRead) {
    chunks(
        [&](uint64_t i, uint64_t from) { std::memcpy(copy.room.data() + row * width + i, shared->at(from), kChunk); });
    return {};
  }
  if (isThere) {
    Memory::Access access{address, static_cast<uint32_t>(bytes), bytesOf(copy.map.type), copy.thread, copy.owner};
    access.isWrite = copy.stores;
    std::string problem;
    if (!memory->check(access, hint, problem))
      return problem;
  }
  if (copy.stores) {
    if (isThere)
      std::memcpy(reinterpret_cast<void *>(address), copy.room.data() + row * width + skip, bytes);
    return {};
  }
  std::memset(line, 0, width);
  if (isThere)
    std::memcpy(line + skip, reinterpret_cast<const void *>(address), bytes);
  std::string problem;
  const Mbarrier *barrier = barriers->find(copy.barrier, problem);
  if (!barrier)
    return problem;
  chunks([&](uint64_t i, uint64_t to) {
    std::memcpy(shared->at(to), line + i, kChunk);
    shared->land(to, actors.ofBarrier(barrier->index), barrier->ticks + 1, copy.map.swizzle);
  });
  return {};
}

std::string BulkEngine::landRows(BulkCopy &copy, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row)
    if (std::string problem = landRow(copy, row); !problem.empty())
      return problem;
  if (copy.stores)
    return {};
  std::string problem;
  Mbarrier *barrier = barriers->find(copy.barrier, problem);
  if (!barrier)
    return problem;
  barrier->coming.seen[actors.ofBarrier(barrier->index)] = ++barrier->ticks;
  return barriers->complete(*barrier, static_cast<int64_t>((end - begin) * rowBytes(copy.map)));
}

std::string BulkEngine::land(uint64_t random) {
  size_t number = random % flying.size();
  BulkCopy &copy = flying[number];
  auto [begin, end] = copy.pieces.back();
  copy.pieces.pop_back();
  if (std::string problem = landRows(copy, begin, end); !problem.empty()) {
    faulty = copy;
    return problem;
  }
  if (!copy.pieces.empty())
    return {};
  ++ended;
  if (copy.stores && !copy.isRead) {
    copy.isRead = true;
    cut(copy, random >> 8);
    return {};
  }
  std::swap(flying[number], flying.back());
  flying.pop_back();
  return {};
}

void BulkEngine::commit(uint32_t thread) {
  Groups &own = groups[thread];
  for (BulkCopy &copy : flying)
    if (copy.stores && copy.thread == thread && copy.group == kOpen)
      copy.group = own.committed;
  ++own.committed;
  own.open = 0;
}

bool BulkEngine::wait(uint32_t thread, uint32_t left, bool read) {
  Groups &own = groups[thread];
  for (const BulkCopy &copy : flying)
    if (copy.stores && copy.thread == thread && copy.group != kOpen && copy.group + left < own.committed &&
        !(read && copy.isRead))
      return false;
  if (own.committed > left)
    own.waited = std::max(own.waited, own.committed - left);
  return true;
}

const BulkEngine::Groups *BulkEngine::groupsOf(uint32_t thread) const {
  auto found = groups.find(thread);
  return found == groups.end() ? nullptr : &found->second;
}

uint32_t BulkEngine::readUpTo(uint32_t warp) const {
  uint32_t tick = issued[warp];
  for (const BulkCopy &copy : flying)
    if (copy.stores && copy.warp == warp && !copy.isRead)
      tick = std::min(tick, copy.tick - 1);
  return tick;
}

} // namespace dmxrt::cuda
