//===- QuadAccess.cpp - checked accesses and their faults -----------------===//

#include "Quad.h"

#include "schemas/corsair/text/Assembler.h"

#include <cstdio>

namespace dmxrt::corsair {
namespace {

std::string hex(uint64_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(value));
  return buffer;
}

std::string unitName(const isa::Machine &machine, Memory memory, uint32_t unit) {
  std::string name(isa::nameOf(memory));
  auto slices = static_cast<uint32_t>(machine.slices), cores = static_cast<uint32_t>(machine.cores);
  switch (machine.memory(memory).scope) {
  case isa::MemoryInfo::Scope::Chiplet:
    return cat(name, " of chiplet ", unit);
  case isa::MemoryInfo::Scope::Quad:
    return cat(name, " of quad ", unit);
  case isa::MemoryInfo::Scope::Slice:
    return cat(name, " of quad ", unit / slices, " slice ", unit % slices);
  case isa::MemoryInfo::Scope::Core:
    return cat(name, " of quad ", unit / cores / slices, " slice ", unit / cores % slices, " core ", unit % cores);
  }
  return name;
}

std::string rangeText(uint64_t begin, uint64_t size) { return cat("bytes ", hex(begin), "..", hex(begin + size)); }

} // namespace

std::string Quad::where(const Queue &queue) const {
  const isa::Code &code = what.image->streams[queue.stream];
  return cat("quad ", number, " queue ", queue.index, " stream '", code.name, "' at ", queue.position, " (",
             isa::print(code.instructions[queue.position]), ")",
             queue.mark == kNoMark ? "" : " of '" + what.image->marks[queue.mark] + "'");
}

bool Quad::raise(Queue &queue, FaultKind kind, const std::string &text) {
  std::optional<Fault> &where = kind == FaultKind::PoisonRead ? poison : fault;
  if (!where)
    where = Fault{kind, queue.time, number, cat(nameOf(kind), ": ", this->where(queue), ": ", text)};
  queue.stuck = true;
  return false;
}

/// The other side of a race.
std::string Quad::describe(const Epoch &epoch, bool wrote) const {
  if (epoch.thread == kHostThread)
    return "the host";
  uint32_t quad = epoch.thread / kQueues, queue = epoch.thread % kQueues;
  std::string text = cat("quad ", quad, " queue ", queue);
  for (const isa::Launch &launch : what.program->launches)
    if (launch.quad == quad && launch.streams[queue] != isa::kNoStream) {
      const isa::Code &code = what.image->streams[launch.streams[queue]];
      text += cat(" stream '", code.name, "' at ", epoch.position, " (", isa::print(code.instructions[epoch.position]),
                  ")");
    }
  return text + (wrote ? ", which writes it" : ", which reads it");
}

Actor Quad::actor(const Queue &queue) const {
  return {{queue.clock.of(queue.thread), queue.position, queue.thread}, &queue.clock};
}

uint32_t Quad::unitOf(Memory memory, int slice, int core) const {
  auto slices = static_cast<uint32_t>(machine.slices), cores = static_cast<uint32_t>(machine.cores);
  switch (machine.memory(memory).scope) {
  case isa::MemoryInfo::Scope::Chiplet:
    return chiplet();
  case isa::MemoryInfo::Scope::Quad:
    return number;
  case isa::MemoryInfo::Scope::Slice:
    return number * slices + static_cast<uint32_t>(slice);
  case isa::MemoryInfo::Scope::Core:
    return (number * slices + static_cast<uint32_t>(slice)) * cores + static_cast<uint32_t>(core);
  }
  return 0;
}

bool Quad::report(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size, ElemKind kind,
                  bool writing, const Problem &problem) {
  std::string place =
      cat(unitName(machine, memory, unit), " ", rangeText(static_cast<uint64_t>(address), static_cast<uint64_t>(size)));
  switch (problem.why) {
  case Problem::Undefined:
    return raise(queue, faultOf(problem),
                 cat("reads ", place, ", of which byte ", hex(problem.address), " was never written"));
  case Problem::OtherKind:
    return raise(queue, faultOf(problem),
                 cat("reads ", place, " as ", isa::nameOf(kind), ", but byte ", hex(problem.address), " is ",
                     isa::nameOf(kindFound(problem))));
  case Problem::Race:
    return raise(queue, faultOf(problem),
                 cat(writing ? "writes " : "reads ", place, "; nothing orders this and ",
                     describe(problem.other, problem.otherWrote), " at byte ", hex(problem.address)));
  }
}

