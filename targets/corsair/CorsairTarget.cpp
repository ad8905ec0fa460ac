//===- CorsairTarget.cpp - the Corsair target's answers to the phases -----===//

#include "decide/Constants.h"
#include "decide/Functions.h"
#include "decide/Kernels.h"
#include "decide/ModelWork.h"
#include "decide/Ops.h"
#include "decide/ProductDecisions.h"
#include "decide/kept/ProductFacts.h"
#include "decide/scores/Bands.h"
#include "dialect/Corsair/Corsair.h"
#include "dialect/LLDMIR/LLDMIR.h"
#include "encode/Encode.h"
#include "interpret/Interpreter.h"
#include "passes/KernelFunctions.h"
#include "passes/Passes.h"
#include "passes/writer/ConstantForms.h"
#include "passes/writer/StageWriter.h"
#include "user/UserBody.h"

#include "schemas/corsair/text/Assembler.h"
#include "targets/common/code/MachineFile.h"
#include "targets/common/code/SaveTemps.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Support/WorkCount.h"
#include "dmxc/Target/TargetBackend.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace dmxc;
namespace hw = dmx::corsair;

namespace {

/// Where weights are: in ST from the first run on, or fetched from DDR for every product.
enum class Mode : uint8_t { Auto, Performance, Capacity };

class CorsairTarget : public TargetBackend {
public:
  /// `quads`: of a team at most, see teamSizes.
  CorsairTarget(hw::Machine machine, int quads, Mode mode, std::string saveTempsDir)
      : machine(std::move(machine)), quads(quads), mode(mode), saveTempsDir(std::move(saveTempsDir)) {}

  StringRef name() const override { return "corsair"; }
  void registerDialects(DialectRegistry &registry) const override {
    corsair::registerDevice(registry, machine);
    registry.insert<lldmir::LLDMIRDialect, affine_ext::AffineExtDialect, affine::AffineDialect, arith::ArithDialect,
                    gpu::GPUDialect, memref::MemRefDialect, tensor::TensorDialect>();
    lldmir::registerMachine(registry, machine);
  }
  std::optional<std::string> refuses(Operation *op) const override { return corsair::refusal(op, machine, quads); }
  bool hasFunction(Operation *function) const override {
    return isa<dmir::NormalizeOp>(function) || corsair::elementwiseFunction(function) ||
           corsair::matchRotation(function);
  }
  bool hasNarrowRange() const override { return true; }
  bool computesWholeGraphs() const override { return true; }
  bool fusesProducer(Operation *, OpOperand &, Operation *) const override { return false; }
  bool fusesConsumer(Operation *, Value, Operation *) const override { return false; }
  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override;
  std::vector<Decision> decisions(dmir::RegionOp region, DictionaryAttr decided) const override;
  std::optional<double> estimate(dmir::RegionOp region, DictionaryAttr decided) const override;
  std::string explain(dmir::RegionOp region, DictionaryAttr decided) const override;
  std::optional<OpFormats> formatsOf(Operation *op) const override { return corsair::formatsOf(op); }
  Status pack(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) const override {
    return corsair::packConstant(form, constant, out, machine);
  }
  ArrayRef<TargetStage> stages() const override { return stagesCorsairTarget(); }
  Status schedule(ArrayRef<Operation *> kernels) const override;
  bool evaluatesStages() const override { return true; }
  Result<std::vector<Tensor>> evaluate(Operation *kernel, ArrayRef<Tensor> operands) const override {
    return corsair::stages::evaluateKernel(kernel, operands);
  }
  Result<std::vector<CodeEntry>> emit(ArrayRef<Operation *> kernels) const override;
  std::string describe() const override { return machine.source; }

private:
  /// Decides for the region's ops on a team; 0 = the size that is fastest.
  Result<corsair::Distribution> dealt(dmir::RegionOp region, int team, DictionaryAttr inputs,
                                      DictionaryAttr decided = {}) const;
  /// The team that is decided, or 0.
  int decidedTeam(DictionaryAttr decided) const;
  Result<corsair::Distribution> dealtAnew(dmir::RegionOp region, DictionaryAttr decided) const;
  /// The team of a region of whose ops nothing is decided.
  int preferredTeam(dmir::RegionOp region) const;
  Status lower(ArrayRef<Operation *> kernels, bool fromDdr) const;

