//===- Distribution.cpp - what each quad computes -------------------------===//

#include "Constants.h"
#include "Spread.h"
#include "scores/Bands.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

Split dmxc::corsair::splitOf(lldmir::DealAttr deal, ArrayRef<int64_t> shape, int64_t quads) {
  const int64_t dim = deal ? deal.getDim() : -1;
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || deal.getQuads() != quads || quads < 2 || !shape[dim] ||
      shape[dim] % quads)
    return {};
  return {static_cast<int>(dim), shape[dim] / quads};
}

SmallVector<int64_t> dmxc::corsair::shareOf(ArrayRef<int64_t> shape, Split split) {
  SmallVector<int64_t> share(shape);
  if (split)
    share[split.dim] = split.part;
  return share;
}

bool dmxc::corsair::makesNothing(Operation *op) {
  return llvm::all_of(op->getResults(), [](Value result) { return elementsOf(result) == 0; });
}

bool dmxc::corsair::isDepthwise(dmir::ConvOp conv) {
  const auto groups = static_cast<int64_t>(conv.getGroups());
  return groups > 1 && shapeOf(conv.getInput())[1] == groups && shapeOf(conv.getWeights())[0] == groups;
}

bool dmxc::corsair::servesAsTiles(Value constant) {
  std::optional<uint64_t> groups; // of a product: 0, for its tiles are not a filter's
  return llvm::all_of(constant.getUses(), [&](OpOperand &use) {
    if (makesNothing(use.getOwner()))
      return true; // reads nothing
    auto conv = dyn_cast<dmir::ConvOp>(use.getOwner());
    if (use.getOperandNumber() != 1 || (conv ? isDepthwise(conv) : !isa<dmir::MatMulOp>(use.getOwner())))
      return false;
    const uint64_t own = conv ? conv.getGroups() : 0;
    groups = groups.value_or(own);
    return groups == own;
  });
}

bool dmxc::corsair::crossesAsTiles(BlockArgument argument, const llvm::DenseSet<Value> &packed) {
  auto type = cast<RankedTensorType>(argument.getType());
  if (!type.getElementType().isF32() || type.getRank() != 2 || !argument.hasOneUse() || packed.contains(argument))
    return false;
  OpOperand &use = *argument.getUses().begin();
  return isa<dmir::MatMulOp>(use.getOwner()) && use.getOperandNumber() == 0 && isProduct(use.getOwner()) &&
         packed.contains(use.getOwner()->getOperand(1)) && type.getNumElements() > 0;
}

OpOperand *dmxc::corsair::biasOf(Operation *add, llvm::function_ref<bool(Value)> isConstant) {
  if (!isa<dmir::AddOp>(add))
    return nullptr;
  for (OpOperand &use : add->getOpOperands()) {
    Operation *product = add->getOperand(1 - use.getOperandNumber()).getDefiningOp();
    if (!isa_and_present<dmir::MatMulOp, dmir::ConvOp>(product) || !product->hasOneUse() ||
        product->getResult(0).getType() != add->getResult(0).getType() || !isa<BlockArgument>(use.get()) ||
        !use.get().hasOneUse() || !isConstant(use.get()) || !elementOf(use.get()).isF32())
      continue;
    auto conv = dyn_cast<dmir::ConvOp>(product);
    auto weights = dyn_cast<BlockArgument>(product->getOperand(1));
    if (!weights || !isConstant(weights) || !becomesTiles(weights))
      continue;
    ArrayRef<int64_t> shape = shapeOf(use.get()), result = shapeOf(product->getResult(0));
    const size_t columns = conv ? 1 : result.size() - 1, missing = result.size() - shape.size();
    bool isVector =
        columns >= missing && shape[columns - missing] == result[columns] && elementsOf(product->getResult(0));
    for (size_t dim = 0; dim < shape.size(); ++dim)
      isVector &= dim + missing == columns || shape[dim] == 1;
    if (isVector)
      return &use;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// In the text
//===----------------------------------------------------------------------===//

/// The operand number of a value.
static int64_t numberOf(Operation *op, Value operand) {
  return llvm::find(op->getOperands(), operand) - op->operand_begin();
}

static lldmir::DealAttr dealOfOp(Operation *op, const Distribution &deal) {
  const Split split = deal.at(op->getResult(0));
  return lldmir::DealAttr::get(op->getContext(),
                               deal.depth.contains(op) ? lldmir::DealAttr::kSums
                               : split                 ? split.dim
                                                       : lldmir::DealAttr::kWhole,
                               deal.quads, deal.folded.contains(op->getResult(0)));
}

void Distribution::write(Block *body) const {
  auto isBiased = [&](Operation *op) { // has what the product has
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && biases.lookup(operand.getDefiningOp()) == op;
    });
  };
  Builder b(body->getParentOp()->getContext());
  for (Operation &op : body->without_terminator()) {
    for (StringRef key : {lldmir::kDealAttr, lldmir::kGatherAttr, lldmir::kBiasAttr, lldmir::kBandsAttr})
      op.removeAttr(key);
    if (bands.contains(&op))
      op.setAttr(lldmir::kBandsAttr, b.getUnitAttr());
    if (isa<dmir::ConstantOp>(op) || makesNothing(&op))
      continue;
    if (quads > 1 && !isView(&op) && !isBiased(&op))
      op.setAttr(lldmir::kDealAttr, dealOfOp(&op, *this));
    SmallVector<int64_t> numbers;
    if (auto found = gathers.find(&op); found != gathers.end())
      for (Value value : found->second)
        numbers.push_back(numberOf(&op, value));
    if (!numbers.empty())
      op.setAttr(lldmir::kGatherAttr, b.getDenseI64ArrayAttr(numbers));
  }
  for (auto [product, add] : biases)
    add->setAttr(lldmir::kBiasAttr, b.getUnitAttr());
}

