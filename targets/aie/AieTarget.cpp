//===- AieTarget.cpp - the target's answers to the phases -----------------===//
#include "Kernel.h"
#include "Tilings.h"
#include "lower/Lower.h"
#include "passes/Passes.h"
#include "place/Cost.h"
#include "place/Runs.h"
#include "rows/RowRegions.h"
#include "user/UserMapping.h"

#include "targets/common/code/SaveTemps.h"
#include "targets/common/user/UserKernels.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/TargetBackend.h"

#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>
#include <mutex>
#include <set>

using namespace mlir;
using namespace dmxc;

namespace {

namespace hw = dmx::aie;
using kernels::Contraction;

class AieTarget final : public aie::GridTarget {
public:
  AieTarget(const hw::Machine &machine, aie::Herd herd, bool strict, std::string saveTempsDir)
      : machine(machine), herd(herd), strict(strict), saveTempsDir(std::move(saveTempsDir)) {}

  StringRef name() const override { return "aie"; }
  void registerDialects(DialectRegistry &registry) const override {
    aie::insertDialects(registry);
    aie::registerDevice(registry, machine);
  }
  std::optional<std::string> refuses(Operation *op) const override;
  bool multipliesBytesOfRuns() const override { return true; } // 16 times as many a clock as of i32
  bool startsRegion(Operation *op) const override { return !isa<dmir::ReshapeOp, dmir::BroadcastOp>(op); }
  bool hasFunction(Operation *function) const override {
    return isa<dmir::SiluOp, dmir::GeluOp, dmir::GeluTanhOp>(function);
  }
  bool fusesProducer(Operation *root, OpOperand &use, Operation *producer) const override {
    if (isa<dmir::ExternOp>(root)) // it reads tensors as they lie
      return false;
    return Contraction::is(root) ? aie::isAddedByCores(producer)
                                 : aie::fusesRowProducer(machine, herd, root, use, producer);
  }
  bool fusesConsumer(Operation *root, Value result, Operation *consumer) const override {
    if (!Contraction::is(root))
      return aie::fusesRowConsumer(machine, herd, root, result, consumer);
    return result.hasOneUse() && aie::isEpilogue(consumer, result) && !aie::refuses(machine, herd, strict, consumer);
  }
  Attribute preferredResultLayout(Operation *region) const override;
  bool acceptsLayout(Operation *region, unsigned operand, Attribute layout) const override;
  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override;
  std::vector<Decision> decisions(dmir::RegionOp region, DictionaryAttr decided) const override;
  std::optional<OpFormats> formatsOf(Operation *op) const override {
    return Contraction::is(op) && aie::roundsOperands(op) ? std::optional(OpFormats{{"bf16", "bf16"}, "f32"})
                                                          : std::nullopt;
  }
  Status pack(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) const override {
    return aie::pack(form, constant, out);
  }
  ArrayRef<TargetStage> stages() const override { return stagesAieTarget(); }
  Status writeGrid(dlir::KernelOp kernel) const override;
  Status schedule(ArrayRef<Operation *> kernels) const override;
  Result<std::vector<CodeEntry>> emit(ArrayRef<Operation *> kernels) const override;
  std::string describe() const override;

private:
  Result<aie::Mapping> mappingOf(dmir::RegionOp region) const;
  Result<aie::Mapping> chosenFor(dmir::RegionOp region) const;
  const aie::Tilings &tilingsOf(aie::Mapping mapping) const;
  std::optional<int64_t> leastClocks(aie::Mapping mapping, MLIRContext *context) const;
  Status save(const hw::Image &image, ModuleOp texts) const;
  Status saveFile(const std::string &name, StringRef content) const;
  Status saveText(const std::string &name, Operation *op) const;

