//===- CpuTarget.cpp - the x86-64 CPU target ----------------------------------===//

#include "CpuTarget.h"

#include "Fusion.h"
#include "Kernels.h"
#include "Layouts.h"
#include "targets/cpu/code/Commands.h"
#include "targets/cpu/code/KeptCode.h"
#include "targets/cpu/code/Link.h"
#include "targets/cpu/code/Lowering.h"
#include "targets/cpu/conv/ConvRegion.h"
#include "targets/cpu/product/BlockWeights.h"
#include "targets/cpu/product/Gemm.h"
#include "targets/cpu/product/MatmulRanges.h"
#include "targets/cpu/product/MatmulRegion.h"
#include "targets/cpu/product/PackedRows.h"
#include "targets/cpu/user/MicroKernel.h"
#include "targets/cpu/user/UserKernel.h"

#include "targets/common/code/CompileQueue.h"
#include "targets/common/code/KernelDialects.h"
#include "targets/common/code/SaveTemps.h"
#include "targets/common/roots/Answers.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"
#include "dmxc/Support/CodeCache.h"
#include "dmxc/Target/DecisionsMade.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
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
/// How the algorithms of such regions end.
constexpr StringLiteral kQuads = "-quads";

/// Whether a part of a graph's argument is read as it is.
bool isBrought(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<dmir::ReshapeOp, dmir::TransposeOp, dmir::BroadcastOp, dmir::SliceOp, dmir::GatherOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return true;
}

/// Whether a product of a run may have so few rows that no unit is faster.
bool mayBeOfFewRows(dmir::MatMulOp op, ArrayRef<Dim> rows) {
  int64_t least = 1;
  for (Dim dim : rows) {
    least *= kernels::smallest(op->getBlock(), dim);
    if (least > GemmKernel::kSkinny)
      return false;
  }
  return true;
}

/// The dims of a product's rows: all of the left operand's but k, or the last of them where each matrix has a right
/// operand of its own.
SmallVector<Dim> rowsOf(dmir::MatMulOp op) {
  SmallVector<Dim> rows = dmir::dimsOf(op.getLhs());
  rows.pop_back();
  if (dmir::dimsOf(op.getRhs()).size() > 2)
    rows.erase(rows.begin(), rows.end() - 1);
  return rows;
}

/// Whether a product reads the state of a recurrent net, which each run takes from the one before.
bool readsState(dmir::MatMulOp op) {
  return dmir::dimsOf(op.getRhs()).size() == 2 && isBrought(op.getLhs()) && mayBeOfFewRows(op, rowsOf(op));
}