  hw::Machine machine;
  int quads;
  Mode mode;
  std::string saveTempsDir; ///< for KERNEL.dlir.mlir and kernels.dmxasm; "": none
};

/// Whether an argument of a region's body is a constant of the model.
static bool isConstantOf(dmir::RegionOp region, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && dmir::isConstant(region.getInputs()[argument.getArgNumber()]);
}

/// Whether the host brings an argument of a region in every run: it is neither a constant nor a state.
static bool isInput(dmir::RegionOp region, BlockArgument argument) {
  const unsigned number = argument.getArgNumber();
  return !dmir::isConstant(region.getInputs()[number]) &&
         llvm::none_of(dmir::stateUpdates(region), [&](auto update) { return update.first == number; });
}

/// Whether products are to compute what zeros make no difference to, or only as long as others are finite.
static bool computesZeros(dmir::RegionOp region) {
  auto module = region->getParentOfType<ModuleOp>();
  auto mode = module ? module->getAttrOfType<StringAttr>(dmir::kSparsityAttr) : StringAttr();
  return mode && (mode.getValue() == "off" || mode.getValue() == "exact");
}

Result<corsair::Distribution> CorsairTarget::dealt(dmir::RegionOp region, int team, DictionaryAttr inputs,
                                                   DictionaryAttr decided) const {
  if (!team && corsair::decidesSplits(region.getBlock(), decided))
    team = preferredTeam(region);
  if (Status written = corsair::writeSplits(region.getBlock(), decided, team); !written)
    return written.takeError();
  auto isConstant = [&](Value value) { return isConstantOf(region, value); };
  auto brought = [&](Value value) { return isInput(region, cast<BlockArgument>(value)); };
  llvm::DenseMap<Value, std::shared_ptr<const corsair::KeptColumns>> known; // each is looked through once
  auto zeros = [&](Value weights) {
    auto [found, isNew] = known.try_emplace(weights);
    if (isNew)
      if (auto matrix = dmir::constantTensor(region.getInputs()[cast<BlockArgument>(weights).getArgNumber()]))
        found->second = corsair::KeptColumns::of(*matrix);
    return found->second;
  };
  return corsair::decide(region.getBlock(), machine, {team, quads}, inputs,
                         {isConstant, brought, mode == Mode::Capacity, zeros, computesZeros(region)}, decided);
}

int CorsairTarget::decidedTeam(DictionaryAttr decided) const {
  auto number = decided ? decided.getAs<IntegerAttr>(corsair::kQuadsKey) : IntegerAttr();
  bool fits = number && number.getInt() >= 1 && number.getInt() <= machine.quadCount();
  return fits ? static_cast<int>(number.getInt()) : 0;
}

/// What is dealt of a region of whose ops nothing is decided but this.
Result<corsair::Distribution> CorsairTarget::dealtAnew(dmir::RegionOp region, DictionaryAttr decided) const {
  auto copy = cast<dmir::RegionOp>(region->clone());
  for (Operation &op : *copy.getBlock())
    for (StringRef key : {lldmir::kDealAttr, lldmir::kGatherAttr, lldmir::kBiasAttr, lldmir::kPlanAttr,
                          lldmir::kKeptAttr, lldmir::kBandsAttr})
      op.removeAttr(key);
  Result<corsair::Distribution> deal = dealt(copy, decidedTeam(decided), {}, decided);
  copy->erase();
  return deal;
}

int CorsairTarget::preferredTeam(dmir::RegionOp region) const {
  Result<corsair::Distribution> deal = dealtAnew(region, {});
  return deal ? deal->quads : std::max(quads, 1);
}

std::optional<double> CorsairTarget::estimate(dmir::RegionOp region, DictionaryAttr decided) const {
  Result<corsair::Distribution> deal = dealtAnew(region, decided);
  return deal ? std::optional(deal->clocks) : std::nullopt;
}

std::string CorsairTarget::explain(dmir::RegionOp region, DictionaryAttr decided) const {
  std::optional<double> clocks = estimate(region, decided);
  return clocks ? "estimated at " + std::to_string(std::llround(*clocks)) + " clocks" : "";
}

std::vector<Decision> CorsairTarget::decisions(dmir::RegionOp region, DictionaryAttr decided) const {
  Builder b(region.getContext());
  const int preferred = preferredTeam(region), team = decidedTeam(decided);
  std::vector<Decision> all{{corsair::kQuadsKey.str(), "", Domain::range(region.getContext(), 1, machine.quadCount()),
                             b.getI64IntegerAttr(preferred), Effect::Order,
                             "quads of the team that computes the graph"}};
  auto isConstant = [&](Value value) { return isConstantOf(region, value); };
  auto brought = [&](Value value) { return isInput(region, cast<BlockArgument>(value)); };
  llvm::append_range(all, corsair::productDecisions(region.getBlock(), machine, team ? team : preferred,
                                                    {isConstant, brought, mode == Mode::Capacity}, decided));
  return all;
}

Result<DictionaryAttr> CorsairTarget::chooseStrategy(dmir::RegionOp region) const {
  Builder b(region.getContext());
  NamedAttrList list;
  list.set(strategy::kAlgorithm, b.getStringAttr("dmx-isa"));
  list.set(strategy::kWork, b.getI64IntegerAttr(1));
  list.set(strategy::kGrain, b.getI64IntegerAttr(1));
  list.set(strategy::kScratch, b.getI64IntegerAttr(0));
  list.set(strategy::kBytes, b.getI64IntegerAttr(0));
  list.set(strategy::kOwnsConstants, b.getUnitAttr());
  list.set(strategy::kKeepsStates, b.getUnitAttr());
  SmallVector<int64_t> states;
  for (auto [operand, result] : dmir::stateUpdates(region))
    states.append({operand, result});
  list.set(corsair::kStatesKey, b.getDenseI64ArrayAttr(states));
  auto constant = [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); };
  DictionaryAttr text = region.getStrategyAttr();
  auto decided = text ? text.getAs<DictionaryAttr>(strategy::kDecided) : DictionaryAttr();
  int team = decidedTeam(decided);
  if (!team)
    team = decidedTeam(text);
  Result<corsair::Distribution> deal =
      dealt(region, team, text ? text.getAs<DictionaryAttr>(corsair::kDealsKey) : DictionaryAttr(), decided);
  if (!deal)
    return deal.takeError();
  list.set(strategy::kFlops, b.getI64IntegerAttr(2 * corsair::multiplyAdds(region.getBlock(), *deal)));
  list.set(corsair::kQuadsKey, b.getI64IntegerAttr(deal->quads));
  if (const int64_t columns = corsair::columnsAtOnce(region.getBlock(), *deal)) {
    list.set(strategy::kTile, b.getI64ArrayAttr({corsair::kBandRows, columns, columns}));
    list.set(strategy::kSkips, b.getStrArrayAttr({"scores"}));
  }
  DictionaryAttr inputs =
      deal->inputDeals(region.getBlock(), [&](BlockArgument argument) { return isInput(region, argument); });
  if (!inputs.empty())
    list.set(corsair::kDealsKey, inputs);
  DictionaryAttr packed = corsair::packedForms(region.getBlock(), *deal, constant);
  if (!packed.empty())
    list.set(strategy::kPacked, packed);
  corsair::noteFacts(region.getBlock(), *deal, computesZeros(region));
  return list.getDictionary(region.getContext());
}

