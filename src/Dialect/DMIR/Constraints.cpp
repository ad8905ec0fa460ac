//===- Constraints.cpp - what symbols must hold for an op to be valid -----===//
#include "dmxc/Dialect/DMIR/Constraints.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

namespace {

using Kind = DimConstraint::Kind;

class Collector {
public:
  Collector(Operation *op, llvm::function_ref<void(const DimConstraint &)> visit) : op(op), visit(visit) {}

  void run();

private:
  void add(Kind kind, Dim lhs, Dim rhs, const char *text) {
    visit({kind, lhs, rhs, "'" + nodeName(op) + "': " + text});
  }
  void equal(Dim a, Dim b, const char *text) {
    if (!(a == b) && !(a.isStatic() && b.isStatic()))
      add(Kind::Equal, a, b, text);
  }
  void atMost(Dim a, Dim b, const char *text) {
    if (!(a.isStatic() && b.isStatic()) && !(b - a).neverNegative())
      add(Kind::LessOrEqual, a, b, text);
  }
  void broadcasts(Dim a, Dim b) {
    if (!(a == b) && !a.is(1) && !b.is(1) && !(a.isStatic() && b.isStatic()))
      add(Kind::Broadcast, a, b, "the operands broadcast");
  }
  void broadcast(ArrayRef<Dim> a, ArrayRef<Dim> b);
  void broadcastAll(ValueRange operands);
  void slice(SliceOp slice);
  void pad(PadOp pad);
  void matmul(MatMulOp matmul);
  void broadcastTo(BroadcastOp broadcast);
  void scatter(ScatterNDOp scatter);
  /// Asks of the dims of each axis but one.
  void axes(Value a, Value b, int64_t except, llvm::function_ref<void(Dim, Dim)> check);
  void equalAxes(Value a, Value b, int64_t except, const char *text);

  Operation *op;
  llvm::function_ref<void(const DimConstraint &)> visit;
};

void Collector::broadcast(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i)
    broadcasts(a[a.size() - i], b[b.size() - i]);
}

void Collector::broadcastAll(ValueRange operands) {
  SmallVector<Dim> joined;
  for (Value operand : operands) {
    SmallVector<Dim> dims = dimsOf(operand);
    broadcast(joined, dims);
    if (std::optional<SmallVector<Dim>> next = broadcastDims(joined, dims))
      joined = *next;
  }
}

void Collector::slice(SliceOp slice) {
  SmallVector<Dim> dims = dimsOf(slice.getInput()), starts = slice.getStartDims(), sizes = slice.getSizeDims();
  for (size_t i = 0; i < dims.size(); ++i) {
    Dim last = starts[i] + (sizes[i] - 1) * slice.getSteps()[i];
    bool forward = slice.getSteps()[i] > 0;
    atMost(0, sizes[i], "a slice has no negative size");
    if (sizes[i].is(0))
      continue;
    atMost(0, forward ? starts[i] : last + 1, "a slice starts inside its operand");
    atMost((forward ? last : starts[i]) + 1, dims[i], "a slice ends inside its operand");
  }
}

void Collector::pad(PadOp pad) {
  SmallVector<Dim> dims = dimsOf(pad.getInput()), low = pad.getLowDims(), high = pad.getHighDims();
  for (size_t i = 0; i < dims.size(); ++i) {
    atMost(0, low[i], "padding is not negative");
    atMost(0, high[i], "padding is not negative");
    if (pad.getMode() == PadMode::constant || (low[i].is(0) && high[i].is(0)))
      continue;
    Dim most = pad.getMode() == PadMode::reflect ? Dim::max(low[i], high[i]) + 1 : Dim(1);
    atMost(most, dims[i], "an axis is long enough for the way it is padded");
  }
}

void Collector::matmul(MatMulOp matmul) {
  SmallVector<Dim> lhs = dimsOf(matmul.getLhs()), rhs = dimsOf(matmul.getRhs());
  equal(lhs.back(), rhs[rhs.size() - 2], "the inner dims of a matrix product are equal");
  broadcast(ArrayRef<Dim>(lhs).drop_back(2), ArrayRef<Dim>(rhs).drop_back(2));
}

void Collector::axes(Value a, Value b, int64_t except, llvm::function_ref<void(Dim, Dim)> check) {
  for (auto [i, dims] : llvm::enumerate(llvm::zip(dimsOf(a), dimsOf(b))))
    if (static_cast<int64_t>(i) != except)
      check(std::get<0>(dims), std::get<1>(dims));
}

void Collector::equalAxes(Value a, Value b, int64_t except, const char *text) {
  axes(a, b, except, [&](Dim x, Dim y) { equal(x, y, text); });
}

void Collector::broadcastTo(BroadcastOp broadcast) {
  SmallVector<Dim> from = dimsOf(broadcast.getInput()), to = dimsOf(broadcast.getResult());
  for (size_t i = 1; i <= from.size(); ++i)
    if (Dim x = from[from.size() - i], y = to[to.size() - i]; !(x == y) && !x.is(1) && !(x.isStatic() && y.isStatic()))
      add(Kind::BroadcastTo, x, y, "the operand broadcasts to the shape asked for");
}

