//===- CpuFeatures.cpp - instruction-set features of this CPU -------------===//

#include "CpuFeatures.h"

#include <algorithm>
#include <array>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace dmxrt {
namespace {

#if defined(__x86_64__)
enum Register { EAX, EBX, ECX, EDX };

/// State components of XCR0 the operating system must have enabled.
constexpr uint64_t kNoState = 0, kAvxState = 0x6, kAvx512State = 0xE6, kTileState = 0x60000;

struct FeatureRow {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  uint32_t bit;
  uint64_t state;
};

/// LLVM's names; the bits are those of the Intel and AMD manuals.
constexpr FeatureRow kFeatures[] = {
    {"cmov", 1, 0, EDX, 15, kNoState},
    {"cx8", 1, 0, EDX, 8, kNoState},
    {"fxsr", 1, 0, EDX, 24, kNoState},
    {"mmx", 1, 0, EDX, 23, kNoState},
    {"x87", 1, 0, EDX, 0, kNoState},
    {"sse", 1, 0, EDX, 25, kNoState},
    {"sse2", 1, 0, EDX, 26, kNoState},
    {"sse3", 1, 0, ECX, 0, kNoState},
    {"pclmul", 1, 0, ECX, 1, kNoState},
    {"ssse3", 1, 0, ECX, 9, kNoState},
    {"fma", 1, 0, ECX, 12, kAvxState},
    {"cx16", 1, 0, ECX, 13, kNoState},
    {"sse4.1", 1, 0, ECX, 19, kNoState},
    {"sse4.2", 1, 0, ECX, 20, kNoState},
    {"crc32", 1, 0, ECX, 20, kNoState},
    {"movbe", 1, 0, ECX, 22, kNoState},
    {"popcnt", 1, 0, ECX, 23, kNoState},
    {"aes", 1, 0, ECX, 25, kNoState},
    {"xsave", 1, 0, ECX, 26, kNoState},
    {"avx", 1, 0, ECX, 28, kAvxState},
    {"f16c", 1, 0, ECX, 29, kAvxState},
    {"rdrnd", 1, 0, ECX, 30, kNoState},
    {"fsgsbase", 7, 0, EBX, 0, kNoState},
    {"bmi", 7, 0, EBX, 3, kNoState},
    {"avx2", 7, 0, EBX, 5, kAvxState},
    {"bmi2", 7, 0, EBX, 8, kNoState},
    {"avx512f", 7, 0, EBX, 16, kAvx512State},
    {"avx512dq", 7, 0, EBX, 17, kAvx512State},
    {"rdseed", 7, 0, EBX, 18, kNoState},
    {"adx", 7, 0, EBX, 19, kNoState},
    {"avx512ifma", 7, 0, EBX, 21, kAvx512State},
    {"clflushopt", 7, 0, EBX, 23, kNoState},
    {"clwb", 7, 0, EBX, 24, kNoState},
    {"avx512cd", 7, 0, EBX, 28, kAvx512State},
    {"sha", 7, 0, EBX, 29, kNoState},
    {"avx512bw", 7, 0, EBX, 30, kAvx512State},
    {"avx512vl", 7, 0, EBX, 31, kAvx512State},
    {"avx512vbmi", 7, 0, ECX, 1, kAvx512State},
    {"avx512vbmi2", 7, 0, ECX, 6, kAvx512State},
    {"gfni", 7, 0, ECX, 8, kNoState},
    {"vaes", 7, 0, ECX, 9, kAvxState},
    {"vpclmulqdq", 7, 0, ECX, 10, kAvxState},
    {"avx512vnni", 7, 0, ECX, 11, kAvx512State},
    {"avx512bitalg", 7, 0, ECX, 12, kAvx512State},
    {"avx512vpopcntdq", 7, 0, ECX, 14, kAvx512State},
    {"avx512vp2intersect", 7, 0, EDX, 8, kAvx512State},
    {"amx-bf16", 7, 0, EDX, 22, kTileState},
    {"avx512fp16", 7, 0, EDX, 23, kAvx512State},
    {"amx-tile", 7, 0, EDX, 24, kTileState},
    {"amx-int8", 7, 0, EDX, 25, kTileState},
    {"avxvnni", 7, 1, EAX, 4, kAvxState},
    {"avx512bf16", 7, 1, EAX, 5, kAvx512State},
    {"avxifma", 7, 1, EAX, 23, kAvxState},
    {"sahf", 0x80000001, 0, ECX, 0, kNoState},
    {"lzcnt", 0x80000001, 0, ECX, 5, kNoState},
    {"sse4a", 0x80000001, 0, ECX, 6, kNoState},
    {"prfchw", 0x80000001, 0, ECX, 8, kNoState},
    {"64bit", 0x80000001, 0, EDX, 29, kNoState},
};

/// What the processor says of itself, asked once: a hypervisor answers each question in microseconds.
class Processor {
public:
  Processor() {
    for (Leaf &leaf : leaves)
      if (!__get_cpuid_count(leaf.number, leaf.subleaf, &leaf.regs[EAX], &leaf.regs[EBX], &leaf.regs[ECX],
                             &leaf.regs[EDX]))
        leaf.regs.fill(0);
    // OSXSAVE says that XGETBV may be used.
    if (!(leaves[0].regs[ECX] >> 27 & 1))
      return;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    enabled = uint64_t(high) << 32 | low;
  }

