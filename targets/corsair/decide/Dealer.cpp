//===- Dealer.cpp - what each quad of a team computes ---------------------===//

#include "../user/UserBody.h"
#include "Constants.h"
#include "Decide.h"
#include "ViewLayout.h"
#include "scores/Bands.h"

#include "dmxc/Dialect/DMIR/masks/Where.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

namespace {

class Dealer {
public:
  Dealer(const hw::Machine &machine, Distribution &out, llvm::function_ref<bool(Value)> isConstant,
         bool fetchesWeights = false)
      : machine(machine), out(out), isConstant(isConstant), fetchesWeights(fetchesWeights) {}

  /// Why an op cannot be dealt as its attributes say; nullopt if it can.
  std::optional<Error> deal(Operation *op) {
    wanted.reset();
    problem.reset();
    if (!readGiven(op) || isa<dmir::ConstantOp>(op) || makesNothing(op))
      return std::move(problem);
    dealByKind(op);
    return std::move(problem);
  }

  /// What goes back to the host has no gaps.
  void returned(Value value) {
    Operation *op = value.getDefiningOp();
    if (op && isView(op) && !makesNothing(op) && !viewLayout(value).isDense())
      vector(elementsOf(value), out.at(value) ? out.quads : 1);
  }

private:
  void dealByKind(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](dmir::MatMulOp matmul) { dealMatmul(matmul); })
        .Case([&](dmir::ConvOp conv) { dealConv(conv); })
        .Case<dmir::TransposeOp, dmir::ReshapeOp, dmir::SliceOp, dmir::BroadcastOp>([&](auto) { dealView(op); })
        .Case([&](dmir::ConcatOp concat) { dealConcat(concat); })
        .Case([&](dmir::ReduceOp reduce) { dealRows(op, reduce.getAxes()); })
        .Case([&](dmir::SoftmaxOp softmax) {
          int64_t axis = softmax.getAxis();
          dealRows(op, axis);
        })
        .Case<dmir::ArgReduceOp, dmir::CumSumOp>(
            [&](auto along) { dealRows(op, {static_cast<int64_t>(along.getAxis())}); })
        .Case([&](dmir::NormalizeOp normalize) { dealRows(op, normalize.getAxes()); })
        .Case([&](dmir::MaskOp mask) { dealRows(op, typeOf(mask.getInput()).getRank() - 1, 1); })
        .Case([&](dmir::GatherOp gather) { dealGather(gather); })
        .Case<dmir::PoolOp, dmir::PadOp, dmir::ScatterElementsOp>([&](auto) {
          for (Value operand : op->getOperands())
            makeWhole(op, operand);
          vector(elementsOf(op->getResult(0)), 1);
        })
        .Case([&](dmir::ExternOp user) { dealUser(user); })
        .Default([&](Operation *) { dealElementwise(op); });
  }

  //--- what the text has
  bool refuse(Operation *op, StringRef key, const Twine &why) {
    std::string text;
    llvm::raw_string_ostream(text) << op->getAttr(key);
    problem = modelError("node '" + dmir::nodeName(op) + "': '" + key.str() + "' is " + text + ", but " + why.str() +
                         "; what is left out is decided");
    return false;
  }

  /// Takes up an op's attributes. False where they cannot be obeyed.
  bool readGiven(Operation *op) {
    if (op->hasAttr(lldmir::kBiasAttr) && !biasOf(op, isConstant))
      return refuse(op, lldmir::kBiasAttr,
                    "it adds no constant vector of the columns to a product that it alone reads");
    if (Attribute gather = op->getAttr(lldmir::kGatherAttr)) {
      auto numbers = dyn_cast<DenseI64ArrayAttr>(gather);
      if (!numbers || llvm::any_of(numbers.asArrayRef(), [&](int64_t number) {
            return number < 0 || number >= static_cast<int64_t>(op->getNumOperands());
          }))
        return refuse(op, lldmir::kGatherAttr,
                      "of its " + Twine(op->getNumOperands()) + " operands it has no such one");
      for (int64_t number : numbers.asArrayRef())
        makeWhole(op, op->getOperand(number));
    }
    Attribute given = op->getAttr(lldmir::kDealAttr);
    if (!given)
      return true;
    auto deal = dyn_cast<lldmir::DealAttr>(given);
    if (!deal)
      return refuse(op, lldmir::kDealAttr, "a deal is needed");
    if (deal.getQuads() != out.quads)
      return refuse(op, lldmir::kDealAttr, "the region is for a team of " + Twine(out.quads));
    if (std::optional<std::string> why = unfit(op, deal, out))
      return refuse(op, lldmir::kDealAttr, *why);
    wanted = deal;
    if (deal.getFolded())
      out.folded.insert(op->getResult(0));
    return true;
  }

  /// The split that the text wants of a result, else `chosen`.
  Split wantedOr(Operation *op, Split chosen) const {
    if (!wanted)
      return chosen;
    return wanted->getDim() < 0
               ? Split()
               : along(static_cast<int>(wanted->getDim()), shapeOf(op->getResult(0))[wanted->getDim()]);
  }

  //--- costs, in clocks
  void vector(int64_t elements, int quads, double clocks = 1) {
    out.clocks += 20 + static_cast<double>(elements) * clocks / (machine.lanes * machine.slices * quads);
  }
  /// Every quad sends its part to all; the link's rate bounds what arrives.
  double gatherClocks(Value value) const {
    return 150 + 2.0 * static_cast<double>(elementsOf(value)) / machine.noc.bytesPerClock;
  }

  Split splitOf(Value value) const {
    auto now = current.find(value);
    return now != current.end() ? now->second : out.at(value);
  }
  void makeWhole(Operation *op, Value value) {
    if (!splitOf(value))
      return;
    if (!llvm::is_contained(out.gathers[op], value))
      out.gathers[op].push_back(value);
    current[value] = Split();
    out.clocks += gatherClocks(value);
  }
  void set(Operation *op, Split split) {
    for (Value result : op->getResults())
      out.of[result] = split;
  }
  bool divides(int64_t extent) const { return out.quads > 1 && extent >= out.quads && extent % out.quads == 0; }
  Split along(int dim, int64_t extent) const { return {dim, extent / out.quads}; }

  /// A dim to deal a fresh value out by: the outermost that divides and that is not excluded; none for small values.
  Split fresh(ArrayRef<int64_t> shape, ArrayRef<int64_t> excluded) const {
    if (ShapedType::getNumElements(shape) < int64_t(machine.lanes) * machine.slices * out.quads)
      return {};
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (divides(shape[dim]) && !llvm::is_contained(excluded, dim))
        return along(static_cast<int>(dim), shape[dim]);
    return {};
  }

  //--- ops of the vector device
  void dealElementwise(Operation *op) {
    if (OpOperand *bias = biasOf(op, isConstant)) {
      Value product = op->getOperand(1 - bias->getOperandNumber());
      if (!out.depth.contains(product.getDefiningOp())) {
        out.biases[product.getDefiningOp()] = op;
        if (!(wantedOr(op, splitOf(product)) == splitOf(product)))
          refuse(op, lldmir::kDealAttr, "the product to which it adds a vector is dealt otherwise");
        return set(op, splitOf(product));
      }
    }
    ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
    Split split;
    for (Value operand : op->getOperands()) {
      Split own = lifted(operand, shape.size());
      if (own && !split)
        split = own;
    }
    if (!split)
      split = fresh(shape, {});
    split = wantedOr(op, split);
    for (Value operand : op->getOperands())
      if (Split own = lifted(operand, shape.size()); own && !(own == split))
        makeWhole(op, operand);
    set(op, split);
    vector(ShapedType::getNumElements(shape), split ? out.quads : 1);
  }

  /// An operand's split, its dims counted as those of a result of this rank.
  Split lifted(Value operand, size_t rank) const {
    Split split = splitOf(operand);
    if (split)
      split.dim += static_cast<int>(rank - shapeOf(operand).size());
    return split;
  }

  void dealRows(Operation *op, ArrayRef<int64_t> axes, double clocks = 4) {
    Value source = op->getOperand(0);
    if (Split split = splitOf(source); split && llvm::is_contained(axes, split.dim))
      makeWhole(op, source);
    // A dim's number in the result.
    auto kept = [&](Split split) {
      if (split && shapeOf(op->getResult(0)).size() != shapeOf(source).size())
        split.dim -= static_cast<int>(llvm::count_if(axes, [&](int64_t axis) { return axis < split.dim; }));
      return split;
    };
    Split split = splitOf(source);
    if (!split)
      split = fresh(shapeOf(source), axes);
    const Split result = wantedOr(op, kept(split));
    if (!(kept(splitOf(source)) == result))
      makeWhole(op, source);
    vector(elementsOf(source), result ? out.quads : 1, clocks);
    if (viewLayout(source).dimsOfWalk(axes) > kSimdDims) // its rows are copied side by side before
      vector(elementsOf(source), result ? out.quads : 1);
    set(op, result);
  }

  /// A view has what its operand has.
  void dealView(Operation *op) {
    std::optional<Split> split = viewedSplit(op, splitOf(op->getOperand(0)), out.quads);
    if (!split || (wanted && wanted->isWhole()))
      makeWhole(op, op->getOperand(0));
    set(op, split && splitOf(op->getOperand(0)) ? *split : Split());
    if (viewCopies(op))
      vector(elementsOf(op->getResult(0)), out.at(op->getResult(0)) ? out.quads : 1);
    if (wanted && !(wantedOr(op, {}) == out.at(op->getResult(0))))
      refuse(op, lldmir::kDealAttr, "a view has what its operand has");
  }

  void dealConcat(dmir::ConcatOp op) {
    Split split;
    for (Value input : op.getInputs())
      if (Split own = splitOf(input); own && own.dim != static_cast<int>(op.getAxis()))
        split = own;
    split = wantedOr(op, split);
    for (Value input : op.getInputs())
      if (Split own = splitOf(input); own && !(own == split))
        makeWhole(op, input);
    set(op, split);
    vector(elementsOf(op.getResult()), split ? out.quads : 1);
  }

  /// By the indices, which lead the result's dims where rows are gathered.
  void dealGather(dmir::GatherOp op) {
    makeWhole(op, op.getData());
    makeWhole(op, op.getIndices());
    Split split = fresh(shapeOf(op.getResult()), {});
    if (split && !mayDeal(op, split.dim, out))
      split = {};
    split = wantedOr(op, split);
    set(op, split);
    vector(elementsOf(op.getResult()), split ? out.quads : 1, 4);
  }

  /// Each quad computes all of it.
  void dealUser(dmir::ExternOp op) {
    for (Value operand : op->getOperands())
      makeWhole(op, operand);
    Result<UserText> text = readUserText(op, machine);
    if (!text)
      problem = text.takeError();
    else
      out.clocks += clocksOf(*text, machine);
  }

  //--- products
  /// The dim of A by which the product's rows are dealt out; none when there is none.
  Split rowSplit(Value lhs) const {
    ArrayRef<int64_t> shape = shapeOf(lhs);
    int last = static_cast<int>(shape.size()) - 1;
    if (Split split = splitOf(lhs))
      return split.dim == last ? Split() : split;
    for (int dim = 0; dim < last; ++dim)
      if (divides(shape[dim]))
        return along(dim, shape[dim]);
    return {};
  }

  void dealMatmul(dmir::MatMulOp op) {
    if (out.packed.contains(op.getRhs()))
      return dealConstantProduct(op);
    Value lhs = op.getLhs(), rhs = op.getRhs();
    ArrayRef<int64_t> shape = shapeOf(op.getResult());
    const int rank = static_cast<int>(shape.size());
    Split split = batchSplit(op);
    if (!split) {
      Split rows = rowSplit(lhs);
      if (rows)
        rows.dim += rank - static_cast<int>(shapeOf(lhs).size());
      split = rows;
    }
    split = wantedOr(op, split);
    // What is not split like the result must be whole.
    auto settle = [&](Value operand, bool isRhs) {
      Split own = lifted(operand, rank);
      bool matches = own == split && !(isRhs && own.dim >= rank - 2);
      if (own && !matches)
        makeWhole(op, operand);
    };
    settle(lhs, false);
    settle(rhs, true);
    set(op, split);
    Spread product = productOf(op, out);
    product.batch = elementsOf(op.getResult()) / ((split ? out.quads : 1) * product.m * product.n);
    out.clocks += arrayClocks(machine, chooseSpread(machine, product));
  }

  /// A dim over which both operands have matrices of their own.
  Split batchSplit(dmir::MatMulOp op) const {
    ArrayRef<int64_t> a = shapeOf(op.getLhs()), b = shapeOf(op.getRhs()), shape = shapeOf(op.getResult());
    const int rank = static_cast<int>(shape.size());
    for (Value operand : {op.getLhs(), op.getRhs()})
      if (Split own = lifted(operand, rank); own && own.dim < rank - 2)
        return own;
    if (splitOf(op.getLhs()))
      return {};
    for (int dim = 0; dim + 2 < rank; ++dim) {
      int inA = dim - (rank - static_cast<int>(a.size())), inB = dim - (rank - static_cast<int>(b.size()));
      if (divides(shape[dim]) && inA >= 0 && inB >= 0 && a[inA] == shape[dim] && b[inB] == shape[dim])
        return along(dim, shape[dim]);
    }
    return {};
  }

  /// By rows, by columns or along K, whichever is fastest with what it takes to bring A there.
  void dealConstantProduct(dmir::MatMulOp op) {
    Value lhs = op.getLhs();
    ArrayRef<int64_t> shape = shapeOf(op.getResult());
    const int last = static_cast<int>(shape.size()) - 1;
    const int64_t m = packedRows(shape), n = shape.back(), k = shapeOf(lhs).back(), quads = out.quads;
    const auto kept = out.zeros.lookup(op.getRhs());
    auto clocks = [&](int64_t rows, int64_t columns, int64_t depth) {
      Spread product = Spread::ofSizes(rows, columns, depth);
      if (kept && depth == k)
        product.columns = columns == n ? kept : kept->folded(columns);
      const Spread plan = chooseSpread(machine, product);
      return arrayClocks(machine, plan) + fetchClocks(plan);
    };
    constexpr double never = std::numeric_limits<double>::infinity();
    const Split now = splitOf(lhs), rows = rowSplit(lhs);
    const double gather = now ? gatherClocks(lhs) : 0;
    const double alone = clocks(m, n, k) + gather;
    const double byRows = rows ? clocks(m / quads, n, k) : never;
    // The result of columns is likely to be made whole by its reader.
    const bool own = op.getRhs().hasOneUse(); // quads' own tiles would not serve other uses
    const double byColumns =
        own && divides(n) ? clocks(m, n / quads, k) + gather + gatherClocks(op.getResult()) / 2 : never;
    double alongK = never;
    const bool wantsSums = wanted && wanted->isSums();
    if (wantsSums || (own && quads > 1 && k % (64 * quads) == 0 && (n + 63) / 64 < quads && (m + 63) / 64 < quads))
      alongK = clocks(m, n, k / quads) + (now && now.dim != last ? gather : 0) + sumClocks(op.getResult());
    const double best = std::min({alone, byRows, byColumns, alongK});
    Split result = best == byRows ? rows : best == byColumns ? along(last, n) : Split();
    const bool sums = wanted ? wanted->isSums() : best == alongK && best != byRows && best != byColumns;
    result = wantedOr(op, result);
    const double taken = sums ? alongK : !result ? alone : result.dim == last ? byColumns : byRows;
    if (now && !(now == result && result.dim != last) && !(sums && now.dim == last))
      makeWhole(op, lhs), out.clocks -= gather; // it is part of the estimate
    if (sums)
      out.depth[op] = k / quads;
    else if (dealsColumns(op, result, out.packed))
      out.columns[op] = n / quads;
    set(op, result);
    out.clocks += std::isinf(taken) ? best : taken;
  }

  /// Sums of all quads to all quads, in f32, and adding them up.
  double sumClocks(Value value) const {
    const double elements = static_cast<double>(elementsOf(value)), others = out.quads - 1;
    return 200 + others * (4 * elements / machine.noc.bytesPerClock + 20 + elements / (machine.lanes * machine.slices));
  }

  /// What weights take that are fetched: DDR serves a chiplet's quads one after the other, a quad's slices at once.
  double fetchClocks(const Spread &plan) const {
    const auto sharers = std::min<int64_t>(out.quads, machine.quadsPerChiplet());
    return fetchesWeights ? static_cast<double>(sharers * plan.bytesPerSlice()) / machine.memory(hw::Memory::DDR).read
                          : 0;
  }

  void dealConv(dmir::ConvOp op) {
    for (Value operand : op->getOperands())
      makeWhole(op, operand);
    ArrayRef<int64_t> shape = shapeOf(op.getResult()), weights = shapeOf(op.getWeights());
    if (isDepthwise(op)) {
      set(op, {});
      return vector(elementsOf(op.getResult()), 1,
                    static_cast<double>(ShapedType::getNumElements(weights.drop_front(2))));
    }
    const auto groups = static_cast<int64_t>(op.getGroups());
    const auto images = static_cast<double>(shape[0] * groups);
    const int64_t channels = shape[1] / groups, pixels = ShapedType::getNumElements(shape.drop_front(2));
    Spread product = productOf(op, out);
    auto clocks = [&](double matrices, int64_t count, int64_t columns) {
      product.m = count, product.n = columns;
      const Spread plan = chooseSpread(machine, product);
      return matrices * arrayClocks(machine, plan) + static_cast<double>(groups) * fetchClocks(plan);
    };
    const int row = static_cast<int>(shape.size()) > 3 ? 2 : -1;
    auto clocksOf = [&](Split split) {
      return !split           ? clocks(images, pixels, channels)
             : split.dim == 0 ? clocks(images / out.quads, pixels, channels)
             : split.dim == 1 ? clocks(images, pixels, channels / out.quads)
                              : clocks(images, pixels / out.quads, channels);
    };
    Split result;
    if (divides(shape[0]))
      result = along(0, shape[0]);
    else if (row > 0 && divides(shape[row]))
      result = along(row, shape[row]);
    const bool own = groups == 1 && op.getWeights().hasOneUse();
    if (own && divides(channels) && clocksOf(along(1, channels)) < clocksOf(result))
      result = along(1, channels);
    result = wantedOr(op, result);
    set(op, result);
    if (dealsColumns(op, result, out.packed))
      out.columns[op] = result.part;
    out.clocks += clocksOf(result);
  }

  const hw::Machine &machine;
  Distribution &out;
  llvm::function_ref<bool(Value)> isConstant;
  const bool fetchesWeights;
  /// Values that were made whole after their definition.
  llvm::DenseMap<Value, Split> current;
  /// Of the op that is being dealt: what the text wants of it, and why that cannot be.
  std::optional<lldmir::DealAttr> wanted;
  std::optional<Error> problem;
};

} // namespace

