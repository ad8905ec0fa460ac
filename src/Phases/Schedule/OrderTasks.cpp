//===- OrderTasks.cpp - tokens between conflicting tasks ------------------===//
//
// A task waits for every earlier one that touches the same bytes when either writes, and for every task that used arena
// bytes it takes over. Tokens implied by others are left out.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"

namespace dmxc {
#define GEN_PASS_DEF_ORDERTASKS
#include "dmxc/Phases/Schedule/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

struct Task {
  dlir::TaskInterface op;
  SmallVector<dlir::ByteRange> reads, writes;
};

SmallVector<dlir::ByteRange> rangesOf(ValueRange buffers) {
  SmallVector<dlir::ByteRange> ranges;
  for (Value value : buffers)
    ranges.push_back(dlir::byteRange(value.getDefiningOp<dlir::BufferOp>()));
  return ranges;
}

bool overlap(ArrayRef<dlir::ByteRange> a, ArrayRef<dlir::ByteRange> b) {
  return llvm::any_of(a, [&](const dlir::ByteRange &x) {
    return llvm::any_of(b, [&](const dlir::ByteRange &y) { return x.overlaps(y); });
  });
}

bool conflict(const Task &a, const Task &b) {
  return overlap(a.writes, b.writes) || overlap(a.writes, b.reads) || overlap(a.reads, b.writes);
}

struct OrderTasks : dmxc::impl::OrderTasksBase<OrderTasks> {
  void runOnOperation() override {
    std::vector<Task> tasks;
    for (auto task : getOperation().getBody().front().getOps<dlir::TaskInterface>())
      tasks.push_back({task, rangesOf(task.reads()), rangesOf(task.writes())});
    std::vector<llvm::BitVector> before(tasks.size(), llvm::BitVector(tasks.size()));
    for (size_t t = 0; t < tasks.size(); ++t) {
      SmallVector<Value> tokens;
      // Nearest first: what a nearer task waits for need not be named again.
      for (size_t s = t; s-- > 0;) {
        if (before[t].test(s) || !conflict(tasks[s], tasks[t]))
          continue;
        before[t].set(s);
        before[t] |= before[s];
        tokens.push_back(tasks[s].op->getResult(0));
      }
      std::reverse(tokens.begin(), tokens.end());
      tasks[t].op.getAfterMutable().assign(tokens);
    }
  }
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createOrderTasksPass(const PhaseContext &) { return std::make_unique<OrderTasks>(); }
} // namespace dmxc
