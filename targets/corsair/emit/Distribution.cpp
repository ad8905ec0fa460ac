//===- Distribution.cpp - what each quad computes -------------------------===//

#include "Distribution.h"
#include "Constants.h"
#include "MatmulView.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "llvm/ADT/TypeSwitch.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static int64_t product(ArrayRef<int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t(1), std::multiplies<>());
}
static int64_t elementsOf(Value value) { return product(shapeOf(value)); }

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

namespace {

class Dealer {
public:
  Dealer(const hw::Machine &machine, Distribution &out, llvm::function_ref<bool(Value)> isConstant)
      : machine(machine), out(out), isConstant(isConstant) {}

  void deal(Operation *op) {
    if (isa<dmir::ConstantOp>(op) || makesNothing(op))
      return;
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](dmir::MatMulOp matmul) { dealMatmul(matmul); })
        .Case([&](dmir::ConvOp conv) { dealConv(conv); })
        .Case([&](dmir::TransposeOp transpose) { dealTranspose(transpose); })
        .Case([&](dmir::ReshapeOp reshape) { dealReshape(reshape); })
        .Case([&](dmir::SliceOp slice) { dealSlice(slice); })
        .Case([&](dmir::BroadcastOp broadcast) { dealBroadcast(broadcast); })
        .Case([&](dmir::ConcatOp concat) { dealConcat(concat); })
        .Case([&](dmir::ReduceOp reduce) { dealRows(op, reduce.getAxes()); })
        .Case([&](dmir::SoftmaxOp softmax) {
          int64_t axis = softmax.getAxis();
          dealRows(op, axis);
        })
        .Case([&](dmir::NormalizeOp normalize) { dealRows(op, normalize.getAxes()); })
        .Case([&](dmir::GatherOp gather) { dealGather(gather); })
        .Case<dmir::PoolOp, dmir::PadOp, dmir::ScatterElementsOp>([&](auto) {
          for (Value operand : op->getOperands())
            makeWhole(op, operand);
          vector(elementsOf(op->getResult(0)), 1);
        })
        .Default([&](Operation *) { dealElementwise(op); });
  }

