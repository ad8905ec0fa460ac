//===- Peak.cpp - what a quad's GM must hold at once ----------------------===//
#include "Decide.h"
#include "Ops.h"
#include "scores/Bands.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

namespace {

/// From the first op that a buffer is there for to the last one.
struct Life {
  int64_t bytes = 0, first = 0, last = 0;
};

class Lives {
public:
  Lives(Block *body, const Distribution &deal) : deal(deal) {
    for (BlockArgument argument : body->getArguments())
      if (!deal.packed.contains(argument))
        begin(argument, 0);
    int64_t at = 0;
    for (Operation &op : *body)
      visit(&op, ++at);
  }

  int64_t peak() const {
    std::vector<std::pair<int64_t, int64_t>> changes; // when, by how much; what ends does so after what begins
    for (const auto &[value, life] : llvm::concat<const std::pair<Value, Life>>(shares, wholes))
      changes.insert(changes.end(), {{2 * life.first, life.bytes}, {2 * life.last + 1, -life.bytes}});
    llvm::sort(changes);
    int64_t now = 0, most = 0;
    for (auto [when, bytes] : changes)
      most = std::max(most, now += bytes);
    return most;
  }

private:
  static int64_t bytesOf(Value value) {
    std::optional<hw::ElemKind> kind = deviceKind(elementOf(value));
    return kind ? elementsOf(value) * hw::elementBytes(*kind) : 0;
  }

  void begin(Value value, int64_t at) {
    const int64_t parts = deal.at(value) ? deal.quads : 1;
    int64_t bytes = bytesOf(value) / parts;
    if (isStrip(value, deal)) // two of them: one is filled while the other is read
      bytes = 2 * kBandRows * shapeOf(value).back() * (value.getDefiningOp<dmir::SoftmaxOp>() ? 4 : 2);
    shares[value] = {bytes, at, at};
  }

  /// What a view, or a view of one, is of.
  static Value rootOf(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isView(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }

  void visit(Operation *op, int64_t at) {
    if (auto gathered = deal.gathers.find(op); gathered != deal.gathers.end())
      for (Value value : gathered->second)
        wholes[value] = {bytesOf(value), at, at};
    for (Value operand : op->getOperands()) {
      if (auto whole = wholes.find(operand); whole != wholes.end()) {
        whole->second.last = at;
        continue;
      }
      if (auto share = shares.find(rootOf(operand)); share != shares.end())
        share->second.last = at;
    }
    if (!isView(op))
      for (Value result : op->getResults())
        begin(result, at);
  }

  const Distribution &deal;
  llvm::MapVector<Value, Life> shares, wholes;
};

} // namespace

int64_t dmxc::corsair::peakBytes(Block *body, const Distribution &deal) { return Lives(body, deal).peak(); }