std::byte *Quad::reachable(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size) {
  uint64_t limit = card.storage.size(memory);
  auto begin = static_cast<uint64_t>(address), bytes = static_cast<uint64_t>(size);
  if (address < 0 || size < 0 || begin > limit || bytes > limit - begin) {
    raise(queue, FaultKind::Capacity,
          cat(address < 0 ? "address " + std::to_string(address) : rangeText(begin, bytes), " of ",
              unitName(machine, memory, unit), ", whose programs have ", limit, " bytes of ",
              machine.memory(memory).size));
    return nullptr;
  }
  return card.storage.data(memory, unit) + address;
}

bool Quad::access(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size, ElemKind element,
                  bool writing) {
  if (!options.hazards)
    return true;
  Problem problem;
  Actor who = actor(queue);
  sim::ByteKind kind = byteKind(element);
  Shadow &shadow = card.storage.shadow(memory, unit);
  auto lock = card.storage.lock(memory, unit);
  auto begin = static_cast<uint64_t>(address), bytes = static_cast<uint64_t>(size);
  bool good = writing ? shadow.write(begin, bytes, kind, who, problem) : shadow.read(begin, bytes, kind, who, problem);
  if (lock)
    lock.unlock();
  return good || report(queue, memory, unit, address, size, element, writing, problem);
}

std::byte *Quad::readable(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size, ElemKind kind) {
  std::byte *data = reachable(queue, memory, unit, address, size);
  return data && access(queue, memory, unit, address, size, kind, false) ? data : nullptr;
}

std::byte *Quad::writable(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size, ElemKind kind) {
  std::byte *data = reachable(queue, memory, unit, address, size);
  return data && access(queue, memory, unit, address, size, kind, true) ? data : nullptr;
}

bool Quad::discard(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size) {
  if (!reachable(queue, memory, unit, address, size))
    return false;
  return access(queue, memory, unit, address, size, static_cast<ElemKind>(sim::kUndefined), true);
}

bool Quad::copyKinds(Queue &queue, Memory source, uint32_t sourceUnit, int64_t from, Memory destination,
                     uint32_t destinationUnit, int64_t to, int64_t size) {
  if (!options.hazards)
    return true;
  struct Run {
    int64_t offset, size;
    ElemKind kind;
  };
  std::vector<Run> runs;
  auto lock = card.storage.lock(source, sourceUnit);
  card.storage.shadow(source, sourceUnit)
      .kinds(static_cast<uint64_t>(from), static_cast<uint64_t>(size),
             [&](uint64_t at, uint64_t bytes, sim::ByteKind found) {
               auto kind = static_cast<ElemKind>(found);
               auto offset = static_cast<int64_t>(at) - from;
               if (!runs.empty() && runs.back().kind == kind && runs.back().offset + runs.back().size == offset)
                 runs.back().size += static_cast<int64_t>(bytes);
               else
                 runs.push_back({offset, static_cast<int64_t>(bytes), kind});
             });
  if (lock)
    lock.unlock();
  for (const Run &run : runs)
    if (!access(queue, destination, destinationUnit, to + run.offset, run.size, run.kind, true))
      return false;
  return true;
}

bool Quad::checkAligned(Queue &queue, int64_t address, int64_t alignment, std::string_view what) {
  if (address % alignment == 0)
    return true;
  return raise(queue, FaultKind::Misaligned, cat(what, " address ", address, " is no multiple of ", alignment));
}

bool Quad::readRegister(Queue &queue, uint32_t index, int64_t &out) {
  out = registers[index];
  Problem problem;
  if (!options.hazards || registerShadow.read(index * 8, 8, byteKind(ElemKind::I64), actor(queue), problem))
    return true;
  return raise(queue, FaultKind::Race,
               cat("reads register R", index, "; nothing orders this and ", describe(problem.other, true)));
}

bool Quad::writeRegister(Queue &queue, uint32_t index, int64_t in) {
  registers[index] = in;
  Problem problem;
  if (!options.hazards || registerShadow.write(index * 8, 8, byteKind(ElemKind::I64), actor(queue), problem))
    return true;
  return raise(
      queue, FaultKind::Race,
      cat("writes register R", index, "; nothing orders this and ", describe(problem.other, problem.otherWrote)));
}

} // namespace dmxrt::corsair
