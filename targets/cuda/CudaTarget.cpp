//===- CudaTarget.cpp - the target's answers to the phases --------------------===//

#include "code/Hopper.h"
#include "code/LaunchTable.h"
#include "code/Ptx.h"
#include "passes/Passes.h"
#include "product/Gemm.h"
#include "product/convolution/PatchProduct.h"
#include "user/UserKernel.h"
#include "user/UserModule.h"

#include "targets/common/code/CompileQueue.h"
#include "targets/common/code/MachineFile.h"
#include "targets/common/code/SaveTemps.h"
#include "targets/common/element/ElementExpr.h"
#include "targets/common/roots/Answers.h"
#include "targets/common/roots/Contract.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"
#include "dmxc/Target/DecisionsMade.h"
#include "dmxc/Target/TargetBackend.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

/// The mode of --numerics in which operands of products are rounded.
constexpr StringLiteral kRounded = "bf16";

const KernelTable &table() {
  static const KernelTable table = [] {
    KernelTable roots;
    registerRoots(roots);
    registerGemm(roots);
    registerUserKernels(roots);
    return roots;
  }();
  return table;
}

class CudaTarget final : public TargetBackend {
public:
  CudaTarget(TargetOptions options, hw::Machine machine) : options(std::move(options)), machine(std::move(machine)) {}

  StringRef name() const override { return "cuda"; }
  void registerDialects(DialectRegistry &registry) const override {
    registerKernelDialects(registry);
    registerMachine(registry, machine);
  }

  std::optional<std::string> refuses(Operation *op) const override;
  Type roundsOperands(Operation *product) const override;
  bool mayKeepNodes() const override { return roundsProducts(); }
  bool groupsHeads() const override { return true; }
  bool waitsForMatrix(Operation *product) const override { return cuda::waitsForMatrix(product); }
  SmallVector<Operation *> computedWith(Operation *root) const override {
    return cuda::computedOnTheWay(machine, root, roundsProducts());
  }
  bool fusesProducer(Operation *root, OpOperand &use, Operation *producer) const override {
    // Each element of what is joined is read once, however many there are of others.
    bool joins = isa<dmir::ConcatOp>(use.getOwner()) && producer->hasTrait<dmir::Elementwise>();
    if (std::optional<bool> takes = cuda::takesProducer(machine, root, use, producer, roundsProducts()))
      return *takes;
    return joins || answers.fusesProducer(root, use, producer);
  }
  bool yieldsProducer(Operation *root, Operation *producer) const override {
    return answers.yieldsProducer(root, producer);
  }
  bool fusesConsumer(Operation *root, Value result, Operation *consumer) const override {
    return answers.fusesConsumer(root, result, consumer);
  }
  /// What a kernel is given besides: a word each of what all have, and two tensor maps.
  uint64_t mostArguments() const override {
    constexpr int64_t words = 4, maps = 2, word = 8, map = 128;
    return (machine.parameterBytes - words * word - maps * map) / word;
  }
  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override;
  std::vector<Decision> decisions(dmir::RegionOp region, DictionaryAttr decided) const override {
    std::vector<Decision> free = gemmDecisions(machine, region, decided);
    return free.empty() ? rowDecisions(region, decided) : free;
  }
  std::string explain(dmir::RegionOp region, DictionaryAttr decided) const override {
    return explainGemm(machine, region, decided);
  }
  Status pack(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) const override {
    return packGemm(form, constant, out);
  }
  ArrayRef<TargetStage> stages() const override { return stagesCudaTarget(); }
  Status schedule(ArrayRef<Operation *> kernels) const override;
  Result<std::vector<CodeEntry>> emit(ArrayRef<Operation *> kernels) const override;
  std::optional<OpFormats> formatsOf(Operation *op) const override;
  std::string describe() const override {
    return "cuda: PTX for NVIDIA GPUs of compute capability 9.0 (H100, H200), a thread an element; products of bf16 "
           "and f16 "
           "by tensor cores\n"
           "  sm_90a: PTX 8.0; runs on a simulator where there is no such GPU\n"
           "the machine, " +
           machine.name + ":\n" + machine.source;
  }

private:
  std::vector<Decision> rowDecisions(dmir::RegionOp region, DictionaryAttr decided) const;
  Status checkTeam(Operation *op, DictionaryAttr strategy) const;
  Result<CompiledKernel> compile(const std::string &text, MLIRContext &context) const;

