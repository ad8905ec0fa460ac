//===- IsaLevel.cpp - x86-64 levels the CPU target compiles for ----------===//

#include "IsaLevel.h"

#include "CpuBuilder.h"

#include "dmxc/Support/Diagnostic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/TargetParser/Host.h"

#include <sys/syscall.h>
#include <unistd.h>

using namespace dmxc::cpu;

namespace {

// The psABI levels, as the feature names of LLVM and of /proc/cpuinfo-like
// checks.
constexpr llvm::StringRef v2Features[] = {"cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"};
constexpr llvm::StringRef v3Features[] = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"};
constexpr llvm::StringRef v4Features[] = {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"};
// What "host" may add on top of its level. A fixed list, so that the features
// required of the machine that loads the bundle are exactly those the code may
// use.
constexpr llvm::StringRef hostExtras[] = {"avx512bf16", "avx512vnni", "avxvnni"};
constexpr llvm::StringRef tileFeatures[] = {"amx-tile", "amx-bf16", "amx-int8"};

void append(IsaLevel &isa, llvm::ArrayRef<llvm::StringRef> features) {
  for (llvm::StringRef feature : features)
    isa.required.push_back(feature.str());
}

IsaLevel makeLevel(int level) {
  IsaLevel isa;
  isa.name = isa.cpu = "x86-64-v" + std::to_string(level);
  isa.vectorBytes = level == 4 ? 64 : level == 3 ? 32 : 16;
  isa.vectorRegisters = level == 4 ? 32 : 16;
  isa.maskedBits = level == 4 ? 8 : level == 3 ? 32 : 0;
  isa.hasFma = isa.hasF16C = level >= 3;
  append(isa, v2Features);
  if (level >= 3)
    append(isa, v3Features);
  if (level >= 4) {
    append(isa, v4Features);
    // The level's LLVM tuning prefers 256-bit vectors; our kernels are written
    // for 512.
    isa.features = "-prefer-256-bit";
  }
  return isa;
}

/// AVX-512 as most processors that have it: with dot products of bytes.
IsaLevel makeVnni() {
  IsaLevel isa = makeLevel(4);
  isa.name += "-vnni";
  isa.features += ",+avx512vnni";
  isa.required.push_back("avx512vnni");
  isa.hasVnni = true;
  return isa;
}

void use(IsaLevel &isa, llvm::ArrayRef<llvm::StringRef> features) {
  for (llvm::StringRef feature : features)
    isa.features += (isa.features.empty() ? "+" : ",+") + feature.str();
  append(isa, features);
}

IsaLevel makeDots() {
  IsaLevel isa = makeVnni();
  isa.name = kDotsLevel;
  use(isa, {"avx512bf16"});
  append(isa, {"sse4a"}); // is not used: AMD's processors have it, Intel's do not
  isa.hasDots = true;
  return isa;
}

IsaLevel makeTiles() {
  IsaLevel isa = makeVnni();
  isa.name = kTileLevel;
  use(isa, {"avx512bf16"});
  use(isa, tileFeatures);
  isa.hasTiles = true;
  return isa;
}

/// Whether Linux lets this process use tiles. It asks for that; the runtime does, too.
bool systemLendsTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18; // asm/prctl.h, ARCH_REQ_XCOMP_PERM; XCR0's bit
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

IsaLevel makeHost() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto hasAll = [&](llvm::ArrayRef<llvm::StringRef> names) {
    return llvm::all_of(names, [&](llvm::StringRef n) { return features.lookup(n); });
  };
  bool v3 = hasAll(v3Features), v4 = v3 && hasAll(v4Features);
  IsaLevel isa = makeLevel(v4 ? 4 : v3 ? 3 : 2);
  isa.name = "host";
  for (llvm::StringRef extra : hostExtras) {
    bool wanted = extra.starts_with("avx512") ? v4 : v3;
    if (!wanted || !features.lookup(extra))
      continue;
    use(isa, extra);
    isa.hasVnni |= extra == (v4 ? "avx512vnni" : "avxvnni");
  }
  isa.hasDots = v4 && hasAll({"avx512bf16", "sse4a"});
  if (v4 && hasAll(tileFeatures) && systemLendsTiles()) {
    use(isa, tileFeatures);
    isa.hasTiles = true;
  }
  return isa;
}

} // namespace

std::optional<IsaLevel> IsaLevel::byName(llvm::StringRef name) {
  if (name == "host")
    return makeHost();
  if (name == kVnniLevel)
    return makeVnni();
  if (name == kDotsLevel)
    return makeDots();
  if (name == kTileLevel)
    return makeTiles();
  for (int level : {2, 3, 4})
    if (name == "x86-64-v" + std::to_string(level))
      return makeLevel(level);
  return std::nullopt;
}

