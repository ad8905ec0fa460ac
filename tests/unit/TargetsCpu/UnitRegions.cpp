//===- UnitRegions.cpp - regions at the levels with units for bf16 --------===//
//
// What dmxc compiles for the levels with units for bf16 is run twice: as it is where this machine has them, and
// everywhere with their instructions emulated: the LLVM IR that --save-temps shows, which its code is made of, is
// compiled for a level that this machine has.
//
//===----------------------------------------------------------------------===//

#include "UnitRegions.h"

#include "EmulatedUnits.h"
#include "KernelHarness.h"

#include "targets/cpu/CpuTarget.h"
#include "targets/cpu/code/Lowering.h"
#include "tests/unit/TargetsCommon/RegionHarness.h"

#include "tests/Sample.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <unistd.h>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using namespace mlir;

namespace {

constexpr StringRef kUnitLevels[] = {kTileLevel, kDotsLevel};
/// Those that the next module is compiled for.
ArrayRef<StringRef> unitLevels = kUnitLevels;
std::string emulated(StringRef level) { return "emulated " + level.str(); }

/// Where the levels' texts of the last module are.
const std::string &tempsDir() {
  static const struct Folder {
    std::string name = (std::filesystem::temp_directory_path() / ("dmxc-units-" + std::to_string(getpid()))).string();
    ~Folder() { std::filesystem::remove_all(name); }
  } folder;
  return folder.name;
}

std::string textOf(StringRef level, const std::string &kernel, const char *ending) {
  std::ifstream in(tempsDir() + "/" + level.str() + "/" + kernel + ending);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

IsaLevel levelOfThisMachine() {
  IsaLevel level = *IsaLevel::byName("x86-64-v3");
  return level.runsHere() ? level : *IsaLevel::byName("x86-64-v2");
}

Result<KernelObject> emulate(StringRef level, const std::string &name) {
  llvm::LLVMContext context;
  std::string problem;
  auto module = emulateUnits(textOf(level, name, ".ll"), context, problem);
  if (!module)
    return Error{ErrorKind::Internal, name + ": " + problem};
  IsaLevel here = levelOfThisMachine();
  for (llvm::Function &fn : *module) {
    fn.removeFnAttr("target-features");
    fn.removeFnAttr("prefer-vector-width");
    if (!fn.isDeclaration())
      fn.addFnAttr("target-cpu", here.cpu);
  }
  auto machine = makeTargetMachine(here, 0); // the IR is optimised
  if (!machine)
    return machine.takeError();
  KernelObject object{name, {name}, {}, {}};
  auto elf = emitObject(*module, **machine, 0);
  if (!elf)
    return elf.takeError();
  object.elf = std::move(*elf);
  return object;
}

Result<kernels::test::RegionTarget::FindKernel> compileAll(TargetBackend &backend, ArrayRef<dlir::KernelOp> kernels) {
  auto code = backend.emit(SmallVector<Operation *>(kernels.begin(), kernels.end()));
  if (!code)
    return code.takeError();
  auto libraries = std::make_shared<std::map<std::string, LoadedKernels>>();
  for (CodeEntry &entry : *code)
    if (auto level = IsaLevel::byName(entry.arch); level && level->runsHere() && !entry.bytes.empty())
      libraries->emplace(entry.arch, LoadedKernels(entry.bytes));
  for (StringRef level : unitLevels) {
    std::vector<KernelObject> objects;
    for (dlir::KernelOp kernel : kernels) {
      auto object = emulate(level, kernel.getSymName().str());
      if (!object)
        return object.takeError();
      objects.push_back(std::move(*object));
    }
    auto so = linkKernels(objects, levelOfThisMachine());
    if (!so)
      return so.takeError();
    libraries->emplace(emulated(level), LoadedKernels(*so));
  }
  return kernels::test::RegionTarget::FindKernel([libraries](const std::string &level, const std::string &name) {
    auto library = libraries->find(level);
    return library == libraries->end() ? nullptr : library->second.find(name);
  });
}

} // namespace

kernels::test::RegionTarget dmxc::kernels::test::makeRegionTarget() {
  TargetOptions options;
  options.numerics = "bf16";
  options.levels.assign(unitLevels.begin(), unitLevels.end());
  options.saveTempsDir = tempsDir();
  RegionTarget target;
  target.backend = std::move(*createCpuTarget(options));
  for (StringRef level : unitLevels) {
    target.levels.push_back(emulated(level));
    if (IsaLevel::byName(level)->runsHere())
      target.levels.push_back(level.str());
  }
  target.compile = [backend = target.backend.get()](ArrayRef<dlir::KernelOp> kernels) {
    return compileAll(*backend, kernels);
  };
  return target;
}

using namespace dmxc::kernels::test;

namespace {

/// A product with its epilogue.
struct Product {
  int64_t batch = 0, m = 1, n = 1, k = 1; ///< batch: 0: there is none
  bool turnedWeights = false, turnedLeft = false, openRows = false;
  std::string epilogue;
};

std::string tensor(const std::string &dims, const char *type, bool open) {
  return "tensor<" + dims + "x" + type + (open ? ", #dmir.dims<\"m\">>" : ">");
}

/// The function's text. Errors are allowed as far as the order of sums goes: K * 2^-23 of the sum of the products'
/// magnitudes, which for normal numbers of deviation 2 is 2.55 each.
std::string functionOf(const std::string &name, const Product &p) {
  auto of = [](int64_t x) { return std::to_string(x); };
  std::string m = p.openRows ? "?" : of(p.m), lead = p.batch ? of(p.batch) + "x" : "";
  std::string a = tensor(lead + m + "x" + of(p.k), "bf16", p.openRows),
              r = tensor(lead + m + "x" + of(p.n), "f32", p.openRows);
  std::string w = tensor(of(p.k) + "x" + of(p.n), "bf16", false), given = a, held = w;
  std::string body, left = "%a", right = "%w", result = "%r";
  if (p.turnedLeft) {
    given = tensor(lead + of(p.k) + "x" + m, "bf16", p.openRows);
    body += "  %x = dmir.transpose %a {permutation = array<i64: " + std::string(p.batch ? "0, 2, 1" : "1, 0") +
            ">} : (" + given + ") -> " + a + "\n";
    left = "%x";
  }
  if (p.turnedWeights) {
    held = tensor(of(p.n) + "x" + of(p.k), "bf16", false);
    body += "  %t = dmir.transpose %w {permutation = array<i64: 1, 0>} : (" + held + ") -> " + w + "\n";
    right = "%t";
  }
  body += "  %r = dmir.matmul " + left + ", " + right + " : (" + a + ", " + w + ") -> " + r + "\n";
  std::string extra = tensor(of(p.n), "f32", false);
  auto add = [&](const std::string &op, const std::string &operand) {
    std::string next = result + "e", types = operand.empty() ? r : r + ", " + (p.epilogue == "residual" ? r : extra);
    body += "  " + next + " = dmir." + op + " " + result + (operand.empty() ? "" : ", " + operand) + " : (" + types +
            ") -> " + r + "\n";
    result = next;
  };
  if (p.epilogue == "relu")
    add("relu", "");
  else if (p.epilogue == "heavy")
    for (const char *op : {"add", "max", "add", "neg", "max", "add", "neg", "max"})
      add(op, op == std::string("neg") ? "" : "%e");
  else if (!p.epilogue.empty())
    add("add", "%e");
  double slack = p.k * std::ldexp(2.55 * p.k + 25, -23) + 4e-6;
  std::ostringstream bound;
  bound << std::scientific << slack;
  bool takesExtra = !p.epilogue.empty() && p.epilogue != "relu";
  return "func.func @" + name + "(%a: " + given + ", %w: " + held + " {test.packed}" +
         (takesExtra ? ", %e: " + (p.epilogue == "residual" ? r : extra) : "") + ") -> " + r +
         "\n    attributes {ulp = 4.0, abs = " + bound.str() +
         (p.openRows ? ", sizes = [{m = " + of(p.m) + "}, {m = 1}, {m = 17}, {m = 0}]" : "") + "} {\n" + body +
         "  return " + result + " : " + r + "\n}\n";
}

Product randomProduct(std::mt19937_64 &random) {
  auto size = [&] { return int64_t(std::lround(std::pow(300.0, std::uniform_real_distribution<>()(random)))); };
  Product p;
  p.m = size(), p.n = size(), p.k = size();
  if (random() % 2)
    p.batch = 1 + random() % 3;
  p.turnedWeights = random() % 3 == 0, p.turnedLeft = random() % 6 == 0;
  p.openRows = !p.turnedLeft && random() % 4 == 0;
  constexpr const char *epilogues[] = {"", "relu", "bias", "residual", "heavy"};
  p.epilogue = epilogues[random() % std::size(epilogues)];
  return p;
}

/// Agreement with the interpreter at all levels, and what a processor would have said.
void check(const std::string &text, unsigned *pairs = nullptr) {
  RegionModule regions(text);
  ASSERT_EQ(regions.error, "");
  for (const std::string &level : regions.levels())
    for (const std::string &name : regions.names()) {
      EXPECT_EQ(regions.check(name, level), "") << name << " at " << level << ", " << regions.strategy(name);
      EXPECT_EQ(unitProblem(), "") << name << " at " << level;
    }
  for (const std::string &name : regions.names())
    if (pairs)
      *pairs += regions.strategy(name).find("\"matmul-pairs\"") != std::string::npos;
}

TEST(Units, SaysWhatThisMachineHas) {
  for (StringRef level : kUnitLevels)
    if (auto lacked = IsaLevel::byName(level)->lackedHere(); !lacked.empty())
      GTEST_SKIP() << level.str() << " is emulated alone: this machine lacks " << lacked.front();
}

TEST(Units, RandomProducts) {
  constexpr unsigned each = 10;
  sampling::Sample sample(5);
  for (unsigned group = 0; group < 50; ++group) {
    if (!sample.takes(uint64_t(group)))
      continue;
    std::mt19937_64 random(group);
    std::string text;
    for (unsigned i = 0; i < each; ++i)
      text += functionOf("p" + std::to_string(group) + "_" + std::to_string(i), randomProduct(random));
    unsigned pairs = 0;
    // In a plain run each at one of the levels.
    unitLevels = sample.whole() ? kUnitLevels : ArrayRef(kUnitLevels).slice(group % std::size(kUnitLevels), 1);
    check(text, &pairs);
    unitLevels = kUnitLevels;
    EXPECT_EQ(pairs, each);
  }
}

/// One register, two of them and what lies between; one element, a pair, a tile of k and what lies between.
TEST(Units, ProductsAtTheEdgesOfTiles) {
  std::string text;
  auto add = [&](Product p) { text += functionOf("e" + std::to_string(text.size()), p); };
  for (int64_t m : {1, 4, 5, 16, 17, 32, 33, 49})
    add({.m = m, .n = 40, .k = 70});
  for (int64_t n : {1, 15, 16, 17, 32, 33, 64, 65})
    add({.m = 20, .n = n, .k = 33});
  for (int64_t n : {16, 48, 63, 64, 70}) // one tile of rows has four of columns
    add({.m = 9, .n = n, .k = 64});
  for (int64_t k : {1, 2, 3, 31, 32, 33, 34, 63, 64, 65, 96, 129})
    add({.m = 18, .n = 20, .k = k});
  add({.m = 700, .n = 33, .k = 600}); // several blocks of rows
  add({.m = 300, .n = 20, .k = 64, .openRows = true, .epilogue = "heavy"});
  check(text);
}

/// What is in scratch beyond a row is multiplied with zeros, and zeros times infinities are none.
TEST(Units, NothingComesFromBeyondARow) {
  check(R"(
func.func @odd(%a: tensor<6x7xbf16>, %w: tensor<7x5xbf16> {test.packed}) -> tensor<6x5xf32> attributes {ulp = 8.0, abs = 1.0e-5} {
  %r = dmir.matmul %a, %w : (tensor<6x7xbf16>, tensor<7x5xbf16>) -> tensor<6x5xf32>
  return %r : tensor<6x5xf32>
}
)");
}

//===----------------------------------------------------------------------===//
// The assembly
//===----------------------------------------------------------------------===//

/// Whether code has a product of tiles, or of vectors.
bool has(const std::string &code, const char *instruction) { return code.find(instruction) != std::string::npos; }
bool hasTileProduct(const std::string &code) { return has(code, "\ttdpb"); }
bool hasDotProduct(const std::string &code) { return has(code, "\tvdpbf16ps") || has(code, "\tvpdpbusd"); }

/// The lines from a loop's label to its last branch back, of loops that have a product and no other loop inside.
std::vector<std::string> productLoops(const std::string &assembly) {
  std::vector<std::string> lines, loops;
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  std::map<std::string, size_t> labels;
  std::regex label(R"(^(\.L\w+):)"), branch(R"(^\s+j\w+\s+(\.L\w+))");
  std::smatch match;
  size_t innermost = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (std::regex_search(lines[i], match, label))
      labels[match[1]] = i;
    if (!std::regex_search(lines[i], match, branch) || !labels.contains(match[1]) || labels[match[1]] < innermost)
      continue;
    innermost = labels[match[1]];
    std::string loop;
    for (size_t j = innermost; j <= i; ++j)
      loop += lines[j] + "\n";
    if (hasTileProduct(loop) || hasDotProduct(loop))
      loops.push_back(loop);
  }
  return loops;
}

/// What should not be in a loop over k: sums that leave their registers.
std::string spills(const std::string &loop) {
  for (const char *word : {"tilestored", "tilezero", "ldtilecfg", "sttilecfg"})
    if (has(loop, word))
      return word;
  if (hasTileProduct(loop) && (has(loop, "Spill") || has(loop, "Reload")))
    return "a spill"; // of registers for addresses; pointers to many rows may wait on the stack
  // A loop that moves %rbp walks a matrix with it.
  const std::string base = std::regex_search(loop, std::regex(R"(, %rbp\b)")) ? R"(\(%rsp)" : R"(\(%r[sb]p)";
  std::regex stack(R"(%[xyz]mm\d+.*)" + base + "|" + base +
                   R"([^\n]*%[xyz]mm\d+|(16|32|64)-byte [^\n]*(Spill|Reload))"),
      sums(R"(tileloadd\s+[^\n]*%tmm[0-3]\b)");
  return std::regex_search(loop, stack)  ? "a vector on the stack"
         : std::regex_search(loop, sums) ? "sums are loaded"
                                         : "";
}

TEST(Units, SumsStayInRegisters) {
  RegionModule regions(functionOf("large", {.m = 128, .n = 768, .k = 768, .epilogue = "bias"}) +
                       functionOf("flat", {.m = 14, .n = 200, .k = 512, .epilogue = "relu"}) +
                       functionOf("open", {.m = 40, .n = 100, .k = 300, .openRows = true, .epilogue = "heavy"}));
  ASSERT_EQ(regions.error, "");
  for (StringRef level : kUnitLevels)
    for (const std::string &name : regions.names()) {
      std::string text = textOf(level, name + "_kernel", ".s");
      std::vector<std::string> loops = productLoops(text);
      ASSERT_FALSE(loops.empty()) << name << "\n" << text;
      for (const std::string &loop : loops)
        EXPECT_EQ(spills(loop), "") << name << " at " << level.str() << "\n" << loop;
      bool isTile = level == kTileLevel;
      EXPECT_EQ(text.find("tdpbf16ps") != std::string::npos, isTile);
      EXPECT_EQ(text.find("ldtilecfg") != std::string::npos, isTile);
      EXPECT_EQ(text.find("tilerelease") != std::string::npos, isTile);
      // Were sums kept in memory, the test would see it.
      std::string broken = std::regex_replace(loops.front(), std::regex(isTile ? "\ttdpbf16ps" : "\tvdpbf16ps"),
                                              isTile ? "\ttilestored\t%tmm0, (%rsp,%rax)\n\ttdpbf16ps"
                                                     : "\tvmovups\t%zmm1, 64(%rsp)\n\tvdpbf16ps");
      EXPECT_NE(spills(broken), "");
    }
}

} // namespace

//===----------------------------------------------------------------------===//
// For other files
//===----------------------------------------------------------------------===//

void dmxc::cpu::test::checkAt(ArrayRef<StringRef> levels, const std::string &text) {
  unitLevels = levels;
  check(text);
  unitLevels = kUnitLevels;
}

std::string dmxc::cpu::test::assemblyAt(StringRef level, const std::string &kernel) {
  return textOf(level, kernel, ".s");
}

std::string dmxc::cpu::test::spillIn(const std::string &assembly) {
  std::vector<std::string> loops = productLoops(assembly);
  for (const std::string &loop : loops)
    if (std::string spill = spills(loop); !spill.empty())
      return spill + ":\n" + loop;
  return loops.empty() ? "no loop with a product" : "";
}
