//===- FindMasks.cpp - masks of scores as rules of their index ------------===//
#include "MaskNumbers.h"
#include "masks/ListedMasks.h"
#include "masks/MaskCases.h"
#include "masks/MaskReasons.h"
#include "masks/MaskRest.h"
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

/// The scores of one softmax.
class Scores {
public:
  Scores(dmir::SoftmaxOp softmax, const PhaseContext &context) : softmax(softmax), context(context) { use(false); }

  /// By what rows and columns are given too, else by their index alone.
  void mask() {
    for (std::optional<IndexFunctions> &own : read)
      own.reset();
    using Way = bool (Scores::*)();
    for (Way way : {&Scores::maskReplaced, &Scores::maskSum, &Scores::maskChosen, &Scores::maskListed})
      for (bool vectors : {true, false}) {
        use(vectors);
        if (!maskOp && (this->*way)())
          break;
      }
    if (!maskOp)
      explain();
    if (isOfAttention())
      markLowScores(softmax, context);
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
  /// What scores become where the rule does not keep them: a number, what a number makes of them, or, as they are, less
  /// than a number.
  enum class Instead { Number, Sum, Low };

  /// Scores that one number replaces, or several alike.
  bool maskReplaced() {
    Pieces pieces = functions->of(softmax.getInput());
    std::optional<double> fill = fillOf(pieces);
    if (!fill)
      fill = onlyNumberOf(pieces);
    if (!fill)
      return false;
    // Numbers that differ replace scores alike, but a row of them alone tells them apart: they stay where they are.
    const bool isLow = hasSeveralLow(pieces);
    // What is behind the mask is looked at by the pieces themselves: of cases that overlap each says less.
    const SmallVector<Conditions> kept =
        piecesBut(pieces, [&](const Leaf &leaf) { return isLow ? isLowNumber(leaf) : leaf.isNumber(*fill); });
    std::optional<SmallVector<Conditions>> cases = casesOf(kept);
    if (!cases)
      return false;
    Value old = softmax.getInput();
    std::string from = originOf(*fill);
    if (!insert(*cases, isLow ? kLowScore : *fill, isLow ? Instead::Low : Instead::Number))
      return false;
    softmax->setAttr(dmir::kMaskFromAttr, StringAttr::get(softmax.getContext(), from));
    if (isLow)
      return true;
    simplifyBehind(maskOp, *functions, kept);
    eraseUnread({old});
    return true;
  }

  /// Scores to which 0 or one great negative number is added.
  bool maskSum() {
    auto sum = softmax.getInput().getDefiningOp<AddOp>();
    if (!sum || !elementOf(sum.getResult()).isF32())
      return false;
    SmallVector<Value> terms;
    addTerms(sum, terms);
    for (Value term : terms) {
      Pieces pieces = functions->ofBroadcast(term);
      std::optional<double> fill = fillOf(pieces);
      bool isKnown = fill && std::isfinite(*fill) && llvm::all_of(pieces, [&](const Piece &piece) {
                       return piece.leaf.isNumber(0) || piece.leaf.isNumber(*fill);
                     });
      std::optional<SmallVector<Conditions>> cases =
          isKnown ? casesOf(piecesBut(pieces, [&](const Leaf &leaf) { return leaf.isNumber(*fill); })) : std::nullopt;
      OpBuilder b(softmax);
      Value scores = cases ? without(b, sum, term) : Value();
      if (!scores || scores.getType() != sum.getType())
        continue;
      std::string from = originOf(*fill);
      softmax.getInputMutable().set(scores);
      if (insert(*cases, *fill, Instead::Sum)) {
        softmax->setAttr(dmir::kMaskFromAttr, StringAttr::get(softmax.getContext(), from));
        eraseUnread({sum});
        return true;
      }
      softmax.getInputMutable().set(sum);
      eraseUnread({scores});
    }
    return false;
  }

  /// Scores that are chosen where a bool of overlapping cases says so.
  bool maskChosen() {
    auto select = softmax.getInput().getDefiningOp<SelectOp>();
    for (bool keptWhere : {true, false}) {
      Value scores = !select ? Value() : keptWhere ? select.getOnTrue() : select.getOnFalse();
      if (!scores || scores.getType() != select.getType())
        continue;
      Pieces other = functions->ofBroadcast(keptWhere ? select.getOnFalse() : select.getOnTrue());
      std::optional<double> fill = other.size() == 1 ? fillOf(other) : std::nullopt;
      std::optional<SmallVector<Conditions>> cases =
          fill ? casesWhere(*functions, select.getCondition(), keptWhere) : std::nullopt;
      if (!cases || !areFew(*cases))
        continue;
      std::string from = originOf(*fill);
      softmax.getInputMutable().set(scores);
      if (insert(*cases, *fill)) {
        softmax->setAttr(dmir::kMaskFromAttr, StringAttr::get(softmax.getContext(), from));
        eraseUnread({select});
        return true;
      }
      softmax.getInputMutable().set(select);
    }
    return false;
  }

  /// Scores that a constant masks of which whole tiles leave all out.
  bool maskListed() {
    Value old = softmax.getInput();
    std::optional<ListedMask> found = listTiles(old.getDefiningOp());
    if (!found)
      return false;
    OpBuilder b(softmax);
    auto type = typeOf(old);
    Attribute whole = IntegerSetAttr::get(wholeCase(type.getRank(), 0, b.getContext()));
    Operation *from = old.getDefiningOp();
    maskOp = MaskOp::create(b, softmax.getLoc(), type, found->scores, ValueRange(), b.getArrayAttr(whole),
                            b.getFloatAttr(type.getElementType(), found->fill), {}, b.getDenseI64ArrayAttr(found->tile),
                            found->lists, found->adds, /*low=*/false);
    if (!take())
      return false;
    softmax->setAttr(dmir::kMaskFromAttr, b.getStringAttr("'" + nodeName(from) + "' (" +
                                                          from->getName().getStringRef().str() + ") of a constant"));
    eraseUnread({old});
    return true;
  }

  /// What a sum is one of, whatever way it is put together.
  static void addTerms(Value value, SmallVectorImpl<Value> &terms) {
    constexpr size_t most = 8;
    auto sum = value.getDefiningOp<AddOp>();
    if (!sum || !value.hasOneUse() || terms.size() > most) {
      terms.push_back(value);
      return;
    }
    addTerms(sum.getLhs(), terms);
    addTerms(sum.getRhs(), terms);
  }

  /// The sum without a term, its other terms put together as they were; null for the term itself.
  static Value without(OpBuilder &b, Value value, Value term) {
    auto sum = value.getDefiningOp<AddOp>();
    if (value == term || !sum || !value.hasOneUse())
      return value == term ? Value() : value;
    Value lhs = without(b, sum.getLhs(), term), rhs = without(b, sum.getRhs(), term);
    if (!lhs || !rhs || (lhs == sum.getLhs() && rhs == sum.getRhs()))
      return !lhs ? rhs : !rhs ? lhs : value;
    std::optional<SmallVector<Dim>> dims = broadcastDims(dimsOf(lhs), dimsOf(rhs));
    return dims ? AddOp::create(b, sum.getLoc(), tensorOf(*dims, elementOf(value)), lhs, rhs) : value;
  }

  static SmallVector<Conditions> piecesBut(ArrayRef<Piece> pieces, llvm::function_ref<bool(const Leaf &)> isMasked) {
    SmallVector<Conditions> kept;
    for (const Piece &piece : pieces)
      if (!isMasked(piece.leaf))
        kept.push_back(piece.where);
    return kept;
  }

  /// The cases of a rule that keeps these; nothing where they are too many, or none.
  std::optional<SmallVector<Conditions>> casesOf(SmallVector<Conditions> cases) {
    tidyCases(*functions, cases);
    return areFew(cases) ? std::optional(cases) : std::nullopt;
  }

  bool areFew(ArrayRef<Conditions> cases) {
    bool fits = llvm::all_of(cases, [](const Conditions &c) { return !c.empty() && c.size() <= 16; });
    if (!cases.empty() && cases.size() <= 4 && fits)
      return true;
    bool keepsAll = llvm::any_of(cases, [](const Conditions &c) { return c.empty(); });
    failure = cases.empty()      ? "no score is kept"
              : keepsAll         ? "all scores are kept"
              : cases.size() > 4 ? "its rule has " + std::to_string(cases.size()) + " cases, of which 4 are the most"
                                 : "a case of its rule has more than 16 conditions";
    return false;
  }

  /// The finite number of pieces of which the others are unknown.
  static std::optional<double> onlyNumberOf(ArrayRef<Piece> pieces) {
    std::optional<double> number;
    for (const Piece &piece : pieces)
      if (piece.leaf.kind != Leaf::Unknown) {
        if (piece.leaf.kind != Leaf::Number || !std::isfinite(piece.leaf.number) ||
            (number && *number != piece.leaf.number))
          return std::nullopt;
        number = piece.leaf.number;
      }
    return number;
  }

  /// Whether scores are f16 where they are computed: what is added to them saturates.
  static bool isNarrow(dmir::SoftmaxOp softmax, const PhaseContext &context) {
    const TargetBackend *target = context.responsible(softmax);
    return target && target->hasNarrowRange();
  }

  IndexFunctions functionsOf() const {
    IndexFunctions own(softmax, dimsOf(dmir::SoftmaxOp(softmax).getInput()), isNarrow(softmax, context));
    if (vectors)
      own.readVectors();
    return own;
  }

  /// Reads from now on numbers of rows and columns that a run brings too, or none.
  void use(bool withVectors) {
    vectors = withVectors;
    if (!read[vectors]) {
      read[vectors].emplace(functionsOf());
      read[vectors]->takeZeros();
    }
    functions = &*read[vectors];
  }

  bool neverZeroes(SelectOp select) {
    if (!select || select.getOnFalse() != softmax.getResult() ||
        select.getResult().getType() != softmax.getResult().getType())
      return false;
    Pieces pieces = functions->ofBroadcast(select.getCondition());
    return pieces.size() == 1 && pieces[0].leaf.isNumber(0);
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
  bool insert(ArrayRef<Conditions> cases, double fill, Instead instead = Instead::Number) {
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
                            b.getFloatAttr(type.getElementType(), fill), dimsAttr(b.getContext(), bound), {}, {},
                            instead == Instead::Sum, instead == Instead::Low);
    const bool taken = take();
    if (!taken)
      eraseUnread(values);
    return taken;
  }

  /// Puts a new mask before the softmax; erases it where the target has none such.
  bool take() {
    const TargetBackend *target = context.responsible(softmax);
    if (std::optional<std::string> refusal = target ? context.refusal(*target, maskOp) : std::nullopt) {
      failure = *refusal;
      maskOp.erase();
      maskOp = {};
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

  /// Calls `use` with what may be a mask, and the op where it meets the scores between the product and the softmax:
  /// something that differs along rows and columns, or along columns alone. Until it returns true.
  void forEachMask(llvm::function_ref<bool(Operation *op, Value mask)> use, bool factors = false) {
    Value value = softmax.getInput();
    for (int steps = 0; steps < 16; ++steps) {
      Operation *op = value.getDefiningOp();
      if (!op || (!op->hasTrait<Elementwise>() && !isa<ReshapeOp>(op)))
        return;
      if (isa<AddOp, SelectOp>(op) || (factors && isa<MulOp>(op)))
        if (Value mask = maskOf(op); mask && use(op, mask))
          return;
      OpOperand *scores = isa<ReshapeOp>(op) ? &op->getOpOperand(0) : operandOfSameType(op);
      if (!scores)
        return;
      value = scores->get();
    }
  }

  /// Where a rule was read, and in what form.
  std::string originOf(double fill) {
    Operation *where = softmax.getInput().getDefiningOp();
    bool isConstant = false;
    forEachMask(
        [&](Operation *op, Value mask) {
          IndexFunctions own = functionsOf();
          Pieces pieces = own.ofBroadcast(mask);
          bool says = llvm::any_of(pieces, [&](const Piece &piece) {
            return piece.leaf.isNumber(fill) || (isa<SelectOp>(op) && piece.leaf.kind == Leaf::Number);
          });
          if (says)
            where = op, isConstant = own.readRuns();
          return says;
        },
        /*factors=*/true);
    return "'" + nodeName(where) + "' (" + where->getName().getStringRef().str() + ") of " +
           (isConstant ? "a constant" : "compared positions");
  }

  /// Says what hid a mask, where there is one; a bias is none.
  void explain() {
    forEachMask([&](Operation *op, Value mask) {
      auto select = dyn_cast<SelectOp>(op);
      bool hides = select ? isMaskingSelect(select) : holdsFill(mask) || (isOfCaller(mask) && isOfAttention());
      if (hides) {
        // What meets scores before they are reshaped is of their dims there.
        IndexFunctions own(softmax, dimsOf(op->getResult(0)), isNarrow(softmax, context));
        softmax->setAttr(dmir::kMaskUnknownAttr,
                         StringAttr::get(softmax.getContext(), reasonAgainst(own, softmax, op, mask, failure)));
      }
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
      OpOperand *scores = !op ? nullptr : op->hasTrait<DataMovement>() ? &op->getOpOperand(0) : operandOfSameType(op);
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

  dmir::SoftmaxOp softmax;
  const PhaseContext &context;
  std::optional<IndexFunctions> read[2]; ///< without and with `vectors`
  IndexFunctions *functions = nullptr;   ///< of these, the present ones
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