  hw::Machine machine;
  aie::Herd herd;
  bool strict; ///< no operands are rounded
  std::string saveTempsDir;
  mutable std::mutex asking;
  mutable std::optional<aie::Tilings> asked; ///< of the product of which was asked last
};

/// Rows are what is no product, and not behind one.
bool isOfRows(Block *block) {
  return llvm::none_of(*block, [](Operation &op) { return Contraction::is(&op); });
}

/// What cores multiply, how much of that is the model's, what whole blocks add, and what it is expected to cost.
std::string algorithmOf(const hw::Machine &machine, const aie::Mapping &mapping) {
  const aie::Numbers &numbers = mapping.numbers;
  std::string text = numbers.name.str() + " tiles of " + std::to_string(numbers.m) + "x" + std::to_string(numbers.k) +
                     "x" + std::to_string(numbers.n);
  if (mapping.narrows())
    text += " to " + mapping.results().str();
  if (mapping.image && mapping.image->groups > 1)
    text += ", " + std::to_string(mapping.matrices) + " times " + std::to_string(mapping.image->together) + " of " +
            std::to_string(mapping.image->groups) + " groups";
  if (mapping.image)
    text +=
        ", " + std::to_string(mapping.image->pixels) + (mapping.image->pixels > 1 ? " pixels" : " pixel") + " a row";
  char share[64];
  std::snprintf(share, sizeof share, ", %.1f %% padding", std::floor(1000 * (1 - 1 / mapping.work())) / 10);
  if (!mapping.runs.empty())
    std::snprintf(share, sizeof share, ", %.1f %% of b left out", 100 * aie::shareLeftOut(mapping));
  return text + ", " + std::to_string(mapping.macs) + " MACs" + share + ", ~" +
         std::to_string(aie::clocksOf(machine, mapping)) + " clocks" +
         (mapping.open ? " where sizes are the largest" : "");
}

/// What a region or kernel calls; null where no user wrote it.
dmir::ExternOp userOf(Block *block) {
  auto calls = block->getOps<dmir::ExternOp>();
  return calls.empty() ? dmir::ExternOp() : *calls.begin();
}

std::optional<std::string> AieTarget::refuses(Operation *op) const {
  if (auto user = dyn_cast<dmir::ExternOp>(op)) {
    Result<aie::UserMapping> mapping = aie::userMappingOf(machine, herd, user);
    return mapping ? std::nullopt : std::optional(mapping.error().message);
  }
  std::optional<std::string> why = aie::refuses(machine, herd, strict, op);
  if (!why || Contraction::is(op))
    return why;
  return aie::refusesRows(machine, herd, op, [&](Operation *other) {
    return isa<dmir::ExternOp>(other) ? !refuses(other) : !aie::refuses(machine, herd, strict, other);
  });
}

/// Without a tiling. Constants are packed, but for several matrices, which are put at the border.
Result<aie::Mapping> AieTarget::mappingOf(dmir::RegionOp region) const {
  Builder b(region.getContext());
  NamedAttrList constants;
  for (auto [i, input] : llvm::enumerate(region.getInputs()))
    if (dmir::isConstant(input))
      constants.set(std::to_string(i), b.getUnitAttr());
  Result<aie::Mapping> mapping =
      aie::mappingOf(region.getBlock(), constants.getDictionary(region.getContext()), strict);
  if (mapping && mapping->matrices > 1 && !mapping->image)
    for (aie::Operand &operand : mapping->operands)
      operand.packed = operand.packed && operand.isRow();
  if (mapping && kernels::mayLeaveOut(region, /*exact=*/false))
    for (auto [input, operand] : llvm::zip(region.getInputs(), mapping->operands))
      if (operand.part == aie::Part::B && operand.packed && !mapping->image)
        mapping->held = aie::Held(kernels::NonZeros::of(input));
  return mapping;
}

/// Of one product phases and tuners ask again and again. `asking` is held while they are used.
const aie::Tilings &AieTarget::tilingsOf(aie::Mapping mapping) const {
  if (!asked || asked->of() != mapping)
    asked.emplace(machine, herd, std::move(mapping));
  return *asked;
}

/// Of what a product costs at least; nullopt where the array does not hold it.
std::optional<int64_t> AieTarget::leastClocks(aie::Mapping mapping, MLIRContext *context) const {
  Result<aie::Mapping> chosen = tilingsOf(std::move(mapping)).choose(context, {});
  return chosen && !aie::refuses(machine, *chosen) ? std::optional(aie::clocksOf(machine, *chosen)) : std::nullopt;
}

/// Of a region that another one of the array reads, with the tilings of both by default; those of a text have to fit.
/// Its columns are those of the first product's blocks or as many as the second one reads, by what both cost.
Attribute AieTarget::preferredResultLayout(Operation *op) const {
  auto from = dyn_cast<dmir::RegionOp>(op);
  auto to = from ? dyn_cast<dmir::RegionOp>(*from.getResult(0).user_begin()) : dmir::RegionOp();
  if (!to || to.getDevice() != name() || isOfRows(from.getBlock()) || isOfRows(to.getBlock()))
    return {};
  MLIRContext *context = from.getContext();
  Result<aie::Mapping> first = mappingOf(from), second = mappingOf(to);
  std::lock_guard lock(asking);
  for (Result<aie::Mapping> *each : {&first, &second}) {
    if (*each)
      *each = tilingsOf(std::move(**each)).choose(context, {});
    if (!*each)
      return {};
  }
  Attribute best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t pitch : std::set<int64_t>{first->paddedN(), std::max(first->paddedN(), second->paddedK())}) {
    Attribute form = aie::formBetween(context, *first, *second, pitch);
    if (!form)
      return {};
    aie::Mapping gives = *first, reads = *second;
    aie::keep(gives, aie::Part::C, form);
    aie::keep(reads, aie::Part::A, form);
    std::optional<int64_t> one = leastClocks(std::move(gives), context), other = leastClocks(std::move(reads), context);
    if (one && other && *one + *other < least)
      best = form, least = *one + *other;
  }
  return best;
}

