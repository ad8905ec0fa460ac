//===- StreamEncoder.cpp - loops, tokens and configuration of a queue -----===//

#include "StreamEncoder.h"

#include "dmxc/Dialect/DLIR/Sum.h"
#include "dmxc/Dialect/DMIR/DMIR.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// What one WAIT or SIGNAL counts.
static constexpr int64_t kMostTokens = 65535;

FailureOr<hw::Code> StreamEncoder::run(dlir::DispatchQueueOp queue, std::string name) {
  // The credits of a token come from the queue that takes them: nothing was done before them.
  auto graphOp = queue->getParentOfType<dlir::ScheduledGraphOp>();
  for (auto token : graphOp.getBody().getOps<dlir::TokenOp>()) {
    dlir::DispatchQueueOp first;
    for (Operation *user : token.getResult().getUsers()) {
      auto group = dyn_cast<dlir::TaskGroupOp>(user);
      std::vector<dlir::TokenCount> waits = group ? group.waits() : cast<dlir::DeviceTaskOpInterface>(user).waits();
      auto at = user->getParentOfType<dlir::DispatchQueueOp>();
      bool takes = llvm::any_of(waits, [&](const dlir::TokenCount &w) { return w.token == token.getResult(); });
      if (takes && (!first || at.getIndex() < first.getIndex()))
        first = at;
    }
    if (token.getCredits() && first == queue)
      emit(hw::Opcode::Signal).set("id", graph.tokens.lookup(token)).set("n", token.getCredits());
  }
  if (failed(block(queue.getBody().front())))
    return failure();
  emit(hw::Opcode::Halt);
  return hw::Code{std::move(name), std::move(code)};
}

FailureOr<std::vector<hw::Instruction>> StreamEncoder::one(Operation *op) {
  if (failed(task(op)))
    return failure();
  return std::move(code);
}

LogicalResult StreamEncoder::block(Block &block) {
  for (Operation &op : block) {
    LogicalResult done = success();
    if (auto inner = dyn_cast<dlir::LoopOp>(op))
      done = loop(inner);
    else if (auto inner = dyn_cast<dlir::TaskGroupOp>(op))
      done = group(inner);
    else if (auto inner = dyn_cast<dlir::TaskBarrierOp>(op))
      done = barrier(inner);
    else
      markPlace(&op), done = task(&op);
    if (failed(done))
      return failure();
  }
  return success();
}

LogicalResult StreamEncoder::loop(dlir::LoopOp op) {
  std::set<hw::Unit> before = settled, changing;
  for (hw::Unit unit : {hw::Unit::AC, hw::Unit::SIMD, hw::Unit::GM, hw::Unit::ST}) {
    if (before.count(unit))
      continue;
    FailureOr<bool> hoisted = hoistConfigs(op, unit);
    if (failed(hoisted))
      return failure();
    (*hoisted ? settled : changing).insert(unit);
  }
  // A later trip finds other slots than the first, and a loop may have no trip.
  markedPlace.clear();
  for (hw::Unit unit : changing)
    slots[unit].clear();
  if (failed(value(op, emit(hw::Opcode::Loop), "n", op.getTimes(), op.getIndices())) ||
      failed(block(op.getBody().front())))
    return failure();
  emit(hw::Opcode::EndLoop);
  markedPlace.clear();
  for (hw::Unit unit : changing)
    slots[unit].clear();
  settled = std::move(before);
  return success();
}

/// Configures before the loop all that its tasks need of a unit. False if those are more than there are slots.
FailureOr<bool> StreamEncoder::hoistConfigs(dlir::LoopOp op, hw::Unit unit) {
  std::vector<Config> needed;
  bool wrong = op.walk([&](Operation *inner) {
                   FailureOr<std::optional<Config>> config = configOf(inner);
                   if (failed(config))
                     return WalkResult::interrupt();
                   bool isNew = *config && (*config)->unit == unit &&
                                llvm::none_of(needed, [&](const Config &c) { return c.keys == (*config)->keys; });
                   if (isNew)
                     needed.push_back(**config);
                   return WalkResult::advance();
                 }).wasInterrupted();
  if (wrong)
    return failure();
  if (needed.size() > hw::kConfigSlots)
    return false;
  if (graph.options.removeConfigs)
    for (const Config &config : needed)
      configure(config);
  return true;
}

LogicalResult StreamEncoder::tokens(Operation *op, ArrayRef<dlir::TokenCount> list, hw::Opcode opcode) {
  for (auto [token, count] : list) {
    if (count > kMostTokens)
      return op->emitOpError("counts ") << count << " of a token, the device at most " << kMostTokens;
    hw::Instruction &in = emit(opcode).set("id", graph.tokens.lookup(token));
    if (count != 1)
      in.set("n", count);
  }
  return success();
}

