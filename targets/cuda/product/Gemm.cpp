//===- Gemm.cpp - which products tensor cores compute -------------------------===//

#include "Ways.h"
#include "attention/FewQueries.h"

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

int64_t dmxc::cuda::rowsOf(Operation *product, int64_t together) {
  if (auto conv = dyn_cast<dmir::ConvOp>(product)) {
    SmallVector<Dim> result = dmir::dimsOf(conv.getResult());
    int64_t outputs = nominal(conv->getBlock(), result[1]) / static_cast<int64_t>(conv.getGroups()) * together;
    return std::min(outputs, nominal(conv->getBlock(), dmir::product(ArrayRef(result).drop_front(2))));
  }
  auto op = cast<dmir::MatMulOp>(product);
  SmallVector<Dim> left = dmir::dimsOf(op.getLhs());
  left.pop_back();
  if (dmir::dimsOf(op.getRhs()).size() > 2 && !left.empty())
    left.erase(left.begin(), left.end() - 1);
  return nominal(op->getBlock(), dmir::product(left));
}

/// The packed form of a buffer in a strategy; null where it has none.
static DictionaryAttr formOf(DictionaryAttr strategy, unsigned buffer) {
  auto packed = strategy.getAs<DictionaryAttr>(strategy::kPacked);
  return packed ? packed.getAs<DictionaryAttr>(std::to_string(buffer)) : DictionaryAttr();
}
static bool hasForm(DictionaryAttr strategy, unsigned buffer) { return static_cast<bool>(formOf(strategy, buffer)); }

/// The packed form of a right operand without steps of zeros; null of others.
static DictionaryAttr formOfSteps(const GemmProduct &product, DictionaryAttr strategy) {
  auto form = strategy && product.packsRight ? formOf(strategy, product.rhs->buffer) : DictionaryAttr();
  auto name = form ? form.getAs<StringAttr>("form") : StringAttr();
  return name && name.getValue() == KeptSteps::kForm ? form : DictionaryAttr();
}

static Result<SharedProduct> productOf(const RegionBody &body, const CudaRequest &request) {
  auto product = std::make_shared<GemmProduct>(body, [&](unsigned operand) {
    return request.strategy ? hasForm(request.strategy, operand) : request.constant && request.constant(operand);
  });
  if (!product->refusal().empty())
    return product;
  if (product->taps && request.strategy &&
      formOf(request.strategy, product->left.buffer) != product->taps->write(body.root->getContext()))
    return modelError("node '" + dmir::nodeName(body.root) +
                      "': the packed form of its weights in its strategy is not the one that its kernel reads; leave "
                      "the strategy out and it is derived");
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
  if (product.taps)
    plan.packed.set(std::to_string(product.left.buffer), product.taps->write(context));
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

SmallVector<Operation *> dmxc::cuda::computedOnTheWay(const hw::Machine &machine, Operation *product, bool rounds) {
  if (waitsForMatrix(product))
    return normBefore(product);
  std::optional<FewQueries> few = FewQueries::of(product);
  if (!few)
    return {};
  return few->preferred() == kQueriesByWarps || isForCores(*few, machine, rounds) ? innerOpsOf(product)
                                                                                  : SmallVector<Operation *>();
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
