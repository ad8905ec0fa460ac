//===- Slots.cpp - what tokens with credits are about ---------------------===//
#include "OrderChecker.h"

using namespace mlir;
using namespace dmxc::dlir;

/// Hulls of what is written after a wait and before the queue signals or waits again, in the first trips of loops.
MemoryOrder::Slot MemoryOrder::writesAfter(Operation *wait, uint32_t unit) {
  Slot slot;
  auto add = [&](Operation *op) {
    std::vector<Touched> touched;
    if (!isa<DeviceTaskOpInterface>(op) || !bytes.touched(op, unit, SmallVector<int64_t>(depthOf(op)), touched))
      return;
    for (const Touched &one : touched)
      for (const ByteRuns &runs : one.write ? ArrayRef(one.runs) : ArrayRef<ByteRuns>())
        for (int64_t in : one.units) {
          auto hull = hullOf(normalized(runs));
          auto [part, isNew] = slot.insert({{numbers.lookup(one.buffer), in}, hull});
          part->second = {std::min(part->second.first, hull.first), std::max(part->second.second, hull.second)};
        }
  };
  bool ended = false;
  auto visit = [&](Operation *op) {
    ended |= isa<TaskBarrierOp>(op);
    if (!ended)
      add(op);
  };
  if (auto group = dyn_cast<TaskGroupOp>(wait))
    group.getBody().walk<WalkOrder::PreOrder>(visit);
  else
    for (Operation *op = wait->getNextNode(); op && !ended; op = op->getNextNode())
      op->walk<WalkOrder::PreOrder>(visit);
  return slot;
}

/// What each who waits for a token writes then; and where nobody writes, the tokens that they signal at once.
std::vector<MemoryOrder::Slot> MemoryOrder::takersOf(unsigned token, uint32_t unit, std::vector<unsigned> *passed) {
  const Value value = tokens[token];
  std::vector<Slot> all;
  for (Operation *user : value.getUsers()) {
    auto group = dyn_cast<TaskGroupOp>(user);
    std::vector<TokenCount> waits = group ? group.waits() : cast<TaskBarrierOp>(user).waits();
    if (llvm::none_of(waits, [&](const TokenCount &count) { return count.token == value; }))
      continue;
    all.push_back(writesAfter(user, unit));
    auto next = dyn_cast_or_null<TaskBarrierOp>(user->getNextNode());
    if (passed && next && all.back().empty())
      for (const TokenCount &count : next.signals())
        passed->push_back(llvm::find(tokens, count.token.getDefiningOp<TokenOp>()) - tokens.begin());
  }
  llvm::erase_if(all, [](const Slot &slot) { return slot.empty(); });
  return all;
}

/// What those who wait for a token write then: in each unit the bytes that all write who write there. Where nobody
/// writes, the slot is passed on by the token that is signalled then, and is of the buffers that all write who take
/// that one.
const MemoryOrder::Slot &MemoryOrder::slotOf(unsigned token, uint32_t unit) {
  auto [known, isNew] = slots.try_emplace({token, unit});
  if (!isNew)
    return known->second;
  std::vector<unsigned> passed;
  std::vector<Slot> all = takersOf(token, unit, &passed);
  const bool isPassed = all.empty();
  for (unsigned other : isPassed ? passed : std::vector<unsigned>())
    llvm::append_range(all, takersOf(other, unit, nullptr));
  auto writes = [](const Slot &slot, int32_t buffer) {
    auto at = slot.lower_bound({buffer, INT64_MIN});
    return at != slot.end() && at->first.first == buffer;
  };
  for (const Slot &slot : all)
    for (const auto &[key, part] : slot) {
      if (isPassed && !llvm::all_of(all, [&, buffer = key.first](const Slot &other) { return writes(other, buffer); }))
        continue;
      auto [both, isFirst] = known->second.insert({key, part});
      both->second = {std::max(both->second.first, part.first), std::min(both->second.second, part.second)};
    }
  return known->second;
}

LogicalResult MemoryOrder::freed(unsigned token, uint32_t unit, Operation *by) {
  if (!tokens[token].getCredits())
    return success();
  for (const auto &[key, part] : slotOf(token, unit)) {
    Operation *unread = nullptr;
    auto [begin, end] = part;
    if (begin >= end)
      continue;
    cellOf(key.first, key.second).history.each({begin, end - begin, {}}, [&](int64_t, Stretch &stretch) {
      // Engines may bring more than they use, ahead of themselves.
      if (stretch.isWritten() && !stretch.isFree && !wasRead[stretch.write] && isa<DmaCopyOp>(stretch.writer.task))
        unread = stretch.writer.task;
      stretch.isFree |= stretch.isWritten();
    });
    if (unread)
      return unread->emitOpError("O4: ") << placeOf(unread) << " writes into '" << buffers[key.first].name
                                         << "', and nothing reads it before "
                                         << (by ? placeOf(by) + " takes the slot again" : "the end")
                                         << "; an op that reads it is missing";
  }
  return success();
}
