//===- ElementMask.cpp - elements that a rule of their index keeps ------------===//

#include "ElementMask.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

/// Evaluates the expressions of a rule at an index.
class RuleEmitter {
public:
  RuleEmitter(ElementExpr &e, ArrayRef<Index> dims, ArrayRef<Index> symbols)
      : e(e), b(e.builder()), dims(dims), symbols(symbols) {}

  /// i1, per lane.
  Value keeps(const dmir::Rule &rule) {
    Value any;
    for (IntegerSet set : rule.cases) {
      Value all;
      for (const dmir::Condition &condition : dmir::conditionsOf(set))
        all = join<arith::AndIOp>(all, holds(condition));
      any = join<arith::OrIOp>(any, all);
    }
    return any;
  }

private:
  template <typename Op> Value join(Value x, Value y) { return x ? Value(Op::create(b, x, y)) : y; }

  Value holds(const dmir::Condition &condition) {
    Index value = evaluate(condition.expr);
    if (condition.isEq) {
      Value x = e.vectorOf(value);
      return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, b.constantInt(x.getType(), 0));
    }
    int64_t lanes = e.lanes();
    // Lanes that follow one another are a head or a tail of the vector, which takes a comparison of 32 bits.
    if (lanes > 1 && !value.vec && value.stride == -1)
      return b.headMask(lanes, b.addC(value.base, 1));
    if (lanes > 1 && !value.vec && value.stride == 1) {
      Value before = b.headMask(lanes, b.sub(b.idx(0), value.base));
      return arith::XOrIOp::create(b, before, b.constantInt(before.getType(), -1));
    }
    Value x = value.uniform() ? value.base : e.vectorOf(value);
    Value kept = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, x, b.constantInt(x.getType(), 0));
    return value.uniform() ? b.splat(kept, lanes) : kept;
  }

  Index evaluate(AffineExpr expr) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return dims[dim.getPosition()];
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return symbols[symbol.getPosition()];
    if (auto number = dyn_cast<AffineConstantExpr>(expr))
      return e.at(number.getValue());
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Index left = evaluate(binary.getLHS());
    if (binary.getKind() == AffineExprKind::Add)
      return e.add(left, evaluate(binary.getRHS()));
    int64_t by = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    if (binary.getKind() == AffineExprKind::Mul)
      return e.mulC(left, by);
    Index quotient = floorDiv(left, by);
    return binary.getKind() == AffineExprKind::FloorDiv ? quotient : e.add(left, e.mulC(quotient, -by));
  }

  /// Rounded towards minus infinity.
  Index floorDiv(Index x, int64_t by) {
    if (by == 1)
      return x;
    Value value = x.uniform() ? x.base : e.vectorOf(x);
    auto number = [&](int64_t n) { return b.constantInt(value.getType(), n); };
    if (llvm::isPowerOf2_64(static_cast<uint64_t>(by))) {
      Value shifted = arith::ShRSIOp::create(b, value, number(llvm::Log2_64(static_cast<uint64_t>(by))));
      return x.uniform() ? e.at(shifted) : Index{{}, 0, 1, shifted};
    }
    Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, value, number(0));
    Value shift = arith::SelectOp::create(b, isNegative, number(by - 1), number(0));
    Value quotient = arith::DivSIOp::create(b, arith::SubIOp::create(b, value, shift), number(by));
    return x.uniform() ? e.at(quotient) : Index{{}, 0, 1, quotient};
  }

  ElementExpr &e;
  KernelBuilder &b;
  ArrayRef<Index> dims, symbols;
};

} // namespace

Indices dmxc::kernels::symbolsOf(ElementExpr &e, dmir::MaskOp op, ArrayRef<Index> index) {
  KernelBuilder &b = e.builder();
  Indices symbols;
  for (Dim dim : dmir::ruleOf(op).dims)
    symbols.push_back(e.at(b.idx(dim)));
  SmallVector<Dim> whole = dmir::dimsOf(op.getInput());
  for (Value value : op.getValues()) {
    Indices own = broadcastIndices(e, index, dmir::dimsOf(value), whole);
    bool uniform = llvm::all_of(own, [](const Index &i) { return i.uniform(); });
    ElementExpr::Lanes lanes(e, uniform ? 1 : e.lanes(), uniform ? Value() : e.mask());
    Value x = e.evaluate(value, own);
    Type wide = b.laneType(b.getI64Type(), e.lanes());
    if (elementOf(value).isInteger(1))
      x = arith::ExtUIOp::create(b, wide, x);
    else if (elementOf(value).isInteger(32))
      x = arith::ExtSIOp::create(b, wide, x);
    auto most = [&](int64_t number) { return b.constantInt(x.getType(), number); };
    if (elementOf(value).isInteger(64))
      x = arith::MaxSIOp::create(b, arith::MinSIOp::create(b, x, most(dmir::kMostValue)), most(-dmir::kMostValue));
    symbols.push_back(uniform ? e.at(x) : Index{{}, 0, 1, x});
  }
  return symbols;
}

