//===- CpuTarget.cpp - the x86-64 CPU target ----------------------------------===//

#include "CpuTarget.h"

#include "CompileKernels.h"
#include "Fusion.h"
#include "Kernels.h"
#include "Layouts.h"
#include "RoundedProducts.h"
#include "targets/cpu/code/Commands.h"
#include "targets/cpu/code/Link.h"
#include "targets/cpu/conv/ConvRegion.h"
#include "targets/cpu/product/BlockWeights.h"
#include "targets/cpu/product/Gemm.h"
#include "targets/cpu/product/MatmulRanges.h"
#include "targets/cpu/product/MatmulRegion.h"
#include "targets/cpu/product/PackedRows.h"
#include "targets/cpu/user/MicroKernel.h"
#include "targets/cpu/user/UserKernel.h"

#include "targets/common/code/KernelDialects.h"
#include "targets/common/code/SaveTemps.h"
#include "targets/common/roots/Answers.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

/// What runs on the machines of the last ten years, and what is up to twice as fast on those with AVX-512.
constexpr StringLiteral kDefaultLevels[] = {"x86-64-v3", "x86-64-v4"};
/// Unit, in a strategy: the region multiplies bytes in fours. By default such models have code of kVnniLevel too; at v4
/// alone bytes are no faster than f32.
constexpr StringLiteral kByteDots = "byte_dots";

class CpuTarget final : public TargetBackend {
public:
  CpuTarget(TargetOptions options, Numerics numerics, std::vector<IsaLevel> levels)
      : options(std::move(options)), numerics(numerics), levels(std::move(levels)) {}

  StringRef name() const override { return "cpu"; }
  bool runsOnHost() const override { return true; }
  Status checkMicroKernel(DictionaryAttr micro) const override {
    Result<MicroKernel> kernel = MicroKernel::of(micro);
    return kernel ? kernel->checkLevels(levels) : kernel.takeError();
  }
  std::optional<std::string> refuses(Operation *op) const override {
    auto user = dyn_cast<dmir::ExternOp>(op);
    std::optional<std::string> reason = user ? whyNoBody(user, levels) : std::nullopt;
    return reason ? reason : answers.refuses(op);
  }
  Type roundsOperands(Operation *product) const override;
  bool mayKeepNodes() const override { return numerics.rounds(); }
  bool mayLimitError() const override { return numerics.blocks.has_value(); }
  bool roundsComputed(Operation *product) const override { return numerics.roundsProducts && roundsWeightsOf(product); }
  std::optional<BlockRounding> roundsWeights(Operation *op) const override {
    return mayKeepInBlocks(op) ? numerics.blocks : std::nullopt;
  }
  std::optional<int64_t> roundsRows(Operation *product) const override {
    return numerics.roundsRows && mayMultiplyBytes(product) ? std::optional(numerics.blocks->block) : std::nullopt;
  }
  Attribute preferredResultLayout(Operation *op) const override { return cpu::preferredResultLayout(op); }
  bool acceptsLayout(Operation *op, unsigned operand, Attribute layout) const override {
    return cpu::acceptsLayout(op, operand, layout);
  }
  bool readsStoredOperands() const override { return true; }
  bool groupsHeads() const override { return true; }
  bool convolvesBytes(Operation *conv) const override { return takesBytes(cast<dmir::ConvOp>(conv)); }
  SmallVector<Operation *> computedWith(Operation *root) const override { return cpuKernels().computedWith(root); }
  bool fusesProducer(Operation *root, OpOperand &use, Operation *producer) const override {
    return !endsOtherKernel(root, producer) && answers.fusesProducer(root, use, producer);
  }
  bool yieldsProducer(Operation *root, Operation *producer) const override {
    return answers.yieldsProducer(root, producer);
  }
  bool fusesConsumer(Operation *root, Value result, Operation *consumer) const override {
    return answers.fusesConsumer(root, result, consumer);
  }
  void registerDialects(DialectRegistry &registry) const override { registerKernelDialects(registry); }
  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override;
  std::vector<Decision> decisions(dmir::RegionOp region, DictionaryAttr decided) const override {
    return decisionsOf(region, decided, numerics.weights, levels);
  }
  std::optional<OpFormats> formatsOf(Operation *op) const override;
  Status pack(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) const override {
    return packConstant(form, constant, out);
  }
  std::optional<double> roundingError(DictionaryAttr form, const Tensor &constant) const override {
    return isMatmulForm(form) ? matmulOperandError(form, constant) : std::nullopt;
  }
  Result<std::vector<CodeEntry>> emit(ArrayRef<Operation *> kernels) const override;
  std::string describe() const override;

private:
  std::vector<IsaLevel> levelsOf(ArrayRef<Operation *> kernels) const;
  Result<std::vector<CodeEntry>> saved(std::vector<CodeEntry> &entries, const std::string &commands) const;

  TargetOptions options;
  Numerics numerics;
  std::vector<IsaLevel> levels;
  Answers answers{"cpu", cpuKernels()};
};

