//===- Place.cpp - programs of grids of units on tiles --------------------===//
#include "Placement.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kBank = 16 << 10; ///< bytes of a core's memory that one access a clock reaches

static constexpr int64_t kMostParameters = 64;

Type Placement::elementOf(StringRef kind) {
  return kind == "bf16"  ? Type(b.getBF16Type())
         : kind == "f32" ? Type(b.getF32Type())
         : kind == "i32" ? Type(b.getI32Type())
         : kind == "i8"  ? Type(b.getI8Type())
                         : Type();
}

hw::TileKind Placement::kindOf(dlir::DispatchQueueOp queue) {
  for (hw::TileKind kind : {hw::TileKind::Shim, hw::TileKind::Memory})
    if (queue.getUnit() == StringRef(hw::nameOf(kind)))
      return kind;
  return hw::TileKind::Core;
}

hw::Tile Placement::tileOf(dlir::DispatchQueueOp queue, ArrayRef<int64_t> place) {
  hw::TileKind kind = kindOf(queue);
  uint32_t row = kind == hw::TileKind::Shim ? 0 : kind == hw::TileKind::Memory ? 1 : 1 + machine.memoryRows;
  return {static_cast<uint32_t>(place[0]), row + (place.size() > 1 ? static_cast<uint32_t>(place[1]) : 0)};
}

//===--- what the rest takes for granted -----------------------------------------------===//

LogicalResult Placement::checkGrid(dlir::DispatchQueueOp queue) {
  bool isCore = kindOf(queue) == hw::TileKind::Core;
  ArrayRef<int64_t> grid = queue.grid();
  if (grid.size() != (isCore ? 2 : 1))
    return queue.emitOpError("is of units in ")
           << grid.size() << " dims; cores are in columns and rows, other tiles in columns";
  if (grid[0] > machine.columns || (isCore && grid[1] > machine.coreRows()))
    return queue.emitOpError("is of ") << grid[0] << " columns" << (isCore ? " by " + std::to_string(grid[1]) : "")
                                       << ", the machine " << machine.name << " has " << machine.columns
                                       << (isCore ? " by " + std::to_string(machine.coreRows()) : "");
  return success();
}

LogicalResult Placement::check() {
  auto name = program->getAttrOfType<StringAttr>(kMachineKey);
  std::optional<hw::Machine> known = name ? hw::machineOf(name.getValue().str()) : std::nullopt;
  if (program.getDevice() != kDevice || !known)
    return program.emitOpError("says by ") << kMachineKey << " which machine it is for: " << hw::machineNames();
  machine = *known;
  auto graphs = program.getBody().getOps<dlir::ScheduledGraphOp>();
  if (graphs.empty() || std::next(graphs.begin()) != graphs.end() || (*graphs.begin()).getName() != "main")
    return program.emitOpError("has one graph, which is \"main\"");
  graph = *graphs.begin();
  for (auto queue : graph.getBody().getOps<dlir::DispatchQueueOp>())
    if (failed(checkGrid(queue)))
      return failure();
  for (auto reg : graph.getBody().getOps<dlir::RegisterOp>())
    parameterWords = std::max<int64_t>(parameterWords, static_cast<int64_t>(reg.getNumber()) + 1);
  graph->walk([&](CallOp call) {
    std::optional<hw::KernelId> kernel = hw::kernelNamed(call.getKernel().str());
    if (kernel && hw::takesParameters(*kernel))
      parameterWords = std::max(parameterWords, hw::kParameterWords);
  });
  if (parameterWords > kMostParameters)
    return program.emitOpError("has ") << parameterWords << " registers, cores take " << kMostParameters;
  return success();
}

//===--- tokens and buffers -------------------------------------------------------------===//

void Placement::numberTokens() {
  std::map<std::string, uint32_t> counts;
  std::string core(hw::nameOf(hw::TileKind::Core));
  for (auto token : graph.getBody().getOps<dlir::TokenOp>()) {
    std::string home = token.getHome() ? token.getHome()->str() : core;
    uint32_t number = counts[home]++;
    tokens[token] = {"token" + std::to_string(number), number, static_cast<int64_t>(token.getCredits())};
  }
  coreTokens = counts[core];
  nameTokens();
}