/// Whether one of the products that a sum adds up reads state.
bool addsState(Value sum) {
  llvm::SmallSetVector<Value, 8> terms; // each once, however often it is added to itself
  terms.insert(sum);
  for (size_t i = 0; i < terms.size(); ++i) {
    Operation *op = terms[i].getDefiningOp();
    if (auto product = dyn_cast_if_present<dmir::MatMulOp>(op); product && readsState(product))
      return true;
    if (isa_and_nonnull<dmir::AddOp, dmir::ReshapeOp, dmir::TransposeOp>(op))
      terms.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// The sum that a product ends in: gates of a recurrent net add what they make of the input to what they make of state.
Value sumOf(dmir::MatMulOp op) {
  Value sum = op.getResult();
  while (sum.hasOneUse() && isa<dmir::AddOp, dmir::ReshapeOp, dmir::TransposeOp>(*sum.user_begin()))
    sum = sum.user_begin()->getResult(0);
  return sum;
}

/// Whether a product is better off with the operands it has: shorter ones make none of few rows faster, nor what may be
/// few in a run beside weights that lie in the nearest cache; and the gates of a recurrent net, whose state each run
/// takes from the one before, would add up what rounding changes.
bool keepsOperands(dmir::MatMulOp op) {
  SmallVector<Dim> rows = rowsOf(op), right = dmir::dimsOf(op.getRhs());
  if (!mayBeOfFewRows(op, rows))
    return false;
  bool isFew = llvm::all_of(rows, [](Dim dim) { return dim.known().has_value(); });
  if (isFew || addsState(sumOf(op)))
    return true;
  std::optional<int64_t> k = right[right.size() - 2].known(), n = right.back().known();
  return k && n && IsaLevel::nominal().caches.isNear(*k, *n);
}

StringRef algorithmOf(Operation *kernel) {
  auto name = cast<dlir::KernelOp>(kernel).getStrategy().getAs<StringAttr>(strategy::kAlgorithm);
  return name ? name.getValue() : "";
}

/// The one of `levels` whose code of a kernel level `number` has: its own, or for kernels that have no use for a unit
/// what it adds the unit to.
size_t codeOf(Operation *kernel, size_t number, ArrayRef<IsaLevel> levels) {
  const IsaLevel &level = levels[number];
  StringRef algorithm = algorithmOf(kernel);
  Units units = unitsOf(cast<dlir::KernelOp>(kernel).getStrategy(), {});
  bool usesTiles = level.name == kTileLevel && units.tiles;
  bool usesBytes = algorithm.ends_with(kQuads), addsBytes = level.name == kVnniLevel;
  if ((!addsBytes && level.name != kDotsLevel && level.name != kTileLevel) || algorithm == kMatmulPairs || usesTiles ||
      (addsBytes && usesBytes))
    return number;
  StringRef wanted = usesBytes ? StringRef(kVnniLevel) : "x86-64-v4";
  for (size_t other = 0; other < levels.size(); ++other)
    if (levels[other].name == wanted)
      return other;
  return number;
}

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
  std::optional<BlockRounding> roundsWeights(Operation *op) const override {
    return mayKeepInBlocks(op) ? numerics.blocks : std::nullopt;
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
  Result<std::vector<std::vector<KernelObject>>> compileAll(ArrayRef<Operation *> kernels,
                                                            ArrayRef<IsaLevel> levels) const;
  Result<std::vector<CodeEntry>> saved(std::vector<CodeEntry> &entries, const std::string &commands) const;
  std::vector<std::pair<size_t, std::string>> firstsOf(ArrayRef<Operation *> kernels) const;
  Result<KernelObject> compileOrFind(const std::string &text, const std::string &nameless, MLIRContext &context,
                                     const IsaLevel &isa) const;
  Result<KernelObject> compile(const std::string &text, MLIRContext &context, const IsaLevel &isa) const;

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
  if (!isa<dmir::MatMulOp>(product))
    return {};
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
  if (numerics.roundsProducts && matmul && elementOf(matmul.getLhs()).isBF16() && elementOf(matmul.getResult()).isF32())
    return OpFormats{{"bf16", "bf16"}, "f32"};
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

/// What a user wrote of a kernel that is emitted: all of it, or its full tiles.
static Result<std::optional<UserCode>> userCodeOf(dlir::KernelOp kernel, ModuleOp module, const IsaLevel &isa) {
  StringRef name;
  DictionaryAttr body;
  if (dmir::ExternOp called = userKernelOf(kernel)) {
    name = called.getKernel();
    body = bodyFor(called.getBodies(), isa);
  } else if (Attribute written = kernel.getStrategy().get(strategy::kMicroKernel)) {
    Result<MicroKernel> micro = MicroKernel::of(written);
    name = micro ? micro->name() : "";
    body = micro ? micro->bodyAt(isa) : DictionaryAttr();
  }
  if (!body || !module.lookupSymbol(linkedName(body)))
    return std::optional<UserCode>();
  Result<UserCode> code = readUserCode(name, body);
  if (!code)
    return code.takeError();
  return std::optional(std::move(*code));
}

Result<KernelObject> CpuTarget::compile(const std::string &text, MLIRContext &context, const IsaLevel &isa) const {
  Result<ParsedKernel> source = parseKernel(text, context);
  if (!source)
    return source.takeError();
  dlir::KernelOp kernel = source->kernel;
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  Choice choice(kernel.getStrategy());
  choice.panels = panelsOf(kernel.getStrategy());
  DecisionsMade made;
  dmir::ExternOp called = userKernelOf(kernel);
  Result<std::vector<int64_t>> contract =
      called ? emitUserKernel(*module, kernel, isa) : cpuKernels().emit(*module, kernel, choice, isa);
  if (!contract)
    return contract.takeError();
  LoweringOptions lowering;
  lowering.optLevel = options.optLevel;
  Result<std::optional<UserCode>> user = userCodeOf(kernel, *module, isa);
  if (!user)
    return user.takeError();
  lowering.user = *user ? &**user : nullptr;
  if (!options.saveTempsDir.empty())
    lowering.saveTempsDir = options.saveTempsDir + "/" + isa.name;
  Result<KernelObject> object = compileKernel(*module, isa, lowering);
  if (object)
    object->contracts.push_back(std::move(*contract));
  return object;
}

std::vector<IsaLevel> CpuTarget::levelsOf(ArrayRef<Operation *> kernels) const {
  std::vector<IsaLevel> all = levels;
  if (options.levels.empty() &&
      llvm::any_of(kernels, [](Operation *op) { return cast<dlir::KernelOp>(op).getStrategy().contains(kByteDots); }))
    all.push_back(*IsaLevel::byName(kVnniLevel));
  if (options.levels.empty() && llvm::any_of(kernels, [](Operation *op) { return algorithmOf(op) == kMatmulPairs; }))
    for (StringRef level : {kDotsLevel, kTileLevel})
      all.push_back(*IsaLevel::byName(level));
  return all;
}

/// The first of the kernels that are equal but for names, for each of them; its text without names, "" where it is not
/// to be shared: its texts are kept, or it calls what a user wrote.
std::vector<std::pair<size_t, std::string>> CpuTarget::firstsOf(ArrayRef<Operation *> kernels) const {
  std::vector<std::pair<size_t, std::string>> firsts;
  llvm::StringMap<size_t> seen;
  for (auto [k, op] : llvm::enumerate(kernels)) {
    auto kernel = cast<dlir::KernelOp>(op);
    bool alone =
        !options.saveTempsDir.empty() || userKernelOf(kernel) || kernel.getStrategy().contains(strategy::kMicroKernel);
    std::string text = alone ? "" : namelessText(kernel);
    firsts.emplace_back(alone ? k : seen.try_emplace(text, k).first->second, text);
  }
  return firsts;
}

/// From the cache where it is there: `nameless` is the kernel's text without names, "" where it has to be compiled.
Result<KernelObject> CpuTarget::compileOrFind(const std::string &text, const std::string &nameless,
                                              MLIRContext &context, const IsaLevel &isa) const {
  CodeCache *cache = nameless.empty() ? nullptr : CodeCache::current();
  if (!cache)
    return compile(text, context, isa);
  std::string name = keptName(nameless, isa, options.optLevel);
  if (std::optional<std::string> kept = cache->find(name))
    if (std::optional<KernelObject> object = objectOf(*kept))
      return std::move(*object);
  Result<KernelObject> object = compile(text, context, isa);
  if (object)
    cache->put(name, keptBytes(*object));
  return object;
}

/// By level, then by kernel. All levels are one queue of work: a thread is idle only when nothing is left of any.
Result<std::vector<std::vector<KernelObject>>> CpuTarget::compileAll(ArrayRef<Operation *> kernels,
                                                                     ArrayRef<IsaLevel> levels) const {
  std::vector<std::string> texts, names;
  std::vector<std::pair<size_t, size_t>> jobs; // kernel and level
  std::vector<std::pair<size_t, std::string>> firsts = firstsOf(kernels);
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    bool isFirst = firsts[k].first == k;
    texts.push_back(isFirst ? kernelText(kernel) : "");
    for (auto [l, level] : llvm::enumerate(levels))
      if (isFirst && codeOf(kernel, l, levels) == l) {
        names.push_back(SymbolTable::getSymbolName(kernel).str() + " for " + level.name);
        jobs.emplace_back(k, l);
      }
  }
  auto results = kernels::compileAll<KernelObject>(names, options.jobs, [&](size_t i, MLIRContext &context) {
    auto [k, l] = jobs[i];
    return compileOrFind(texts[k], firsts[k].second, context, levels[l]);
  });
  if (!results)
    return results.takeError();
  std::vector<std::vector<KernelObject>> objects(levels.size(), std::vector<KernelObject>(texts.size()));
  for (auto [job, object] : llvm::zip_equal(jobs, *results))
    objects[job.second][job.first] = std::move(object);
  for (auto [k, kernel] : llvm::enumerate(kernels))
    for (size_t l = 0; l < levels.size(); ++l) {
      const KernelObject &source = objects[codeOf(kernel, l, levels)][firsts[k].first];
      if (&source == &objects[l][k])
        continue;
      Result<KernelObject> own =
          source.user.empty() ? renamed(source, SymbolTable::getSymbolName(kernel).str()) : source;
      if (!own)
        return own.takeError();
      objects[l][k] = std::move(*own);
    }
  return objects;
}

/// Takes out the kernels whose code is the same at every level: an index or a branch may need no vectors at all.
static std::vector<KernelObject> takeCommon(std::vector<std::vector<KernelObject>> &objects) {
  std::vector<KernelObject> common;
  std::vector<std::vector<KernelObject>> own(objects.size());
  for (size_t k = 0; k < objects.front().size(); ++k) {
    bool same = objects.size() > 1 && llvm::all_of(objects, [&](const auto &level) {
                  return level[k].elf == objects.front()[k].elf && level[k].contracts == objects.front()[k].contracts;
                });
    if (same)
      common.push_back(std::move(objects.front()[k]));
    for (size_t level = 0; level < objects.size() && !same; ++level)
      own[level].push_back(std::move(objects[level][k]));
  }
  objects = std::move(own);
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
  auto objects = compileAll(kernels, all);
  if (!objects)
    return objects.takeError();
  for (auto [level, isa] : llvm::zip_equal(*objects, all))
    for (auto [object, kernel] : llvm::zip_equal(level, kernels))
      noteUserCode(object.user, isa, kernel);
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