Result<DictionaryAttr> CpuTarget::chooseStrategy(dmir::RegionOp region) const {
  DictionaryAttr given = region.getStrategyAttr();
  std::vector<IsaLevel> all = withGivenLevels(levels, given);
  // By default models with products of bf16 have code of the levels with units for it, too.
  bool adds = options.levels.empty() && numerics.roundsProducts;
  Result<KernelPlan> plan = planRegion(region, given, numerics.weights, all, {/*dots=*/adds, /*tiles=*/adds});
  if (!plan)
    return plan.takeError();
  readPackedRows(region, numerics.weights, *plan);
  NamedAttrList list(answers.strategyOf(region, *plan));
  if (DictionaryAttr tiles = tilesForLevels(*plan, all, region.getContext()))
    list.set(kTiles, tiles);
  if (std::string why = whyNoRanges(region, *plan); !why.empty())
    list.set(dmir::kFactsKey, StringAttr::get(region.getContext(), why));
  if (StringRef(plan->algorithm).ends_with(kQuads))
    list.set(kByteDots, UnitAttr::get(region.getContext()));
  return list.getDictionary(region.getContext());
}

Type CpuTarget::roundsOperands(Operation *product) const {
  if (auto conv = dyn_cast<dmir::ConvOp>(product))
    return numerics.roundsConvs && paysInPairs(conv) ? Type(BFloat16Type::get(product->getContext())) : Type();
  // Weights of few bits are exact in f32, and unpacked to it.
  bool ofFewBits = product->getOperand(1).getDefiningOp<dmir::DequantizeOp>() != nullptr;
  bool rounds = numerics.roundsProducts && !ofFewBits && !keepsOperands(cast<dmir::MatMulOp>(product));
  return rounds ? Type(BFloat16Type::get(product->getContext())) : Type();
}

std::optional<OpFormats> CpuTarget::formatsOf(Operation *op) const {
  if (std::optional<OpFormats> blocks = formatsOfBlocks(op))
    return blocks;
  auto region = op->getParentOfType<dmir::RegionOp>();
  auto matmul = dyn_cast<dmir::MatMulOp>(op);
  auto conv = dyn_cast<dmir::ConvOp>(op);
  const bool isRounded =
      numerics.roundsProducts && matmul && elementOf(matmul.getLhs()).isBF16() && elementOf(matmul.getResult()).isF32();
  if (isRounded || (conv && numerics.roundsConvs && isPairConv(conv)))
    return OpFormats{{"bf16", "bf16"}, "f32", errorOfConstant(op->getOperand(1))};
  if (auto widened = matmul ? matmul.getRhs().getDefiningOp<dmir::CastOp>() : dmir::CastOp();
      numerics.roundsProducts && widened && elementOf(widened.getInput()).isBF16() && elementOf(widened).isF32())
    return OpFormats{{"f32", "bf16"}, "f32"};
  if (std::string rows = region ? roundedRowsOf(op, region.getStrategyAttr()) : ""; !rows.empty())
    return OpFormats{{rows, std::string(dtypeName(*dmir::dtypeOf(elementOf(op->getOperand(1)))))}, "f32"};
  DictionaryAttr form = region && matmul ? packedRhsForm(matmul, region.getStrategyAttr()) : DictionaryAttr();
  std::optional<WeightFormat> format = form ? formatOfForm(formName(form)) : std::nullopt;
  if (!format || *format == WeightFormat::Kept)
    return std::nullopt;
  return OpFormats{{"f32", formatName(*format).str()}, "f32"};
}

std::vector<IsaLevel> CpuTarget::levelsOf(ArrayRef<Operation *> kernels) const {
  std::vector<IsaLevel> all = levels;
  if (options.levels.empty() &&
      llvm::any_of(kernels, [](Operation *op) { return cast<dlir::KernelOp>(op).getStrategy().contains(kByteDots); }))
    all.push_back(*IsaLevel::byName(kVnniLevel));
  if (options.levels.empty() && llvm::any_of(kernels, multipliesPairs))
    for (StringRef level : {kDotsLevel, kTileLevel})
      all.push_back(*IsaLevel::byName(level));
  return all;
}

/// Takes out the kernels whose code is the same at every level: an index or a branch may need no vectors at all.
static std::vector<KernelObject> takeCommon(std::vector<std::vector<KernelObject>> &objects) {
  auto isAt = [](const std::vector<KernelObject> &level, const KernelObject &object) {
    return llvm::any_of(level, [&](const KernelObject &other) {
      return other.kernels == object.kernels && other.elf == object.elf && other.contracts == object.contracts;
    });
  };
  std::vector<KernelObject> common;
  for (const KernelObject &object : objects.front())
    if (objects.size() > 1 && llvm::all_of(objects, [&](const auto &level) { return isAt(level, object); }))
      common.push_back(object);
  for (std::vector<KernelObject> &level : objects)
    llvm::erase_if(level, [&](const KernelObject &object) { return isAt(common, object); });
  return common;
}