DictionaryAttr Distribution::inputDeals(Block *body, llvm::function_ref<bool(BlockArgument)> isInput) const {
  MLIRContext *context = body->getParentOp()->getContext();
  NamedAttrList list;
  for (BlockArgument argument : body->getArguments())
    if (quads > 1 && isInput(argument)) {
      const Split split = at(argument);
      list.set(std::to_string(argument.getArgNumber()),
               lldmir::DealAttr::get(context, split ? split.dim : lldmir::DealAttr::kWhole, quads,
                                     folded.contains(argument)));
    }
  return list.getDictionary(context);
}

namespace {

/// Takes up the attributes of one op after the other.
class DealReader {
public:
  DealReader(Distribution &out, llvm::function_ref<bool(Value)> isConstant) : out(out), isConstant(isConstant) {}

  /// What is wrong with the attributes of an op, a clause; empty where nothing is.
  std::string read(Operation *op) {
    if (isa<dmir::ConstantOp>(op) || makesNothing(op))
      return {};
    if (auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(lldmir::kGatherAttr))
      for (int64_t number : numbers.asArrayRef()) {
        if (number < 0 || number >= static_cast<int64_t>(op->getNumOperands()))
          return problem(op, lldmir::kGatherAttr, "it has no operand " + std::to_string(number));
        out.gathers[op].push_back(op->getOperand(number));
        made.insert(op->getOperand(number));
      }
    OpOperand *bias = op->hasAttr(lldmir::kBiasAttr) ? biasOf(op, isConstant) : nullptr;
    Operation *biased = bias ? op->getOperand(1 - bias->getOperandNumber()).getDefiningOp() : nullptr;
    if (op->hasAttr(lldmir::kBiasAttr) && !biased)
      return problem(op, lldmir::kBiasAttr,
                     "it adds no constant vector of the columns to a product that it alone reads");
    if (biased)
      out.biases[biased] = op;
    auto given = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
    if (given && given.getQuads() != out.quads)
      return problem(op, lldmir::kDealAttr, "the kernel is for a team of " + std::to_string(out.quads));
    if (given)
      if (std::optional<std::string> why = unfit(op, given, out))
        return problem(op, lldmir::kDealAttr, *why);
    if ((given && given.getFolded()) || (isView(op) && out.folded.contains(op->getOperand(0))))
      out.folded.insert(op->getResult(0));
    if (isView(op))
      set(op, viewedSplit(op, now(op->getOperand(0)), out.quads).value_or(Split()));
    else if (biased)
      set(op, now(biased->getResult(0)));
    else if (given && given.isSums())
      out.depth[op] = shapeOf(op->getOperand(0)).back() / out.quads;
    else if (given && given.getDim() >= 0)
      set(op, {static_cast<int>(given.getDim()), shapeOf(op->getResult(0))[given.getDim()] / out.quads});
    else if (!given && out.quads > 1)
      return lacks(lldmir::kDealAttr);
    if (dealsColumns(op, out.at(op->getResult(0)), out.packed))
      out.columns[op] = out.at(op->getResult(0)).part;
    return isProduct(op) && !op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr) ? lacks(lldmir::kPlanAttr) : "";
  }

private:
  static std::string problem(Operation *op, StringRef key, const std::string &why) {
    std::string text;
    llvm::raw_string_ostream(text) << "'" << key << "' is " << op->getAttr(key) << ", but " << why;
    return text;
  }
  static std::string lacks(StringRef key) {
    return "it has no '" + key.str() + "', which the phase partition gives it";
  }
  Split now(Value value) const { return made.contains(value) ? Split() : out.at(value); }
  void set(Operation *op, Split split) {
    if (split)
      for (Value result : op->getResults())
        out.of[result] = split;
  }

  Distribution &out;
  llvm::function_ref<bool(Value)> isConstant;
  llvm::DenseSet<Value> made; ///< whole after their definition
};

} // namespace

Result<Distribution> Distribution::read(Block *body, int quads, DictionaryAttr inputs,
                                        llvm::function_ref<bool(BlockArgument)> isPacked) {
  Distribution result;
  result.quads = quads;
  for (BlockArgument argument : body->getArguments()) {
    if (isPacked(argument) && becomesTiles(argument))
      result.packed.insert(argument);
    Attribute given = inputs ? inputs.get(std::to_string(argument.getArgNumber())) : Attribute();
    auto deal = dyn_cast_or_null<lldmir::DealAttr>(given);
    const Split split = splitOf(deal, shapeOf(argument), quads);
    if (deal && deal.getDim() >= 0 && !split)
      return modelError("the deal of argument " + std::to_string(argument.getArgNumber()) + " gives no parts to " +
                        std::to_string(quads) + " quads");
    if (split)
      result.of[argument] = split;
    if (deal && deal.getFolded())
      result.folded.insert(argument);
  }
  auto isConstant = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && isPacked(argument);
  };
  DealReader reader(result, isConstant);
  for (Operation &op : body->without_terminator())
    if (std::string why = reader.read(&op); !why.empty())
      return modelError("node '" + dmir::nodeName(&op) + "': " + why);
  if (Status banded = readBands(body, result); !banded)
    return banded.takeError();
  if (Status folds = checkFolds(body, result); !folds)
    return folds.takeError();
  return result;
}

bool dmxc::corsair::dealsColumns(Operation *op, Split split, const llvm::DenseSet<Value> &packed) {
  if (!split || !isProduct(op) || !packed.contains(op->getOperand(1)))
    return false;
  return isa<dmir::ConvOp>(op) ? split.dim == 1 : split.dim + 1 == static_cast<int>(shapeOf(op->getResult(0)).size());
}
