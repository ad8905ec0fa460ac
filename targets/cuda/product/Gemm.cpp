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

static SharedProduct productOf(const RegionBody &body, const CudaRequest &request) {
  return std::make_shared<GemmProduct>(body, [&](unsigned operand) {
    return request.strategy ? hasForm(request.strategy, operand) : request.constant && request.constant(operand);
  });
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

/// The tile that a strategy has or, without one, that is chosen.
static Result<GemmTile> tileOf(const RegionBody &body, const CudaRequest &request, const GemmProduct &product) {
  if (request.strategy)
    return readGemmTile(request.machine, request.strategy.get(kProduct), kProduct, body.root->getContext());
  DecisionsMade::check("a tile of a product");
  return decidedGemmTile(request.machine, product.nominalSizes(body.block), request.decided, body.root->getContext());
}

static Launch launchOf(const GemmProduct &product, const GemmTile &tile, const hw::Machine &machine) {
  Launch launch{Dim::min(product.tiles(tile), machine.multiprocessors),
                tile.threads(),
                tile.sharedBytes(),
                {},
                tile.movesRegisters()};
  if (product.left.byThreads.empty())
    launch.maps.push_back(product.map(product.left, tile.rows));
  if (product.right.byThreads.empty())
    launch.maps.push_back(product.map(product.right, tile.columns));
  return launch;
}

static Result<KernelPlan> planProduct(const RegionBody &body, const PlanRequest &given) {
  const CudaRequest &request = CudaRequest::of(given);
  SharedProduct product = productOf(body, request);
  StringRef asked = algorithmIn(request.strategy ? request.strategy : request.decided), name = specialisedOf(body.root);
  bool specialised = asked == name || (!request.strategy && asked.empty() && product->refusal().empty() &&
                                       preferredAlgorithm(*product) == name);
  if (!specialised || (!request.strategy && !product->refusal().empty()))
    return planPlain(body, request, *product, !asked.empty());
  const std::string node = "node '" + dmir::nodeName(body.root) + "': ";
  if (!product->refusal().empty())
    return modelError(node + "its strategy has the algorithm " + name.str() + ", but " + product->refusal() +
                      "; leave the strategy out and it is derived");
  Result<GemmTile> tile = tileOf(body, request, *product);
  if (!tile)
    return modelError(node + tile.error().message);
  KernelPlan plan(name.str(), WorkPlan());
  MLIRContext *context = body.root->getContext();
  plan.work = product->tiles(*tile);
  plan.launch = launchOf(*product, *tile, request.machine);
  plan.own.set(kProduct, writeTile(*tile, context));
  if (std::string copies = product->threadCopies(); !copies.empty())
    plan.own.set(kThreadCopies, StringAttr::get(context, copies));
  if (product->packsRight)
    plan.packed.set(std::to_string(product->right.buffer), product->packedForm(context));
  plan.emit = [body, product, tile = *tile](KernelBuilder &b) { emitGemm(CudaBuilder::of(b), body, *product, tile); };
  return plan;
}

void dmxc::cuda::registerGemm(KernelTable &table) {
  auto add = [&]<typename Op>() {
    KernelRow row = plainRow(Op::getOperationName());
    row.plan = planProduct;
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

std::vector<Decision> dmxc::cuda::gemmDecisions(const hw::Machine &machine, dmir::RegionOp region,
                                                DictionaryAttr decided) {
  RegionBody body = bodyOf(region.getBlock());
  if (!body.root)
    return {};
  GemmProduct product(body, [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); });
  if (!product.refusal().empty())
    return {};
  Builder b(region.getContext());
  StringRef preferred = preferredAlgorithm(product), asked = algorithmIn(decided);
  std::vector<Decision> free{
      {strategy::kAlgorithm.str(), "",
       Domain::oneOf({b.getStringAttr(specialisedOf(body.root)), b.getStringAttr(plainOf(body.root))}),
       b.getStringAttr(preferred), Effect::Order, "by tensor cores, or an element a thread"}};
  if ((asked.empty() ? preferred : asked) == specialisedOf(body.root))
    llvm::append_range(free, gemmDecisions(machine, product.nominalSizes(body.block), decided, region.getContext()));
  return free;
}
