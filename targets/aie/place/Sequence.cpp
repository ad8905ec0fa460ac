//===- Sequence.cpp - queues of shims as the runtime sequence -------------===//
//
// One controller starts the tasks of all shims: group after group of each queue, as many groups ahead of what is done
// as BDs and queues hold.
//
//===----------------------------------------------------------------------===//
#include "Placement.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr size_t kMostGroups = 1 << 16; ///< of a queue; a control stream of many MB

LogicalResult Placement::unroll(Block &block, SmallVector<int64_t> &trips, std::vector<Group> &out) {
  for (Operation &op : block) {
    auto loop = dyn_cast<dlir::LoopOp>(op);
    if (!loop) {
      auto group = dyn_cast<dlir::TaskGroupOp>(op);
      if (!group)
        return op.emitOpError("is not what shims do");
      if (!group.getWait().empty() || !group.getSignal().empty())
        return group.emitOpError("takes or gives tokens; the controller orders the tasks of shims");
      for (Operation &task : group.getBody().front())
        if (!endOf(&task))
          return task.emitOpError("is not what shims do");
      out.push_back({group, trips, conditions});
      if (out.size() > kMostGroups)
        return group.emitOpError("is done more than ") << kMostGroups << " times in a run";
      continue;
    }
    std::optional<std::pair<size_t, int64_t>> size = sizeOf(loop.getTimes(), loop.getIndices());
    int64_t times = size                                 ? size->second * most[size->first]
                    : loop.getTimes().isSingleConstant() ? loop.getTimes().getSingleConstantResult()
                                                         : -1;
    if (times < 0 || times > static_cast<int64_t>(kMostGroups) || (size && size->second != 1))
      return loop.emitOpError("of shims runs a constant number of times, or as the register of a size says, at most ")
             << kMostGroups;
    for (int64_t i = 0; i < times; ++i) {
      trips.push_back(i);
      if (size)
        conditions.emplace_back(static_cast<int64_t>(size->first), i);
      LogicalResult done = unroll(loop.getBody().front(), trips, out);
      trips.pop_back();
      if (size)
        conditions.pop_back();
      if (failed(done))
        return failure();
    }
  }
  return success();
}

LogicalResult Placement::placeShim(dlir::DispatchQueueOp queue, ArrayRef<int64_t> place) {
  ShimQueue shim;
  shim.at = tileOf(queue, place);
  shim.place.assign(place.begin(), place.end());
  SmallVector<int64_t> trips;
  if (failed(unroll(queue.getBody().front(), trips, shim.groups)))
    return failure();
  std::optional<End> first;
  for (size_t i = 0; i < shim.groups.size() && !first; ++i) // one may bring nothing
    if (Block &tasks = shim.groups[i].op.getBody().front(); !tasks.empty())
      first = endOf(&tasks.front());
  if (!first)
    return queue.emitOpError("moves nothing");
  if (!shims.empty() && shims[0].groups.size() != shim.groups.size())
    return queue.emitOpError("has ") << shim.groups.size() << " groups in a run, another queue of shims "
                                     << shims[0].groups.size();
  for (auto [one, other] : llvm::zip(shims.empty() ? shim.groups : shims[0].groups, shim.groups))
    if (one.conditions != other.conditions)
      return queue.emitOpError("has groups that other sizes of a dispatch decide than those of another queue of shims");
  shim.direction = first->isPut ? DMAChannelDir::MM2S : DMAChannelDir::S2MM;
  shim.name = first->channel.str() + std::to_string(shim.at.column);
  ShimDMAAllocationOp::create(b, where, shim.name, tiles->tile(shim.at), shim.direction,
                              static_cast<uint32_t>(queue.getIndex()));
  shims.push_back(std::move(shim));
  return success();
}

