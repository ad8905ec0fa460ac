//===- FindMasks.cpp - masks of scores as rules of their index ------------===//
#include "MaskNumbers.h"
#include "sparsity/RunMasks.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dmxc {
#define GEN_PASS_DEF_FINDMASKS
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

namespace {

/// Erases ops that nobody reads, and what they alone read.
void eraseUnread(ArrayRef<Value> values) {
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

/// The scores of one softmax.
class Scores {
public:
  Scores(dmir::SoftmaxOp softmax, const PhaseContext &context) : softmax(softmax), context(context) { read(false); }

  /// By what rows and columns are given too, else by their index alone.
  void mask() {
    for (bool vectors : {true, false}) {
      read(vectors);
      if (masks())
        break;
    }
    if (!maskOp)
      explain();
    if (isOfAttention())
      markLowScores(softmax, context);
  }

  /// False where the scores have no rule, or none that fits.
  bool masks() {
    Pieces pieces = functions->of(softmax.getInput());
    std::optional<double> fill = fillOf(pieces);
    if (!fill)
      return false;
    // Numbers that differ replace scores alike, but a row of them alone tells them apart: they stay where they are.
    bool isLow = hasSeveralLow(pieces);
    SmallVector<Conditions> cases;
    for (const Piece &piece : pieces)
      if (isLow ? !isLowNumber(piece.leaf) : !piece.leaf.isNumber(*fill))
        cases.push_back(piece.where);
    bool fits = llvm::all_of(cases, [](const Conditions &c) { return !c.empty() && c.size() <= 16; });
    if (cases.empty() || cases.size() > 4 || !fits) {
      failure = cases.empty()      ? "no score is kept"
                : cases.size() > 4 ? "its rule has " + std::to_string(cases.size()) + " cases, of which 4 are the most"
                                   : "a case of its rule has no condition, or more than 16";
      return false;
    }
    Value old = softmax.getInput();
    std::string from = originOf(*fill);
    if (!insert(cases, isLow ? kLowScore : *fill, isLow))
      return false;
    softmax->setAttr(dmir::kMaskFromAttr, StringAttr::get(softmax.getContext(), from));
    if (isLow)
      return true;
    simplify(cases);
    eraseUnread({old});
    return true;
  }

  /// Rows of weights that are zeroed where a mask lets them see nothing: not where each row sees something.
  void keepRows() {
    auto next = [&] {
      auto users = softmax.getResult().getUsers();
      auto found = llvm::find_if(users, [&](Operation *user) { return neverZeroes(dyn_cast<SelectOp>(user)); });
      return found == users.end() ? SelectOp() : cast<SelectOp>(*found);
    };
    while (SelectOp select = next()) {
      Value condition = select.getCondition(), zero = select.getOnTrue();
      select.getResult().replaceAllUsesWith(softmax.getResult());
      select.erase();
      eraseUnread({condition, zero});
    }
  }

private:
  /// Whether scores are f16 where they are computed: what is added to them saturates.
  static bool isNarrow(dmir::SoftmaxOp softmax, const PhaseContext &context) {
    const TargetBackend *target = context.responsible(softmax);
    return target && target->hasNarrowRange();
  }

  void read(bool withVectors) {
    vectors = withVectors;
    start(functions);
  }

  void start(std::optional<IndexFunctions> &own) {
    own.emplace(softmax, dimsOf(softmax.getInput()), isNarrow(softmax, context));
    if (vectors)
      own->readVectors();
  }

  bool neverZeroes(SelectOp select) {
    if (!select || select.getOnFalse() != softmax.getResult() ||
        select.getResult().getType() != softmax.getResult().getType())
      return false;
    Pieces pieces = functions->ofBroadcast(select.getCondition());
    return pieces.size() == 1 && pieces[0].leaf.isNumber(0);
  }

  /// The number that masked scores become: the least of those that are one.
  static std::optional<double> fillOf(ArrayRef<Piece> pieces) {
    std::optional<double> fill;
    for (const Piece &piece : pieces)
      if (piece.leaf.kind == Leaf::Number && piece.leaf.number <= kMostFill)
        fill = std::min(fill.value_or(0), piece.leaf.number);
    return fill;
  }

  static bool isLowNumber(const Leaf &leaf) { return leaf.kind == Leaf::Number && leaf.number <= kLowScore; }

  bool hasSeveralLow(ArrayRef<Piece> pieces) {
    std::optional<double> low;
    bool differ = false;
    for (const Piece &piece : pieces)
      if (isLowNumber(piece.leaf)) {
        differ |= low && *low != piece.leaf.number;
        low = piece.leaf.number;
      }
    return differ && elementOf(softmax.getInput()).isF32();
  }

  /// Puts the mask behind all that is done to the scores; false where the target has none.
  bool insert(ArrayRef<Conditions> cases, double fill, bool isLow) {
    OpBuilder b(softmax);
    ArrayRef<Symbol> symbols = functions->symbols();
    SmallVector<Dim> bound;
    SmallVector<const Symbol *> brought;
    SmallVector<AffineExpr> renamed(symbols.size(), b.getAffineConstantExpr(0));
    for (bool values : {false, true}) // sizes come first
      for (auto [position, symbol] : llvm::enumerate(symbols)) {
        bool used = llvm::any_of(cases, [&](const Conditions &conditions) {
          return llvm::any_of(conditions, [&](const Condition &c) { return c.expr.isFunctionOfSymbol(position); });
        });
        if (!used || values != bool(symbol.value))
          continue;
        renamed[position] = b.getAffineSymbolExpr(bound.size() + brought.size());
        if (values)
          brought.push_back(&symbol);
        else
          bound.push_back(symbol.dim);
      }
    auto type = typeOf(softmax.getInput());
    SmallVector<Attribute> own;
    for (const Conditions &conditions : cases) {
      Conditions to;
      for (const Condition &c : conditions)
        to.push_back({c.expr.replaceDimsAndSymbols({}, renamed), c.isEq});
      own.push_back(IntegerSetAttr::get(caseOf(type.getRank(), bound.size() + brought.size(), to)));
      for (const Condition &c : to)
        if (!dmir::faultOf(c.expr).empty())
          return false;
    }
    SmallVector<Value> values;
    for (const Symbol *symbol : brought)
      values.push_back(valueOf(b, *symbol, type.getRank()));
    maskOp = MaskOp::create(b, softmax.getLoc(), type, softmax.getInput(), values, b.getArrayAttr(own),
                            b.getFloatAttr(type.getElementType(), fill), dimsAttr(b.getContext(), bound),
                            isLow ? b.getUnitAttr() : UnitAttr());
    const TargetBackend *target = context.responsible(softmax);
    if (std::optional<std::string> refusal = target ? context.refusal(*target, maskOp) : std::nullopt) {
      failure = *refusal;
      maskOp.erase();
      maskOp = {};
      eraseUnread(values);
      return false;
    }
    softmax.getInputMutable().set(maskOp.getResult());
    return true;
  }

  /// A symbol's tensor as the mask takes it, by the axes of the scores.
  Value valueOf(OpBuilder &b, const Symbol &symbol, size_t rank) {
    SmallVector<Dim> dims(rank, Dim(1));
    for (auto [axis, of] : llvm::enumerate(symbol.axes))
      if (of)
        dims[*of] = dimOf(symbol.value, axis);
    if (dims == dimsOf(symbol.value))
      return symbol.value;
    return ReshapeOp::create(b, symbol.value.getLoc(), tensorOf(dims, elementOf(symbol.value)), symbol.value);
  }

  /// What a value is wherever the rule keeps an index, if it is one number there.
  std::optional<double> numberWhereKept(Value value, ArrayRef<Conditions> cases) {
    std::optional<double> number;
    Pieces pieces = functions->ofBroadcast(value);
    for (const Conditions &conditions : cases)
      for (const Piece &piece : functions->within(pieces, conditions)) {
        if (piece.leaf.kind != Leaf::Number || (number && *number != piece.leaf.number))
          return std::nullopt;
        number = piece.leaf.number;
      }
    return number;
  }

  /// Takes away what the mask says now: selects that choose the scores wherever it keeps them, sums with 0.
  void simplify(ArrayRef<Conditions> cases) {
    OpOperand *use = &maskOp.getInputMutable();
    for (int steps = 0; steps < 16; ++steps) {
      Operation *op = use->get().getDefiningOp();
      if (!op || typeOf(use->get()).getRank() != typeOf(softmax.getInput()).getRank())
        return;
      Value kept = whereKept(op, cases);
      if (kept && kept.getType() == use->get().getType()) {
        use->set(kept);
        continue;
      }
      // Deeper only through what nobody else reads.
      OpOperand *scores = op->hasTrait<Elementwise>() && op->hasOneUse() ? sameDims(op) : nullptr;
      if (!scores)
        return;
      if (isa<AddOp, SelectOp>(op))
        shrinkOthers(op, *scores, cases);
      use = scores;
    }
  }

  /// The operand that an op gives wherever the rule keeps an index; null if there is none.
  Value whereKept(Operation *op, ArrayRef<Conditions> cases) {
    if (auto select = dyn_cast<SelectOp>(op)) {
      std::optional<double> chosen = numberWhereKept(select.getCondition(), cases);
      return !chosen ? Value() : *chosen == 0 ? select.getOnFalse() : select.getOnTrue();
    }
    if (auto add = dyn_cast<AddOp>(op)) {
      if (numberWhereKept(add.getRhs(), cases) == 0.0)
        return add.getLhs();
      if (numberWhereKept(add.getLhs(), cases) == 0.0)
        return add.getRhs();
    }
    return {};
  }

  /// What is left of the mask, in operands beside the scores: of the shape of what is no rule, as padding has one row.
  void shrinkOthers(Operation *op, OpOperand &scores, ArrayRef<Conditions> cases) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value old = operand.get(), less = &operand == &scores ? old : shrunk(old, cases);
      if (less == old || elementsOf(less.getType()) == elementsOf(old.getType()))
        continue;
      operand.set(less);
      eraseUnread({old});
    }
  }