/// A lock is called by what it says of the buffers of the first DMA queue that has it: a_full, a_empty.
void Placement::nameTokens() {
  std::set<std::string> taken;
  llvm::DenseSet<Value> named;
  auto name = [&](Value token, StringRef memory, const char *state) {
    bool numbered = memory.size() > 1 && llvm::isDigit(memory.back());
    std::string text = (numbered ? memory.drop_back().rtrim('_') : memory).str() + state;
    if (named.insert(token).second && taken.insert(text).second)
      tokens[token].name = text;
  };
  graph->walk([&](dlir::TaskGroupOp group) {
    for (Operation &op : group.getBody().front()) {
      std::optional<End> end = endOf(&op);
      if (!end)
        continue;
      StringRef memory = end->buffer.getDefiningOp<dlir::MemoryOp>().getName();
      for (const dlir::TokenCount &wait : group.waits())
        name(wait.token, memory, end->isPut ? "_full" : "_empty");
      for (const dlir::TokenCount &signal : group.signals())
        name(signal.token, memory, end->isPut ? "_empty" : "_full");
    }
  });
}

/// A buffer has the type of what is moved into or out of it: rows where one queue takes rows as they lie.
LogicalResult Placement::typeMemory(dlir::MemoryOp memory) {
  Memory &out = memories[memory];
  for (Operation *user : memory->getUsers()) {
    std::optional<End> end = endOf(user);
    if (!end)
      continue;
    FailureOr<Walk> walk = walkOf(*end);
    if (failed(walk))
      return failure();
    bool rows = walk->whole && walk->sizes.size() == 2;
    int64_t bytes = bytesOf(walk->element), size = memory.getSize();
    if (out.type && out.type.getElementType() != walk->element)
      return user->emitOpError("takes '") << memory.getName() << "' as another kind of numbers than others do";
    if (size % bytes)
      return user->emitOpError("takes '") << memory.getName() << "', which is no whole number of elements";
    if (rows && walk->length * bytes == size)
      out.type = MemRefType::get(walk->sizes, walk->element);
    else if (!out.type)
      out.type = MemRefType::get({size / bytes}, walk->element);
  }
  if (!out.type)
    return memory.emitOpError("is put and got by no queue, so that nobody knows what is in it");
  return success();
}

/// What one channel fills or empties begins at a bank of its own, where there is room; the parameters are behind the
/// first.
void Placement::placeL1(ArrayRef<dlir::MemoryOp> all) {
  for (int64_t bank : {kBank, int64_t(1)}) {
    int64_t next = 0;
    Operation *channel = nullptr;
    bool hasParameters = false;
    auto behind = [&](int64_t bytes) {
      int64_t address = static_cast<int64_t>(llvm::alignTo(next, machine.accessBytes));
      next = address + bytes;
      return address;
    };
    for (dlir::MemoryOp memory : all) {
      Operation *by = nullptr;
      for (Operation *user : memory->getUsers())
        if (endOf(user))
          by = user->getParentOfType<dlir::DispatchQueueOp>();
      if (channel && by != channel) {
        if (!std::exchange(hasParameters, true))
          parametersAddress = behind(4 * parameterWords);
        next = static_cast<int64_t>(llvm::alignTo(next, bank));
      }
      channel = by;
      memories[memory].address = memory.getAddress() ? static_cast<int64_t>(*memory.getAddress())
                                                     : behind(static_cast<int64_t>(memory.getSize()));
    }
    if (!hasParameters)
      parametersAddress = behind(4 * parameterWords);
    if (next <= machine.tile(hw::TileKind::Core).dataBytes)
      return;
  }
}

LogicalResult Placement::placeMemories() {
  SmallVector<dlir::MemoryOp> ofCores;
  int64_t next = 0;
  for (auto memory : program.getBody().getOps<dlir::MemoryOp>()) {
    if (memory.getKind() == "DDR")
      continue;
    if (failed(typeMemory(memory)))
      return failure();
    if (memory.getKind() == "L1") {
      ofCores.push_back(memory);
      continue;
    }
    int64_t address = memory.getAddress() ? static_cast<int64_t>(*memory.getAddress()) : next;
    memories[memory].address = address;
    next = std::max(next, static_cast<int64_t>(
                              llvm::alignTo(address + static_cast<int64_t>(memory.getSize()), machine.accessBytes)));
  }
  placeL1(ofCores);
  return success();
}

Value Placement::bufferAt(hw::Tile at, Value memory) {
  const Memory &of = memories.find(memory)->second;
  return tiles->buffer(at, memory.getDefiningOp<dlir::MemoryOp>().getName().str(), of.type, of.address);
}
Value Placement::lockAt(hw::Tile at, Value token) {
  const Token &of = tokens.find(token)->second;
  return tiles->lock(at, of.name, of.number, of.credits);
}

//===--- ends of channels ---------------------------------------------------------------===//

