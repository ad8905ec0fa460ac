//===- Sparsity.cpp - what masks leave out --------------------------------===//
#include "Sparsity.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Support/Visible.h"
#include "dmxc/Target/TargetBackend.h"

#include "llvm/Support/Format.h"

using namespace mlir;

namespace dmxc::driver {

bool skips(DictionaryAttr strategy, StringRef what) {
  auto all = strategy ? strategy.getAs<ArrayAttr>(strategy::kSkips) : ArrayAttr();
  return all && llvm::is_contained(all, StringAttr::get(strategy.getContext(), what));
}

namespace {

/// Reads one attention of a region.
class Reader {
public:
  Reader(dmir::RegionOp region, dmir::SoftmaxOp softmax, std::optional<dmir::TileSize> wanted)
      : region(region), softmax(softmax), wanted(wanted) {
    Value scores = softmax.getInput(); // the mask may be computed with the product, in a region before
    for (Value next = scores; next; next = acrossRegions(scores))
      scores = next;
    mask = scores.getDefiningOp<dmir::MaskOp>();
  }

  /// Nothing of scores that no mask was seen to meet.
  std::optional<MaskedAttention> read() {
    auto from = softmax->getAttrOfType<StringAttr>(dmir::kMaskFromAttr),
         unknown = softmax->getAttrOfType<StringAttr>(dmir::kMaskUnknownAttr);
    if (!mask && !unknown)
      return std::nullopt;
    if (auto strategy = region.getStrategyAttr())
      readStrategy(strategy);
    one.node = dmir::nodeName(softmax);
    one.rest = rest();
    if (!mask) {
      one.from = unknown.str();
      return one;
    }
    one.from = from ? from.str() : "the model's text";
    dmir::Rule rule = dmir::ruleOf(mask);
    for (auto [position, value] : llvm::enumerate(mask.getValues())) {
      std::string after, name = nameOf(comparedIn(value, after));
      dmir::RuleValue &own = rule.values[position];
      auto before = ArrayRef(rule.values).take_front(position); // one node may compute several
      auto others = llvm::count_if(before, [&](const dmir::RuleValue &other) {
        bool sameIndex = other.ofRows == own.ofRows && other.ofColumns == own.ofColumns;
        return sameIndex && StringRef(other.name).starts_with(name);
      });
      own.after = after;
      own.name = others ? name + " (" + std::to_string(others + 1) + ")" : name;
    }
    one.rule = dmir::describe(rule);
    llvm::raw_string_ostream stream(one.fill);
    cast<FloatAttr>(mask.getFill()).getValue().print(stream);
    StringRef trimmed = StringRef(one.fill).trim();
    one.fill = trimmed.str();
    count(rule);
    return one;
  }

private:
  void readStrategy(DictionaryAttr strategy) {
    if (auto algorithm = strategy.getAs<StringAttr>(strategy::kAlgorithm))
      one.algorithm = algorithm.str();
    one.skips = skips(strategy, "scores");
    auto tile = strategy.getAs<ArrayAttr>(strategy::kTile);
    if (tile && tile.size() == 3 && llvm::all_of(tile, [](Attribute n) { return isa<IntegerAttr>(n); })) {
      auto number = [&](unsigned i) { return std::max<int64_t>(1, cast<IntegerAttr>(tile[i]).getInt()); };
      one.tile = dmir::TileSize{number(0), number(1), number(2)};
    }
  }

  void count(const dmir::Rule &rule) {
    auto known = [](ArrayRef<Dim> dims) -> std::optional<SmallVector<int64_t>> {
      SmallVector<int64_t> numbers;
      for (Dim dim : dims)
        numbers.push_back(dim.valueOr(-1));
      return llvm::is_contained(numbers, -1) ? std::nullopt : std::optional(numbers);
    };
    auto extents = known(dmir::dimsOf(mask.getInput())), symbols = known(rule.dims);
    if (!extents || !symbols || !rule.values.empty())
      return;
    constexpr int64_t usual = 64;
    one.counts = dmir::countAllTiles(rule, *extents, *symbols,
                                     wanted.value_or(one.tile.value_or(dmir::TileSize{usual, usual, usual})));
    if (one.counts && (one.tile || !one.skips)) // else what is computed is not told by tiles
      one.operations = 2.0 * static_cast<double>(one.counts->elements) * static_cast<double>(depths());
    if (wanted)
      one.tile = wanted;
  }

  /// Terms of a score's sum, and of a result's for each score.
  int64_t depths() {
    int64_t sum = 0;
    Dim scores = dmir::elementsOf(mask.getType());
    for (Operation &op : *region.getBlock())
      if (auto product = dyn_cast<dmir::MatMulOp>(op)) {
        bool makesScores = dmir::elementsOf(product.getResult().getType()) == scores;
        Value operand = makesScores ? product.getLhs() : product.getResult();
        sum += dmir::dimsOf(operand).back().valueOr(0);
      }
    return sum;
  }

