//===- Shadow.cpp - what the simulator knows of every byte ----------------===//

#include "Shadow.h"

#include <algorithm>

namespace dmxrt::sim {

Shadow::Cell &Shadow::Cell::operator=(const Cell &other) {
  if (this == &other)
    return *this;
  writer = other.writer;
  reader = other.reader;
  hasReader = other.hasReader;
  kind = other.kind;
  more = other.more ? std::make_unique<std::vector<Epoch>>(*other.more) : nullptr;
  return *this;
}

/// The segment that holds `offset`; the page is not empty.
size_t Shadow::find(const Page &page, uint32_t offset) {
  auto it = std::upper_bound(page.begin(), page.end(), offset,
                             [](uint32_t value, const Segment &segment) { return value < segment.begin; });
  return static_cast<size_t>(it - page.begin()) - 1;
}

/// Makes a segment begin at `offset` and gives its index (or the end's).
size_t Shadow::split(Page &page, uint32_t offset) {
  if (offset == kPage)
    return page.size();
  size_t index = find(page, offset);
  if (page[index].begin == offset)
    return index;
  Segment half{offset, page[index].cell};
  page.insert(page.begin() + static_cast<ptrdiff_t>(index) + 1, std::move(half));
  return index + 1;
}

/// Joins equal neighbours among segments first-1 .. last.
void Shadow::merge(Page &page, size_t first, size_t last) {
  size_t out = first ? first - 1 : 0;
  size_t end = std::min(last + 1, page.size());
  for (size_t i = out + 1; i < end; ++i) {
    if (page[out].cell.same(page[i].cell))
      continue;
    if (++out != i)
      page[out] = std::move(page[i]);
  }
  if (out + 1 < end)
    page.erase(page.begin() + static_cast<ptrdiff_t>(out) + 1, page.begin() + static_cast<ptrdiff_t>(end));
}

bool Shadow::readCell(Cell &cell, ByteKind kind, const Actor &actor, Problem &problem) {
  if (!actor.after(cell.writer)) {
    problem.why = Problem::Race;
    problem.other = cell.writer;
    problem.otherWrote = true;
    return false;
  }
  if (cell.kind == kUndefined) {
    // Recorded all the same: an unordered write that comes later is then known as a race with it.
    cell.reader = actor.epoch;
    cell.hasReader = true;
    problem.why = Problem::Undefined;
    return false;
  }
  if (kind != kAnyKind && kind != cell.kind) {
    problem.why = Problem::OtherKind;
    problem.found = cell.kind;
    return false;
  }
  if (!cell.hasReader || cell.reader.thread == actor.epoch.thread || (!cell.more && actor.after(cell.reader))) {
    cell.reader = actor.epoch;
    cell.hasReader = true;
    return true;
  }
  if (!cell.more)
    cell.more = std::make_unique<std::vector<Epoch>>();
  for (Epoch &other : *cell.more)
    if (other.thread == actor.epoch.thread || actor.after(other))
      return other = actor.epoch, true;
  cell.more->push_back(actor.epoch);
  return true;
}

bool Shadow::checkWrite(const Cell &cell, const Actor &actor, Problem &problem) {
  problem.why = Problem::Race;
  auto fails = [&](const Epoch &other, bool wrote) {
    if (actor.after(other))
      return false;
    problem.other = other;
    problem.otherWrote = wrote;
    return true;
  };
  if (fails(cell.writer, true) || (cell.hasReader && fails(cell.reader, false)))
    return false;
  if (cell.more)
    for (const Epoch &other : *cell.more)
      if (fails(other, false))
        return false;
  return true;
}

bool Shadow::readPage(Page &page, uint32_t begin, uint32_t end, ByteKind kind, const Actor &actor, Problem &problem) {
  if (page.empty())
    page.push_back({0, Cell()});
  size_t first = find(page, begin);
  uint32_t stop = first + 1 < page.size() ? page[first + 1].begin : kPage;
  Cell &only = page[first].cell;
  // The usual case: a part of one segment that this queue has read already.
  if (end <= stop && only.hasReader && only.reader == actor.epoch && !only.more && only.kind == kind)
    return true;
  first = split(page, begin);
  size_t last = split(page, end);
  for (size_t i = first; i < last; ++i)
    if (!readCell(page[i].cell, kind, actor, problem)) {
      problem.address = page[i].begin;
      return false;
    }
  merge(page, first, last);
  return true;
}

bool Shadow::writePage(Page &page, uint32_t begin, uint32_t end, ByteKind kind, const Actor &actor, Problem &problem) {
  if (page.empty())
    page.push_back({0, Cell()});
  size_t first = split(page, begin), last = split(page, end);
  for (size_t i = first; i < last; ++i)
    if (!checkWrite(page[i].cell, actor, problem)) {
      problem.address = page[i].begin;
      return false;
    }
  Cell cell;
  cell.kind = kind;
  cell.writer = actor.epoch;
  page[first].cell = std::move(cell);
  page.erase(page.begin() + static_cast<ptrdiff_t>(first) + 1, page.begin() + static_cast<ptrdiff_t>(last));
  merge(page, first, first + 1);
  return true;
}

bool Shadow::read(uint64_t begin, uint64_t size, ByteKind kind, const Actor &actor, Problem &problem) {
  for (uint64_t at = begin, end = begin + size; at < end;) {
    uint64_t base = at / kPage * kPage, stop = std::min(end, base + kPage);
    if (!readPage(pageOf(at), static_cast<uint32_t>(at - base), static_cast<uint32_t>(stop - base), kind, actor,
                  problem)) {
      problem.address += base;
      return false;
    }
    at = stop;
  }
  return true;
}

bool Shadow::write(uint64_t begin, uint64_t size, ByteKind kind, const Actor &actor, Problem &problem) {
  for (uint64_t at = begin, end = begin + size; at < end;) {
    uint64_t base = at / kPage * kPage, stop = std::min(end, base + kPage);
    if (!writePage(pageOf(at), static_cast<uint32_t>(at - base), static_cast<uint32_t>(stop - base), kind, actor,
                   problem)) {
      problem.address += base;
      return false;
    }
    at = stop;
  }
  return true;
}

} // namespace dmxrt::sim
