//===- Gemm.cpp - which products tensor cores compute -------------------------===//

#include "FewRows.h"
#include "TileProduct.h"
#include "attention/FewQueries.h"
#include "convolution/PatchProduct.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/DecisionsMade.h"
#include "dmxc/Target/TargetBackend.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

using SharedProduct = std::shared_ptr<GemmProduct>;

static const KernelRow &plainRow(StringRef op) {
  static const KernelTable table = [] {
    KernelTable plain;
    registerProducts(plain);
    registerConvolutions(plain);
    return plain;
  }();
  return table.all().find(op)->second;
}

/// The names of the ways.
static StringRef specialisedOf(Operation *product) {
  return isa<dmir::ConvOp>(product) ? StringRef(kSpecialisedConv) : StringRef(kSpecialised);
}
static StringRef plainOf(Operation *product) { return isa<dmir::ConvOp>(product) ? "conv-plain" : "matmul-plain"; }

int64_t dmxc::cuda::rowsOf(Operation *product) {
  if (auto conv = dyn_cast<dmir::ConvOp>(product)) {
    SmallVector<Dim> result = dmir::dimsOf(conv.getResult());
    int64_t outputs = nominal(conv->getBlock(), result[1]) / static_cast<int64_t>(conv.getGroups());
    return std::min(outputs, nominal(conv->getBlock(), dmir::product(ArrayRef(result).drop_front(2))));
  }
  auto op = cast<dmir::MatMulOp>(product);
  SmallVector<Dim> left = dmir::dimsOf(op.getLhs());
  left.pop_back();
  if (dmir::dimsOf(op.getRhs()).size() > 2 && !left.empty())
    left.erase(left.begin(), left.end() - 1);
  return nominal(op->getBlock(), dmir::product(left));
}

static StringRef algorithmIn(DictionaryAttr dictionary) {
  auto name = dictionary ? dictionary.getAs<StringAttr>(strategy::kAlgorithm) : StringAttr();
  return name ? name.getValue() : StringRef();
}

/// Whether a strategy has a packed form of a buffer.
static bool hasForm(DictionaryAttr strategy, unsigned buffer) {
  auto packed = strategy.getAs<DictionaryAttr>(strategy::kPacked);
  return packed && packed.contains(std::to_string(buffer));
}

/// The packed form of a right operand without steps of zeros; null of others.
static DictionaryAttr formOfSteps(const GemmProduct &product, DictionaryAttr strategy) {
  auto packed = strategy && product.packsRight ? strategy.getAs<DictionaryAttr>(strategy::kPacked) : DictionaryAttr();
  auto form = packed ? packed.getAs<DictionaryAttr>(std::to_string(product.rhs->buffer)) : DictionaryAttr();
  auto name = form ? form.getAs<StringAttr>("form") : StringAttr();
  return name && name.getValue() == KeptSteps::kForm ? form : DictionaryAttr();
}

static Result<SharedProduct> productOf(const RegionBody &body, const CudaRequest &request) {
  auto product = std::make_shared<GemmProduct>(body, [&](unsigned operand) {
    return request.strategy ? hasForm(request.strategy, operand) : request.constant && request.constant(operand);
  });
  if (!product->refusal().empty())
    return product;
  if (DictionaryAttr form = formOfSteps(*product, request.strategy)) {
    Result<KeptSteps> kept = KeptSteps::of(form, *product->k.known(), *product->n.known());
    if (!kept)
      return modelError("node '" + dmir::nodeName(body.root) + "': " + kept.error().message);
    product->keep(std::move(*kept));
  }
  return product;
}

/// Leaves steps of zeros out of a constant right operand where enough of them are.
static void leaveOut(GemmProduct &product, const GemmTile &tile, KernelPlan &plan) {
  if (!product.held)
    return;
  const int64_t k = *product.k.known(), n = *product.n.known();
  KeptSteps kept(*product.held, tile.columns);
  if (!kept.pay(k))
    return;
  plan.savedOperations = product.m * product.batch * (k * n - kept.elements(k, n)) * 2;
  product.keep(std::move(kept));
  plan.skips.push_back("right");
}