  bool roundsProducts() const { return options.numerics == kRounded; }

  TargetOptions options;
  hw::Machine machine;
  Answers answers{"cuda", table()};
};

std::optional<std::string> CudaTarget::refuses(Operation *op) const {
  // Neighbours that share a byte would be written by two threads.
  auto shares = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isIntOrFloat() && isPacked(tensor.getElementType());
  };
  if (llvm::any_of(op->getOperandTypes(), shares) || llvm::any_of(op->getResultTypes(), shares))
    return "the cuda target has no kernels for elements of fewer than 8 bits";
  auto user = dyn_cast<dmir::ExternOp>(op);
  std::optional<std::string> reason = user ? whyNoBody(user) : std::nullopt;
  return reason ? reason : answers.refuses(op);
}

/// What a region's strategy decides of a product, or has of one already.
static DictionaryAttr decidedOf(DictionaryAttr given) {
  if (!given)
    return {};
  NamedAttrList decided;
  // What is plain for a reason is found to be so again.
  auto why = given.getAs<StringAttr>(kWhyPlain);
  bool follows = why && why.getValue() != kDecidedPlain;
  if (auto algorithm = given.getAs<StringAttr>(strategy::kAlgorithm); algorithm && !follows)
    decided.set(strategy::kAlgorithm, algorithm);
  for (StringRef key : {StringRef(kProduct), StringRef(kFew), StringRef(kQueries), StringRef(kTiles),
                        StringRef(kPatches), StringRef(kTeam), StringRef(strategy::kDecided)})
    if (auto own = dyn_cast_or_null<DictionaryAttr>(given.get(key)))
      for (NamedAttribute each : own)
        decided.set(each.getName(), each.getValue());
  return decided.getDictionary(given.getContext());
}

/// What is free of the team of a region's rows.
std::vector<Decision> CudaTarget::rowDecisions(dmir::RegionOp region, DictionaryAttr decided) const {
  Result<KernelPlan> plan = table().plan(region.getBlock(), CudaRequest(machine, {}, decided));
  auto team = plan ? dyn_cast_or_null<DictionaryAttr>(plan->own.get(kTeam)) : DictionaryAttr();
  if (!team)
    return {};
  return teamDecisions(machine, readTile<Team>(team), decided, region.getContext());
}

/// Whether a text's team can be; else an error.
Status CudaTarget::checkTeam(Operation *op, DictionaryAttr strategy) const {
  Attribute team = strategy ? strategy.get(kTeam) : nullptr;
  std::string wrong = team ? problemOfTeam(machine, team, op->getContext()) : "";
  return wrong.empty() ? Status::ok() : modelError("node '" + dmir::nodeName(op) + "': " + wrong);
}

Result<DictionaryAttr> CudaTarget::chooseStrategy(dmir::RegionOp region) const {
  if (Status team = checkTeam(region, region.getStrategyAttr()); !team)
    return team.takeError();
  uint64_t arguments = region->getNumOperands() + region->getNumResults() + dmir::symbolsOf(region.getBlock()).size();
  if (arguments > mostArguments())
    return modelError("the region has " + std::to_string(arguments) +
                      " operands, results and sizes, and a kernel of the cuda target is given at most " +
                      std::to_string(mostArguments()) + "; make several regions of it");
  CudaRequest request(machine, {}, decidedOf(region.getStrategyAttr()));
  auto constant = [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); };
  request.constant = constant;
  request.inputs = region.getInputs();
  Result<KernelPlan> plan = table().plan(region.getBlock(), request);
  if (!plan)
    return plan.takeError();
  NamedAttrList strategy(answers.strategyOf(region, *plan));
  if (std::string why = whyNotLeftOut(region, *plan); !why.empty())
    strategy.set(dmir::kFactsKey, StringAttr::get(region.getContext(), why));
  return strategy.getDictionary(region.getContext());
}