/// The error of permanent buffers that a memory does not hold. Nodes: those of the largest, of all kernels.
static Error permanentLack(ArrayRef<std::unique_ptr<corsair::KernelWriter>> kernels, hw::Memory memory, int64_t needed,
                           const hw::Machine &machine) {
  Error error = kernels.front()->doesNotFit(memory, needed);
  std::vector<corsair::KernelWriter::Kept> kept;
  for (const auto &kernel : kernels)
    kernel->collectPermanent(memory, kept);
  llvm::stable_sort(kept, [](const auto &a, const auto &b) { return a.size > b.size; });
  for (const auto &[size, nodes] : kept) {
    if (needed <= static_cast<int64_t>(machine.memory(memory).size))
      break;
    llvm::append_range(error.nodes, nodes);
    needed -= size;
  }
  return error;
}

/// Gives all buffers their places. The nodes of an error are those of all kernels that do not fit.
static Status finish(ArrayRef<std::unique_ptr<corsair::KernelWriter>> kernels, const corsair::MemoryUse &permanent,
                     const hw::Machine &machine) {
  if (std::optional<hw::Memory> memory = corsair::exceeded(permanent, machine))
    return permanentLack(kernels, *memory, permanent[static_cast<int>(*memory)], machine);
  std::optional<Error> first;
  for (const auto &kernel : kernels)
    if (Status s = kernel->finish(permanent); !s) {
      if (first)
        llvm::append_range(first->nodes, s.error().nodes);
      else
        first = s.takeError();
    }
  return first ? Status(std::move(*first)) : Status::ok();
}

/// Writes a program before each kernel; none if one fails.
Status CorsairTarget::lower(ArrayRef<Operation *> kernels, bool fromDdr) const {
  std::vector<std::unique_ptr<corsair::KernelWriter>> lowered;
  auto all = [&]() -> Status {
    corsair::MemoryUse permanent{};
    beginWork("kernels", kernels.size());
    for (Operation *kernel : kernels) {
      const std::string name = SymbolTable::getSymbolName(kernel).str();
      WorkTimer timer("kernel", name);
      noteWork(name);
      if (Status s = corsair::checkConstantForms(kernel, machine); !s)
        return s;
      Result<std::unique_ptr<corsair::KernelWriter>> writer = StageWriter::create(kernel, machine, fromDdr);
      if (!writer)
        return writer.takeError();
      lowered.push_back(std::move(*writer));
      if (Status s = lowered.back()->lower(); !s)
        return s;
      lowered.back()->placePermanent(permanent);
      advanceWork();
    }
    return finish(lowered, permanent, machine);
  };
  Status done = all();
  if (!done)
    for (auto &lowering : lowered)
      lowering->program().erase();
  return done;
}

