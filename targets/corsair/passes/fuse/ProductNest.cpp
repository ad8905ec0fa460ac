//===- ProductNest.cpp - what fills the tiles of a product's result -------===//
#include "ProductNest.h"

using namespace mlir;
using namespace dmxc;
using affine::AffineForOp;

void dmxc::usersOf(Value buffer, SmallVectorImpl<std::pair<Operation *, Value>> &users) {
  for (Operation *user : buffer.getUsers())
    if (isBufferView(user) || isa<affine_ext::TilesOp>(user))
      usersOf(user->getResult(0), users);
    else
      users.push_back({user, buffer});
}

static bool isBanded(Operation *op) {
  auto simd = dyn_cast<lldmir::SimdOp>(op);
  return simd && simd.getParametersAttr() && simd.getParametersAttr().get(lldmir::kBandsAttr);
}

/// Whether a softmax whose rows come in bands reads a buffer, or what functions make of it.
static bool leadsToBands(Value buffer) {
  SmallVector<Value> open{buffer};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    SmallVector<std::pair<Operation *, Value>> users;
    if (Value next = open.pop_back_val(); seen.insert(next).second)
      usersOf(next, users);
    for (auto [user, value] : users) {
      if (isBanded(user))
        return true;
      if (auto simd = dyn_cast<lldmir::SimdOp>(user))
        llvm::append_range(open, simd.getOuts());
    }
  }
  return false;
}

bool Nest::read(Operation *op) {
  root = op;
  conv = dyn_cast<lldmir::ConvOp>(op);
  if (conv) {
    buffer = conv.getOut();
    return buffer && buffer.getDefiningOp<memref::AllocOp>() && type().getElementType().isF16() && !conv.getEpilogue();
  }
  return readLoops(cast<AffineForOp>(op));
}

bool Nest::isDealt() {
  auto deal = conv ? conv->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr) : lldmir::DealAttr();
  return conv ? deal && deal.getDim() >= 0 : static_cast<bool>(quads);
}

bool Nest::readLoops(AffineForOp loop) {
  int stores = 0;
  loop.walk([&](affine::AffineStoreOp op) { store = op, ++stores; });
  if (stores != 1)
    return false;
  for (Operation *op = store->getParentOp(); !isa<func::FuncOp>(op); op = op->getParentOp())
    if (op->hasAttr(kQuadsAttr))
      quads = cast<AffineForOp>(op);
    else if (op->hasAttr(kBatchAttr))
      batch.push_back(cast<AffineForOp>(op));
  auto grid = store.getMemRef().getDefiningOp<affine_ext::TilesOp>();
  if (!grid || grid->getParentOfType<func::FuncOp>() != loop->getParentOfType<func::FuncOp>())
    return false;
  views = {grid};
  for (Value from = grid.getBuffer(); from.getDefiningOp<memref::SubViewOp>(); from = views.front()->getOperand(0))
    views.insert(views.begin(), from.getDefiningOp());
  buffer = views.front()->getOperand(0);
  return buffer.getDefiningOp<memref::AllocOp>() && type().getElementType().isF16() && !readsBands() &&
         !leadsToBands(buffer);
}

bool Nest::readsBands() {
  bool reads = false;
  root->walk([&](affine_ext::LoadOp load) {
    SmallVector<std::pair<Operation *, Value>> users;
    usersOf(rootOf(load.getMemref()), users);
    for (auto [user, value] : users)
      reads |= isBanded(user);
  });
  return reads;
}

bool Nest::pays(const hw::Machine &machine) {
  lldmir::PlanAttr plan = conv ? conv->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr) : lldmir::PlanAttr();
  root->walk([&](affine_ext::MatMulOp op) { plan = op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr); });
  const ArrayRef<int64_t> shape = type().getShape();
  const int64_t all = type().getNumElements();
  if (!plan || shape.size() < 2 || !all)
    return true;
  const int64_t n = conv ? shape[1] / conv.getGroups() : shape.back();
  const bool goesOn = !conv && !batch.empty() && !hasOwnWeights(); // rows, from matrix to matrix
  const int64_t m = goesOn ? all / n
                    : conv ? ShapedType::getNumElements(shape.drop_front(2))
                           : shape.drop_back().back();
  return corsair::Spread::ofSizes(m, n, 64).by(plan).leavesNoMore(all / (m * n), machine.slices);
}

bool Nest::hasOwnWeights() {
  bool own = true;
  root->walk([&](affine_ext::MatMulOp product) {
    llvm::DenseSet<Value> known;
    Value from = product.getRhs();
    for (Operation *op = from.getDefiningOp(); op && op->getNumOperands(); op = op->getOperand(0).getDefiningOp())
      known.insert(op->operand_begin(), op->operand_end());
    own &= llvm::all_of(batch, [&](AffineForOp loop) { return known.contains(loop.getInductionVar()); });
  });
  return own;
}