bool AieTarget::acceptsLayout(Operation *op, unsigned operand, Attribute layout) const {
  auto region = layout ? dyn_cast<dmir::RegionOp>(op) : dmir::RegionOp();
  if (!region)
    return !layout;
  Result<aie::Mapping> mapping = mappingOf(region);
  return mapping && mapping->operands[operand].part == aie::Part::A;
}

/// Why what is known of a product is not used; "" where it is, or nothing is known.
std::string whyNotLeftOut(Block *block, const aie::Mapping &mapping, ArrayRef<StringRef> skips) {
  auto products = block->getOps<dmir::MatMulOp>();
  StringRef fact = products.empty() ? StringRef() : kernels::unusedFact(*products.begin(), skips);
  if (fact.empty())
    return "";
  if (fact == "left")
    return "rows of the first operand come whole: runs of tiles are those of a packed second one";
  if (fact == "result")
    return "all blocks of the result are computed";
  if (mapping.matrices > 1 || !mapping.packs(aie::Part::B))
    return "tiles are left out of one matrix of the bundle, and what a run brings comes whole";
  return "with tiles of zeros left out it costs no fewer clocks";
}

/// The mapping with what is decided of it. The form of b in a text says what of it is left out.
Result<aie::Mapping> AieTarget::chosenFor(dmir::RegionOp region) const {
  Result<aie::Mapping> mapping = mappingOf(region);
  if (!mapping)
    return mapping;
  DictionaryAttr given = region.getStrategyAttr();
  DictionaryAttr form = given ? aie::formOfB(*mapping, given.getAs<DictionaryAttr>(strategy::kPacked)) : given;
  if (form)
    mapping->held = {};
  std::lock_guard lock(asking);
  Result<aie::Mapping> chosen = tilingsOf(std::move(*mapping))
                                    .choose(region.getContext(), given ? given.get(aie::kTiling) : Attribute(),
                                            given ? given.getAs<DictionaryAttr>(strategy::kDecided) : DictionaryAttr());
  if (Status read = form && chosen ? aie::readRuns(machine, form, *chosen) : Status::ok(); !read)
    return read.takeError();
  return chosen;
}

Result<DictionaryAttr> AieTarget::chooseStrategy(dmir::RegionOp region) const {
  if (userOf(region.getBlock()))
    return aie::userStrategy(machine, herd, region);
  if (isOfRows(region.getBlock()))
    return aie::rowStrategy(machine, herd, region);
  Result<aie::Mapping> mapping = chosenFor(region);
  if (!mapping)
    return mapping.takeError();
  const aie::Mapping &chosen = *mapping;
  Builder b(region.getContext());
  NamedAttrList list, packed;
  Dim bytes = 0;
  for (auto [i, operand] : llvm::enumerate(chosen.operands)) {
    bytes += dmir::elementsOf(operand.tensor) * (operand.tensor.getElementTypeBitWidth() / 8);
    if (operand.packed)
      packed.set(std::to_string(i), aie::formOf(b, chosen, operand));
  }
  if (!packed.empty())
    list.set(strategy::kPacked, packed.getDictionary(region.getContext()));
  SmallVector<StringRef> skips(chosen.runs.empty() ? 0 : 1, "right");
  if (!skips.empty())
    list.set(strategy::kSkips, b.getStrArrayAttr(skips));
  if (std::string why = whyNotLeftOut(region.getBlock(), chosen, skips); !why.empty())
    list.set(dmir::kFactsKey, b.getStringAttr(why));
  list.set(strategy::kAlgorithm, b.getStringAttr(algorithmOf(machine, chosen)));
  list.set(aie::kTiling, kernels::writeTile(chosen.tiling(), region.getContext()));
  aie::addFigures(list, region.getContext(), aie::issuedMacs(chosen) * 2, bytes);
  return list.getDictionary(region.getContext());
}

