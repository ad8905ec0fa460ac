//===- CorsairFuzzTest.cpp - programs without sense -----------------------===//
//
// Programs that the verifier accepts but nobody would write: each must end, with
// a result or a named fault. Sanitizer builds see what it touches. DMX_FUZZ_PROGRAMS sets how many.
//
//===----------------------------------------------------------------------===//

#include "CorsairHarness.h"

#include <cstdlib>
#include <random>

using namespace dmxtest;
using namespace dmxrt::corsair;

namespace {

class ProgramFuzzer {
public:
  explicit ProgramFuzzer(uint64_t seed) : random(seed), alone(seed % 4 != 1) { image.machine = isa::builtinMachine(); }

  /// An image of one kernel on quads 0 and 5, or nothing when the verifier refuses it.
  std::unique_ptr<isa::Image> make() {
    addFunction();
    isa::Kernel kernel;
    kernel.name = "k";
    kernel.footprint.bytes = {0x8000, 0x8000, 0x8000, 0x8000, 0x2100, 0x8000, 0x2000, 0x4000};
    for (uint32_t quad : {0u, 5u}) {
      isa::Launch launch;
      launch.quad = quad;
      for (uint32_t &stream : launch.streams)
        if (alone ? &stream == &launch.streams[1] : pick(0, 1))
          stream = image.addStream({"s" + std::to_string(image.streams.size()), streamCode()});
      for (int64_t &value : launch.registers)
        value = number();
      kernel.main.launches.push_back(launch);
    }
    image.kernels.push_back(kernel);
    EXPECT_FALSE(isa::verify(image)) << *isa::verify(image);
    return std::make_unique<isa::Image>(image);
  }

private:
  std::mt19937_64 random;
  isa::Image image;
  bool alone; ///< one queue a quad: no races
  int depth = 0;

  int64_t pick(int64_t min, int64_t max) { return std::uniform_int_distribution<int64_t>(min, max)(random); }
  int64_t number() {
    const int64_t usual[] = {0, 0, 0, 1, 2, 8, 64, 128, 4160, 0x1000},
                  odd[] = {3, 0x7fc0, -1, -64, int64_t(1) << 33, INT64_MAX, INT64_MIN};
    return pick(0, 9) ? usual[pick(0, 9)] : odd[pick(0, 6)];
  }
  int64_t small() { return pick(0, 5); }

  /// Trip counts that would keep the test busy are kept small; the rest may be anything.
  bool isCount(std::string_view name) {
    for (std::string_view count :
         {"n", "n0", "n1", "n2", "n3", "rows", "cols", "batch", "steps", "win_kh", "win_kw", "unit", "win_c"})
      if (name == count)
        return true;
    return false;
  }

  std::vector<isa::Term> terms() {
    std::vector<isa::Term> out;
    if (depth && pick(0, 1))
      out.push_back(isa::loopTerm(static_cast<int>(pick(0, depth - 1)), pick(1, 100)));
    if (pick(0, 3) == 0)
      out.push_back(isa::registerTerm(static_cast<int>(pick(0, 15)), pick(0, 1) ? 1 : number() | 1));
    if (pick(0, 5) == 0)
      out.push_back(isa::quadTerm(64));
    return out;
  }

  void fillFields(isa::Instruction &in) {
    for (const isa::FieldInfo &field : in.info().fields) {
      if (pick(0, 2) == 0)
        continue;
      bool count = isCount(field.name);
      int64_t value = count ? small() : number();
      if (field.kind == isa::FieldKind::Memory)
        value = pick(0, 7);
      if (std::string_view(field.name) == "slot")
        value = pick(0, 1);
      if (std::string_view(field.name) == "fn" && in.opcode == isa::Opcode::ExecSimd)
        value = pick(0, isa::kSimdFunctions - 1);
      in.set(field.name, value, field.affine && !count ? terms() : std::vector<isa::Term>());
    }
    if (auto unit = isa::configUnit(in.opcode))
      for (const isa::ConfigKeyInfo &key : isa::configKeys())
        if (key.units >> static_cast<int>(*unit) & 1 && pick(0, 2) == 0) {
          int64_t value = isCount(key.name) ? small() : std::clamp(number(), key.min, key.max);
          if (std::string_view(key.name).ends_with("k") || std::string_view(key.name) == "kind" ||
              std::string_view(key.name) == "to")
            value = pick(0, 12);
          in.key(key.key, std::clamp(value, key.min, key.max));
        }
  }