void Collector::scatter(ScatterNDOp scatter) {
  SmallVector<Dim> expected = dimsOf(scatter.getIndices()), updates = dimsOf(scatter.getUpdates());
  int64_t tuple = expected.pop_back_val().valueOr(0);
  llvm::append_range(expected, ArrayRef<Dim>(dimsOf(scatter.getData())).drop_front(tuple));
  for (auto [x, y] : llvm::zip(expected, updates))
    equal(x, y, "the updates have the shape that the indices ask for");
}

void Collector::run() {
  if (op->hasTrait<Elementwise>())
    return broadcastAll(op->getOperands());
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ReshapeOp o) {
        equal(elementsOf(o.getInput().getType()), elementsOf(o.getType()), "a reshape keeps the number of elements");
      })
      .Case([&](BroadcastOp o) { broadcastTo(o); })
      .Case([&](SliceOp o) { slice(o); })
      .Case([&](PadOp o) { pad(o); })
      .Case([&](ConcatOp o) {
        for (Value input : o.getInputs().drop_front())
          equalAxes(input, o.getInputs().front(), o.getAxis(), "tensors that are joined agree off the axis");
      })
      .Case([&](GatherElementsOp o) {
        axes(o.getIndices(), o.getData(), o.getAxis(),
             [&](Dim x, Dim y) { atMost(x, y, "the indices do not reach outside the data"); });
      })
      .Case([&](GatherNDOp o) {
        for (int64_t i = 0; i < static_cast<int64_t>(o.getBatchDims()); ++i)
          equal(dimOf(o.getData(), i), dimOf(o.getIndices(), i), "the batch dims of data and indices are equal");
      })
      .Case([&](ScatterElementsOp o) {
        equalAxes(o.getIndices(), o.getUpdates(), -1, "indices and updates have equal shapes");
      })
      .Case([&](ScatterNDOp o) { scatter(o); })
      .Case([&](ArgReduceOp o) {
        atMost(Dim::min(elementsOf(o.getResult().getType()), 1), dimOf(o.getInput(), o.getAxis()),
               "the axis is not empty");
      })
      .Case([&](TopKOp o) {
        atMost(dimOf(o.getValues(), o.getAxis()), dimOf(o.getInput(), o.getAxis()), "k is at most the axis' size");
      })
      .Case([&](GreedySelectOp o) {
        SmallVector<Dim> candidates = dimsOf(o.getCandidates()), excludes = dimsOf(o.getExcludes());
        equal(candidates[0], excludes[0], "candidates and what excludes them have as many rows");
        equal(candidates[1], excludes[1], "there is a row of excludes for each candidate");
        equal(candidates[1], excludes[2], "there is a column of excludes for each candidate");
      })
      .Case([&](MatMulOp o) { matmul(o); })
      .Case([&](GroupedMatMulOp o) {
        equal(dimOf(o.getLhs(), 1), dimOf(o.getRhs(), 1), "the inner dims of a matrix product are equal");
        equal(dimOf(o.getRhs(), 0), dimOf(o.getEnds(), 0), "each group has a matrix and an end");
        atMost(1, dimOf(o.getEnds(), 0), "there is a group");
      })
      .Case([&](ConvOp o) {
        equal(dimOf(o.getInput(), 1), dimOf(o.getWeights(), 1) * o.getGroups(), "the weights fit the input's channels");
      });
}

constexpr llvm::StringLiteral kindNames[] = {"eq", "le", "broadcast", "broadcast_to"};

} // namespace

void dmir::collectConstraints(Operation *op, llvm::function_ref<void(const DimConstraint &)> visit) {
  if (op->getDialect() && isa<DMIRDialect>(op->getDialect()))
    Collector(op, visit).run();
}

Attribute dmir::toAttr(MLIRContext *context, const DimConstraint &constraint) {
  Builder b(context);
  return b.getDictionaryAttr({b.getNamedAttr("rel", b.getStringAttr(kindNames[static_cast<int>(constraint.kind)])),
                              b.getNamedAttr("lhs", dimAttr(context, constraint.lhs)),
                              b.getNamedAttr("rhs", dimAttr(context, constraint.rhs)),
                              b.getNamedAttr("text", b.getStringAttr(constraint.text))});
}

std::optional<DimConstraint> dmir::constraintOf(Attribute attr) {
  auto entry = dyn_cast<DictionaryAttr>(attr);
  auto rel = entry ? entry.getAs<StringAttr>("rel") : StringAttr();
  auto text = entry ? entry.getAs<StringAttr>("text") : StringAttr();
  const llvm::StringLiteral *kind = rel ? llvm::find(kindNames, rel.getValue()) : std::end(kindNames);
  if (kind == std::end(kindNames) || !text)
    return std::nullopt;
  return DimConstraint{static_cast<Kind>(kind - kindNames), dimOfAttr(entry.get("lhs")), dimOfAttr(entry.get("rhs")),
                       text.getValue().str()};
}
