//===- UserClocks.cpp - what a user's kernel takes, by estimate -----------===//
//
// Queues run beside each other: the slowest counts, with what each instruction takes by section 11 of ISA.md, but for
// what ports that are shared make it wait.
//
//===----------------------------------------------------------------------===//
#include "UserBody.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace dmxc;
using namespace dmxc::corsair;
using hw::ConfigKey, hw::Memory, hw::Opcode;

namespace {

class Clock {
public:
  explicit Clock(const hw::Machine &machine) : machine(machine) {}

  double of(llvm::ArrayRef<UserLine> lines) const {
    double sum = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      const UserLine &line = lines[i];
      if (line.instruction.opcode == Opcode::Loop) {
        const size_t end = endOfLoop(lines, i);
        const auto trips = static_cast<double>(std::max<int64_t>(0, line.instruction.get("n")));
        sum += trips * (of(lines.slice(i + 1, end - i - 1)) + machine.loopClocks);
        i = end;
      } else {
        sum += std::max(machine.issueClocks, of(line));
      }
    }
    return sum;
  }

private:
  static double mask(const UserLine &line, const char *field) {
    return static_cast<double>(__builtin_popcountll(static_cast<uint64_t>(line.instruction.get(field))));
  }
  /// The extents of the first of four dims, which the field `n` replaces.
  static double items(const UserLine &line) {
    double all = 1;
    for (int dim = 0; dim < 4; ++dim) {
      const int64_t given = dim == 0 ? line.instruction.get("n") : -1;
      const auto key = static_cast<ConfigKey>(static_cast<int>(ConfigKey::N0) + dim);
      all *= static_cast<double>(given >= 0 ? given : line.key(key));
    }
    return all;
  }

  double of(const UserLine &line) const {
    switch (line.instruction.opcode) {
    case Opcode::ExecSimd:
      return ofFunction(line);
    case Opcode::Move:
      return ofMove(line);
    case Opcode::Extract:
    case Opcode::Insert:
    case Opcode::Transpose:
      return ofReshape(line);
    case Opcode::Matmul:
      return ofProduct(line);
    default:
      return 1;
    }
  }

  double ofFunction(const UserLine &line) const {
    const double elements = items(line), sharing = line.key(ConfigKey::Split) ? mask(line, "slices") : 1;
    const auto function = static_cast<hw::SimdFunction>(line.instruction.get("fn"));
    const double computed =
        std::ceil(elements / sharing / machine.lanes) * hw::clocksOf(function, machine) / machine.opsPerClock;
    double read = 0;
    for (auto [field, kind] : {std::pair("a", ConfigKey::AKind), {"b", ConfigKey::BKind}, {"c", ConfigKey::CKind}})
      if (memoryOf(line, field) == Memory::GM)
        read += elements * bytesOf(line, kind);
    const double written = memoryOf(line, "d") == Memory::GM ? elements * bytesOf(line, ConfigKey::DKind) : 0;
    const hw::MemoryInfo &gm = machine.memory(Memory::GM);
    return std::max({computed + machine.simdOverhead, read / gm.read, written / gm.write});
  }

  static double bytesOf(const UserLine &line, ConfigKey kind) {
    return std::max(1, hw::elementBytes(static_cast<hw::ElemKind>(line.key(kind))));
  }

  double moved(double bytes, Memory from, Memory to) const {
    return machine.dmaSetup + bytes / std::min(machine.memory(from).read, machine.memory(to).write) +
           machine.memory(from).latency;
  }
  double ofMove(const UserLine &line) const {
    return moved(items(line) * static_cast<double>(line.key(ConfigKey::Unit)) * bytesOf(line, ConfigKey::Kind),
                 static_cast<Memory>(line.instruction.get("src")), static_cast<Memory>(line.instruction.get("dst")));
  }
  double ofReshape(const UserLine &line) const {
    const hw::Instruction &in = line.instruction;
    const double bytes =
        in.opcode == Opcode::Transpose
            ? static_cast<double>(in.get("rows")) * static_cast<double>(in.get("cols")) *
                  static_cast<double>(in.get("batch") * in.get("esize"))
            : items(line) * static_cast<double>(line.key(ConfigKey::Unit)) * bytesOf(line, ConfigKey::Kind);
    return moved(bytes, Memory::DRE, Memory::DRE);
  }
  double ofProduct(const UserLine &line) const {
    const hw::Instruction &in = line.instruction;
    return static_cast<double>(in.get("steps") * in.get("rows")) * machine.rowClocks8 + machine.fillLatency +
           static_cast<double>(in.get("ppr")) * machine.pprLevelLatency;
  }

  const hw::Machine &machine;
};

} // namespace

double dmxc::corsair::clocksOf(const UserText &text, const hw::Machine &machine) {
  double slowest = 0;
  for (const std::vector<UserLine> &lines : text.queues)
    slowest = std::max(slowest, Clock(machine).of(lines));
  return slowest;
}