  /// A value that is `value` wherever the rule keeps an index, where there is one of fewer elements.
  Value shrunk(Value value, ArrayRef<Conditions> cases, unsigned depth = 0) {
    constexpr unsigned most = 16;
    Operation *op = value.getDefiningOp();
    if (!op || depth > most || op->getNumResults() != 1)
      return value;
    if (auto broadcast = dyn_cast<BroadcastOp>(op))
      return shrunk(broadcast.getInput(), cases, depth + 1);
    if (!op->hasTrait<Elementwise>() || isa<MaskOp>(op))
      return value;
    if (Value same = operandWhereKept(op, cases))
      return shrunk(same, cases, depth + 1);
    SmallVector<Value> operands;
    SmallVector<Dim> dims;
    bool changes = false;
    for (Value operand : op->getOperands()) {
      operands.push_back(shrunk(operand, cases, depth + 1));
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
  Value operandWhereKept(Operation *op, ArrayRef<Conditions> cases) {
    if (Value kept = whereKept(op, cases))
      return kept;
    std::optional<double> neutral = isa<AndOp, MulOp>(op) ? std::optional(1.0)
                                    : isa<OrOp>(op)       ? std::optional(0.0)
                                                          : std::nullopt;
    if (!neutral || (isa<AndOp, OrOp>(op) && !elementOf(op->getResult(0)).isInteger(1)))
      return {};
    for (unsigned i : {0, 1})
      if (numberWhereKept(op->getOperand(i), cases) == neutral)
        return op->getOperand(1 - i);
    return {};
  }

  static OpOperand *sameDims(Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get().getType() == op->getResult(0).getType())
        return &operand;
    return nullptr;
  }

  /// Calls `use` with what may be a mask, and the op where it meets the scores between the product and the softmax:
  /// something that differs along rows and columns, or along columns alone. Until it returns true.
  void forEachMask(llvm::function_ref<bool(Operation *op, Value mask)> use) {
    Value value = softmax.getInput();
    for (int steps = 0; steps < 16; ++steps) {
      Operation *op = value.getDefiningOp();
      if (!op || (!op->hasTrait<Elementwise>() && !isa<ReshapeOp>(op)))
        return;
      if (isa<AddOp, SelectOp>(op))
        if (Value mask = maskOf(op); mask && use(op, mask))
          return;
      OpOperand *scores = isa<ReshapeOp>(op) ? &op->getOpOperand(0) : sameDims(op);
      if (!scores)
        return;
      value = scores->get();
    }
  }

  /// Where a rule was read, and in what form.
  std::string originOf(double fill) {
    Operation *where = softmax.getInput().getDefiningOp();
    bool isConstant = false;
    forEachMask([&](Operation *op, Value mask) {
      std::optional<IndexFunctions> own;
      start(own);
      Pieces pieces = own->ofBroadcast(mask);
      bool says = llvm::any_of(pieces, [&](const Piece &piece) {
        return piece.leaf.isNumber(fill) || (isa<SelectOp>(op) && piece.leaf.kind == Leaf::Number);
      });
      if (says)
        where = op, isConstant = own->readRuns();
      return says;
    });
    return "'" + nodeName(where) + "' (" + where->getName().getStringRef().str() + ") of " +
           (isConstant ? "a constant" : "compared positions");
  }

  /// Says what hid a mask, where there is one; a bias is none.
  void explain() {
    forEachMask([&](Operation *op, Value mask) {
      auto select = dyn_cast<SelectOp>(op);
      bool hides = select ? isMaskingSelect(select) : holdsFill(mask) || (isOfCaller(mask) && isOfAttention());
      if (hides)
        say(mask);
      return hides;
    });
  }

  /// Whether the scores are a product's, and the weights one's operand.
  bool isOfAttention() {
    auto isProduct = [](Value start, auto next) {
      for (int steps = 0; start && steps < 16; ++steps)
        if (Operation *op = next(start); !op || isa<MatMulOp>(op))
          return op != nullptr;
      return false;
    };
    auto before = [](Value &value) {
      Operation *op = value.getDefiningOp();
      OpOperand *scores = !op ? nullptr : op->hasTrait<DataMovement>() ? &op->getOpOperand(0) : sameDims(op);
      value = scores ? scores->get() : Value();
      return op;
    };
    auto behind = [](Value &value) {
      Operation *op = value.use_empty() ? nullptr : *value.user_begin();
      bool moves = op && op->getNumResults() == 1 && (op->hasTrait<Elementwise>() || op->hasTrait<DataMovement>());
      value = moves ? op->getResult(0) : Value();
      return op;
    };
    return isProduct(softmax.getInput(), before) && isProduct(softmax.getResult(), behind);
  }

  static Value maskOf(Operation *op) {
    for (Value operand : op->getOperands())
      if (SmallVector<Dim> dims = dimsOf(operand);
          operand.getType() != op->getResult(0).getType() && !dims.empty() && !dims.back().is(1))
        return operand;
    return {};
  }

  void say(Value mask) {
    IndexFunctions own(softmax, dimsOf(softmax.getInput()), isNarrow(softmax, context));
    Pieces pieces = own.ofBroadcast(mask);
    auto unknown = [](const Piece &piece) { return piece.leaf.kind == Leaf::Unknown; };
    std::string reason = own.unreadable(), name = "the mask";
    if (Operation *op = mask.getDefiningOp())
      name = "'" + nodeName(op) + "' (" + op->getName().getStringRef().str() + ")";
    if (llvm::none_of(pieces, unknown)) {
      bool isNear = !fillOf(pieces) && !elementOf(mask).isInteger(1);
      reason = name + ": " +
               (isNear            ? "its numbers are added to scores and replace none"
                : failure.empty() ? "scores may be as low as the numbers that it puts in their place or adds"
                                  : failure);
    }
    softmax->setAttr(dmir::kMaskUnknownAttr, StringAttr::get(softmax.getContext(), reason));
  }

  dmir::SoftmaxOp softmax;
  const PhaseContext &context;
  std::optional<IndexFunctions> functions;
  bool vectors = false;
  std::string failure; ///< why the pieces of the scores are no mask; "" where they have no number that masks
  MaskOp maskOp;
};

struct FindMasks : dmxc::impl::FindMasksBase<FindMasks> {
  explicit FindMasks(const PhaseContext &context) : context(context) {}
  void runOnOperation() override {
    SmallVector<dmir::SoftmaxOp> all;
    getOperation().walk([&](dmir::SoftmaxOp softmax) {
      int64_t rank = typeOf(softmax.getInput()).getRank();
      if (!softmax.getLog() && rank >= 2 && rank <= 6 && static_cast<int64_t>(softmax.getAxis()) == rank - 1)
        all.push_back(softmax);
    });
    for (dmir::SoftmaxOp softmax : all) {
      Scores scores(softmax, context);
      scores.keepRows();
      scores.mask();
    }
  }
  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createFindMasksPass(const PhaseContext &context) { return std::make_unique<FindMasks>(context); }
} // namespace dmxc