  bool has(const FeatureRow &row) const {
    for (const Leaf &leaf : leaves)
      if (leaf.number == row.leaf && leaf.subleaf == row.subleaf)
        return (leaf.regs[row.reg] >> row.bit & 1) && (enabled & row.state) == row.state;
    return false;
  }

private:
  struct Leaf {
    uint32_t number, subleaf;
    std::array<uint32_t, 4> regs{};
  };
  std::array<Leaf, 4> leaves{{{1, 0}, {7, 0}, {7, 1}, {0x80000001, 0}}};
  uint64_t enabled = 0; ///< XCR0
};
#endif

} // namespace

bool cpuHasFeature(std::string_view name) {
#if defined(__x86_64__)
  static const Processor processor;
  for (const FeatureRow &row : kFeatures)
    if (row.name == name)
      return processor.has(row);
#endif
  return false;
}

bool cpuLendsTiles() {
#if defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18; // asm/prctl.h; the state's number in XCR0
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

namespace {

/// What each level adds that kernels are written for, best first; processors have the rest with it.
struct LevelRow {
  std::string_view name;
  std::array<std::string_view, 5> features;
};
constexpr LevelRow kLevels[] = {
    {"sapphirerapids", {"amx-bf16", "amx-tile", "amx-int8", "avx512bf16", "avx512vl"}},
    {"znver4", {"avx512bf16", "avx512vnni", "sse4a", "avx512f", "avx512vl"}},
    {"x86-64-v4-vnni", {"avx512vnni", "avx512f", "avx512bw", "avx512dq", "avx512vl"}},
    {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
    {"x86-64-v3", {"avx2", "fma", "f16c", "bmi2", "lzcnt"}},
    {"x86-64-v2", {"sse4.2", "sse4.1", "ssse3", "sse3", "popcnt"}},
};

/// What is behind the "needs" of a message.
std::string lackedFeature(std::string_view feature) { return cat("CPU feature '", feature, "'"); }
constexpr std::string_view kLackedTiles = "permission to use AMX's tiles (arch_prctl ARCH_REQ_XCOMP_PERM)";

bool needsTiles(std::string_view feature) { return feature.starts_with("amx-"); }

/// The first of some features that a machine lacks; "" where it has them all.
template <typename Features> std::string lackedOf(const Features &features, const CpuMachine &machine) {
  bool tiles = false;
  for (std::string_view feature : features) {
    if (!machine.hasFeature(feature))
      return lackedFeature(feature);
    tiles |= needsTiles(feature);
  }
  return std::string(tiles && !machine.lendsTiles() ? kLackedTiles : "");
}

/// What the code needs and the machine lacks; "": nothing. The level in the name of the code counts
/// too, so that a manifest that says less of it is not believed: code/cpu/x86-64-v4/kernels.so.
std::string lackedBy(const TargetCode &code, const CpuMachine &machine) {
  std::string lacked = lackedOf(code.features, machine);
  for (const LevelRow &level : kLevels)
    if (lacked.empty() && (code.arch == level.name || code.entry.find(cat("/", level.name, "/")) != std::string::npos))
      lacked = lackedOf(level.features, machine);
  return lacked;
}

} // namespace

const char *betterCpuLevel(std::span<const TargetCode> codes) {
  // The first ones are of use to products of bytes or bf16 alone, the last is as good as none.
  for (const LevelRow &level : std::span(kLevels).subspan(3, 2)) {
    bool used = false;
    for (const TargetCode &code : codes)
      used |= code.target == "cpu" &&
              std::find(code.features.begin(), code.features.end(), level.features[0]) != code.features.end();
    if (used)
      return nullptr;
    if (std::all_of(level.features.begin(), level.features.end(), cpuHasFeature))
      return level.name.data();
  }
  return nullptr;
}

Result<const TargetCode *> selectCpuCode(std::span<const TargetCode> codes, std::string_view isa) {
  std::string note;
  return selectCpuCode(codes, isa, {}, note);
}

Result<const TargetCode *> selectCpuCode(std::span<const TargetCode> codes, std::string_view isa,
                                         const CpuMachine &machine, std::string &note) {
  const TargetCode *best = nullptr;
  std::string levels, missing;
  for (const TargetCode &code : codes) {
    if (code.target != "cpu")
      continue;
    levels += cat(levels.empty() ? "" : ", ", code.arch);
    if (!isa.empty() && code.arch != isa)
      continue;
    std::string lacked = lackedBy(code, machine);
    if (!lacked.empty())
      missing += cat(missing.empty() ? "" : "; ", "its ", code.arch, " code needs ", lacked);
    else if (!best || code.features.size() > best->features.size())
      best = &code;
    if (lacked == kLackedTiles)
      note = cat("the system refuses ", lacked, ", which ", code.arch, " code needs");
  }
  if (best)
    return best;
  if (levels.empty())
    return fail(DMX_STATUS_UNSUPPORTED, "the bundle has no code for target 'cpu'; compile the model with -t cpu");
  if (missing.empty())
    return fail(DMX_STATUS_INVALID_ARGUMENT, "the bundle has no code of ISA level '", isa, "'; it has ", levels);
  return fail(DMX_STATUS_UNSUPPORTED, "this CPU cannot run the bundle: ", missing,
              ", which this CPU or its operating system lacks; compile the model for a lower level, e.g. "
              "-t cpu:x86-64-v2, or add it beside the others with +");
}

Status checkCpuLevel(std::string_view name, const CpuMachine &machine) {
  for (const LevelRow &level : kLevels)
    if (std::string lacked = level.name == name ? lackedOf(level.features, machine) : ""; !lacked.empty())
      return fail(DMX_STATUS_UNSUPPORTED, "the code is of level ", name, ", whatever the manifest says, and needs ",
                  lacked, ", which this CPU or its operating system lacks; compile the model again, for a lower level");
  return {};
}

} // namespace dmxrt