static std::optional<FewRows> fewRowsOf(const RegionBody &body, const CudaRequest &request) {
  return FewRows::of(body, [&](unsigned operand) {
    return request.strategy ? hasForm(request.strategy, operand) : request.constant && request.constant(operand);
  });
}

namespace {

/// The ways in which a product can be computed.
struct Ways {
  const hw::Machine &machine;
  const GemmProduct *specialised = nullptr; ///< by tensor cores
  const FewRows *few = nullptr;
  const TileProduct *tiled = nullptr;
  const PatchProduct *patched = nullptr;

  Ways(const hw::Machine &machine, const GemmProduct &product, const std::optional<FewRows> &few,
       const std::shared_ptr<const TileProduct> &tiled, const std::shared_ptr<const PatchProduct> &patched)
      : machine(machine), specialised(product.refusal().empty() ? &product : nullptr), few(few ? &*few : nullptr),
        tiled(tiled.get()), patched(patched.get()) {}
  /// The name of the one that is asked for, or where none is of the default.
  StringRef chosen(Operation *op, DictionaryAttr decided) const {
    if (StringRef asked = algorithmIn(decided); !asked.empty())
      return asked;
    if (few && few->pays())
      return kByWarps;
    if (specialised && rowsOf(op) > kPlainRows)
      return specialisedOf(op);
    const bool isTiled = tiled && tiled->pays(machine);
    const double others = isTiled ? tiled->clocks(machine, tiled->choose(machine, {})) : plainClocks(machine, op);
    if (patched && patched->pays(machine, others))
      return kConvByPatches;
    return isTiled ? tiledOf(op) : plainOf(op);
  }
};

} // namespace

static Result<KernelPlan> planPlain(const RegionBody &body, const PlanRequest &request, const GemmProduct &product,
                                    bool decided) {
  if (!normBefore(body.root).empty())
    return modelError("node '" + dmir::nodeName(body.root) + "': a norm is computed in its region, which " +
                      kByWarps.str() + " alone can, with a packed constant; leave the strategy out and it is derived");
  Result<KernelPlan> plan = plainRow(body.root->getName().getStringRef()).plan(body, request);
  StringRef why = !product.refusal().empty() ? StringRef(product.refusal())
                  : decided                  ? StringRef(kDecidedPlain)
                                             : StringRef("its rows are few");
  if (plan && product.isHalf())
    plan->own.set(kWhyPlain, StringAttr::get(body.root->getContext(), why));
  return plan;
}

static KernelPlan planFewRows(const RegionBody &body, const FewRows &few, const FewTile &tile) {
  KernelPlan plan(kByWarps.str(), WorkPlan());
  plan.work = few.blocks(tile);
  plan.own.set(kFew, writeTile(tile, body.root->getContext()));
  plan.packed.set(std::to_string(few.buffer), few.packedForm(body.root->getContext()));
  plan.launch = few.launch(tile);
  plan.emit = [body, few, tile](KernelBuilder &b) { emitFewRows(CudaBuilder::of(b), body, few, tile); };
  return plan;
}