std::vector<Decision> AieTarget::decisions(dmir::RegionOp region, DictionaryAttr decided) const {
  if (userOf(region.getBlock()))
    return {};
  if (isOfRows(region.getBlock()))
    return aie::rowDecisions(machine, herd, region.getBlock(), decided);
  Result<aie::Mapping> mapping = mappingOf(region);
  std::lock_guard lock(asking);
  return mapping ? tilingsOf(std::move(*mapping)).decisions(region.getContext(), decided) : std::vector<Decision>();
}

Status AieTarget::writeGrid(dlir::KernelOp kernel) const {
  auto wrong = [&](const std::string &why) {
    return modelError("kernel '" + kernel.getSymName().str() + "' cannot be computed by the array: " + why);
  };
  DictionaryAttr strategy = kernel.getStrategy();
  OpBuilder builder(kernel);
  if (dmir::ExternOp user = userOf(kernel.getBlock())) {
    Result<aie::UserMapping> mapping = aie::userMappingOf(machine, herd, user);
    if (!mapping)
      return wrong(mapping.error().message);
    aie::writeUser(builder, kernel.getLoc(), machine, kernel.getSymName(), *mapping);
    kernel.erase();
    return Status::ok();
  }
  if (isOfRows(kernel.getBlock())) {
    Result<aie::RowMapping> rows =
        aie::rowMappingOf(machine, herd, kernel.getBlock(), strategy.get(aie::kTiling), DictionaryAttr());
    if (!rows)
      return wrong(rows.error().message);
    if (std::optional<std::string> why = aie::refuses(machine, *rows))
      return wrong(*why);
    aie::writeRows(builder, kernel.getLoc(), machine, kernel.getSymName(), *rows);
    kernel.erase();
    return Status::ok();
  }
  Result<aie::Mapping> mapping = aie::mappingOf(kernel.getBlock(), strategy.getAs<DictionaryAttr>(strategy::kPacked));
  std::lock_guard lock(asking);
  if (mapping)
    mapping = tilingsOf(std::move(*mapping)).choose(kernel.getContext(), strategy.get(aie::kTiling));
  if (DictionaryAttr form =
          mapping ? aie::formOfB(*mapping, strategy.getAs<DictionaryAttr>(strategy::kPacked)) : DictionaryAttr())
    if (Status read = aie::readRuns(machine, form, *mapping); !read)
      return wrong(read.error().message);
  if (!mapping)
    return wrong(mapping.error().message);
  if (std::optional<std::string> why = aie::refuses(machine, *mapping))
    return wrong(*why);
  aie::writeProgram(builder, kernel.getLoc(), machine, kernel.getSymName(), *mapping);
  kernel.erase();
  return Status::ok();
}

/// Programs may be those of a text that was changed.
Status AieTarget::schedule(ArrayRef<Operation *> kernels) const {
  std::string why; // the first error, which names the op
  ScopedDiagnosticHandler handler(kernels.front()->getContext(), [&](Diagnostic &diagnostic) {
    why = why.empty() ? diagnostic.str() : why;
    return success();
  });
  for (Operation *kernel : kernels) {
    std::string name = SymbolTable::getSymbolName(kernel).str();
    auto program = dyn_cast<dlir::DeviceProgramOp>(kernel);
    if (!program)
      return modelError("kernel '" + name +
                        "' has no program of grids (dlir.device_program); the stage schedule.grid makes it");
    if (Status saved = saveText(name + ".dlir.mlir", program); !saved)
      return saved;
    if (failed(aie::place(program)))
      return modelError("kernel '" + name + "' has no place on the array: " + why);
  }
  return Status::ok();
}

