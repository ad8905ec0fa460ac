//===- StageProducts.cpp - loops over tiles to products -------------------===//
#include "../KernelFunctions.h"
#include "../product/ProductNest.h"
#include "StageWriter.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

Status StageWriter::product(affine::AffineForOp loop) {
  if (loop->hasAttr(kBatchAttr))
    return matrices(loop);
  if (loop->hasAttr(lldmir::kBandsAttr))
    return bands(loop);
  ProductNest nest;
  if (!nest.read(loop))
    return fail(loop, "is no product that the arrays compute: " + nest.problem);
  task(loop);
  Value packed = outside(nest.right) ? outside(nest.right) : nest.right;
  if (auto tiles = weights.find(packed); tiles != weights.end())
    return byWeights(loop, nest, tiles->second);
  return byValues(loop, nest);
}

Status StageWriter::matrices(affine::AffineForOp loop) {
  if (!loop.hasConstantBounds() || loop.getConstantLowerBound() != 0 || loop.getStepAsInt() != 1 ||
      loop.getConstantUpperBound() < 1)
    return fail(loop, "runs not from 0 by 1 to a constant over a batch");
  batch.push_back(loop);
  Status status = Status::ok();
  int products = 0;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto inner = dyn_cast<affine::AffineForOp>(op); inner && inner->hasAttr(lldmir::kBandsAttr)) {
      status = ++products == 1 ? bands(inner) : fail(&op, "is a second loop in one over a batch");
    } else if (inner) {
      status = ++products == 1 ? product(inner) : fail(&op, "is a second product in a loop over a batch");
    } else if (isa<memref::SubViewOp, affine_ext::TilesOp>(op)) {
      status = view(&op);
    } else if (!isa<affine::AffineApplyOp>(op)) {
      status = fail(&op, "is not known in a loop over a batch");
    }
    if (!status)
      break;
  }
  batch.pop_back();
  return status;
}

Status StageWriter::checkChain(const ProductNest &nest, lldmir::PlanAttr plan) {
  for (lldmir::MatMulOp product : nest.chain)
    if (static_cast<int64_t>(product.getPprMode()) != plan.getPprMode() ||
        (static_cast<int64_t>(product.getNumImc()) != plan.getNumImc() && product != nest.chain.back()))
      return fail(product, "has another num_imc or ppr_mode than its plan");
  return Status::ok();
}

Result<MatmulPlan> StageWriter::planOf(affine::AffineForOp loop, const ProductNest &nest, const ProductDims &dims) {
  lldmir::MatMulOp first = nest.chain.front();
  auto plan = first->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
  if (!plan)
    return fail(loop, "has no '" + lldmir::kPlanAttr + "'").takeError();
  if (std::optional<std::string> why = unfit(plan, dims, machine))
    return fail(loop, "has the plan of a product that no slice computes: " + *why).takeError();
  if (Status s = checkChain(nest, plan); !s)
    return s.takeError();
  MatmulPlan chosen = MatmulPlan::read(plan, dims);
  chosen.columnsOutside = nest.columnsOutside;
  return chosen;
}

Status StageWriter::byWeights(affine::AffineForOp loop, const ProductNest &nest, const Tiles &tiles) {
  affine::AffineStoreOp store = nest.store;
  Result<DeviceTensor> a = matricesOf(loop, nest.left), out = matricesOf(loop, store.getMemRef());
  if (!a)
    return a.takeError();
  if (!out)
    return out.takeError();
  const size_t rank = out->rank();
  const bool areTiles = a->kind == hw::ElemKind::Bfp16R;
  if (areTiles ? !batch.empty() : a->kind != hw::ElemKind::F16)
    return fail(loop, "multiplies what are no matrices of f16 or tiles");
  ProductDims dims;
  dims.m = out->shape[rank - 2], dims.n = out->shape.back(), dims.k = a->shape.back(),
  dims.kChunks = (dims.k + 63) / 64;
  if (areTiles && (a->shape[0] + 63) / 64 == (dims.m + 63) / 64)
    a->shape[0] = dims.m; // tiles of a part, the last of them ragged
  const int64_t rows = dims.m;
  for (affine::AffineForOp each : batch)
    dims.m *= each.getConstantUpperBound();
  Result<MatmulPlan> plan = planOf(loop, nest, dims);
  if (!plan)
    return plan.takeError();
  const TileForm &form = tiles.form, wanted = TileForm::of(*plan);
  if (rows != a->shape[rank - 2] || form.n != dims.n || form.kChunks != dims.kChunks || form.rounds != wanted.rounds ||
      form.slices != wanted.slices || form.groups != wanted.groups)
    return fail(loop, "does not fit the packed form of its weights");
  MatmulShape shape(*a, *out);
  shape.operands.outBytes = out->elementSize();
  plan->m = shape.m;
  if (affine::AffineLoadOp bias = nest.bias) {
    Result<DeviceTensor> vector = tensorOf(loop, bias.getMemRef());
    if (!vector)
      return vector.takeError();
    shape.operands.bias = vector->address;
  }
  multiplyByConstant(*plan, std::move(shape), tiles);
  return Status::ok();
}

Result<DeviceTensor> StageWriter::matricesOf(Operation *user, Value grid) {
  Result<DeviceTensor> tensor = tensorOf(user, grid);
  if (!tensor)
    return tensor;
  if (tensor->rank() != 2)
    return fail(user, "multiplies what are no matrices").takeError();
  SmallVector<int64_t> steps = trips.lookup(grid);
  steps.resize(batch.size(), 0);
  for (size_t i = batch.size(); i-- > 0;) {
    tensor->shape.insert(tensor->shape.begin(), affine::AffineForOp(batch[i]).getConstantUpperBound());
    tensor->strides.insert(tensor->strides.begin(), steps[i]);
  }
  return tensor;
}

Status StageWriter::byValues(affine::AffineForOp loop, const ProductNest &nest) {
  affine::AffineStoreOp store = nest.store;
  Result<DeviceTensor> a = matricesOf(loop, nest.left), b = matricesOf(loop, nest.right),
                       out = matricesOf(loop, store.getMemRef());
  for (Result<DeviceTensor> *each : {&a, &b, &out})
    if (!*each)
      return each->takeError();
  const size_t rank = out->rank();
  for (Result<DeviceTensor> *each : {&a, &b, &out})
    if ((*each)->kind != hw::ElemKind::F16)
      return fail(loop, "multiplies what are no matrices of f16");
  if (a->shape[rank - 2] != out->shape[rank - 2] || b->shape[rank - 2] != a->shape.back() ||
      b->shape.back() != out->shape.back() || nest.bias)
    return fail(loop, "multiplies matrices that do not fit each other");
  MatmulShape shape(*a, *b, *out);
  shape.joinBatch();
  // A plan that was made for the matrices of a batch is obeyed where their rows would go on.
  auto given = nest.chain.front()->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
  if (given && unfit(given, shape.dims(), machine))
    shape = MatmulShape(*a, *b, *out);
  Result<MatmulPlan> plan = planOf(loop, nest, shape.dims());
  if (!plan)
    return plan.takeError();
  multiplyValues(*plan, std::move(shape));
  return Status::ok();
}
