//===- StageBands.cpp - loops over bands of rows to tasks -----------------===//
#include "../ElementFunctions.h"
#include "../KernelFunctions.h"
#include "../Views.h"
#include "StageWriter.h"
#include "TileLoops.h"

#include "targets/corsair/decide/Ops.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// The body of a loop over bands: a product that makes scores, ops on strips, a product that weighs values.
struct StageWriter::BandBody {
  affine::AffineForOp loop;
  SmallVector<std::pair<affine::AffineForOp, TileLoops>, 2> products;
  SmallVector<lldmir::SimdOp> units;
  llvm::DenseMap<Value, int> strips;
};

Status StageWriter::bands(affine::AffineForOp loop) {
  if (!loop.hasConstantBounds() || loop.getConstantLowerBound() != 0 || loop.getStepAsInt() != 1 ||
      loop.getConstantUpperBound() < 1)
    return fail(loop, "runs not from 0 by 1 to a constant over bands");
  batch.push_back(loop);
  BandBody body;
  body.loop = loop;
  Status status = Status::ok();
  for (Operation &op : loop.getBody()->without_terminator()) {
    status = addTo(body, &op);
    if (!status)
      break;
  }
  if (status)
    status = write(body);
  batch.pop_back();
  return status;
}

void StageWriter::finishBands() {
  if (banded.empty())
    return;
  task(banded.front().softmax);
  multiplyBands(banded);
  banded.clear();
}

/// Whether all loads of a buffer, and of views of it, are in the last loops of a loop over bands.
static bool isReadBehindScores(Value buffer) {
  return !buffer.use_empty() && llvm::all_of(buffer.getUsers(), [](Operation *user) {
    if (isBufferView(user) || isa<affine_ext::TilesOp>(user))
      return isReadBehindScores(user->getResult(0));
    Operation *nest = user;
    while (nest && !nest->getParentOp()->hasAttr(lldmir::kBandsAttr))
      nest = isa<gpu::GPUFuncOp>(nest->getParentOp()) ? nullptr : nest->getParentOp();
    for (Operation *next = nest ? nest->getNextNode() : nullptr; next; next = next->getNextNode())
      if (isa<affine::AffineForOp>(next))
        return false;
    return nest && isa<affine::AffineLoadOp>(user);
  });
}

bool StageWriter::isValuesOfBands(BlockArgument argument) {
  for (BlockArgument inside : kernel.getArguments())
    if (outside(inside) == argument)
      return isReadBehindScores(inside);
  return false;
}

Status StageWriter::addTo(BandBody &body, Operation *op) {
  if (isa<memref::SubViewOp, affine_ext::TilesOp>(op))
    return op->getOperand(0).getDefiningOp() && body.strips.contains(op->getOperand(0)) ? Status::ok() : view(op);
  if (auto strip = dyn_cast<memref::AllocOp>(op)) {
    const auto number = static_cast<int>(body.strips.size());
    body.strips[strip] = number;
    return Status::ok();
  }
  if (auto unit = dyn_cast<lldmir::SimdOp>(op)) {
    if (body.products.size() != 1 || unit.getOuts().size() != 1 || !body.strips.contains(unit.getOuts()[0]))
      return fail(op, "fills no strip between the two products of a band");
    body.units.push_back(unit);
    return Status::ok();
  }
  if (auto inner = dyn_cast<affine::AffineForOp>(op)) {
    TileLoops loops;
    if (!loops.follow(inner))
      return fail(loops.at, loops.problem);
    body.products.push_back({inner, std::move(loops)});
    return body.products.size() <= 2 ? Status::ok() : fail(op, "is a third product of a band");
  }
  return isa<affine::AffineApplyOp>(op) ? Status::ok() : fail(op, "is not known in a band");
}

