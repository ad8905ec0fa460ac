//===- Access.cpp - which bytes code touches, before it runs --------------===//

#include "Access.h"
#include "../Schedule.h"
#include "AccessRules.h"

#include <algorithm>
#include <map>

namespace dmx::corsair {
namespace {

using namespace access;

/// Walks the streams of a launch with what is known of registers, counters and slots.
class Walker {
public:
  Walker(const Image &image, const Kernel &kernel, const Launch &launch) : image(image), launch(launch) {
    for (int i = 0; i < kRegisters; ++i) {
      std::optional<int64_t> value = fixedRegister(image, kernel, launch, i);
      registers[i] = value ? Interval::of(*value) : Interval::unknown();
    }
  }
  std::vector<Access> run() {
    for (uint32_t queue = 0; queue < launch.streams.size(); ++queue)
      if (launch.streams[queue] != kNoStream)
        walk(image.streams[launch.streams[queue]], queue);
    return std::move(found);
  }

private:
  struct Loop {
    Interval counter;
    bool entered;
  };
  /// The CONFIG instructions that may have set a slot last, by unit and slot.
  using Slots = std::map<std::pair<Unit, int64_t>, std::vector<const Instruction *>>;

  const Image &image;
  const Launch &launch;
  Interval registers[kRegisters];
  std::vector<Access> found;
  std::vector<Loop> loops;
  Slots slots;

  void walk(const Code &code, uint32_t queue);
  void enterLoop(const Code &code, size_t position);
  Interval evaluate(const Operand &operand) const;
  void visit(const Instruction &in, uint32_t queue, uint32_t position);
};

Interval Walker::evaluate(const Operand &operand) const {
  Interval sum;
  sum.add(Interval::of(operand.base));
  for (const Term &term : operand.terms) {
    if (term.source == kTermQuad)
      sum.add(Interval::of(launch.quad), term.scale);
    else if (term.source >= kTermRegister)
      sum.add(registers[term.source - kTermRegister], term.scale);
    else
      sum.add(loops[term.source - kTermLoop].counter, term.scale);
  }
  return sum;
}

/// From the second trip on a slot may hold what the body's last CONFIG of it set.
void Walker::enterLoop(const Code &code, size_t position) {
  Interval trips = evaluate(code.instructions[position].operands[0]);
  bool entered = (loops.empty() || loops.back().entered) && (!trips.known || trips.high > 0);
  Interval counter{0, std::max<Wide>(trips.high - 1, 0), trips.known};
  loops.push_back({counter, entered});
  Slots last;
  size_t depth = 0;
  do {
    const Instruction &in = code.instructions[position];
    depth += in.opcode == Opcode::Loop;
    depth -= in.opcode == Opcode::EndLoop;
    if (std::optional<Unit> unit = configUnit(in.opcode))
      last[{*unit, in.get("slot")}] = {&in};
    ++position;
  } while (depth);
  for (const auto &[slot, configs] : last)
    if (entered && (!trips.known || trips.high > 1)) {
      std::vector<const Instruction *> &known = slots[slot];
      if (std::find(known.begin(), known.end(), configs[0]) == known.end())
        known.push_back(configs[0]);
    }
}

void Walker::visit(const Instruction &in, uint32_t queue, uint32_t position) {
  Site site{&in, &image.machine, launch.quad, {}};
  for (const Operand &operand : in.operands)
    site.values.push_back(evaluate(operand));
  size_t first = found.size();
  if (std::optional<Unit> unit = slotUnit(in)) {
    for (const Instruction *config : slots[{*unit, in.get("slot")}])
      addAccesses(site, config, found);
  } else if (in.opcode == Opcode::ExecCpu) {
    for (const Instruction &line : image.functions[in.get("fn")].instructions)
      if (line.opcode == Opcode::CpuLd || line.opcode == Opcode::CpuSt)
        found.push_back({Memory::GM, line.opcode == Opcode::CpuSt, {launch.quad}, std::nullopt, 0, 0});
  } else {
    addAccesses(site, nullptr, found);
  }
  std::stable_partition(found.begin() + static_cast<ptrdiff_t>(first), found.end(),
                        [](const Access &access) { return !access.write; });
  for (size_t i = first; i < found.size(); ++i) {
    found[i].queue = queue;
    found[i].position = position;
  }
}

void Walker::walk(const Code &code, uint32_t queue) {
  slots.clear();
  loops.clear();
  for (uint32_t position = 0; position < code.instructions.size(); ++position) {
    const Instruction &in = code.instructions[position];
    bool entered = loops.empty() || loops.back().entered;
    if (in.opcode == Opcode::Loop)
      enterLoop(code, position);
    else if (in.opcode == Opcode::EndLoop)
      loops.pop_back();
    else if (std::optional<Unit> unit = configUnit(in.opcode); unit && entered)
      slots[{*unit, in.get("slot")}] = {&in};
    else if (entered)
      visit(in, queue, position);
  }
}

} // namespace

uint32_t access::Site::unitOf(Memory memory, int slice, int core) const {
  auto slices = static_cast<uint32_t>(machine->slices), cores = static_cast<uint32_t>(machine->cores);
  uint32_t inCard = quad * slices + static_cast<uint32_t>(slice);
  switch (machine->memory(memory).scope) {
  case MemoryInfo::Scope::Chiplet:
    return quad / static_cast<uint32_t>(machine->quads);
  case MemoryInfo::Scope::Quad:
    return quad;
  case MemoryInfo::Scope::Slice:
    return inCard;
  case MemoryInfo::Scope::Core:
    return inCard * cores + static_cast<uint32_t>(core);
  }
  return 0;
}

std::optional<Unit> access::slotUnit(const Instruction &in) {
  auto stash = static_cast<int64_t>(Memory::ST);
  switch (in.opcode) {
  case Opcode::Move:
    return in.get("src") == stash || in.get("dst") == stash ? Unit::ST : Unit::GM;
  case Opcode::Matmul:
  case Opcode::Conv:
    return Unit::AC;
  case Opcode::ExecSimd:
    return Unit::SIMD;
  case Opcode::Extract:
  case Opcode::Insert:
    return Unit::GM;
  default:
    return std::nullopt;
  }
}

std::vector<Access> accessesOf(const Image &image, const Kernel &kernel, const Launch &launch) {
  return Walker(image, kernel, launch).run();
}

} // namespace dmx::corsair