/// How a region is computed, while its strategy is chosen.
static Result<KernelPlan> chooseProduct(const RegionBody &body, const CudaRequest &request, GemmProduct &product) {
  std::optional<FewRows> few = fewRowsOf(body, request);
  std::shared_ptr<const TileProduct> tiled = TileProduct::of(body.root);
  std::shared_ptr<const PatchProduct> patched = PatchProduct::of(body.root, request.machine);
  StringRef name = Ways(request.machine, product, few, tiled, patched).chosen(body.root, request.decided);
  if (patched && name == kConvByPatches) {
    DecisionsMade::check("a tile of a convolution by patches");
    return planPatches(body, patched, patched->choose(request.machine, request.decided));
  }
  if (tiled && name == tiledOf(body.root)) {
    DecisionsMade::check("a tile of a product of f32");
    return planTiles(body, tiled, tiled->choose(request.machine, request.decided));
  }
  if (few && name == kByWarps) {
    DecisionsMade::check("a tile of a product of few rows");
    return planFewRows(body, *few, few->choose(request.machine, request.decided));
  }
  if (!product.refusal().empty() || name != specialisedOf(body.root))
    return planPlain(body, request, product, !algorithmIn(request.decided).empty());
  DecisionsMade::check("a tile of a product");
  MLIRContext *context = body.root->getContext();
  product.look(request.inputs);
  GemmTile tile = decidedGemmTile(request.machine, product.nominalSizes(body.block), request.decided, context);
  KernelPlan plan(name.str(), WorkPlan());
  plan.work = product.tiles(tile);
  plan.own.set(kProduct, writeTile(tile, context));
  if (std::string copies = product.threadCopies(); !copies.empty())
    plan.own.set(kThreadCopies, StringAttr::get(context, copies));
  leaveOut(product, tile, plan);
  if (product.packsRight)
    plan.packed.set(std::to_string(product.right.buffer), product.packedForm(context));
  return plan;
}

/// What the pipeline of a kernel says of its product.
static Result<Pipeline> pipelineIn(const RegionBody &body, const CudaRequest &request, GemmProduct &product) {
  const std::string node = "node '" + dmir::nodeName(body.root) + "': ",
                    has = node + "its strategy has the algorithm " + algorithmIn(request.strategy).str() + ", but ";
  PipelineOp text = pipelineOf(body.block);
  if (!product.refusal().empty())
    return modelError(has + product.refusal() + "; leave the strategy out and it is derived");
  if (!text)
    return modelError(has + "its kernel has no cuda.pipeline, which the stage schedule.pipeline makes");
  if (request.strategy.contains(kProduct))
    return modelError(node + "'" + kProduct.str() + "' of its strategy is what its cuda.pipeline says; leave it out");
  Result<Pipeline> pipeline = readPipeline(text, product, request.machine);
  if (!pipeline)
    return pipeline;
  if (Dim work = dmir::dimOfAttr(request.strategy.get(strategy::kWork), 1), tiles = product.tiles(pipeline->tile);
      !(work == tiles))
    return modelError(node + "'" + strategy::kWork.str() + "' of its strategy is " + work.str() +
                      ", but its cuda.pipeline has " + tiles.str() + " tiles");
  return pipeline;
}

/// What a strategy says of a product of few rows.
static Result<KernelPlan> fewRowsIn(const RegionBody &body, const CudaRequest &request) {
  const std::string node = "node '" + dmir::nodeName(body.root) + "': ";
  std::optional<FewRows> few = fewRowsOf(body, request);
  if (!few)
    return modelError(
        node + "its strategy has the algorithm " + kByWarps.str() +
        ", but it is no product of floats with a packed constant; leave the strategy out and it is derived");
  Result<FewTile> tile = few->read(request.machine, request.strategy.get(kFew), kFew);
  if (!tile)
    return modelError(node + tile.error().message);
  return planFewRows(body, *few, *tile);
}

/// An attention by warps, cut as its strategy or, where it has none, the estimate says.
static Result<KernelPlan> planQueries(const RegionBody &body, const CudaRequest &request, const FewQueries &few) {
  QueryTile tile;
  if (!request.strategy) {
    DecisionsMade::check("a tile of attention");
    tile = few.choose(request.machine, request.decided);
  } else {
    Result<QueryTile> read = few.read(request.machine, request.strategy.get(kQueries), kQueries);
    if (!read)
      return modelError("node '" + dmir::nodeName(body.root) + "': " + read.error().message);
    tile = *read;
  }
  KernelPlan plan(kQueriesByWarps.str(), WorkPlan());
  plan.work = few.blocks(tile);
  plan.own.set(kQueries, writeTile(tile, body.root->getContext()));
  plan.launch = few.launch(tile);
  plan.emit = [body, few, tile](KernelBuilder &b) { emitFewQueries(CudaBuilder::of(b), body, few, tile); };
  return plan;
}

