//===- Memory.cpp - what the threads of a launch may touch --------------------===//

#include "Memory.h"

#include "runtime/Error.h"

#include <algorithm>

namespace dmxrt::cuda {
namespace {

/// A byte's readers, where they are more than one.
constexpr uint32_t kSeveral = UINT32_MAX;

std::string_view verb(const Memory::Access &access) { return access.isWrite ? "writes" : "reads"; }

} // namespace

std::string MemoryRegion::name() const {
  switch (kind) {
  case Operand:
    return cat("operand ", number);
  case Result:
    return cat("result ", number);
  case Scratch:
    return "scratch";
  case Dims:
    return "the values that the kernel returns";
  case StatusWord:
    return "the status word";
  case Table:
    return "a table of the code";
  }
  return {};
}

MemoryRegion *Memory::find(const Access &access, uint32_t &hint) {
  auto holds = [&](const MemoryRegion &region) {
    return access.address >= region.begin && access.bytes <= region.bytes &&
           access.address - region.begin <= region.bytes - access.bytes;
  };
  if (hint < regions.size() && regions[hint].alone && holds(regions[hint]))
    return &regions[hint];
  // A result comes before an operand that shares its bytes.
  for (uint32_t i = 0; i < regions.size(); ++i)
    if (holds(regions[i])) {
      hint = i;
      return &regions[i];
    }
  return nullptr;
}

bool Memory::record(MemoryRegion &region, const Access &access, std::string &problem) {
  if (region.writers.empty())
    return true;
  uint64_t first = access.address - region.begin;
  uint32_t mine = access.owner + 1;
  for (uint64_t i = first; i < first + access.bytes; ++i) {
    uint32_t &writer = region.writers[i], &reader = region.readers[i];
    if (!access.isWrite && writer == 0 && !region.filled) {
      problem = cat("uninit: it reads byte ", i, " of ", region.name(), ", which nobody wrote");
      return false;
    }
    uint32_t other = writer != 0 && writer != mine                     ? writer
                     : access.isWrite && reader != 0 && reader != mine ? reader
                                                                       : 0;
    if (other && races) {
      problem = cat("race: it ", verb(access), " byte ", i, " of ", region.name(), ", which ",
                    other == kSeveral ? cat("other ", byBlock ? "blocks" : "threads")
                                      : cat(byBlock ? "block " : "thread ", other - 1),
                    other == writer ? " wrote" : " read", " in the same launch");
      return false;
    }
    if (access.isWrite)
      writer = mine;
    else
      reader = reader == 0 || reader == mine ? mine : kSeveral;
  }
  return true;
}

bool Memory::check(const Access &access, uint32_t &hint, std::string &problem) {
  if (access.address % access.align) {
    problem = cat("align: it ", verb(access), " ", access.bytes, " bytes at an address that is no multiple of ",
                  access.align);
    return false;
  }
  MemoryRegion *region = find(access, hint);
  if (!region) {
    // Where it begins tells whose end was passed.
    std::string near;
    for (const MemoryRegion &each : regions)
      if (near.empty() && access.address >= each.begin && access.address - each.begin < each.bytes + 4096)
        near = cat(": byte ", access.address - each.begin, " of ", each.name(), " of ", each.bytes);
      else if (near.empty() && access.address < each.begin && each.begin - access.address <= 4096)
        near = cat(": ", each.begin - access.address, " bytes before ", each.name());
    problem = cat("bounds: it ", verb(access), " ", access.bytes, " bytes outside of what the kernel has", near);
    return false;
  }
  if ((region->kind == MemoryRegion::StatusWord) != access.isAtomic) {
    problem = cat("bounds: it ", verb(access), " ", region->name(),
                  access.isAtomic ? " by an atomic instruction" : " by a plain instruction");
    return false;
  }
  if (access.isAtomic)
    return true;
  if (access.isWrite && !region->isWritten()) {
    problem = cat("bounds: it writes byte ", access.address - region->begin, " of ", region->name(),
                  ", which it may only read");
    return false;
  }
  if (access.isConstant && region->isWritten() && !region->writers.empty()) {
    problem = cat("constant: it reads ", region->name(), ", which the launch writes, as memory that nobody writes");
    return false;
  }
  if (region->kind == MemoryRegion::Scratch) {
    uint64_t offset = access.address - region->begin, owner = offset / region->share;
    if (owner != access.thread || offset % region->share + access.bytes > region->used) {
      problem = cat("bounds: it ", verb(access), " byte ", offset % region->share, " of the scratch of thread ", owner,
                    ", which has ", region->used, " bytes");
      return false;
    }
  }
  return record(*region, access, problem);
}

bool Memory::findUnwritten(std::string &problem) const {
  for (const MemoryRegion &region : regions) {
    if ((region.kind != MemoryRegion::Result && region.kind != MemoryRegion::Dims) || region.filled)
      continue;
    auto hole = std::find(region.writers.begin(), region.writers.end(), 0u);
    if (hole == region.writers.end())
      continue;
    problem = cat("unwritten: no thread wrote byte ", hole - region.writers.begin(), " of ", region.name());
    return false;
  }
  return true;
}

} // namespace dmxrt::cuda
