//===- QueueCode.cpp - a dispatch queue line by line ----------------------===//
#include "dmxc/Dialect/DLIR/QueueCode.h"

#include "dmxc/Dialect/DLIR/Sum.h"

using namespace mlir;
using namespace dmxc::dlir;

namespace {

class LineWriter {
public:
  explicit LineWriter(const llvm::DenseMap<Value, unsigned> &numbers) : numbers(numbers) {}

  bool block(Block &block) {
    return llvm::all_of(block, [&](Operation &op) {
      if (auto loop = dyn_cast<LoopOp>(op))
        return addLoop(loop);
      if (auto group = dyn_cast<TaskGroupOp>(op)) {
        addTokens(QueueLine::Kind::Wait, group, group.waits());
        bool known = this->block(group.getBody().front());
        addTokens(QueueLine::Kind::Signal, group, group.signals());
        return known;
      }
      if (auto barrier = dyn_cast<TaskBarrierOp>(op)) {
        addTokens(QueueLine::Kind::Wait, barrier, barrier.waits());
        if (barrier.getScope())
          lines.push_back({QueueLine::Kind::Meet, barrier, 0, {}, {}});
        addTokens(QueueLine::Kind::Signal, barrier, barrier.signals());
        return true;
      }
      lines.push_back({QueueLine::Kind::Task, &op, 0, {}, {}});
      return true;
    });
  }

  std::vector<QueueLine> lines;

private:
  bool addLoop(LoopOp loop) {
    std::optional<LinearValue> times = linear(loop);
    if (!times)
      return false;
    size_t begin = lines.size();
    lines.push_back({QueueLine::Kind::Loop, loop, 0, *times, {}});
    bool known = block(loop.getBody().front());
    lines[begin].other = lines.size();
    lines.push_back({QueueLine::Kind::End, loop, begin, {}, {}});
    return known;
  }

  void addTokens(QueueLine::Kind kind, Operation *op, ArrayRef<TokenCount> counts) {
    if (counts.empty())
      return;
    lines.push_back({kind, op, 0, {}, {}});
    for (const TokenCount &count : counts)
      lines.back().tokens.push_back({numbers.lookup(count.token), count.count});
  }

  std::optional<LinearValue> linear(LoopOp loop) {
    std::optional<Sum> sum = sumOf(loop.getTimes(), loop.getIndices());
    if (!sum)
      return std::nullopt;
    LinearValue value;
    value.base = sum->base;
    for (auto [index, scale] : sum->terms) {
      if (std::optional<unsigned> depth = loopDepth(index))
        value.terms.push_back({LinearValue::Source::Loop, *depth, scale});
      else if (index.getDefiningOp<RegisterOp>())
        value.terms.push_back({LinearValue::Source::Register, numbers.lookup(index), scale});
      else
        value.terms.push_back({LinearValue::Source::Unit, 0, scale});
    }
    return value;
  }

  const llvm::DenseMap<Value, unsigned> &numbers;
};

} // namespace

std::optional<std::vector<QueueLine>> dmxc::dlir::linesOf(DispatchQueueOp queue,
                                                          const llvm::DenseMap<Value, unsigned> &numbers) {
  LineWriter writer(numbers);
  return writer.block(queue.getBody().front()) ? std::optional(std::move(writer.lines)) : std::nullopt;
}

SmallVector<int64_t> dmxc::dlir::meetingAt(TaskBarrierOp barrier) {
  SmallVector<int64_t> queues(*barrier.getQueues());
  llvm::sort(queues);
  queues.erase(llvm::unique(queues), queues.end());
  return queues;
}

std::string dmxc::dlir::placeOf(Operation *op) {
  auto group = isa<TaskGroupOp>(op) ? cast<TaskGroupOp>(op) : op->getParentOfType<TaskGroupOp>();
  auto queue = op->getParentOfType<DispatchQueueOp>();
  return "group \"" + (group ? group.getName().str() : "") + "\" of queue " +
         (queue ? std::to_string(queue.getIndex()) : "?");
}