/// An attention as one kernel: there is no other way, as its region has all of it.
static Result<KernelPlan> planAttention(const RegionBody &body, const CudaRequest &request, const FewQueries &few) {
  StringRef name = algorithmIn(request.strategy ? request.strategy : request.decided);
  if (name.empty())
    name = few.preferred();
  if (name == kQueriesByWarps && few.fitsWarps())
    return planQueries(body, request, few);
  if (name != kAttentionByCores || !few.fitsCores())
    return modelError("node '" + dmir::nodeName(body.root) + "': its region is an attention, which is computed by " +
                      few.preferred().str() + "; leave the strategy out and it is derived");
  KernelPlan plan(kAttentionByCores.str(), WorkPlan());
  plan.work = few.coreBlocks();
  plan.launch = few.coreLaunch();
  plan.emit = [body, few](KernelBuilder &b) { emitAttention(CudaBuilder::of(b), body, few); };
  return plan;
}

static Result<KernelPlan> planProduct(const RegionBody &body, const PlanRequest &given) {
  const CudaRequest &request = CudaRequest::of(given);
  if (std::optional<FewQueries> few = FewQueries::of(body.root))
    return planAttention(body, request, *few);
  Result<SharedProduct> made = productOf(body, request);
  if (!made)
    return made.takeError();
  SharedProduct product = *made;
  if (!request.strategy)
    return chooseProduct(body, request, *product);
  if (algorithmIn(request.strategy) != specialisedOf(body.root)) {
    if (pipelineOf(body.block))
      return modelError("node '" + dmir::nodeName(body.root) +
                        "': its kernel has a cuda.pipeline, but its strategy the "
                        "algorithm " +
                        algorithmIn(request.strategy).str());
    if (algorithmIn(request.strategy) == tiledOf(body.root))
      return tilesIn(body, request);
    if (algorithmIn(request.strategy) == kConvByPatches)
      return patchesIn(body, request);
    return algorithmIn(request.strategy) == kByWarps ? fewRowsIn(body, request)
                                                     : planPlain(body, request, *product, /*decided=*/false);
  }
  Result<Pipeline> pipeline = pipelineIn(body, request, *product);
  if (!pipeline)
    return pipeline.takeError();
  KernelPlan plan(specialisedOf(body.root).str(), WorkPlan());
  plan.work = product->tiles(pipeline->tile);
  plan.launch = pipeline->launch(*product, request.machine);
  plan.emit = [body, product, pipeline = *pipeline](KernelBuilder &b) {
    emitGemm(CudaBuilder::of(b), body, *product, pipeline);
  };
  return plan;
}

/// The pipeline of a kernel is no root, nor is a norm that the kernel computes.
static SmallVector<Operation *> computedBy(Operation *root) {
  SmallVector<Operation *> all = normBefore(root);
  llvm::append_range(all, innerOpsOf(root));
  for (auto pipeline : root->getBlock()->getOps<PipelineOp>())
    all.push_back(pipeline);
  return all;
}

void dmxc::cuda::registerGemm(KernelTable &table) {
  auto add = [&]<typename Op>() {
    KernelRow row = plainRow(Op::getOperationName());
    row.plan = planProduct;
    row.computes = computedBy;
    table.add<Op>(row);
  };
  add.operator()<dmir::MatMulOp>();
  add.operator()<dmir::ConvOp>();
}

static RegionBody bodyOf(Block *block) {
  RegionBody body;
  body.block = block;
  for (Operation &op : *block)
    if (Contraction::is(&op))
      body.root = &op;
  return body;
}

namespace {

/// A region's product, and how it can be computed.
struct RegionProduct {
  RegionBody body;
  SharedProduct product; ///< null where the root is none
  std::optional<FewRows> few;
  std::shared_ptr<const TileProduct> tiled;
  std::shared_ptr<const PatchProduct> patched;