/// Whether a product's right operand is a constant, or one joined of such that is not folded yet.
static bool meetsConstant(Operation *product) {
  Value right = product->getOperand(1);
  auto concat = right.getDefiningOp<dmir::ConcatOp>();
  return concat ? llvm::all_of(concat.getInputs(), dmir::isConstant) : dmir::isConstant(right);
}

/// Groups of a convolution with constant weights that tensor cores compute together.
static int64_t groupsTogether(Operation *product) {
  if (!isa<dmir::ConvOp>(product) || !dmir::isConstant(product->getOperand(1)))
    return 1;
  std::optional<TapForm> form = TapForm::of(Contraction::ofWhole(product));
  return form ? form->together : 1;
}

Type CudaTarget::roundsOperands(Operation *product) const {
  bool rounds = roundsProducts() && (rowsOf(product, groupsTogether(product)) > kPlainRows ||
                                     (isa<dmir::MatMulOp>(product) && meetsConstant(product)));
  return rounds ? Type(BFloat16Type::get(product->getContext())) : Type();
}

std::optional<OpFormats> CudaTarget::formatsOf(Operation *op) const {
  if (roundsProducts() && Contraction::is(op) && elementOf(op->getOperand(0)).isBF16() &&
      elementOf(op->getResult(0)).isF32())
    return OpFormats{{"bf16", "bf16"}, "f32"};
  return std::nullopt;
}

Result<CompiledKernel> CudaTarget::compile(const std::string &text, MLIRContext &context) const {
  DialectRegistry registry;
  registerMachine(registry, machine);
  context.appendDialectRegistry(registry);
  context.loadDialect<CudaDialect>();
  Result<ParsedKernel> source = parseKernel(text, context);
  if (!source)
    return source.takeError();
  dlir::KernelOp kernel = source->kernel;
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  DecisionsMade made;
  loadInstructions(context);
  if (Status team = checkTeam(kernel, kernel.getStrategy()); !team)
    return team.takeError();
  CudaRequest request(machine, kernel.getStrategy());
  Result<KernelPlan> plan = table().plan(kernel.getBlock(), request);
  if (!plan)
    return plan.takeError();
  if (dmir::ExternOp called = userKernelOf(kernel)) {
    Result<UserText> text = readUserText(called);
    if (!text)
      return text.takeError();
    CompiledKernel compiled = describeLaunch(kernel, *plan, contractWords(kernel, *plan));
    if (isModule(*text)) {
      PtxOptions ptx{static_cast<unsigned>(options.optLevel), compiled.launch.block, compiled.launch.cluster,
                     /*movesRegisters=*/false, options.saveTempsDir};
      Result<std::string> lowered = lowerModule(*text, called, std::ssize(compiled.launch.maps), ptx);
      if (!lowered)
        return lowered.takeError();
      text->text = std::move(*lowered);
    }
    compiled.user = std::move(*text);
    return compiled;
  }
  Hopper processor = plan->launch ? Hopper(*plan->launch) : Hopper();
  CompiledKernel compiled = describeLaunch(kernel, *plan, table().emit(*module, kernel, *plan, request, processor));
  PtxOptions ptx{static_cast<unsigned>(options.optLevel), compiled.launch.block, compiled.launch.cluster,
                 compiled.launch.movesRegisters, options.saveTempsDir};
  Result<std::string> code = compileKernel(*module, ptx);
  if (!code)
    return code.takeError();
  compiled.ptx = std::move(*code);
  return compiled;
}

/// A kernel computes what its pipeline has of tiles, and so do its tasks.
static void setWork(dlir::KernelOp kernel, Dim work) {
  MLIRContext *context = kernel.getContext();
  NamedAttrList strategy(kernel.getStrategy());
  strategy.set(strategy::kWork, dmir::dimAttr(context, work));
  kernel.setStrategyAttr(strategy.getDictionary(context));
  kernel->getParentOfType<ModuleOp>().walk([&](dlir::DispatchOp dispatch) {
    if (dispatch.getKernel() != kernel.getSymName())
      return;
    auto dims = cast_or_null<dmir::DimsAttr>(dispatch.getDimsAttr());
    if (dims) {
      SmallVector<Dim> counts(dims.getDims());
      counts[0] = work;
      dispatch.setDimsAttr(dmir::DimsAttr::get(context, counts));
    }
    dispatch.setWork(work.valueOr(1));
  });
}