Result<BandTensor> StageWriter::bandTensor(const BandBody &body, Operation *user, Value memref, bool ofRows) {
  BandTensor tensor;
  Value source = memref;
  if (auto tiles = memref.getDefiningOp<affine_ext::TilesOp>())
    source = tiles.getOperand();
  if (auto strip = body.strips.find(source); strip != body.strips.end()) {
    tensor.strip = strip->second;
    return tensor;
  }
  Result<DeviceTensor> at = tensorOf(user, memref);
  if (!at)
    return at.takeError();
  if (at->rank() > 2)
    return fail(user, "computes a band with what are no matrices").takeError();
  tensor.at = *at;
  SmallVector<int64_t> steps = trips.lookup(memref);
  steps.resize(batch.size(), 0);
  tensor.band = steps.pop_back_val();
  tensor.batch = steps;
  const int64_t row = at->rank() == 2 ? at->strides[0] : 0;
  if (ofRows ? at->shape.front() != kBandRows || tensor.band != kBandRows * row : tensor.band != 0)
    return fail(user, "has rows in a band that are another's too, or none of its own").takeError();
  return tensor;
}

Result<Spread> StageWriter::bandSpread(affine::AffineForOp loop, const TileLoops &loops, const Spread &product) {
  Result<lldmir::PlanAttr> given = spreadOf(loops, nullptr);
  Result<Spread> spread = given ? fitted(loops, product, *given) : given.takeError();
  if (!spread)
    return spread;
  if (!loops.epilogues.empty())
    return fail(loops.epilogues.front().back().op, "is computed of a product's tiles, where bands compute strips")
        .takeError();
  if (loops.terms.size() != 1 || !(loops.terms.front() == TileTerms::of(*spread, false)) ||
      !orderOf(loops, *spread).isWhole())
    return fail(loop, "computes the tiles of a band, or adds up their terms, in another order than that of K, num_imc "
                      "blocks at once")
        .takeError();
  return spread;
}

/// A product's operands and its plan; the strip that it reads or fills is one of 64 x `columns`.
Status StageWriter::bandProduct(const BandBody &body, unsigned number, int64_t columns, BandedScores &job) {
  auto &[loop, loops] = body.products[number];
  Result<BandTensor> left = bandTensor(body, loop, loops.left, true),
                     right = bandTensor(body, loop, loops.right, false), out = bandTensor(body, loop, loops.out, true);
  for (Result<BandTensor> *each : {&left, &right, &out})
    if (!*each)
      return each->takeError();
  for (const Result<BandTensor> *each : {&left, &right, &out})
    if ((*each)->at.kind != hw::ElemKind::F16) // of a strip it says nothing
      return fail(loop, "multiplies what are no matrices of f16");
  const bool makes = number == 0;
  if (right->strip >= 0 || right->at.rank() != 2 || (left->strip >= 0) == makes || (out->strip >= 0) != makes)
    return fail(loop, "is no product of a band's rows");
  Spread product = Spread::ofSizes(kBandRows, right->at.shape[1], right->at.shape[0]);
  product.sharesBand = !makes;
  if ((makes ? product.n : product.k) != columns ||
      (makes ? left->at.shape[1] != product.k : out->at.shape[1] != product.n))
    return fail(loop, "multiplies matrices that do not fit each other");
  Result<Spread> spread = bandSpread(loop, loops, product);
  if (!spread)
    return spread.takeError();
  (makes ? job.plan : job.weightedPlan) = *spread;
  (makes ? job.query : job.result) = makes ? *left : *out;
  (makes ? job.keys : job.values) = *right;
  return Status::ok();
}