  const hw::Machine &machine;

  RegionProduct(const hw::Machine &machine, dmir::RegionOp region) : body(bodyOf(region.getBlock())), machine(machine) {
    if (!body.root)
      return;
    auto constant = [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); };
    product = std::make_shared<GemmProduct>(body, constant);
    if (product->refusal().empty())
      product->look(region.getInputs());
    few = FewRows::of(body, constant);
    if (normBefore(body.root).empty())
      tiled = TileProduct::of(body.root);
    patched = PatchProduct::of(body.root, machine);
  }
  StringRef chosen(DictionaryAttr decided) const {
    return Ways(machine, *product, few, tiled, patched).chosen(body.root, decided);
  }
  bool isSpecialised(DictionaryAttr decided) const {
    return product && product->refusal().empty() && chosen(decided) == specialisedOf(body.root);
  }
  bool isFew(DictionaryAttr decided) const { return few && chosen(decided) == kByWarps; }
  bool isTiled(DictionaryAttr decided) const { return tiled && chosen(decided) == tiledOf(body.root); }
  bool isPatched(DictionaryAttr decided) const { return patched && chosen(decided) == kConvByPatches; }
  std::vector<Decision> ways() const;
};

/// Which way is free where there are several.
std::vector<Decision> RegionProduct::ways() const {
  Builder b(body.root->getContext());
  SmallVector<Attribute> names;
  std::string about;
  auto add = [&](bool can, StringRef name, const char *clause) {
    if (!can)
      return;
    names.push_back(b.getStringAttr(name));
    about += (about.empty() ? "" : ", ") + std::string(clause);
  };
  add(product->refusal().empty(), specialisedOf(body.root), "by tensor cores");
  add(few.has_value(), kByWarps, "by warps that share terms");
  add(tiled != nullptr, tiledOf(body.root), "by tiles in shared memory");
  add(patched != nullptr, kConvByPatches, "by patches in shared memory");
  add(normBefore(body.root).empty(), plainOf(body.root), "or an element a thread");
  if (names.size() < 2)
    return {};
  return {{strategy::kAlgorithm.str(), "", Domain::oneOf(names), b.getStringAttr(chosen({})), Effect::Order, about}};
}

} // namespace

std::vector<Decision> dmxc::cuda::gemmDecisions(const hw::Machine &machine, dmir::RegionOp region,
                                                DictionaryAttr decided) {
  RegionProduct of(machine, region);
  if (std::optional<FewQueries> few = of.body.root ? FewQueries::of(of.body.root) : std::nullopt)
    return few->preferred() == kQueriesByWarps ? few->decisions(machine, decided) : std::vector<Decision>();
  if (!of.product || (!of.product->refusal().empty() && !of.few && !of.tiled && !of.patched))
    return {};
  std::vector<Decision> free = of.ways();
  if (of.isSpecialised(decided))
    llvm::append_range(
        free, gemmDecisions(machine, of.product->nominalSizes(region.getBlock()), decided, region.getContext()));
  if (of.isFew(decided))
    llvm::append_range(free, of.few->decisions(machine, decided));
  if (of.isTiled(decided))
    llvm::append_range(free, of.tiled->decisions(machine, decided));
  if (of.isPatched(decided))
    llvm::append_range(free, of.patched->decisions(machine, decided));
  return free;
}

SmallVector<Operation *> dmxc::cuda::computedOnTheWay(const hw::Machine &machine, Operation *product, bool rounds) {
  if (waitsForMatrix(product))
    return normBefore(product);
  std::optional<FewQueries> few = FewQueries::of(product);
  if (!few)
    return {};
  StringRef name = few->preferred();
  return name == kQueriesByWarps || (rounds && name == kAttentionByCores && few->paysByCores(machine))
             ? innerOpsOf(product)
             : SmallVector<Operation *>();
}

