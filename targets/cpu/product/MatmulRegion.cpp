//===- MatmulRegion.cpp - regions around dmir.matmul --------------------------===//
//
// Operands are strided views of buffers (or a packed constant), so that transposes and slices cost
// nothing; the epilogue is evaluated on vectors of the product while they are in registers. A product
// whose operands are no views, or of a type without vector arithmetic, is computed element by element.
//
//===----------------------------------------------------------------------===//

#include "MatmulRegion.h"

#include "GemmDecisions.h"
#include "GemmTile.h"
#include "MatmulProduct.h"
#include "MatmulRanges.h"
#include "targets/cpu/CompileKernels.h"
#include "targets/cpu/attention/Attention.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

bool dmxc::cpu::heavyEpilogue(const RegionBody &body) {
  SmallVector<Operation *> ops;
  for (Operation &op : *body.block)
    if (&op != body.root)
      ops.push_back(&op);
  return heavyEpilogue(ops);
}

bool dmxc::cpu::heavyEpilogue(ArrayRef<Operation *> ops) {
  int64_t weight = 0;
  for (Operation *op : ops) {
    if (!op->hasTrait<dmir::Elementwise>())
      continue;
    bool cheap = mlir::isa<dmir::AddOp, dmir::SubOp, dmir::MulOp, dmir::ReluOp, dmir::MaxOp, dmir::MinOp,
                           dmir::SelectOp, dmir::MaskOp, dmir::CompareOp, dmir::NegOp, dmir::AbsOp>(op);
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    cheap |= mlir::isa<dmir::DivOp>(op) && mlir::isa<FloatType>(element); // slow, but one instruction
    weight += cheap && element.getIntOrFloatBitWidth() != 16 ? 1 : 8;
  }
  return weight > 4;
}