int64_t IsaLevel::mostBytes(llvm::function_ref<int64_t(const IsaLevel &)> bytesAt) const {
  // Those of the psABI, without and with VNNI, and those with units for bf16: one of them has the largest tiles of any
  // kind.
  static const llvm::SmallVector<IsaLevel, 0> levels = [] {
    llvm::SmallVector<IsaLevel, 0> all{makeLevel(2), makeLevel(3), makeLevel(4), makeLevel(3),
                                       makeLevel(4), makeDots(),   makeTiles()};
    all[3].hasVnni = all[4].hasVnni = true;
    return all;
  }();
  int64_t most = bytesAt(*this);
  for (const IsaLevel &level : levels)
    most = std::max(most, bytesAt(level));
  return most;
}

const IsaLevel &IsaLevel::nominal() {
  static const IsaLevel level = makeLevel(3);
  return level;
}

std::unique_ptr<KernelBuilder> IsaLevel::makeBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name,
                                                     unsigned buffers, unsigned dims,
                                                     llvm::ArrayRef<bool> noalias) const {
  return std::make_unique<CpuBuilder>(module, loc, name, buffers, dims, *this, noalias);
}

//===----------------------------------------------------------------------===//
// Instructions of its own
//===----------------------------------------------------------------------===//

static mlir::Value intrinsic(mlir::ImplicitLocOpBuilder &b, mlir::Type type, llvm::StringRef name,
                             mlir::ValueRange operands) {
  return mlir::LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr("llvm.x86.avx512." + name), operands)
      .getResult(0);
}

static mlir::Value wholeNumber(mlir::ImplicitLocOpBuilder &b, mlir::Type type, int64_t value) {
  return mlir::arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
}

/// For instructions on whole vectors with a mask and a rounding: all lanes, rounded as elsewhere.
static mlir::Value allLanes(mlir::ImplicitLocOpBuilder &b, mlir::VectorType type) {
  return wholeNumber(b, b.getIntegerType(type.getNumElements()), -1);
}
static mlir::Value asTheEnvironment(mlir::ImplicitLocOpBuilder &b) { return wholeNumber(b, b.getI32Type(), 4); }

bool IsaLevel::scales(mlir::Type type) const {
  auto vector = mlir::dyn_cast<mlir::VectorType>(type);
  return vectorBytes == 64 && vector && vector.getNumElements() * vector.getElementTypeBitWidth() == 512;
}

mlir::Value IsaLevel::scale(mlir::ImplicitLocOpBuilder &b, mlir::Value m, mlir::Value n) const {
  if (!scales(m.getType()))
    return {};
  auto type = mlir::cast<mlir::VectorType>(m.getType());
  llvm::StringRef name = type.getElementType().isF32() ? "mask.scalef.ps.512" : "mask.scalef.pd.512";
  return intrinsic(b, type, name, {m, n, m, allLanes(b, type), asTheEnvironment(b)});
}

mlir::Value IsaLevel::lookUp(mlir::ImplicitLocOpBuilder &b, mlir::Value table, mlir::Value lanes) const {
  return intrinsic(b, table.getType(), "permvar.sf.512", {table, lanes});
}

mlir::Value IsaLevel::within(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value limit) const {
  constexpr int64_t lessMagnitudeSignOfFirst = 2;
  auto type = mlir::cast<mlir::VectorType>(x.getType());
  mlir::Value how = wholeNumber(b, b.getI32Type(), lessMagnitudeSignOfFirst);
  return intrinsic(b, type, "mask.range.ps.512", {x, limit, how, x, allLanes(b, type), asTheEnvironment(b)});
}

llvm::ArrayRef<llvm::StringRef> IsaLevel::names() {
  static constexpr llvm::StringRef all[] = {"host",      kTileLevel,  kDotsLevel, kVnniLevel,
                                            "x86-64-v4", "x86-64-v3", "x86-64-v2"};
  return all;
}

std::string IsaLevel::meantBy(llvm::StringRef name) {
  std::string lower = name.lower();
  llvm::StringRef meant = llvm::StringSwitch<llvm::StringRef>(lower)
                              .Cases({"amx", "amx-bf16", "amx-int8", "amx-tile", "spr", "emr", "gnr"}, kTileLevel)
                              .Cases({"emeraldrapids", "graniterapids", "sapphire-rapids"}, kTileLevel)
                              .Cases({"znver5", "zen4", "zen5", "avx512bf16"}, kDotsLevel)
                              .Cases({"avx512", "skylake-avx512", "v4"}, "x86-64-v4")
                              .Cases({"vnni", "avx512vnni", "v4-vnni"}, kVnniLevel)
                              .Cases({"avx2", "haswell", "v3"}, "x86-64-v3")
                              .Cases({"native", "this"}, "host")
                              .Default("");
  if (!meant.empty())
    return meant.str();
  std::vector<std::string> known;
  for (llvm::StringRef level : names())
    known.push_back(level.str());
  return nearestName(lower, known);
}

llvm::SmallVector<std::string> IsaLevel::lackedHere() const {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<std::string> lacked;
  llvm::copy_if(required, std::back_inserter(lacked), [&](const std::string &n) { return !features.lookup(n); });
  if (lacked.empty() && hasTiles && !systemLendsTiles())
    lacked.push_back("the system's permission to use AMX's tiles");
  return lacked;
}