bool dmxc::cuda::takesProducer(Operation *root, OpOperand &use, Operation *producer) {
  std::optional<FewQueries> few = FewQueries::of(root);
  return few && use.getOwner() == few->attention.scores && use.getOperandNumber() == 0 &&
         (producer->hasTrait<dmir::Elementwise>() || isa<dmir::ReshapeOp>(producer));
}

std::string dmxc::cuda::whyNotLeftOut(dmir::RegionOp region, const KernelPlan &plan) {
  auto products = region.getBlock()->getOps<dmir::MatMulOp>();
  StringRef fact = products.empty() ? StringRef() : unusedFact(*products.begin(), plan.skips);
  if (fact.empty())
    return "";
  if (plan.algorithm != kSpecialised)
    return "each thread sums all terms of its element";
  if (fact == "result")
    return "all tiles of the result are computed";
  return fact == "left" ? "steps are left out of packed right operands, what a run brings is multiplied whole"
                        : "less than a tenth of the steps of 64 terms of its tiles are zero, or it is no packed matrix";
}

std::string dmxc::cuda::explainGemm(const hw::Machine &machine, dmir::RegionOp region, DictionaryAttr decided) {
  RegionProduct of(machine, region);
  auto expected = [&](const auto &way) {
    return std::to_string(std::llround(way.clocks(machine, way.choose(machine, decided)))) + " clocks expected";
  };
  if (of.isFew(decided))
    return expected(*of.few);
  if (of.isTiled(decided))
    return expected(*of.tiled);
  if (of.isPatched(decided))
    return expected(*of.patched);
  if (!of.isSpecialised(decided))
    return {};
  std::string tiles =
      explainGemmTile(machine, of.product->nominalSizes(region.getBlock()), decided, region.getContext());
  return of.product->threadCopies().empty() ? tiles : tiles + "; without what threads copy";
}

Status dmxc::cuda::makePipeline(dlir::KernelOp kernel, const hw::Machine &machine) {
  RegionBody body = bodyOf(kernel.getBlock());
  DictionaryAttr strategy = kernel.getStrategy();
  if (!body.root || algorithmIn(strategy) != specialisedOf(body.root) || pipelineOf(body.block))
    return Status::ok();
  Result<SharedProduct> made = productOf(body, CudaRequest(machine, strategy));
  if (!made)
    return made.takeError();
  SharedProduct product = *made;
  const std::string node = "node '" + dmir::nodeName(body.root) + "': ";
  if (!product->refusal().empty())
    return modelError(node + "its strategy has the algorithm " + algorithmIn(strategy).str() + ", but " +
                      product->refusal() + "; leave the strategy out and it is derived");
  Result<GemmTile> tile = readGemmTile(machine, strategy.get(kProduct), kProduct, kernel.getContext());
  if (!tile)
    return modelError(node + tile.error().message);
  OpBuilder b(kernel);
  writePipeline(b, *product, Pipeline(*product, *tile, machine));
  NamedAttrList rest(strategy); // what the pipeline says now
  rest.erase(kProduct);
  rest.erase(kThreadCopies);
  kernel.setStrategyAttr(rest.getDictionary(kernel.getContext()));
  return Status::ok();
}

Result<std::optional<Dim>> dmxc::cuda::tilesOf(dlir::KernelOp kernel, const hw::Machine &machine) {
  PipelineOp text = pipelineOf(kernel.getBlock());
  RegionBody body = bodyOf(kernel.getBlock());
  if (!text || !body.root)
    return std::optional<Dim>();
  Result<SharedProduct> made = productOf(body, CudaRequest(machine, kernel.getStrategy()));
  if (!made)
    return made.takeError();
  SharedProduct product = *made;
  if (!product->refusal().empty())
    return std::optional<Dim>();
  Result<Pipeline> pipeline = readPipeline(text, *product, machine);
  if (!pipeline)
    return pipeline.takeError();
  return std::optional<Dim>(product->tiles(pipeline->tile));
}
