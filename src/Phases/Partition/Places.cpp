//===- Places.cpp - where a fused kernel reads its values -----------------===//
#include "Places.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "llvm/ADT/Hashing.h"

using namespace mlir;
using namespace dmxc;

/// Whether an op reads an operand where its own result is asked for: elementwise ops do, but for what they broadcast.
static bool readsInPlace(OpOperand &use) {
  Operation *op = use.getOwner();
  return isa<dmir::RelayoutOp>(op) ||
         (op->hasTrait<dmir::Elementwise>() && dmir::dimsOf(use.get()) == dmir::dimsOf(op->getResult(0)));
}

bool Places::enter(Operation *producer, const llvm::SetVector<Operation *> &ops) {
  Ways found;
  for (OpOperand &use : producer->getUses()) {
    Operation *reader = use.getOwner();
    if (!ops.contains(reader))
      continue;
    auto known = ways.find(reader);
    const size_t root = 0;
    for (size_t way : known == ways.end() ? ArrayRef(root) : known->second.getArrayRef())
      found.insert(readsInPlace(use) ? way : size_t(llvm::hash_combine(way, reader, use.getOperandNumber())));
    if (found.size() > kMost)
      return false;
  }
  ways[producer] = std::move(found);
  return true;
}