std::optional<Placement::End> Placement::endOf(Operation *op) {
  auto make = [&](auto end, bool isPut) {
    return End{op,
               isPut,
               end.getBuffers()[0],
               cast<AffineMapAttr>(end.getPlaces()[0]).getValue(),
               end.getIndices(),
               end.getDescriptor().template getDefiningOp<dlir::DescriptorOp>(),
               end.getChannel(),
               end.getElement()};
  };
  if (auto put = dyn_cast<dlir::PutOp>(op))
    return make(put, true);
  if (auto get = dyn_cast<dlir::GetOp>(op))
    return make(get, false);
  return std::nullopt;
}

FailureOr<Placement::Walk> Placement::walkOf(const End &end) {
  dlir::DescriptorOp descriptor = end.descriptor;
  for (NamedAttribute named : descriptor->getAttrs())
    if (!llvm::is_contained({"kind", "unit", "dims", "source", "target"}, named.getName().getValue()))
      return descriptor.emitOpError("has '") << named.getName().getValue() << "', which BDs of the array do not have";
  Walk walk;
  walk.element = elementOf(descriptor.getKind());
  if (!walk.element)
    return descriptor.emitOpError("moves ") << descriptor.getKind() << ", the array moves bf16, f32, i32 and i8";
  int64_t bytes = bytesOf(walk.element);
  ArrayRef<int64_t> steps = end.isPut ? descriptor.getSource() : descriptor.getTarget();
  for (auto [count, step] : llvm::zip(descriptor.getDims(), steps)) {
    walk.sizes.push_back(count);
    walk.strides.push_back(step / bytes);
  }
  walk.sizes.push_back(static_cast<int64_t>(descriptor.getUnit()));
  walk.strides.push_back(1);
  for (size_t i = walk.sizes.size(); i-- > 0;) {
    walk.whole = walk.whole && walk.strides[i] == walk.length;
    if (walk.sizes[i] < 1 || llvm::MulOverflow(walk.length, walk.sizes[i], walk.length) || walk.length > INT32_MAX)
      return descriptor.emitOpError("moves nothing, or more than a BD does");
  }
  return walk;
}

/// In elements.
FailureOr<int64_t> Placement::offsetOf(const End &end, ArrayRef<int64_t> place, ArrayRef<int64_t> trips) {
  auto at = dlir::valuesAt(end.place, end.indices, place, trips);
  dlir::DescriptorOp descriptor = end.descriptor;
  int64_t bytes = bytesOf(elementOf(descriptor.getKind()));
  if (!at || at->front() < 0 || at->front() % bytes)
    return end.op->emitOpError("begins at no element, or at one that its unit's place and its loops do not say");
  return at->front() / bytes;
}

/// All ends of a queue are of one stream, which its DMA channel begins or ends.
LogicalResult Placement::addStream(dlir::DispatchQueueOp queue, ArrayRef<int64_t> place) {
  std::optional<StreamName> stream;
  bool isPut = false;
  WalkResult done = queue->walk([&](Operation *op) {
    std::optional<End> end = endOf(op);
    if (!end)
      return WalkResult::advance();
    StreamName name{end->channel.str(), {}};
    if (end->element)
      name.second = *dlir::valuesAt(*end->element, end->indices, place); // the verifier has seen it
    if ((stream && *stream != name) ||
        end->isPut != (queue.getEngine() == StringRef(hw::nameOf(hw::Direction::MM2S)))) {
      op->emitOpError("is of a stream that its queue does not have: a DMA channel has one, in one direction");
      return WalkResult::interrupt();
    }
    isPut = end->isPut;
    stream = name;
    return WalkResult::advance();
  });
  if (done.wasInterrupted())
    return failure();
  if (!stream)
    return success();
  auto [at, isNew] = streams.try_emplace(*stream);
  if (isNew)
    streamOrder.push_back(*stream);
  (isPut ? at->second.sources : at->second.sinks)
      .push_back({tileOf(queue, place), static_cast<uint32_t>(queue.getIndex())});
  return success();
}

LogicalResult Placement::writeFlows() {
  for (const StreamName &name : streamOrder) {
    const Stream &stream = streams[name];
    if (stream.sources.size() != 1)
      return program.emitOpError("has ") << stream.sources.size() << " units that put into one element of @"
                                         << name.first << ", streams of the array have one source";
    auto [from, channel] = stream.sources[0];
    for (auto [to, toChannel] : stream.sinks)
      tiles->flow(from, channel, to, toChannel);
  }
  return success();
}

//===--- queues -------------------------------------------------------------------------===//