  /// The tensor beside the scores that is added to them, or chooses among them and a number.
  std::string rest() {
    Value value = mask ? mask.getInput() : softmax.getInput();
    std::string text;
    for (int steps = 0; steps < 16; ++steps) {
      Operation *op = value.getDefiningOp();
      if (!op || isa<dmir::MatMulOp>(op))
        return text;
      Value next = isa<dmir::ReshapeOp>(op) ? op->getOperand(0) : Value();
      for (Value operand : op->getOperands()) {
        if (!next && operand.getType() == op->getResult(0).getType())
          next = operand;
        else if (isa<dmir::AddOp, dmir::SelectOp>(op) && !dmir::elementsOf(operand.getType()).is(1))
          text += (text.empty() ? "" : ", ") + nameOf(operand, /*loosely=*/true) + " of " + shapeOf(operand);
      }
      if (!next)
        return text;
      value = next;
    }
    return text;
  }

  /// The same value on the other side of a region's edge; null for others.
  static Value acrossRegions(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto owner = dyn_cast<dmir::RegionOp>(argument.getOwner()->getParentOp());
      return owner ? owner->getOperand(argument.getArgNumber()) : Value();
    }
    auto inner = value.getDefiningOp<dmir::RegionOp>();
    return inner ? inner.getYield()->getOperand(cast<OpResult>(value).getResultNumber()) : Value();
  }

  /// What a value is a form of that has no name of the model's, as what the mask was given its values by; null for
  /// others. `loosely`: also what a region computes from it alone.
  static Value sourceOf(Value value, bool loosely) {
    Operation *op = value.getDefiningOp();
    if (loosely && mlir::isa_and_nonnull<dmir::RegionOp>(op))
      return op->getNumOperands() == 1 ? op->getOperand(0) : Value();
    if (mlir::isa_and_nonnull<dmir::ReshapeOp, dmir::CastOp>(op))
      return op->getOperand(0);
    return acrossRegions(value);
  }

  /// What is compared with a number, where a bool says that, and ` > number`; else the value.
  static Value comparedIn(Value value, std::string &after) {
    Value compared = value;
    while (mlir::isa_and_nonnull<dmir::ReshapeOp>(compared.getDefiningOp()) || mlir::isa<BlockArgument>(compared) ||
           mlir::isa_and_nonnull<dmir::RegionOp>(compared.getDefiningOp())) {
      Value source = sourceOf(compared, false);
      if (!source)
        return value;
      compared = source;
    }
    auto compare = compared.getDefiningOp<dmir::CompareOp>();
    std::optional<Tensor> number = compare ? dmir::constantTensor(compare.getRhs()) : std::nullopt;
    if (!number || number->numElements() != 1 || compare.getKind() != dmir::Compare::gt)
      return value;
    llvm::raw_string_ostream(after) << llvm::format(" > %g", number->asDouble(0));
    return compare.getLhs();
  }

  std::string nameOf(Value value, bool loosely = false) {
    for (Value next = value; next; next = sourceOf(value, loosely))
      value = next;
    if (Operation *op = value.getDefiningOp())
      return "'" + dmir::nodeName(op) + "'";
    auto argument = cast<BlockArgument>(value);
    auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
    auto name =
        function ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), dmir::kNameAttr) : StringAttr();
    return name ? "'" + visible(name.getValue()) + "'" : "an input";
  }

  static std::string shapeOf(Value value) {
    std::string text;
    for (Dim dim : dmir::dimsOf(value))
      text += (text.empty() ? "" : " x ") + dim.str();
    return text;
  }

  dmir::RegionOp region;
  dmir::SoftmaxOp softmax;
  dmir::MaskOp mask;
  std::optional<dmir::TileSize> wanted;
  MaskedAttention one;
};

} // namespace

double MaskedAttention::issued() const {
  if (!skips || !counts || !counts->elements)
    return operations;
  return operations * static_cast<double>(counts->visited) / static_cast<double>(counts->elements);
}

std::vector<MaskedAttention> maskedAttentions(ModuleOp module, std::optional<dmir::TileSize> tile) {
  std::vector<MaskedAttention> all;
  module.walk([&](dmir::RegionOp region) {
    region.walk([&](dmir::SoftmaxOp softmax) {
      if (auto one = Reader(region, softmax, tile).read())
        all.push_back(std::move(*one));
      softmax->removeAttr(dmir::kMaskFromAttr);
      softmax->removeAttr(dmir::kMaskUnknownAttr);
    });
  });
  return all;
}

} // namespace dmxc::driver
