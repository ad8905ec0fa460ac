//===- Gemm.cpp - which products tensor cores compute -------------------------===//

#include "Gemm.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/DecisionsMade.h"
#include "dmxc/Target/TargetBackend.h"

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

/// The names of both ways.
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

/// The algorithm that a product has where nothing is decided.
static StringRef preferredAlgorithm(const GemmProduct &product) {
  return rowsOf(product.op) > kFewRows ? specialisedOf(product.op) : plainOf(product.op);
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

static Result<KernelPlan> planPlain(const RegionBody &body, const PlanRequest &request, const GemmProduct &product,
                                    bool decided) {
  Result<KernelPlan> plan = plainRow(body.root->getName().getStringRef()).plan(body, request);
  StringRef why = !product.refusal().empty() ? StringRef(product.refusal())
                  : decided                  ? StringRef(kDecidedPlain)
                                             : StringRef("its rows are few");
  if (plan && product.isHalf())
    plan->own.set(kWhyPlain, StringAttr::get(body.root->getContext(), why));
  return plan;
}

/// How a region is computed, while its strategy is chosen.
static Result<KernelPlan> chooseProduct(const RegionBody &body, const CudaRequest &request, GemmProduct &product) {
  StringRef asked = algorithmIn(request.decided), name = specialisedOf(body.root);
  if (!product.refusal().empty() || (asked.empty() ? preferredAlgorithm(product) : asked) != name)
    return planPlain(body, request, product, !asked.empty());
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

static Result<KernelPlan> planProduct(const RegionBody &body, const PlanRequest &given) {
  const CudaRequest &request = CudaRequest::of(given);
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
    return planPlain(body, request, *product, /*decided=*/false);
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

/// The pipeline of a kernel is no root.
static SmallVector<Operation *> pipelinesBeside(Operation *root) {
  SmallVector<Operation *> all;
  for (auto pipeline : root->getBlock()->getOps<PipelineOp>())
    all.push_back(pipeline);
  return all;
}

void dmxc::cuda::registerGemm(KernelTable &table) {
  auto add = [&]<typename Op>() {
    KernelRow row = plainRow(Op::getOperationName());
    row.plan = planProduct;
    row.computes = pipelinesBeside;
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

/// The product of a region that tensor cores can compute; null: none.
static SharedProduct productIn(dmir::RegionOp region) {
  RegionBody body = bodyOf(region.getBlock());
  if (!body.root)
    return nullptr;
  auto product = std::make_shared<GemmProduct>(
      body, [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); });
  if (product->refusal().empty())
    product->look(region.getInputs());
  return product->refusal().empty() ? product : nullptr;
}

/// Whether they do, as decided or by default.
static bool isSpecialised(const GemmProduct &product, DictionaryAttr decided) {
  StringRef asked = algorithmIn(decided);
  return (asked.empty() ? preferredAlgorithm(product) : asked) == specialisedOf(product.op);
}

std::vector<Decision> dmxc::cuda::gemmDecisions(const hw::Machine &machine, dmir::RegionOp region,
                                                DictionaryAttr decided) {
  SharedProduct product = productIn(region);
  if (!product)
    return {};
  Builder b(region.getContext());
  std::vector<Decision> free{
      {strategy::kAlgorithm.str(), "",
       Domain::oneOf({b.getStringAttr(specialisedOf(product->op)), b.getStringAttr(plainOf(product->op))}),
       b.getStringAttr(preferredAlgorithm(*product)), Effect::Order, "by tensor cores, or an element a thread"}};
  if (isSpecialised(*product, decided))
    llvm::append_range(free,
                       gemmDecisions(machine, product->nominalSizes(region.getBlock()), decided, region.getContext()));
  return free;
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
  SharedProduct product = productIn(region);
  if (!product || !isSpecialised(*product, decided))
    return {};
  std::string tiles = explainGemmTile(machine, product->nominalSizes(region.getBlock()), decided, region.getContext());
  return product->threadCopies().empty() ? tiles : tiles + "; without what threads copy";
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