Status CudaTarget::schedule(ArrayRef<Operation *> kernels) const {
  for (Operation *op : kernels)
    if (auto kernel = dyn_cast<dlir::KernelOp>(op)) {
      Result<std::optional<Dim>> tiles = tilesOf(kernel, machine);
      if (!tiles)
        return tiles.takeError();
      if (*tiles && !(**tiles == dmir::dimOfAttr(kernel.getStrategy().get(strategy::kWork), 1)))
        setWork(kernel, **tiles);
    }
  return Status::ok();
}

/// A kernel with the bounds of its sizes, on which it rests whether a tensor map can read an operand.
static std::string boundedText(Operation *kernel) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel->getLoc());
  if (Attribute bounds = kernel->getParentOfType<ModuleOp>()->getAttr(dmir::kDimsAttr))
    module.get()->setAttr(dmir::kDimsAttr, bounds);
  module->getBody()->push_back(kernel->clone());
  return kernelText(*module);
}

Result<std::vector<CodeEntry>> CudaTarget::emit(ArrayRef<Operation *> kernels) const {
  if (kernels.empty())
    return std::vector<CodeEntry>();
  std::vector<std::string> texts, names;
  for (Operation *kernel : kernels) {
    texts.push_back(boundedText(kernel));
    names.push_back(SymbolTable::getSymbolName(kernel).str());
  }
  auto compiled = compileAll<CompiledKernel>(
      names, options.jobs, [&](size_t i, MLIRContext &context) { return compile(texts[i], context); });
  if (!compiled)
    return compiled.takeError();
  for (Operation *kernel : kernels)
    if (dmir::ExternOp called = userKernelOf(cast<dlir::KernelOp>(kernel)))
      noteUserCode(called, kernel);
  Result<std::string> all = entryText(*compiled);
  if (!all)
    return all.takeError();
  const std::string &text = *all;
  std::string commands;
  for (const std::string &name : names)
    commands += ptxCommands(options.saveTempsDir, name, static_cast<unsigned>(options.optLevel));
  if (Status s = saveTemp(options.saveTempsDir, "commands.cuda", [&](raw_ostream &out) { out << commands; }); !s)
    return s.takeError();
  return std::vector<CodeEntry>{
      {"code/cuda/sm_90a/kernels.ptx", "sm_90a", {}, std::vector<char>(text.begin(), text.end())}};
}

} // namespace

/// A level is sm_90a or MACHINE.json.
static Status readLevel(const std::string &level, hw::Machine &machine) {
  if (level == "sm_90a")
    return Status::ok();
  if (!StringRef(level).ends_with(".json"))
    return usageError(
        "the cuda target has no level '" + level + "'; it has sm_90a, and takes MACHINE.json" +
        (StringRef(level).starts_with("sm_90") || level == "hopper" ? "; did you mean cuda:sm_90a?" : ""));
  return readMachine(level, hw::parseMachine, machine);
}

namespace dmxc {
Result<std::unique_ptr<TargetBackend>> createCudaTarget(const TargetOptions &options) {
  hw::Machine machine = hw::builtinMachine();
  for (const std::string &level : options.levels)
    if (Status read = readLevel(level, machine); !read)
      return read.takeError();
  if (!options.numerics.empty() && options.numerics != "strict" && options.numerics != kRounded)
    return usageError(
        "the cuda target has no numerics mode '" + options.numerics + "'; it has strict and bf16" +
        (options.numerics == "f16" ? ", and computes models of f16 as they are: f32 values may not fit into f16" : ""));
  return std::unique_ptr<TargetBackend>(new CudaTarget(options, std::move(machine)));
}
} // namespace dmxc