Status CorsairTarget::schedule(ArrayRef<Operation *> kernels) const {
  corsair::DecisionsMade made;
  auto module = kernels.front()->getParentOfType<ModuleOp>();
  Status done = lower(kernels, mode == Mode::Capacity);
  // Weights that do not fit ST are fetched from DDR for every product.
  if (!done && mode == Mode::Auto && done.error().kind == ErrorKind::Constraint)
    done = lower(kernels, /*fromDdr=*/true);
  if (!done)
    return done;
  for (Operation *kernel : kernels)
    kernel->erase();
  for (auto programs : llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>()))
    programs.erase();
  module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  return done;
}

Result<std::vector<CodeEntry>> CorsairTarget::emit(ArrayRef<Operation *> kernels) const {
  corsair::DecisionsMade made;
  SmallVector<dlir::DeviceProgramOp> programs;
  for (Operation *kernel : kernels) {
    auto program = dyn_cast<dlir::DeviceProgramOp>(kernel);
    if (!program)
      return Error{ErrorKind::Model, "kernel '" + SymbolTable::getSymbolName(kernel).str() +
                                         "' has no program for the device's queues (dlir.device_program)"};
    if (Status s = corsair::checkConstantForms(kernel, machine); !s)
      return s.takeError();
    programs.push_back(program);
  }
  std::string why; // the encoder's first error, which names the op
  ScopedDiagnosticHandler handler(kernels.front()->getContext(), [&](Diagnostic &diagnostic) {
    const std::string place = corsair::userPlace(diagnostic.getLocation());
    why = why.empty() ? (place.empty() ? "" : place + ": ") + diagnostic.str() : why;
    return success();
  });
  corsair::EncodeOptions options;
  options.verifyOrder = true;
  FailureOr<hw::Image> image = corsair::encode(programs, machine, options);
  if (failed(image))
    return Error{ErrorKind::Model, "the programs for the device are refused: " + why};
  for (dlir::DeviceProgramOp program : programs)
    corsair::noteUserCode(program, machine);
  for (dlir::DeviceProgramOp program : programs)
    if (Status s = saveTemp(saveTempsDir, program.getSymName() + ".dlir.mlir",
                            [&](raw_ostream &out) { out << program << "\n"; });
        !s)
      return s.takeError();
  if (Status s = saveTemp(saveTempsDir, "kernels.dmxasm", [&](raw_ostream &out) { out << hw::disassemble(*image); });
      !s)
    return s.takeError();
  std::vector<uint8_t> bytes = hw::write(*image);
  CodeEntry entry{"code/corsair/" + machine.name + "/kernels.dmxisa", machine.name, {}, {bytes.begin(), bytes.end()}};
  return std::vector<CodeEntry>{std::move(entry)};
}

} // namespace

/// A level is MACHINE.json, quads=N, performance or capacity.
static Status readLevel(const std::string &level, hw::Machine &machine, std::string &quads, Mode &mode) {
  if (StringRef(level).starts_with("quads=")) {
    quads = level.substr(6);
    return Status::ok();
  }
  if (level == "performance" || level == "capacity") {
    mode = level == "capacity" ? Mode::Capacity : Mode::Performance;
    return Status::ok();
  }
  if (!StringRef(level).ends_with(".json"))
    return usageError("'" + level +
                      "' is no option of the corsair target; it takes MACHINE.json, quads=N, performance and capacity");
  return readMachine(level, hw::parseMachine, machine);
}

namespace dmxc {
Result<std::unique_ptr<TargetBackend>> createCorsairTarget(const TargetOptions &options) {
  if (!options.numerics.empty() && options.numerics != "basic")
    return usageError("the corsair target has no numerics mode '" + options.numerics + "'; it has basic");
  hw::Machine machine = hw::builtinMachine();
  std::string text;
  Mode mode = Mode::Auto;
  for (const std::string &level : options.levels)
    if (Status s = readLevel(level, machine, text, mode); !s)
      return s.takeError();
  int quads = 0;
  if (!text.empty() && (StringRef(text).getAsInteger(10, quads) || quads < 1 || quads > machine.quadCount()))
    return usageError("quads=" + text + " of the corsair target: the machine '" + machine.name + "' has 1 to " +
                      std::to_string(machine.quadCount()) + " quads");
  return std::unique_ptr<TargetBackend>(new CorsairTarget(std::move(machine), quads, mode, options.saveTempsDir));
}
} // namespace dmxc