/// An argument of the sequence: the form of an operand in DDR, rows of a pitch, as its piece says.
LogicalResult Placement::addOperand(dlir::ArgumentOp argument, SmallVector<Attribute> &operands, Block &block,
                                    IRMapping &values) {
  dlir::PieceOp found;
  int64_t pieces = 0;
  for (auto piece : program.getBody().getOps<dlir::PieceOp>())
    if (piece.getArgument() == argument.getName() && ++pieces)
      found = piece;
  auto memory = pieces == 1 ? found.getMemory().getDefiningOp<dlir::MemoryOp>() : dlir::MemoryOp();
  bool known = llvm::is_contained({dlir::ArgumentRole::input, dlir::ArgumentRole::output, dlir::ArgumentRole::constant},
                                  argument.getRole());
  Type element = elementOf(argument.getForm());
  if (!memory || memory.getKind() != "DDR" || !known || !element || found.getOffset())
    return argument.emitOpError(
        "is an input, output or constant of bf16, f16, f32, i64, i32 or i8, and one piece at the begin of a "
        "buffer in DDR");
  ArrayRef<int64_t> strides = found.getStrides();
  int64_t bytes = bytesOf(element), size = memory.getSize();
  int64_t pitch = size;
  auto border = found->getAttrOfType<DictionaryAttr>(kPieceBorder);
  if (auto said = border ? border.getAs<IntegerAttr>(kPitch) : IntegerAttr())
    pitch = said.getInt();
  else if (argument.getRole() == dlir::ArgumentRole::constant && !strides.empty())
    pitch = strides[0];
  else if (strides.size() > 1)
    pitch = strides[strides.size() - 2];
  if (pitch < bytes || pitch % bytes || size % pitch || values.contains(memory.getResult()))
    return argument.emitOpError("lies in no whole rows of a buffer of its own");
  NamedAttrList operand;
  operand.set("name", argument.getNameAttr());
  operand.set("role", b.getStringAttr(stringifyArgumentRole(argument.getRole())));
  operand.set("tensor", argument.getTensorAttr());
  if (border) {
    NamedAttrList places(border);
    places.erase(kPitch);
    SmallVector<int64_t> elements;
    for (int64_t stride : strides)
      elements.push_back(stride / bytes);
    if (!border.contains(kStrides))
      places.set(kStrides, b.getDenseI64ArrayAttr(elements));
    operand.set(kBorder, places.getDictionary(b.getContext()));
  }
  operands.push_back(operand.getDictionary(b.getContext()));
  values.map(memory.getResult(), block.addArgument(MemRefType::get({size / pitch, pitch / bytes}, element), where));
  return success();
}

/// How many groups may be begun before the first has to be done: what BDs and queues of shims hold. Where sizes are
/// fixed a queue that would be too full is waited for (noteWaits).
FailureOr<int64_t> Placement::flights() {
  int64_t bds = 0, tasks = 0, most = machine.tile(hw::TileKind::Shim).bds, flights = machine.queueDepth;
  for (size_t i = 0; !shims.empty() && i < shims[0].groups.size(); ++i) {
    std::map<hw::Tile, int64_t> perShim;
    for (ShimQueue &shim : shims) {
      bds = std::max(bds, perShim[shim.at] += tasksOf(shim.groups[i]));
      tasks = std::max(tasks, tasksOf(shim.groups[i]));
      bool isWaitedFor = this->most.empty() && shim.direction == DMAChannelDir::MM2S;
      int64_t ahead = 0, waiting = 0; // as many groups from this one on as the queue holds
      for (; ahead < flights && !isWaitedFor && i + static_cast<size_t>(ahead) < shim.groups.size(); ++ahead)
        if (waiting += tasksOf(shim.groups[i + static_cast<size_t>(ahead)]); waiting > machine.queueDepth)
          break;
      if (waiting > machine.queueDepth)
        flights = ahead;
    }
  }
  flights = bds ? std::min(flights, most / bds) : 1;
  if (flights < 1 || tasks > machine.queueDepth)
    return graph.emitOpError("has groups of ") << bds << " tasks of a shim, " << tasks << " of one channel; a shim has "
                                               << most << " BDs and queues of " << machine.queueDepth;
  perFlight = bds;
  return flights;
}

int64_t Placement::tasksOf(const Group &group) {
  return static_cast<int64_t>(group.op->getRegion(0).front().getOperations().size());
}

/// Of channels that bring operands: a task begins to wait when, of those before it, no more are left than one that runs
/// and a queue of others. What the results of a group before tell is not waited for again.
void Placement::noteWaits(int64_t ahead) {
  for (ShimQueue &shim : shims) {
    SmallVector<int64_t> groups; // of each task
    for (auto [i, group] : llvm::enumerate(shim.groups))
      groups.append(static_cast<size_t>(tasksOf(group)), static_cast<int64_t>(i));
    const auto full = static_cast<size_t>(machine.queueDepth) + 1;
    for (size_t task = full; task < groups.size() && shim.direction == DMAChannelDir::MM2S; ++task)
      if (groups[task - full] > groups[task] - ahead)
        shim.waitedFor.insert(static_cast<int64_t>(task - full));
  }
}