void StreamEncoder::markPlace(Operation *op) {
  std::string own = userPlace(op->getLoc());
  if (own.empty() || own == markedPlace)
    return;
  markedPlace = std::move(own);
  emit(hw::Opcode::Mark).set("label", image.addMark(dmir::nodeName(op) + " (" + markedPlace + ")"));
}

LogicalResult StreamEncoder::group(dlir::TaskGroupOp op) {
  if (failed(tokens(op, op.waits(), hw::Opcode::Wait)))
    return failure();
  emit(hw::Opcode::Mark).set("label", image.addMark(op.getName().str()));
  markedPlace.clear();
  if (failed(block(op.getBody().front())))
    return failure();
  return tokens(op, op.signals(), hw::Opcode::Signal);
}

/// Its place among the device's scopes, as the instruction counts them.
static int64_t scopeNumber(dlir::TaskBarrierOp op) {
  const std::vector<std::string> &scopes = dlir::modelOf(op)->scopes;
  return llvm::find(scopes, *op.getScope()) - scopes.begin();
}

LogicalResult StreamEncoder::barrier(dlir::TaskBarrierOp op) {
  if (failed(tokens(op, op.waits(), hw::Opcode::Wait)))
    return failure();
  if (op.getScope()) {
    int64_t queues = 0;
    ArrayRef<int64_t> list = *op.getQueues();
    for (int64_t queue : list) {
      if (queue < 0 || queue >= image.machine.queuesPerQuad)
        return op.emitOpError("names queue ") << queue << ", a quad has " << image.machine.queuesPerQuad;
      queues |= int64_t(1) << queue;
    }
    emit(hw::Opcode::Barrier)
        .set("scope", scopeNumber(op))
        .set("id", static_cast<int64_t>(op.getId().value_or(0)))
        .set("queues", queues);
  }
  return tokens(op, op.signals(), hw::Opcode::Signal);
}

FailureOr<int> StreamEncoder::configure(Operation *task) {
  FailureOr<std::optional<Config>> config = configOf(task);
  if (failed(config))
    return failure();
  return *config ? configure(**config) : 0;
}

int StreamEncoder::configure(const Config &config) {
  static constexpr hw::Opcode kOpcodes[] = {hw::Opcode::ConfigAC, hw::Opcode::ConfigSIMD, hw::Opcode::ConfigGM,
                                            hw::Opcode::ConfigST};
  std::list<Slot> &known = slots[config.unit];
  auto hit = llvm::find_if(known, [&](const Slot &slot) { return slot.keys == config.keys; });
  if (hit == known.end() || !graph.options.removeConfigs) {
    int number = static_cast<int>(known.size());
    if (hit != known.end()) {
      number = hit->number;
      known.erase(hit);
    } else if (number == hw::kConfigSlots) {
      number = known.back().number;
      known.pop_back();
    }
    hw::Instruction &in = emit(kOpcodes[static_cast<int>(config.unit)]);
    in.set("slot", number);
    for (const hw::ConfigPair &pair : config.keys)
      in.key(pair.first, pair.second);
    hit = known.insert(known.end(), {number, config.keys});
  }
  known.splice(known.begin(), known, hit);
  return known.front().number;
}

//===--- affine values --------------------------------------------------------------===//

namespace {

/// The source of terms that an index is; nullopt for a register that does not exist or a loop too deep.
std::optional<uint8_t> sourceOf(Value index) {
  if (auto reg = index.getDefiningOp<dlir::RegisterOp>())
    return reg.getNumber() < hw::kRegisters ? std::optional<uint8_t>(hw::kTermRegister + reg.getNumber())
                                            : std::nullopt;
  if (auto argument = dyn_cast<BlockArgument>(index);
      argument && isa<dlir::ScheduledGraphOp>(argument.getOwner()->getParentOp()))
    return hw::kTermQuad;
  std::optional<unsigned> depth = dlir::loopDepth(index);
  return depth && *depth < hw::kMaxLoopDepth ? std::optional<uint8_t>(hw::kTermLoop + *depth) : std::nullopt;
}

} // namespace

LogicalResult StreamEncoder::value(Operation *op, hw::Instruction &in, StringRef field, AffineMap map,
                                   ValueRange indices, int64_t base, unsigned result) {
  if (!llvm::all_of(indices, sourceOf))
    return op->emitOpError("uses an index that the device has not: 16 registers, 8 loops deep");
  std::optional<dlir::Sum> sum = dlir::sumOf(map, indices, result);
  if (!sum || __builtin_add_overflow(sum->base, base, &base))
    return op->emitOpError("has a place that is no sum of multiples: ") << AffineMapAttr::get(map);
  std::map<uint8_t, int64_t> bySource;
  for (auto [index, scale] : sum->terms)
    bySource[*sourceOf(index)] += scale;
  std::vector<hw::Term> terms;
  for (auto [source, scale] : bySource)
    if (scale)
      terms.push_back({source, scale});
  in.set(field.str(), base, std::move(terms));
  return success();
}