FailureOr<Step> Placement::stepOf(dlir::TaskGroupOp group, hw::Tile at, ArrayRef<int64_t> place) {
  auto tasks = group.getBody().getOps();
  std::optional<End> end = tasks.begin() == tasks.end() ? std::nullopt : endOf(&*tasks.begin());
  std::vector<dlir::TokenCount> waits = group.waits(), signals = group.signals();
  if (!end || std::next(tasks.begin()) != tasks.end() || waits.size() > 1 || signals.size() > 1)
    return group.emitOpError("is no BD: a put or a get, with at most one token taken and one given");
  FailureOr<Walk> walk = walkOf(*end);
  if (failed(walk))
    return failure();
  FailureOr<int64_t> offset = offsetOf(*end, place, {});
  if (failed(offset))
    return failure();
  Step step;
  step.buffer = bufferAt(at, end->buffer);
  step.offset = *offset;
  step.length = walk->length;
  if (!walk->whole) {
    SmallVector<BDDimLayoutAttr> dims;
    for (auto [size, stride] : llvm::zip_equal(walk->sizes, walk->strides))
      dims.push_back(BDDimLayoutAttr::get(b.getContext(), size, stride));
    step.walk = BDDimLayoutArrayAttr::get(b.getContext(), dims);
  }
  if (!waits.empty()) {
    step.acquire = lockAt(at, waits[0].token);
    step.acquires = waits[0].count;
  }
  if (!signals.empty()) {
    step.release = lockAt(at, signals[0].token);
    step.releases = signals[0].count;
  }
  return step;
}

LogicalResult Placement::placeRing(dlir::DispatchQueueOp queue, ArrayRef<int64_t> place) {
  hw::Tile at = tileOf(queue, place);
  auto ops = queue.getBody().getOps();
  auto loop = ops.begin() == ops.end() ? dlir::LoopOp() : dyn_cast<dlir::LoopOp>(*ops.begin());
  bool forever = loop && std::next(ops.begin()) == ops.end() && loop.getTimes().isSingleConstant() &&
                 loop.getTimes().getSingleConstantResult() == kForever;
  if (!forever)
    return queue.emitOpError("is no ring of BDs: one loop of ") << kForever << " trips, which are without an end";
  std::vector<Step> steps;
  for (Operation &op : loop.getBody().front()) {
    auto group = dyn_cast<dlir::TaskGroupOp>(op);
    if (!group)
      return op.emitOpError("is no BD of a ring");
    FailureOr<Step> step = stepOf(group, at, place);
    if (failed(step))
      return failure();
    steps.push_back(*step);
  }
  if (steps.empty())
    return queue.emitOpError("has nothing in its ring");
  tiles->channel(
      at, queue.getEngine() == StringRef(hw::nameOf(hw::Direction::S2MM)) ? DMAChannelDir::S2MM : DMAChannelDir::MM2S,
      static_cast<uint32_t>(queue.getIndex()), std::move(steps));
  return success();
}

LogicalResult Placement::placeQueue(dlir::DispatchQueueOp queue, ArrayRef<int64_t> place) {
  if (queue.getEngine() == kComputeEngine) {
    cores.emplace_back(queue, place);
    return success();
  }
  if (failed(addStream(queue, place)))
    return failure();
  return kindOf(queue) == hw::TileKind::Shim ? placeShim(queue, place) : placeRing(queue, place);
}

FailureOr<DeviceOp> Placement::run() {
  if (failed(check()))
    return failure();
  b.setInsertionPoint(program);
  auto device = DeviceOp::create(
      b, where, *symbolizeAIEDevice(machine.name == "npu4" ? "npu2" : StringRef(machine.name)), program.getSymName());
  tiles.emplace(b, where, machine);
  b.setInsertionPointToStart(&device.getBody().emplaceBlock());
  auto fail = [&] {
    device.erase();
    return failure();
  };
  numberTokens();
  if (failed(placeMemories()))
    return fail();
  for (auto queue : graph.getBody().getOps<dlir::DispatchQueueOp>())
    for (ArrayRef<int64_t> place : dlir::placesOf(queue.grid()))
      if (failed(placeQueue(queue, place)))
        return fail();
  for (auto &[queue, place] : cores) {
    parameters(tileOf(queue, place));
    start(tileOf(queue, place));
  }
  if (failed(writeFlows()))
    return fail();
  std::set<hw::Tile> replying;
  for (const ShimQueue &shim : shims)
    if (replying.insert(shim.at).second) // the tokens of tasks that are done
      FlowOp::create(b, where, tiles->tile(shim.at), WireBundle::TileControl, 0, tiles->tile(shim.at),
                     WireBundle::South, 0);
  tiles->writeChannels();
  if (failed(writeKernels()))
    return fail();
  for (auto &[queue, place] : cores)
    if (failed(writeCore(queue, place)))
      return fail();
  if (failed(writeSequence()))
    return fail();
  program.erase();
  return device;
}

FailureOr<DeviceOp> aie::place(dlir::DeviceProgramOp program) {
  OpBuilder builder(program);
  return Placement(program, builder).run();
}
