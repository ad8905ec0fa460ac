//===- Phases.cpp - the one table of phases -------------------------------===//
#include "dmxc/Driver/PhaseTable.h"

namespace dmxc::driver {

static constexpr Phase table[] = {
    {"frontend", "import, op audit, shape inference, folding, canonical form", "model file", "DMIR", buildFrontendPhase,
     ".mlir"},
    {"partition", "layouts, fusion into regions, which target computes what, and how", "DMIR",
     "DMIR regions with a device and a strategy", buildPartitionPhase, ".mlir"},
    {"memory", "which buffer each value has: arena offsets, in-place reuse, aliases", "DMIR regions",
     "regions with placed buffers", buildMemoryPhase, ".mlir"},
    {"schedule", "kernels outlined, tasks ordered by tokens, hazards verified, device queues scheduled",
     "placed regions", "DLIR", buildSchedulePhase, ".mlir"},
    {"codegen", "kernels compiled per target, constants packed, the task graph serialised", "DLIR",
     "graph.json and code", nullptr, ".json"},
};

llvm::ArrayRef<Phase> phases() { return table; }

int phaseIndex(llvm::StringRef name) {
  for (size_t i = 0; i < std::size(table); ++i)
    if (name == table[i].name)
      return static_cast<int>(i);
  return -1;
}

std::vector<std::string> phaseNames() {
  std::vector<std::string> names;
  for (const Phase &phase : table)
    names.push_back(phase.name);
  return names;
}

} // namespace dmxc::driver