private:
  //--- costs, in clocks
  void vector(int64_t elements, int quads, double clocks = 1) {
    out.clocks += 20 + static_cast<double>(elements) * clocks / (machine.lanes * machine.slices * quads);
  }
  /// Every quad sends its part to all; the link's rate bounds what arrives.
  double gatherClocks(Value value) const {
    return 150 + 2.0 * static_cast<double>(elementsOf(value)) / machine.noc.bytesPerClock;
  }
  static double arrayClocks(const hw::Machine &machine, const MatmulPlan &plan, int64_t batch) {
    // A tile comes from ST in as many clocks as eight rows take, unless it stays for all rows.
    const double load = plan.isStationary() ? 0 : MatmulPlan::kTileBytes / machine.memory(hw::Memory::WB).write;
    const double rows = machine.rowClocks8 * static_cast<double>(std::min<int64_t>(plan.m, 64));
    return plan.steps(batch) * std::max(rows, load) + 100;
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
    if (product(shape) < int64_t(machine.lanes) * machine.slices * out.quads)
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
    for (Value operand : op->getOperands())
      if (Split own = lifted(operand, shape.size()); own && !(own == split))
        makeWhole(op, operand);
    set(op, split);
    vector(product(shape), split ? out.quads : 1);
  }

  /// An operand's split, its dims counted as those of a result of this rank.
  Split lifted(Value operand, size_t rank) const {
    Split split = splitOf(operand);
    if (split)
      split.dim += static_cast<int>(rank - shapeOf(operand).size());
    return split;
  }

  void dealRows(Operation *op, ArrayRef<int64_t> axes) {
    Value source = op->getOperand(0);
    if (Split split = splitOf(source); split && llvm::is_contained(axes, split.dim))
      makeWhole(op, source);
    Split split = splitOf(source);
    if (!split)
      split = fresh(shapeOf(source), axes);
    vector(elementsOf(source), split ? out.quads : 1, 4);
    if (split && shapeOf(op->getResult(0)).size() != shapeOf(source).size())
      split.dim -= static_cast<int>(llvm::count_if(axes, [&](int64_t axis) { return axis < split.dim; }));
    set(op, split);
  }

  //--- views
  void dealTranspose(dmir::TransposeOp op) {
    Split split = splitOf(op.getInput());
    if (split)
      split.dim = static_cast<int>(llvm::find(op.getPermutation(), split.dim) - op.getPermutation().begin());
    set(op, split);
  }

  void dealReshape(dmir::ReshapeOp op) {
    Split split = splitOf(op.getInput());
    if (!split)
      return set(op, {});
    ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op.getResult());
    // The part must be the same run of elements behind the same outer dims.
    int64_t outer = product(from.take_front(split.dim)), run = split.part * product(from.drop_front(split.dim + 1));
    int64_t before = 1;
    for (size_t dim = 0; dim < to.size(); before *= to[dim++]) {
      int64_t inner = product(to.drop_front(dim + 1));
      if (before == outer && divides(to[dim]) && to[dim] / out.quads * inner == run)
        return set(op, along(static_cast<int>(dim), to[dim]));
    }
    makeWhole(op, op.getInput());
    set(op, {});
  }

  /// A quad's part of the result is in its part of the operand where the slice leaves that dim as it is: neither
  /// shorter nor turned round.
  void dealSlice(dmir::SliceOp op) {
    Split split = splitOf(op.getInput());
    if (split &&
        (shapeOf(op.getResult())[split.dim] != shapeOf(op.getInput())[split.dim] || op.getSteps()[split.dim] != 1)) {
      makeWhole(op, op.getInput());
      split = {};
    }
    set(op, split);
  }

  void dealBroadcast(dmir::BroadcastOp op) { set(op, lifted(op.getInput(), shapeOf(op.getResult()).size())); }

  void dealConcat(dmir::ConcatOp op) {
    Split split;
    for (Value input : op.getInputs())
      if (Split own = splitOf(input); own && own.dim != static_cast<int>(op.getAxis()))
        split = own;
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
    ArrayRef<int64_t> indices = shapeOf(op.getIndices());
    Split split = op.getAxis() == 0 ? fresh(shapeOf(op.getResult()), {}) : Split();
    if (split && (split.dim >= static_cast<int>(indices.size()) ||
                  product(indices.take_front(split.dim + 1)) != indices[split.dim]))
      split = {};
    set(op, split);
    vector(elementsOf(op.getResult()), split ? out.quads : 1, 4);
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
    auto weights = dyn_cast<BlockArgument>(op.getRhs());
    if (weights && isConstant(weights) && becomesTiles(weights))
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
    int64_t batch = product(shape.drop_back(2)), m = shape[rank - 2];
    if (split)
      (split.dim < rank - 2 ? batch : m) /= out.quads;
    out.clocks += arrayClocks(machine, planMatmul(machine, m, shape.back(), shapeOf(lhs).back(), batch), batch);
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
    auto clocks = [&](int64_t rows, int64_t columns, int64_t depth) {
      return arrayClocks(machine, planMatmul(machine, rows, columns, depth), 1);
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
    if (own && quads > 1 && k % (64 * quads) == 0 && (n + 63) / 64 < quads && (m + 63) / 64 < quads)
      alongK = clocks(m, n, k / quads) + (now && now.dim != last ? gather : 0) + sumClocks(op.getResult());
    const double best = std::min({alone, byRows, byColumns, alongK});
    Split result;
    if (best == byRows)
      result = rows;
    else if (best != alongK || now.dim != last)
      makeWhole(op, lhs), out.clocks -= gather; // it is part of the estimate
    if (best == byColumns && best != byRows) {
      result = along(last, n);
      out.columns[op] = n / quads;
    } else if (best == alongK && best != byRows) {
      out.depth[op] = k / quads;
    }
    set(op, result);
    out.clocks += best;
  }

  /// Sums of all quads to all quads, in f32, and adding them up.
  double sumClocks(Value value) const {
    const double elements = static_cast<double>(elementsOf(value)), others = out.quads - 1;
    return 200 + others * (4 * elements / machine.noc.bytesPerClock + 20 + elements / (machine.lanes * machine.slices));
  }

  void dealConv(dmir::ConvOp op) {
    for (Value operand : op->getOperands())
      makeWhole(op, operand);
    ArrayRef<int64_t> shape = shapeOf(op.getResult()), weights = shapeOf(op.getWeights());
    if (isDepthwise(op)) {
      set(op, {});
      return vector(elementsOf(op.getResult()), 1, static_cast<double>(product(weights.drop_front(2))));
    }
    const auto groups = static_cast<int64_t>(op.getGroups());
    const int64_t images = shape[0] * groups, channels = shape[1] / groups, pixels = product(shape.drop_front(2));
    const int64_t chunks = product(weights.drop_front(2)) * ((weights[1] + 63) / 64);
    auto clocks = [&](int64_t count, int64_t columns) {
      return static_cast<double>(images) * arrayClocks(machine, planConv(machine, count, columns, chunks), 1);
    };
    const int row = static_cast<int>(shape.size()) > 3 ? 2 : -1;
    double best = clocks(pixels, channels), split = best;
    set(op, {});
    if (divides(shape[0])) {
      split = best / out.quads;
      set(op, along(0, shape[0]));
    } else if (row > 0 && divides(shape[row])) {
      split = clocks(pixels / out.quads, channels);
      set(op, along(row, shape[row]));
    }
    const bool own = groups == 1 && op.getWeights().hasOneUse();
    if (const double byChannels = own && divides(channels) ? clocks(pixels, channels / out.quads) : split;
        byChannels < split) {
      split = byChannels;
      set(op, along(1, channels));
      out.columns[op] = channels / out.quads;
    }
    out.clocks += split;
  }

  const hw::Machine &machine;
  Distribution &out;
  llvm::function_ref<bool(Value)> isConstant;
  /// Values that were made whole after their definition.
  llvm::DenseMap<Value, Split> current;
};

} // namespace

Distribution dmxc::corsair::distribute(Block *body, const hw::Machine &machine, int quads,
                                       llvm::function_ref<bool(Value)> isConstant) {
  Distribution result;
  result.quads = quads;
  Dealer dealer(machine, result, isConstant);
  for (Operation &op : body->without_terminator())
    dealer.deal(&op);
  return result;
}

Distribution dmxc::corsair::chooseTeam(Block *body, const hw::Machine &machine, int quads,
                                       llvm::function_ref<bool(Value)> isConstant) {
  if (quads)
    return distribute(body, machine, quads, isConstant);
  Distribution best = distribute(body, machine, 1, isConstant);
  for (int size = 2; size <= machine.quadCount(); size *= 2)
    // A larger team must be worth its energy.
    if (Distribution other = distribute(body, machine, size, isConstant); other.clocks < 0.99 * best.clocks)
      best = std::move(other);
  return best;
}