Result<std::vector<CodeEntry>> AieTarget::emit(ArrayRef<Operation *> kernels) const {
  OwningOpRef<ModuleOp> texts = ModuleOp::create(kernels.front()->getLoc());
  for (Operation *kernel : kernels)
    if (isa<aie::DeviceOp>(kernel))
      texts->push_back(kernel->clone());
    else
      return Error{ErrorKind::Model, "kernel '" + SymbolTable::getSymbolName(kernel).str() +
                                         "' has no aie.device, which says what the "
                                         "array does; the phase schedule makes it"};
  std::string why; // the first error, which names the op
  ScopedDiagnosticHandler handler(kernels.front()->getContext(), [&](Diagnostic &diagnostic) {
    why = why.empty() ? diagnostic.str() : why;
    return success();
  });
  hw::Image image;
  for (auto device : texts->getOps<aie::DeviceOp>()) {
    bool holds = succeeded(aie::checkLimits(device)) && succeeded(aie::routeFlows(device));
    if (!holds || failed(aie::lowerControl(device)) || failed(aie::encode(device, image)))
      return Error{holds ? ErrorKind::Model : ErrorKind::Constraint,
                   "kernel '" + device.getSymName().str() + "' has no words for the array: " + why};
  }
  if (std::string error = hw::verify(image); !error.empty())
    return Error{ErrorKind::Model, "the image for the array is not sound: " + error};
  if (Status saved = saveTempsDir.empty() ? Status::ok() : save(image, *texts); !saved)
    return saved.takeError();
  for (Operation *kernel : kernels)
    if (std::optional<aie::CoreFunction> user = aie::functionOf(kernel))
      kernels::noteBody(user->kernel, image.machine,
                        cast<DictionaryAttr>(kernel->getAttrOfType<ArrayAttr>(dmir::kUserBodiesAttr)[0]), kernel);
  std::vector<std::byte> bytes = hw::write(image);
  const char *data = reinterpret_cast<const char *>(bytes.data());
  return std::vector<CodeEntry>{
      {"code/aie/" + image.machine + "/kernels.aiebin", image.machine, {}, {data, data + bytes.size()}}};
}

Status AieTarget::saveFile(const std::string &name, StringRef content) const {
  return saveTemp(saveTempsDir, name, [&](raw_ostream &out) { out << content; });
}

Status AieTarget::saveText(const std::string &name, Operation *op) const {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (!saveTempsDir.empty())
    op->print(out, OpPrintingFlags().assumeVerified());
  out << "\n";
  return saveFile(name, text);
}

/// What tools of the platform take: OVERLAY.cdo, KERNEL.insts.txt; and KERNEL.aie.mlir, the last text before.
Status AieTarget::save(const hw::Image &image, ModuleOp texts) const {
  for (const hw::Overlay &overlay : image.overlays)
    if (Status done = saveFile(overlay.name + ".cdo", aie::cdoOf(overlay)); !done)
      return done;
  for (const hw::KernelCode &kernel : image.kernels)
    if (Status done = saveFile(kernel.name + ".insts.txt", aie::instsOf(image, kernel)); !done)
      return done;
  for (auto device : texts.getOps<aie::DeviceOp>())
    if (Status done = saveText(device.getSymName().str() + ".aie.mlir", device); !done)
      return done;
  return Status::ok();
}

std::string AieTarget::describe() const {
  std::string text =
      "machine " + std::string(machine.name) + ", products and convolutions on " + std::to_string(herd.rows) + " x " +
      std::to_string(herd.columns) +
      " cores\nreal: every word that configures the array (BDs, locks, queues, switches, multiplexers, control "
      "stream, CDO)\nmodelled: what runs inside a core, and clocks; no code for a core and no PDI or "
      "xclbin is written, and nothing was run on a device\n";
  for (const hw::Figure &figure : hw::figures(machine)) {
    llvm::raw_string_ostream line(text);
    line << figure.name << " = " << static_cast<int64_t>(figure.value) << "  (" << hw::nameOf(figure.mark) << ": "
         << figure.source << ")\n";
  }
  return text;
}

} // namespace

namespace dmxc {
Result<std::unique_ptr<TargetBackend>> createAieTarget(const TargetOptions &options) {
  if (!options.numerics.empty() && options.numerics != "bf16" && options.numerics != "strict")
    return usageError("the aie target has no numerics mode '" + options.numerics + "'; it has bf16 and strict");
  std::string columns = "4", rows = "4";
  for (const std::string &level : options.levels) {
    bool isColumns = StringRef(level).starts_with("cols="), isRows = StringRef(level).starts_with("rows=");
    if (!isColumns && !isRows)
      return usageError("'" + level + "' is no option of the aie target; it takes cols=N and rows=N, N from 1 to 4");
    (isColumns ? columns : rows) = level.substr(5);
  }
  std::optional<hw::Machine> machine = hw::machineOf(columns == "4" ? "npu1" : "npu1_" + columns + "col");
  if (!machine)
    return usageError("cols=" + columns + " of the aie target: the machine npu1 has 1 to 4 columns");
  aie::Herd herd{0, machine->columns};
  if (StringRef(rows).getAsInteger(10, herd.rows) || herd.rows < 1 || herd.rows > machine->coreRows())
    return usageError("rows=" + rows + " of the aie target: the machine npu1 has 1 to 4 rows of cores");
  return std::unique_ptr<TargetBackend>(
      new AieTarget(*machine, herd, options.numerics == "strict", options.saveTempsDir));
}
} // namespace dmxc