/// Whether the tiles that a mask lists have an index, i1, per lane.
static Value isListed(ElementExpr &e, dmir::MaskOp op, const dmir::TileLists &tiles, ArrayRef<Index> index) {
  KernelBuilder &b = e.builder();
  const int64_t width = *dmir::dimsOf(op.getInput()).back().known(),
                count = (width + tiles.columns - 1) / tiles.columns;
  std::string bytes(tiles.lists.size() * count, '\0');
  for (size_t row = 0; row < tiles.lists.size(); ++row)
    for (int64_t number : tiles.of(static_cast<int64_t>(row)))
      bytes[row * count + number] = 1;
  Value table = e.tableOf(op, bytes, 1);
  Index row = e.divRem(index[index.size() - 2], tiles.rows).first, column = e.divRem(index.back(), tiles.columns).first;
  Index place = e.add(e.mulC(row, count), column);
  auto read = [&](Index at) {
    Value byte = e.loadAt(b.getI8Type(), table, at);
    return Value(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, byte, b.constantInt(byte.getType(), 0)));
  };
  if (!place.uniform() || e.lanes() == 1)
    return read(place);
  int64_t lanes = e.lanes();
  ElementExpr::Lanes one(e, 1);
  return b.splat(read(place), lanes);
}

Value dmxc::kernels::evaluateMask(ElementExpr &e, dmir::MaskOp op, ArrayRef<Index> index) {
  return evaluateMask(e, op, index, dmir::ruleOf(op));
}

Value dmxc::kernels::evaluateMask(ElementExpr &e, dmir::MaskOp op, ArrayRef<Index> index, const dmir::Rule &rule) {
  KernelBuilder &b = e.builder();
  Value input = e.evaluate(op.getInput(), index);
  if (op.getLow())
    return input;
  Indices symbols = symbolsOf(e, op, index);
  Value keep = RuleEmitter(e, index, symbols).keeps(rule);
  if (rule.tiles)
    keep = arith::AndIOp::create(b, keep, isListed(e, op, rule.tiles, index));
  Value fill = e.constant(elementOf(op.getInput()), cast<FloatAttr>(op.getFill()).getValueAsDouble());
  if (op.getAdds())
    fill = arith::AddFOp::create(b, input, fill);
  return arith::SelectOp::create(b, keep, input, fill);
}

/// The arithmetic of a kernel's values.
static dmir::Integers<Value> integersOf(KernelBuilder &b) {
  dmir::Integers<Value> n;
  n.number = [&b](int64_t value) { return b.idx(value); };
  n.add = [&b](Value x, Value y) { return b.add(x, y); };
  n.min = [&b](Value x, Value y) { return b.minS(x, y); };
  n.max = [&b](Value x, Value y) { return b.maxS(x, y); };
  n.mul = [&b](Value x, int64_t by) { return b.mulC(x, by); };
  n.ifLess = [&b](Value x, Value y, Value then, Value otherwise) -> Value {
    return arith::SelectOp::create(b, b.cmp(arith::CmpIPredicate::slt, x, y), then, otherwise);
  };
  n.floorDiv = [&b, n](Value x, int64_t by) -> Value {
    Value shifted = n.ifLess(x, b.idx(0), b.addC(x, 1 - by), x);
    return arith::DivSIOp::create(b, shifted, b.idx(by));
  };
  return n;
}

dmir::ColumnRange<Value> dmxc::kernels::keptColumns(KernelBuilder &b, const dmir::Rule &rule, ValueBounds rows,
                                                    ValueBounds symbols, Value columns) {
  dmir::Integers<Value> n = integersOf(b);
  return dmir::Columns<Value>(n, rows, symbols, columns).of(rule);
}

std::pair<Value, Value> dmxc::kernels::whetherKept(KernelBuilder &b, const dmir::Rule &rule, ValueBounds box,
                                                   ValueBounds symbols) {
  dmir::Integers<Value> n = integersOf(b);
  auto [some, all] = dmir::Columns<Value>(n, box, symbols, b.idx(0)).whether(rule);
  auto isOne = [&](Value x) { return b.cmp(arith::CmpIPredicate::ne, x, b.idx(0)); };
  return {isOne(some), isOne(all)};
}
