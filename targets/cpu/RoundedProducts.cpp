//===- RoundedProducts.cpp - products that --numerics bf16 rounds ----------===//

#include "RoundedProducts.h"

#include "targets/cpu/attention/Attention.h"
#include "targets/cpu/product/Gemm.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "llvm/ADT/SetVector.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

/// Whether a part of a graph's argument is read as it is.
bool isBrought(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<dmir::ReshapeOp, dmir::TransposeOp, dmir::BroadcastOp, dmir::SliceOp, dmir::GatherOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return true;
}

/// Whether a product of a run may have so few rows that no unit is faster.
bool mayBeOfFewRows(dmir::MatMulOp op, ArrayRef<Dim> rows) {
  int64_t least = 1;
  for (Dim dim : rows) {
    least *= kernels::smallest(op->getBlock(), dim);
    if (least > GemmKernel::kSkinny)
      return false;
  }
  return true;
}

/// The dims of a product's rows: all of the left operand's but k, or the last of them where each matrix has a right
/// operand of its own.
SmallVector<Dim> rowsOf(dmir::MatMulOp op) {
  SmallVector<Dim> rows = dmir::dimsOf(op.getLhs());
  rows.pop_back();
  if (dmir::dimsOf(op.getRhs()).size() > 2)
    rows.erase(rows.begin(), rows.end() - 1);
  return rows;
}

/// Whether a product reads the state of a recurrent net, which each run takes from the one before.
bool readsState(dmir::MatMulOp op) {
  return dmir::dimsOf(op.getRhs()).size() == 2 && isBrought(op.getLhs()) && mayBeOfFewRows(op, rowsOf(op));
}

/// Whether one of the products that a sum adds up reads state.
bool addsState(Value sum) {
  llvm::SmallSetVector<Value, 8> terms; // each once, however often it is added to itself
  terms.insert(sum);
  for (size_t i = 0; i < terms.size(); ++i) {
    Operation *op = terms[i].getDefiningOp();
    if (auto product = dyn_cast_if_present<dmir::MatMulOp>(op); product && readsState(product))
      return true;
    if (isa_and_nonnull<dmir::AddOp, dmir::ReshapeOp, dmir::TransposeOp>(op))
      terms.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// The sum that a product ends in: gates of a recurrent net add what they make of the input to what they make of state.
Value sumOf(dmir::MatMulOp op) {
  Value sum = op.getResult();
  while (sum.hasOneUse() && isa<dmir::AddOp, dmir::ReshapeOp, dmir::TransposeOp>(*sum.user_begin()))
    sum = sum.user_begin()->getResult(0);
  return sum;
}

} // namespace

bool dmxc::cpu::keepsOperands(dmir::MatMulOp op) {
  SmallVector<Dim> rows = rowsOf(op), right = dmir::dimsOf(op.getRhs());
  if (!mayBeOfFewRows(op, rows))
    return false;
  bool isFew = llvm::all_of(rows, [](Dim dim) { return dim.known().has_value(); });
  if (isFew || addsState(sumOf(op)))
    return true;
  std::optional<int64_t> k = right[right.size() - 2].known(), n = right.back().known();
  return k && n && IsaLevel::nominal().caches.isNear(*k, *n);
}

bool dmxc::cpu::roundsWeightsOf(Operation *product) {
  std::optional<Attention> attention = matchAttention(product);
  return attention && attention->softmax;
}