  /// A random instruction that passes the verifier, of those that may stand in a stream.
  isa::Instruction instruction() {
    static const isa::Opcode kOften[] = {isa::Opcode::Move,      isa::Opcode::Matmul,   isa::Opcode::Conv,
                                         isa::Opcode::ExecSimd,  isa::Opcode::Extract,  isa::Opcode::Insert,
                                         isa::Opcode::Transpose, isa::Opcode::ConfigAC, isa::Opcode::ConfigSIMD,
                                         isa::Opcode::ConfigGM,  isa::Opcode::ConfigST, isa::Opcode::Reset,
                                         isa::Opcode::ExecCpu,   isa::Opcode::Signal,   isa::Opcode::SignalRemote,
                                         isa::Opcode::Send,      isa::Opcode::Barrier};
    for (;;) {
      isa::Instruction in(kOften[pick(0, std::size(kOften) - 1)]);
      fillFields(in);
      isa::Image probe = image;
      probe.streams.clear();
      probe.kernels.clear();
      isa::Code code{"probe", {}};
      for (int i = 0; i < depth; ++i)
        code.instructions.emplace_back(isa::Opcode::Loop);
      code.instructions.push_back(in);
      for (int i = 0; i < depth; ++i)
        code.instructions.emplace_back(isa::Opcode::EndLoop);
      code.instructions.emplace_back(isa::Opcode::Halt);
      probe.addStream(code);
      if (!isa::verify(probe))
        return in;
    }
  }

  std::vector<isa::Instruction> streamCode() {
    std::vector<isa::Instruction> code;
    // Something to read, and slots that are set.
    code.push_back(isa::Instruction(isa::Opcode::ConfigSIMD)
                       .key(isa::ConfigKey::DKind, pick(1, 9))
                       .key(isa::ConfigKey::N3, 512)
                       .key(isa::ConfigKey::D3, 8));
    code.push_back(isa::Instruction(isa::Opcode::ExecSimd).set("fn", static_cast<int64_t>(isa::SimdFunction::Fill)));
    code.push_back(isa::Instruction(isa::Opcode::ConfigGM).key(isa::ConfigKey::Unit, 4160));
    code.push_back(isa::Instruction(isa::Opcode::ConfigST).key(isa::ConfigKey::Unit, 64));
    code.push_back(isa::Instruction(isa::Opcode::ConfigAC));
    depth = 0;
    for (int64_t count = pick(3, 12); count > 0; --count) {
      if (depth < 3 && pick(0, 7) == 0) {
        code.push_back(isa::Instruction(isa::Opcode::Loop).set("n", pick(0, 3)));
        ++depth;
      }
      code.push_back(instruction());
      if (depth && pick(0, 2) == 0) {
        code.emplace_back(isa::Opcode::EndLoop);
        --depth;
      }
    }
    for (; depth; --depth)
      code.emplace_back(isa::Opcode::EndLoop);
    code.emplace_back(isa::Opcode::Halt);
    return code;
  }

  void addFunction() {
    isa::Code code{"f", {}};
    for (int64_t count = pick(0, 10); count > 0; --count)
      for (;;) {
        isa::Instruction in(static_cast<isa::Opcode>(
            pick(static_cast<int>(isa::Opcode::CpuLi), static_cast<int>(isa::Opcode::CpuQuad))));
        for (const isa::FieldInfo &field : in.info().fields)
          in.set(field.name, std::string_view(field.name) == "imm" ? number() : pick(0, 11));
        isa::Image probe;
        probe.machine = image.machine;
        isa::Code alone{"p", std::vector<isa::Instruction>(12, isa::Instruction(isa::Opcode::CpuRet))};
        alone.instructions[0] = in;
        probe.addFunction(alone);
        if (isa::verify(probe))
          continue;
        code.instructions.push_back(in);
        break;
      }
    code.instructions.resize(12, isa::Instruction(isa::Opcode::CpuRet)); // branches go up to 11
    image.addFunction(code);
  }
};

} // namespace

TEST(CorsairFuzz, EveryVerifiedProgramEnds) {
  const char *wanted = std::getenv("DMX_FUZZ_PROGRAMS");
  uint64_t programs = wanted ? std::strtoull(wanted, nullptr, 10) : 300;
  std::map<std::string, int> outcomes;
  for (uint64_t seed = 1; seed <= programs; ++seed) {
    SCOPED_TRACE(seed);
    std::unique_ptr<isa::Image> image = ProgramFuzzer(seed).make();
    Storage storage;
    ASSERT_TRUE(storage.reserve(image->machine, image->kernels[0].footprint.bytes));
    Card card(image->machine, storage);
    std::vector<Stream> streams = decodeStreams(*image);
    RunOptions options;
    options.threads = 1 + seed % 2;
    options.hazards = seed % 4 != 0;
    RunResult result = card.run({image.get(), &streams, &image->kernels[0].main, {}}, options);
    ++outcomes[result.fault ? std::string(nameOf(result.fault->kind)) : "finished"];
    // The text form of such a program is a fixed point as well.
    std::string text = isa::disassemble(*image), error;
    auto again = isa::assemble(text, image->machine, error);
    ASSERT_TRUE(again) << error << "\n" << text;
    ASSERT_EQ(isa::write(*again), isa::write(*image));
  }
  for (auto &[name, count] : outcomes)
    std::printf("%s %d\n", name.c_str(), count);
  EXPECT_GE(outcomes.size(), programs >= 300 ? 6u : 1u) << "the programs are not varied";
}
