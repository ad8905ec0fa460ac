//===- Cells.cpp - the memories of a program of queues --------------------===//
#include "Cells.h"

#include <cstring>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;

Cell::Cell(dlir::MemoryOp memory, int64_t unit)
    : memory(memory), unit(unit), bytes(std::make_shared<std::vector<std::byte>>(memory.getSize())),
      kinds(memory.getSize(), hw::ElemKind::Raw) {}

std::string Cell::name() const {
  dlir::MemoryOp op = memory;
  return "'" + op.getName().str() + "' (" + op.getKind().str() + " " + std::to_string(unit) + ")";
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

bool Accesses::fail(const std::string &why) {
  if (!wrong)
    wrong = why;
  return false;
}

/// A number of text, however far it is.
static std::string numberText(Wide number) {
  constexpr Wide most = Wide(1) << 62;
  return std::to_string(static_cast<int64_t>(std::clamp(number, -most, most)));
}

bool Accesses::isInside(const Cell &cell, Wide at, Wide size, const char *verb) {
  if (at >= 0 && size >= 0 && at + size <= cell.size())
    return true;
  return fail(std::string(verb) + " bytes " + numberText(at) + " to " + numberText(at + size - 1) + " of " +
              cell.name() + ", which has " + std::to_string(cell.size()));
}

bool Accesses::isAligned(const Cell &cell, Wide at, int64_t bytes) {
  if (at % bytes == 0)
    return true;
  return fail("touches byte " + numberText(at) + " of " + cell.name() + ", which is no multiple of " +
              std::to_string(bytes));
}

const std::byte *Accesses::read(const Cell &cell, Wide at, int64_t size, hw::ElemKind kind) {
  if (!isInside(cell, at, size, "reads"))
    return nullptr;
  const auto *first = cell.kinds.data() + static_cast<int64_t>(at), *last = first + size;
  const bool any = kind == hw::ElemKind::Raw;
  const auto *other = any ? std::find(first, last, hw::ElemKind::Raw)
                          : std::find_if(first, last, [&](hw::ElemKind found) { return found != kind; });
  if (other == last)
    return cell.data() + static_cast<int64_t>(at);
  const std::string byte = "reads byte " + std::to_string(other - cell.kinds.data()) + " of " + cell.name();
  if (*other == hw::ElemKind::Raw)
    fail(byte + ", which nothing has written");
  else
    fail(byte + " as " + std::string(hw::nameOf(kind)) + ", which is " + std::string(hw::nameOf(*other)));
  return nullptr;
}

std::byte *Accesses::write(Cell &cell, Wide at, int64_t size, hw::ElemKind kind) {
  if (!isInside(cell, at, size, "writes"))
    return nullptr;
  std::fill_n(cell.kinds.begin() + static_cast<int64_t>(at), size, kind);
  return cell.data() + static_cast<int64_t>(at);
}

bool Accesses::copy(const Cell &from, Wide at, Cell &to, Wide target, int64_t size) {
  const std::byte *source = read(from, at, size, hw::ElemKind::Raw);
  if (!source || !isInside(to, target, size, "writes"))
    return false;
  std::memmove(to.kinds.data() + static_cast<int64_t>(target), from.kinds.data() + static_cast<int64_t>(at), size);
  std::memmove(to.data() + static_cast<int64_t>(target), source, size);
  return true;
}

void Accesses::discard(Cell &cell, int64_t at, int64_t size) {
  const int64_t first = std::clamp<int64_t>(at, 0, cell.size()), last = std::clamp<int64_t>(at + size, 0, cell.size());
  std::fill(cell.kinds.begin() + first, cell.kinds.begin() + last, hw::ElemKind::Raw);
}

/// Joins what adjoins, the shortest steps first; false where there is nothing.
static bool simplify(Area &area) {
  llvm::SmallVector<Area::Dim, 5> dims;
  for (auto [count, step] : area.dims) {
    if (count < 1)
      return false;
    if (step < 0)
      area.begin += Wide(count - 1) * step;
    if (count > 1 && step != 0)
      dims.push_back({count, std::abs(step)});
  }
  llvm::sort(dims, [](const Area::Dim &a, const Area::Dim &b) { return a.step < b.step; });
  area.dims.clear();
  for (const Area::Dim &dim : dims)
    if (area.dims.empty() && dim.step == area.bytes && Wide(dim.count) * dim.step < Wide(1) << 60)
      area.bytes *= dim.count;
    else
      area.dims.push_back(dim);
  return area.bytes > 0;
}

/// Visits the runs of an area that lies in a buffer; stops at false.
template <typename Visit> static bool eachRun(const Area &area, size_t dims, int64_t at, Visit visit) {
  if (dims == 0)
    return visit(at);
  const auto [count, step] = area.dims[dims - 1];
  for (int64_t i = 0; i < count; ++i)
    if (!eachRun(area, dims - 1, at + i * step, visit))
      return false;
  return true;
}

/// From the first byte to behind the last one of an area without negative steps.
static Wide extentOf(const Area &area) {
  Wide extent = area.bytes;
  for (auto [count, step] : area.dims)
    extent += Wide(count - 1) * step;
  return extent;
}

bool Accesses::read(const Cell &cell, const Area &given, hw::ElemKind kind) {
  Area area = given;
  if (!simplify(area))
    return true;
  return isInside(cell, area.begin, extentOf(area), "reads") &&
         eachRun(area, area.dims.size(), static_cast<int64_t>(area.begin),
                 [&](int64_t at) { return read(cell, at, area.bytes, kind) != nullptr; });
}

bool Accesses::write(Cell &cell, const Area &given, hw::ElemKind kind) {
  Area area = given;
  if (!simplify(area))
    return true;
  return isInside(cell, area.begin, extentOf(area), "writes") &&
         eachRun(area, area.dims.size(), static_cast<int64_t>(area.begin),
                 [&](int64_t at) { return write(cell, at, area.bytes, kind) != nullptr; });
}

//===----------------------------------------------------------------------===//
// Card
//===----------------------------------------------------------------------===//

Cell &Card::cell(Value buffer, int64_t unit) {
  auto memory = buffer.getDefiningOp<dlir::MemoryOp>();
  return cells.try_emplace({memory, unit}, memory, unit).first->second;
}

Cell &Card::cellOf(Value buffer, int64_t quad, int64_t slice, int64_t core) {
  const int64_t slices = machine.slices, cores = machine.cores;
  switch (machine.memory(memoryOf(buffer)).scope) {
  case hw::MemoryInfo::Scope::Chiplet:
    return cell(buffer, quad / machine.quads);
  case hw::MemoryInfo::Scope::Quad:
    return cell(buffer, quad);
  case hw::MemoryInfo::Scope::Slice:
    return cell(buffer, quad * slices + slice);
  case hw::MemoryInfo::Scope::Core:
    break;
  }
  return cell(buffer, (quad * slices + slice) * cores + core);
}

void Card::forget() {
  for (auto &[key, cell] : cells)
    if (hw::Memory memory = memoryOf(cell.memory);
        memory != hw::Memory::DDR && memory != hw::Memory::GM && memory != hw::Memory::ST)
      llvm::fill(cell.kinds, hw::ElemKind::Raw);
}