/// The code, with the commands that make it among what --save-temps keeps.
Result<std::vector<CodeEntry>> CpuTarget::saved(std::vector<CodeEntry> &entries, const std::string &commands) const {
  if (Status s = saveTemp(options.saveTempsDir, "commands.cpu", [&](raw_ostream &out) { out << commands; }); !s)
    return s.takeError();
  return std::move(entries);
}

Result<std::vector<CodeEntry>> CpuTarget::emit(ArrayRef<Operation *> kernels) const {
  std::vector<CodeEntry> entries;
  if (kernels.empty())
    return entries;
  const std::vector<IsaLevel> all = levelsOf(kernels);
  loadKernelDialects(*kernels.front()->getContext()); // which text of a late phase does without
  for (Operation *kernel : kernels)
    if (Status s = completeKernel(cast<dlir::KernelOp>(kernel), all); !s)
      return s.takeError();
  auto objects = compileKernels(kernels, all, options);
  if (!objects)
    return objects.takeError();
  llvm::StringMap<Operation *> byName;
  for (Operation *kernel : kernels)
    byName[SymbolTable::getSymbolName(kernel)] = kernel;
  for (auto [level, isa] : llvm::zip_equal(*objects, all))
    for (const KernelObject &object : level)
      noteUserCode(object.user, isa, byName.lookup(object.name));
  std::vector<KernelObject> common = takeCommon(*objects);
  const std::string commonEntry = common.empty() ? "" : "code/cpu/common/kernels.so";
  std::string commands;
  auto link = [&](ArrayRef<KernelObject> list, const IsaLevel &isa, StringRef name, CodeEntry &entry) -> Status {
    const std::string &temps = options.saveTempsDir;
    std::string result = temps.empty() ? "" : temps + "/" + name.str() + "/kernels.so";
    Result<std::vector<char>> bytes = linkKernels(list, isa, temps.empty() ? "" : result + ".table.ll");
    if (!bytes)
      return bytes.takeError();
    entry.bytes = std::move(*bytes);
    if (!temps.empty())
      commands += levelCommands(list, result, options.optLevel);
    return Status::ok();
  };
  for (auto [isa, own] : llvm::zip_equal(all, *objects)) {
    // A level that has nothing of its own runs the common kernels alone.
    CodeEntry entry{own.empty() ? commonEntry : "code/cpu/" + isa.name + "/kernels.so", isa.name, {}, {}};
    entry.features.assign(isa.required.begin(), isa.required.end());
    if (!own.empty())
      if (Status s = link(own, isa, isa.name, entry); !s)
        return s.takeError();
    entries.push_back(std::move(entry));
  }
  if (common.empty())
    return saved(entries, commands);
  entries.push_back({commonEntry, "", {}, {}});
  // Code says which level it is of, and is not run where that is not there.
  const IsaLevel &least = *llvm::min_element(
      levels, [](const IsaLevel &x, const IsaLevel &y) { return x.required.size() < y.required.size(); });
  if (Status s = link(common, least, "common", entries.back()); !s)
    return s.takeError();
  return saved(entries, commands);
}

std::string CpuTarget::describe() const {
  std::string text =
      "cpu: x86-64, kernels compiled ahead of time, one shared object a level and one of kernels that are the "
      "same at all; the default is " +
      llvm::join(std::begin(kDefaultLevels), std::end(kDefaultLevels), " and ") + ", and " + kVnniLevel.str() +
      " where bytes are multiplied\n";
  for (StringRef name : llvm::reverse(IsaLevel::names())) {
    IsaLevel isa = *IsaLevel::byName(name);
    text += "  " + isa.name + ": vectors of " + std::to_string(isa.vectorBytes) + " bytes, needs";
    for (StringRef feature : isa.required)
      text += " " + feature.str();
    llvm::SmallVector<std::string> lacked = isa.lackedHere();
    text += lacked.empty() ? " (this machine has them)\n" : " (this machine lacks " + llvm::join(lacked, ", ") + ")\n";
  }
  return text;
}

} // namespace

Result<std::unique_ptr<TargetBackend>> dmxc::createCpuTarget(const TargetOptions &options) {
  Result<Numerics> numerics = numericsOfMode(options.numerics);
  if (!numerics)
    return numerics.takeError();
  std::vector<std::string> names = options.levels;
  if (names.empty())
    names.assign(std::begin(kDefaultLevels), std::end(kDefaultLevels));
  std::vector<IsaLevel> levels;
  for (const std::string &name : names) {
    std::optional<IsaLevel> isa = IsaLevel::byName(name);
    if (!isa) {
      std::string known = llvm::join(IsaLevel::names(), ", ");
      std::string meant = IsaLevel::meantBy(name);
      return usageError("the cpu target has no level '" + name + "'; it has " + known +
                        (meant.empty() ? "" : "; did you mean 'cpu:" + meant + "'?"));
    }
    if (llvm::none_of(levels, [&](const IsaLevel &other) { return other.name == isa->name; }))
      levels.push_back(std::move(*isa));
  }
  return std::unique_ptr<TargetBackend>(std::make_unique<CpuTarget>(options, *numerics, std::move(levels)));
}
