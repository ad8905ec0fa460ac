//===- MaskRest.cpp - what is left of a mask beside its rule ---------------===//
#include "MaskRest.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

void dmxc::eraseUnread(ArrayRef<Value> values) {
  SmallVector<Operation *> work;
  auto push = [&](Value v) {
    if (Operation *op = v.getDefiningOp(); op && !llvm::is_contained(work, op))
      work.push_back(op);
  };
  llvm::for_each(values, push);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    llvm::for_each(operands, push);
  }
}

OpOperand *dmxc::operandOfSameType(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get().getType() == op->getResult(0).getType())
      return &operand;
  return nullptr;
}

namespace {

class Rest {
public:
  Rest(MaskOp maskOp, IndexFunctions &functions, ArrayRef<Conditions> cases)
      : maskOp(maskOp), functions(functions), cases(cases) {}

  /// What a value is wherever the rule keeps an index, if it is one number there.
  std::optional<double> numberWhereKept(Value value) {
    std::optional<double> number;
    Pieces pieces = functions.ofBroadcast(value);
    for (const Conditions &conditions : cases)
      for (const Piece &piece : functions.within(pieces, conditions)) {
        if (piece.leaf.kind != Leaf::Number || (number && *number != piece.leaf.number))
          return std::nullopt;
        number = piece.leaf.number;
      }
    return number;
  }

  void simplify() {
    OpOperand *use = &maskOp.getInputMutable();
    for (int steps = 0; steps < 16; ++steps) {
      Operation *op = use->get().getDefiningOp();
      if (!op || typeOf(use->get()).getRank() != typeOf(maskOp.getResult()).getRank())
        return;
      Value kept = whereKept(op);
      if (kept && kept.getType() == use->get().getType()) {
        use->set(kept);
        continue;
      }
      // Deeper only through what nobody else reads.
      OpOperand *scores = op->hasTrait<Elementwise>() && op->hasOneUse() ? operandOfSameType(op) : nullptr;
      if (!scores)
        return;
      if (isa<AddOp, SelectOp>(op))
        shrinkOthers(op, *scores);
      use = scores;
    }
  }

  /// The operand that an op gives wherever the rule keeps an index; null if there is none.
  Value whereKept(Operation *op) {
    if (auto select = dyn_cast<SelectOp>(op)) {
      std::optional<double> chosen = numberWhereKept(select.getCondition());
      return !chosen ? Value() : *chosen == 0 ? select.getOnFalse() : select.getOnTrue();
    }
    for (unsigned i : {0, 1})
      if (isa<AddOp, MulOp>(op) && numberWhereKept(op->getOperand(1 - i)) == (isa<AddOp>(op) ? 0.0 : 1.0))
        return op->getOperand(i);
    return {};
  }

  /// What is left of the mask, in operands beside the scores: of the shape of what is no rule, as padding has one row.
  void shrinkOthers(Operation *op, OpOperand &scores) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value old = operand.get(), less = &operand == &scores ? old : shrunk(old);
      if (less == old || elementsOf(less.getType()) == elementsOf(old.getType()))
        continue;
      operand.set(less);
      eraseUnread({old});
    }
  }

  /// A value that is `value` wherever the rule keeps an index, where there is one of fewer elements.
  Value shrunk(Value value, unsigned depth = 0) {
    constexpr unsigned most = 16;
    Operation *op = value.getDefiningOp();
    if (!op || depth > most || op->getNumResults() != 1)
      return value;
    if (auto broadcast = dyn_cast<BroadcastOp>(op))
      return shrunk(broadcast.getInput(), depth + 1);
    if (!op->hasTrait<Elementwise>() || isa<MaskOp>(op))
      return value;
    if (Value same = operandWhereKept(op))
      return shrunk(same, depth + 1);
    SmallVector<Value> operands;
    SmallVector<Dim> dims;
    bool changes = false;
    for (Value operand : op->getOperands()) {
      operands.push_back(shrunk(operand, depth + 1));
      changes |= operands.back() != operand;
      std::optional<SmallVector<Dim>> both = broadcastDims(dims, dimsOf(operands.back()));
      if (!both)
        return value;
      dims = *both;
    }
    if (!changes || elementsOf(value.getType()) == product(dims))
      return value;
    OpBuilder b(maskOp);
    b.setInsertionPointAfter(op);
    OperationState state(op->getLoc(), op->getName(), operands, tensorOf(dims, elementOf(value)), op->getAttrs());
    return b.create(state)->getResult(0);
  }

  /// The operand that an op of masks gives wherever the rule keeps an index; null if there is none.
  Value operandWhereKept(Operation *op) {
    if (Value kept = whereKept(op))
      return kept;
    std::optional<double> neutral = isa<AndOp, MulOp>(op) ? std::optional(1.0)
                                    : isa<OrOp>(op)       ? std::optional(0.0)
                                                          : std::nullopt;
    if (!neutral || (isa<AndOp, OrOp>(op) && !elementOf(op->getResult(0)).isInteger(1)))
      return {};
    for (unsigned i : {0, 1})
      if (numberWhereKept(op->getOperand(i)) == neutral)
        return op->getOperand(1 - i);
    return {};
  }

private:
  MaskOp maskOp;
  IndexFunctions &functions;
  ArrayRef<Conditions> cases;
};

} // namespace

void dmxc::simplifyBehind(MaskOp mask, IndexFunctions &functions, ArrayRef<Conditions> cases) {
  Rest(mask, functions, cases).simplify();
}