LogicalResult Placement::writeMoves(size_t group, int64_t flight, const IRMapping &values) {
  std::map<hw::Tile, int64_t> bds;
  const int64_t full = machine.queueDepth + 1;
  for (ShimQueue &shim : shims)
    for (Operation &task : shim.groups[group].op.getBody().front()) {
      const bool tells = shim.direction == DMAChannelDir::S2MM && !task.getNextNode(); // of all before it, too
      End end = *endOf(&task);
      FailureOr<Walk> walk = walkOf(end);
      if (failed(walk))
        return failure();
      FailureOr<int64_t> offset = offsetOf(end, shim.place, shim.groups[group].trips);
      Value matrix = values.lookupOrNull(end.buffer);
      if (failed(offset))
        return failure();
      bool typed = matrix && cast<MemRefType>(matrix.getType()).getElementType() == walk->element;
      if (!typed || walk->sizes.size() > 4)
        return task.emitOpError(
            "is no task of a shim: a walk of up to three dims over an argument's numbers, done again "
            "and again by a fourth");
      while (walk->sizes.size() < 4) {
        walk->sizes.insert(walk->sizes.begin(), 1);
        walk->strides.insert(walk->strides.begin(), 0);
      }
      const int64_t offsets[] = {0, 0, 0, *offset}, number = shim.begun++;
      if (shim.waitedFor.contains(number - full))
        aiex::NpuDmaWaitOp::create(b, where, shim.name);
      auto move =
          aiex::NpuDmaMemcpyNdOp::create(b, where, matrix, offsets, walk->sizes, walk->strides, shim.name,
                                         static_cast<uint64_t>(flight * perFlight + bds[shim.at]++),
                                         tells || shim.waitedFor.contains(number), IntegerAttr(), IntegerAttr());
      if (walk->size) {
        move.setDim(walk->size->first);
        move.setFactor(static_cast<uint64_t>(walk->size->second));
      }
    }
  return success();
}

/// Registers are words of cores' memories, which run from then on.
void Placement::writeParameters() {
  for (auto &[queue, place] : cores) {
    hw::Tile at = tileOf(queue, place);
    int64_t number = 0; // of the unit
    for (auto [index, extent] : llvm::zip(place, queue.grid()))
      number = number * extent + index;
    for (auto reg : graph.getBody().getOps<dlir::RegisterOp>()) {
      if (isOfController(reg))
        continue;
      ArrayRef<int64_t> all = reg.getValues();
      int64_t value = all.size() == 1 ? all[0] : all[static_cast<size_t>(number)];
      auto written = aiex::NpuWriteRTPOp::create(b, where, bufferOf(parameters(at)).getSymName(),
                                                 static_cast<uint32_t>(reg.getNumber()), static_cast<uint32_t>(value),
                                                 IntegerAttr());
      if (std::optional<uint64_t> size = sizeIn(reg))
        written.setDim(size);
    }
    aiex::SetLockOp::create(b, where, start(at), 1);
  }
}

LogicalResult Placement::writeSequence() {
  llvm::stable_sort(shims, [](const ShimQueue &one, const ShimQueue &other) { return one.at < other.at; });
  FailureOr<int64_t> ahead = flights();
  if (failed(ahead))
    return failure();
  noteWaits(*ahead);
  auto sequence = RuntimeSequenceOp::create(b, where, b.getArrayAttr({}));
  Block &block = sequence.getBody().emplaceBlock();
  SmallVector<Attribute> operands;
  IRMapping values;
  for (auto argument : program.getBody().getOps<dlir::ArgumentOp>())
    if (failed(addOperand(argument, operands, block, values)))
      return failure();
  sequence.setOperandsAttr(b.getArrayAttr(operands));
  if (!most.empty())
    sequence->getParentOp()->setAttr(kMost, b.getDenseI64ArrayAttr(most));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&block);
  auto wait = [&](int64_t group) {
    return whereDone(group, [&] {
      for (const ShimQueue &shim : shims)
        if (shim.direction == DMAChannelDir::S2MM)
          aiex::NpuDmaWaitOp::create(b, where, shim.name);
      return success();
    });
  };
  LogicalResult done = success();
  int64_t all = shims.empty() ? 0 : static_cast<int64_t>(shims[0].groups.size());
  for (int64_t group = 0; succeeded(done) && group < all + *ahead; ++group) {
    if (group >= *ahead && group - *ahead < all)
      done = wait(group - *ahead);
    if (succeeded(done) && group < all)
      done = whereDone(group, [&] { return writeMoves(static_cast<size_t>(group), group % *ahead, values); });
    if (group == 0) // cores begin while the first of their tiles are on their way
      writeParameters();
  }
  return done;
}