Status StageWriter::bandUnit(const BandBody &body, lldmir::SimdOp op, BandedScores &job) {
  BandUnit unit;
  unit.out = body.strips.lookup(op.getOuts()[0]);
  for (Value input : op.getInputs()) {
    const auto type = cast<MemRefType>(input.getType());
    const bool ofRows = type.getRank() == 2 && type.getDimSize(0) == kBandRows;
    Result<BandTensor> tensor = bandTensor(body, op, input, ofRows);
    if (!tensor)
      return tensor.takeError();
    const int64_t strip[] = {job.columns, kBandRows};
    for (auto [extent, whole] : llvm::zip(llvm::reverse(type.getShape()), strip))
      if (extent != 1 && extent != whole)
        return fail(op, "has operands that do not broadcast to its strip");
    unit.inputs.push_back(*tensor);
  }
  const bool weighs = op.getFunction() == "softmax";
  if (op.masks()) {
    Result<MaskedRows> masked = maskedRows(op, kBandRows, job.columns);
    if (!masked)
      return masked.takeError();
    unit.function = masked->function, unit.imm0 = masked->fill, unit.turned = masked->turned;
    const int64_t band = masked->index.trips.back(), others = masked->index.trips.size() - 1;
    if (llvm::any_of(ArrayRef(masked->index.trips).take_front(others), [](int64_t trip) { return trip != 0; }) ||
        (band != kBandRows && band != -kBandRows))
      return fail(op, "counts the rows of a band not from its first one");
    unit.index = Address{-1, masked->index.first, {}}.plusQuad(masked->index.quad);
    unit.indexBand = band;
    if (masked->turned)
      job.lower = job.columns - kBandRows - masked->index.first;
    if (weighs) {
      job.upper = masked->index.first - 1;
      job.rowQuad = masked->index.quad;
    }
  } else if (weighs) {
    unit.function = hw::SimdFunction::Softmax;
  } else {
    std::optional<ElementFunction> function = elementwise(op);
    if (!function)
      return fail(op, "names the function '" + op.getFunction() + "', which the vector device does not have");
    unit.function = function->function, unit.imm0 = function->imm0, unit.imm1 = function->imm1;
    if (static_cast<int>(unit.inputs.size()) != hw::operandCount(unit.function))
      return fail(op, "has not as many operands as '" + op.getFunction() + "'");
  }
  job.units.push_back(unit);
  return Status::ok();
}

Status StageWriter::write(const BandBody &body) {
  if (body.products.size() != 2 || body.units.empty() || lldmir::SimdOp(body.units.back()).getFunction() != "softmax")
    return fail(body.loop, "has no scores, softmax and values in a band");
  BandedScores job;
  job.softmax = body.units.back();
  job.bands = affine::AffineForOp(body.loop).getConstantUpperBound();
  for (affine::AffineForOp each : ArrayRef(batch).drop_back())
    job.batch.push_back(each.getConstantUpperBound());
  const Value weights = lldmir::SimdOp(body.units.back()).getOuts()[0];
  const auto type = cast<MemRefType>(weights.getType());
  if (type.getElementType().isF32())
    job.weightKind = hw::ElemKind::F32;
  for (auto &[strip, number] : body.strips) {
    const auto own = cast<MemRefType>(strip.getType());
    if (own.getShape() != type.getShape() || own.getRank() != 2 || own.getDimSize(0) != kBandRows ||
        !(own.getElementType().isF16() || (strip == weights && own.getElementType().isF32())))
      return fail(body.loop, "has strips of other than 64 rows of f16, as many columns each; f32 are weights alone");
  }
  job.columns = type.getDimSize(1);
  job.strips = static_cast<int>(body.strips.size());
  for (unsigned number : {0U, 1U})
    if (Status s = bandProduct(body, number, job.columns, job); !s)
      return s;
  for (lldmir::SimdOp unit : body.units)
    if (Status s = bandUnit(body, unit, job); !s)
      return s;
  // Strip 0 is what the scores fill, and the last unit's what values are weighed by.
  auto stripOf = [&](Value grid) { return body.strips.lookup(grid.getDefiningOp<affine_ext::TilesOp>().getOperand()); };
  if (stripOf(body.products[0].second.out) != 0 || stripOf(body.products[1].second.left) != job.units.back().out ||
      job.units.back().out == 0)
    return fail(body.loop, "weighs values by another strip than its softmax fills");
  if (!banded.empty() && !banded.front().goesOnWith(job))
    finishBands();
  banded.push_back(std::move(job));
  return Status::ok();
}