void dmxc::cpu::mapRange(CpuBuilder &b, Dim nominal, Dim own) {
  if (nominal == own)
    return;
  auto map = [&](Value item) { return b.floorDiv(b.mulC(item, own), b.idx(Dim::max(nominal, 1))); };
  b.setRange(map(b.begin()), map(b.end()));
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

namespace {

class MatmulEmitter {
public:
  MatmulEmitter(CpuBuilder &b, const RegionBody &body, const MatmulProduct &product, const ProductRanges &ranges)
      : b(b), product(product), ranges(ranges), e(b, body.block), writer(e, body) {
    Value result = product.result();
    bool plain = writer.acceptsJoined();
    for (unsigned i = 0; i < body.results.size(); ++i)
      plain &= !dmir::layoutOf(body.resultType(i));
    if (plain)
      rowAxis = joinedAxis(writer.values(), result, 0, product.batchDims.size());
  }

  /// `tiles`: the level's, of the strategy.
  void direct(Dim nominalItems, DictionaryAttr tiles);

private:
  void write(Value batch, Value m, Index n, Value value);

  CpuBuilder &b;
  const MatmulProduct &product;
  const ProductRanges &ranges;
  ElementExpr e;
  ResultWriter writer;
  std::optional<unsigned> rowAxis; ///< carries the row through all batch items, where the epilogue allows that
};

void MatmulEmitter::write(Value batch, Value m, Index n, Value value) {
  e.forget();
  e.bindValue(product.result(), fromAccumulator(e, value, product.element));
  Indices index = product.rowIndex(e, rowAxis, batch, m);
  index.push_back(n);
  writer.write(index);
}

void MatmulEmitter::direct(Dim nominalItems, DictionaryAttr given) {
  GemmKernel spec = product.kernel();
  GemmTiles tiles = readGemmTiles(given, spec, b.isa());
  mapRange(b, nominalItems, gemmWorkItems(spec, tiles));
  GemmMatrix lhs = product.left(b), rhs = product.right(b);
  Value scales;
  if (product.weights == WeightFormat::S8)
    scales = b.elementPtr(b.getI8Type(), rhs.base, b.idx(scalesOffset(spec.depth(), spec.columns())));
  GemmCallbacks callbacks;
  callbacks.store = [&](Value batch, Value m, Value n, Value value, Value mask) {
    auto vector = dyn_cast<VectorType>(value.getType());
    int64_t lanes = vector ? vector.getNumElements() : 1;
    if (scales) // there are some for whole panels, so no lane is beyond them
      value = arith::MulFOp::create(b, value, b.load(spec.accType, scales, n, lanes));
    ElementExpr::Lanes scope(e, lanes, mask);
    write(batch, m, e.at(n, lanes, lanes > 1), value);
  };
  if (ranges.any())
    callbacks.depths = [&](const GemmBox &box) { return ranges.depths(b, product, box); };
  emitGemm(b, spec, tiles, lhs, rhs, callbacks);
}

bool isF32(const MatmulProduct &product) {
  return product.element.isF32() && product.lhsElement.isF32() && product.rhsElement.isF32();
}

/// Whether a product waits for its weights: its rows are few, at least in some runs, and the weights outgrow a core's
/// nearest cache.
bool waitsForWeights(Block *block, const MatmulProduct &product) {
  constexpr int64_t fewRows = 16;
  return isF32(product) && smallest(block, product.m) <= fewRows &&
         smallest(block, product.batch) * smallest(block, product.m) <= fewRows &&
         !IsaLevel::nominal().caches.isNear(*product.k.known(), *product.n.known());
}

/// How a packing keeps the weights; `fewer` bits where they are waited for and nothing else is decided.
WeightFormat weightFormat(Block *block, const MatmulProduct &product, Packing packing, WeightFormat fewer) {
  if (packing == Packing::Plain || packing == Packing::Runs || !isF32(product))
    return WeightFormat::Kept;
  if (packing == Packing::BF16 || packing == Packing::S8)
    return packing == Packing::BF16 ? WeightFormat::BF16 : WeightFormat::S8;
  const bool keeps = product.op->hasAttr(dmir::kKeepsPrecisionAttr);
  return !keeps && waitsForWeights(block, product) ? fewer : WeightFormat::Kept;
}

} // namespace

static DictionaryAttr formOf(DictionaryAttr strategy, unsigned buffer) {
  auto packed = strategy ? strategy.getAs<DictionaryAttr>(strategy::kPacked) : DictionaryAttr();
  return packed ? packed.getAs<DictionaryAttr>(std::to_string(buffer)) : DictionaryAttr();
}

DictionaryAttr dmxc::cpu::packedRhsForm(dmir::MatMulOp op, DictionaryAttr strategy) {
  std::optional<StridedView> view = stridedView(op.getRhs());
  return view ? formOf(strategy, view->buffer) : DictionaryAttr();
}

/// Packs block weights, if they are constants that nothing else in the region reads; false where they are not.
static bool packBlocks(const RegionBody &body, const Choice &choice, MatmulProduct &product, KernelPlan &plan) {
  const BlockWeights &weights = *product.blocks;
  bool packs = llvm::all_of(weights.buffers(), [&](unsigned buffer) {
    bool isPacked = choice.strategy ? bool(formOf(choice.strategy, buffer)) : choice.constant(buffer);
    return isPacked && body.block->getArgument(buffer).hasOneUse() && product.lhs->buffer != buffer;
  });
  product.packedRhs = packs && choice.packing != Packing::None;
  if (product.packedRhs)
    for (NamedAttribute form : blockForms(weights, body.root->getContext()))
      plan.packed.set(form.getName(), form.getValue());
  return product.packedRhs;
}

/// What is kept of a constant right operand of which zeros are left out: as the strategy says, or where that pays.
static std::optional<WeightRuns> runsOf(const MatmulProduct &product, const Choice &choice, Packing packing,
                                        DictionaryAttr chosen) {
  const bool asked = packing == Packing::Runs;
  if (!product.keepsElements() || !(asked || packing == Packing::Fastest))
    return std::nullopt;
  if (choice.strategy)
    return asked ? runsOfForm(chosen) : std::nullopt;
  if (!asked && !choice.usesRanges(product.op->getBlock(), /*exact=*/false))
    return std::nullopt;
  std::optional<Tensor> constant = choice.constantOf(product.rhs->buffer);
  std::optional<WeightRuns> runs =
      constant ? findRuns(product.rightMatrix(constant->data()), product.runColumns(), /*quickly=*/!asked)
               : std::nullopt;
  return runs && (asked || runs->pay(*product.k.known(), *product.n.known())) ? runs : std::nullopt;
}

/// A constant right operand of one matrix is packed, if nothing else in the region reads it.
static void packRight(const RegionBody &body, const Choice &choice, MatmulProduct &matrix, KernelPlan &plan) {
  MatmulProduct *product = &matrix;
  DictionaryAttr strategy = choice.strategy;
  auto chosen = packedRhsForm(cast<dmir::MatMulOp>(product->op), strategy);
  bool oneMatrix = llvm::all_of(product->rhsBatch, [](Dim s) { return s.is(0); });
  bool alone =
      body.block->getArgument(product->rhs->buffer).hasOneUse() && product->lhs->buffer != product->rhs->buffer;
  Packing packing = !strategy ? choice.packing : packingOfForm(chosen ? formName(chosen) : "");
  bool mayPack =
      strategy || (oneMatrix && alone && product->hasConstantShape() && choice.constant(product->rhs->buffer));
  product->packedRhs = mayPack && packing != Packing::None;
  product->mayGroup = packing != Packing::Plain;
  if (product->packedRhs) {
    product->weights = weightFormat(body.block, *product, packing, choice.weights);
    product->runs = runsOf(*product, choice, packing, chosen);
    DictionaryAttr form = product->packedForm();
    plan.packed.set(std::to_string(product->rhs->buffer), form);
    if (product->weights != WeightFormat::Kept || product->runs)
      plan.savedBytes = *product->k.known() * *product->n.known() * (product->rhsElement.getIntOrFloatBitWidth() / 8) -
                        form.getAs<IntegerAttr>("size").getInt();
  }
}

/// What a plan's kernel does not multiply. Ranges and runs leave out parts of their own.
static void leaveOut(KernelPlan &plan, const MatmulProduct &product, const ProductRanges &ranges) {
  Dim all = product.multiplyAdds() * 2;
  if (product.runs)
    plan.savedOperations =
        product.m * product.batch * 2 * product.runs->leftOut(*product.k.known(), *product.n.known());
  std::optional<double> part = ranges.any() ? ranges.part(product) : std::nullopt;
  if (std::optional<int64_t> whole = (all - plan.savedOperations).known(); whole && part)
    plan.savedOperations += static_cast<int64_t>(std::round(static_cast<double>(*whole) * (1 - *part)));
  for (auto [skips, what] : {std::pair(ranges.left.has_value(), "left"),
                             {ranges.right || product.runs, "right"},
                             {ranges.result.has_value(), "result"}})
    if (skips)
      plan.skips.push_back(what);
}

/// The micro-kernel that a product calls: that of its strategy, else the first of those to choose from that fits it.
static Status chooseMicroKernel(MatmulProduct &product, const Choice &choice, bool hasRanges) {
  const GemmKernel spec = product.kernel();
  SmallVector<Attribute> candidates(choice.micros.begin(), choice.micros.end());
  if (choice.strategy)
    candidates.assign(1, choice.strategy.get(strategy::kMicroKernel));
  for (Attribute candidate : candidates) {
    if (!candidate)
      continue;
    Result<MicroKernel> micro = MicroKernel::of(candidate);
    std::string wrong = micro ? whyNoMicroKernel(spec, *micro).value_or("") : micro.error().message;
    if (wrong.empty() && hasRanges)
      wrong = "zeros of its operands are left out";
    if (!wrong.empty() && choice.strategy)
      return modelError("'ukernel' of its strategy would not do: " + wrong + "; leave it out");
    if (wrong.empty() && (choice.strategy || micro->checkLevels(choice.levelsOf()))) {
      product.micro = *micro;
      break;
    }
  }
  return Status::ok();
}

static Result<KernelPlan> planProduct(const RegionBody &body, const Choice &choice) {
  auto product = std::make_shared<MatmulProduct>(cast<dmir::MatMulOp>(body.root), heavyEpilogue(body));
  KernelPlan plan;
  MLIRContext *context = body.root->getContext();
  if (!product->direct() || (product->blocks && !packBlocks(body, choice, *product, plan)))
    return planPlainProduct(body, choice, "matmul-generic", /*chained=*/true);
  if (product->rhs)
    packRight(body, choice, *product, plan);
  if (auto form = packedRhsForm(cast<dmir::MatMulOp>(body.root), choice.strategy);
      form && formName(form) == kRunsForm && !product->runs)
    return modelError(
        "'packed' of a strategy has the form 'runs' without its columns (16, 32 or 64), runs and rows, or "
        "for what it does not hold; leave 'packed' out, and it is derived");
  product->units = choice.unitsFor(product->pairs());
  const GemmKernel planned = product->kernel();
  if (Units used = planned.usedUnits(); used.any() || (choice.namesUnits && (planned.pairs || planned.fours)))
    plan.own.set(kUnits, unitNames(used, context));
  plan.algorithm = product->bytes       ? "matmul-blocks8" + kQuads.str()
                   : product->blocks    ? "matmul-blocks" + std::to_string(product->blocks->format.bits)
                   : product->fours()   ? "matmul-quads"
                   : product->pairs()   ? kMatmulPairs.str()
                   : product->runs      ? "matmul-runs"
                   : product->packedRhs ? "matmul-packed"
                                        : "matmul";
  if (product->weights != WeightFormat::Kept)
    plan.algorithm += "-" + formatName(product->weights).str();
  const ProductRanges ranges = product->bytes ? ProductRanges() : ProductRanges::of(*product, choice);
  if (ranges.any())
    plan.algorithm += kernels::kRanges;
  if (Status s = chooseMicroKernel(*product, choice, ranges.any()); !s)
    return s.takeError();
  if (product->micro) {
    plan.algorithm += "+" + product->micro->name().str();
    plan.own.set(strategy::kMicroKernel, product->micro->attr());
  }
  leaveOut(plan, *product, ranges);
  planGemm(plan, product->kernel(), choice);
  plan.emit = [body, product, ranges, items = plan.work, strategy = choice.strategy](KernelBuilder &b) {
    CpuBuilder &builder = CpuBuilder::of(b);
    MatmulEmitter(builder, body, *product, ranges).direct(items, levelTiles(strategy, builder.isa()));
  };
  return plan;
}

static Result<KernelPlan> planMatmul(const RegionBody &body, const PlanRequest &request) {
  const Choice &choice = Choice::of(request);
  std::optional<Attention> attention = matchAttention(body.root);
  if (attention)
    return planAttention(body, *attention, choice);
  return planProduct(body, choice);
}

static Dim operations(Operation *op) {
  return dmir::dimsOf(op->getOperand(0)).back() * 2 * dmir::elementsOf(op->getResult(0).getType());
}

bool dmxc::cpu::takesFewBits(Operation *root, Operation *producer) {
  if (!mlir::isa<dmir::DequantizeOp>(producer) || !cpuKernels().computedWith(root).empty() ||
      !llvm::all_of(producer->getOperands(), [](Value v) { return dmir::isConstant(v); }))
    return false;
  std::optional<BlockWeights> weights = matchBlockWeights(root->getOperand(1));
  return weights && weights->op == producer && weights->grouped() == mlir::isa<dmir::GroupedMatMulOp>(root) &&
         typeOf(root->getOperand(0)).getElementType() == typeOf(root->getOperand(1)).getElementType();
}

/// Whether a value is computed from another one by ops of one operand.
static bool goesThrough(Value value, Operation *op) {
  for (Operation *at = value.getDefiningOp(); at;
       at = at->getNumOperands() ? at->getOperand(0).getDefiningOp() : nullptr)
    if (at == op)
      return true;
  return false;
}

/// Whether an attention rounds what it reads. Each block of its rows copies keys and values: for many they are rounded
/// before.
static bool takesRounding(Operation *root, dmir::CastOp cast) {
  constexpr int64_t fewRows = 64;
  std::optional<Attention> attention = matchAttention(root);
  if (!attention || !llvm::is_contained(attention->casts, cast))
    return false;
  SmallVector<Dim> scores = dmir::dimsOf(attention->scores.getResult());
  bool copied = elementOf(cast.getInput()).isF32() && !goesThrough(attention->scores.getLhs(), cast);
  return !copied || scores[scores.size() - 2].valueOr(1) <= fewRows;
}

/// Whether a product rounds the rows that it reads to the integers of its weights' blocks.
static bool takesRows(Operation *root, dmir::RoundBlocksOp rounding) {
  std::optional<BlockWeights> weights = matchBlockWeights(root->getOperand(1));
  return weights && root->getOperand(0) == rounding.getResult() && weights->op->hasOneUse() &&
         weights->multipliesBytes(static_cast<int64_t>(rounding.getBlock())) && takesFewBits(root, weights->op);
}

/// Numbers of few bits, those that are rounded to them, and numbers that attention rounds.
static bool takes(Operation *root, Operation *producer) {
  if (auto rounding = dyn_cast<dmir::RoundBlocksOp>(producer))
    return takesRows(root, rounding);
  auto cast = dyn_cast<dmir::CastOp>(producer);
  return cast ? takesRounding(root, cast) : takesFewBits(root, producer);
}

void dmxc::cpu::registerMatmul(KernelTable &table) {
  table.add<dmir::MatMulOp>({.plan = planMatmul,
                             .readsViews = true,
                             .takes = takes,
                             .epilogue = true,
                             .operations = operations,
                             .computes = innerOpsOf});
}