bool dmxc::corsair::readsPart(Operation *op, Value operand, Split part, const Distribution &deal,
                              const hw::Machine &machine, llvm::function_ref<bool(Value)> isConstant) {
  Distribution trial;
  trial.quads = deal.quads;
  trial.packed = deal.packed;
  trial.zeros = deal.zeros;
  for (Value value : op->getOperands())
    trial.of[value] = deal.at(value);
  trial.of[operand] = part;
  auto gathers = deal.gathers.find(op);
  const bool refused = Dealer(machine, trial, isConstant).deal(op).has_value();
  // What it gathers besides it gathers anyhow.
  return !refused && !llvm::is_contained(trial.gathers[op], operand) &&
         (gathers == deal.gathers.end() || !llvm::is_contained(gathers->second, operand)) &&
         trial.at(op->getResult(0)) == deal.at(op->getResult(0)) && trial.depth.lookup(op) == deal.depth.lookup(op);
}

Result<Distribution> dmxc::corsair::distribute(Block *body, const hw::Machine &machine, int quads,
                                               const llvm::DenseMap<Value, Split> &inputs, const ArgumentKinds &kinds) {
  DecisionsMade::check("a deal");
  Distribution result;
  result.quads = quads;
  result.of = inputs;
  for (BlockArgument argument : body->getArguments())
    if (kinds.isConstant(argument) && becomesTiles(argument))
      result.packed.insert(argument);
  for (Value weights : result.packed)
    if (auto columns = kinds.zeros ? kinds.zeros(weights) : nullptr)
      result.zeros[weights] = columns;
  Dealer dealer(machine, result, kinds.isConstant, kinds.fetchesWeights);
  for (Operation &op : body->without_terminator())
    if (std::optional<Error> problem = dealer.deal(&op))
      return *problem;
  for (Value value : body->getTerminator()->getOperands())
    dealer.returned(value);
  if (Status banded = readBands(body, result); !banded)
    return banded.takeError();
  chooseBands(body, result);
  return result;
}
