//===- Place.cpp - programs of grids of units on tiles --------------------===//
#include "Placement.h"

#include "dmxc/Dialect/DLIR/TaskDims.h"
#include "dmxc/Dialect/DMIR/Kernels.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kMostParameters = 64;

Type Placement::elementOf(StringRef kind) {
  return kind == "bf16"  ? Type(b.getBF16Type())
         : kind == "f32" ? Type(b.getF32Type())
         : kind == "i32" ? Type(b.getI32Type())
         : kind == "i8"  ? Type(b.getI8Type())
         : kind == "f16" ? Type(b.getF16Type())
         : kind == "i64" ? Type(b.getI64Type())
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
  for (auto memory : program.getBody().getOps<dlir::MemoryOp>())
    if (memory.getKind() != "DDR")
      return memory.emitOpError("'") << memory.getName() << "' lies in " << memory.getKind()
                                     << ", where tiles have rings (dlir.ring)";
  for (auto token : graph.getBody().getOps<dlir::TokenOp>())
    return token.emitOpError("orders nothing on the array, whose locks are those of rings (dlir.ring)");
  for (auto channel : program.getBody().getOps<dlir::ChannelOp>())
    if (channel.getDepth() != 1)
      return channel.emitOpError("@") << channel.getSymName() << " has a `depth` of "
                                      << static_cast<int64_t>(channel.getDepth())
                                      << ", streams of the array hold nothing: it is 1";
  for (auto queue : graph.getBody().getOps<dlir::DispatchQueueOp>())
    if (failed(checkGrid(queue)))
      return failure();
  if (failed(checkSizes()))
    return failure();
  for (auto reg : graph.getBody().getOps<dlir::RegisterOp>())
    if (!isOfController(reg))
      parameterWords = std::max<int64_t>(parameterWords, static_cast<int64_t>(reg.getNumber()) + 1);
  graph->walk([&](CallOp call) {
    std::optional<hw::KernelId> kernel = libraryKernelOf(call);
    if (kernel && hw::takesParameters(*kernel))
      parameterWords = std::max(parameterWords, hw::kParameterWords);
  });
  if (parameterWords > kMostParameters)
    return program.emitOpError("has ") << parameterWords << " registers, cores take " << kMostParameters;
  return success();
}

//===--- rings --------------------------------------------------------------------------===//

static std::string slotName(const std::string &ring, int64_t slot) {
  return ring + (llvm::isDigit(ring.back()) ? "_" : "") + std::to_string(slot);
}

/// Gives rings their locks.
LogicalResult Placement::numberRings() {
  std::map<std::string, uint32_t> locks;
  std::set<std::string> names;
  const std::string core(hw::nameOf(hw::TileKind::Core));
  for (auto ring : graph.getBody().getOps<dlir::RingOp>()) {
    auto refuse = [&] { return ring.emitOpError("'") << ring.getName() << "' "; };
    if (ring.getProducers().size() != 1 || ring.getConsumers().size() != 1)
      return refuse() << "has " << ring.getProducers().size() << " producers and " << ring.getConsumers().size()
                      << " consumers, two locks order one of each";
    if (ring.getKind() != (ring.getHome() == core ? "L1" : "L2"))
      return refuse() << "lies in " << ring.getKind() << ", a tile of class " << ring.getHome() << " has "
                      << (ring.getHome() == core ? "L1" : "L2");
    if (ring.getName().empty())
      return refuse() << "has no name, by which its buffers and locks are called";
    const int64_t count = ring.getSlots(), size = ring.getSize();
    const int64_t uses = ring.getUses();
    if (std::max(count, uses) > machine.largestLock)
      return refuse() << "has `slots` " << count << " and `uses` " << uses << ", a lock counts to "
                      << machine.largestLock;
    for (int64_t slot = 0; slot < count; ++slot)
      if (!names.insert(slotName(ring.getName().str(), slot)).second)
        return refuse() << "has a slot that is called as one of another ring, " << slotName(ring.getName().str(), slot);
    uint32_t &next = locks[ring.getHome().str()];
    rings[ring] = {
        ring.getName().str(), next, count, uses, static_cast<int64_t>(llvm::alignTo(size, machine.accessBytes)), 0, {}};
    next += 2;
    if (ring.getHome() == core && next >= machine.tile(hw::TileKind::Core).locks)
      return refuse() << "is one too many: with the lock that starts it a core has "
                      << machine.tile(hw::TileKind::Core).locks << ", of which a ring takes two";
  }
  coreLocks = locks[core];
  return success();
}

Value Placement::slotAt(hw::Tile at, Value ring, int64_t turn) {
  const Slots &of = rings.find(ring)->second;
  const int64_t slot = turn % of.count;
  return tiles->buffer(at, slotName(of.name, slot), of.type, of.address + slot * of.bytes);
}
Value Placement::emptyLock(hw::Tile at, Value ring) {
  const Slots &of = rings.find(ring)->second;
  return tiles->lock(at, of.name + "_empty", of.emptyLock, of.count * of.uses);
}
Value Placement::fullLock(hw::Tile at, Value ring) {
  const Slots &of = rings.find(ring)->second;
  return tiles->lock(at, of.name + "_full", of.emptyLock + 1, 0);
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
               end.getElement(),
               end.getCount()};
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
    return descriptor.emitOpError("moves ")
           << descriptor.getKind() << ", the array moves bf16, f16, f32, i64, i32 and i8";
  int64_t bytes = bytesOf(walk.element);
  ArrayRef<int64_t> steps = end.isPut ? descriptor.getSource() : descriptor.getTarget();
  for (auto [count, step] : llvm::zip(descriptor.getDims(), steps)) {
    walk.sizes.push_back(count);
    walk.strides.push_back(step / bytes);
  }
  walk.sizes.push_back(static_cast<int64_t>(descriptor.getUnit()));
  walk.strides.push_back(1);
  if (end.count) {
    walk.size = sizeOf(*end.count, end.indices);
    if (!walk.size || walk.sizes.size() < 2 || walk.sizes[0] < 2 ||
        walk.sizes[0] != walk.size->second * most[walk.size->first])
      return end.op->emitOpError(
          "has a `count` that is no size of the program's 'dlir.dims' times a number, at most what "
          "its descriptor counts");
  }
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

FailureOr<Step> Placement::stepOf(Operation *use, hw::Tile at, ArrayRef<int64_t> place, Turns &turns) {
  auto tasks = use->getRegion(0).getOps();
  std::optional<End> end = tasks.begin() == tasks.end() ? std::nullopt : endOf(&*tasks.begin());
  Value ring = use->getOperand(0);
  if (!end || std::next(tasks.begin()) != tasks.end() || use->getNumOperands() != 1 || end->buffer != ring)
    return use->emitOpError("is no BD: one put or get of a slot of one ring");
  FailureOr<Walk> walk = walkOf(*end);
  if (failed(walk))
    return failure();
  FailureOr<int64_t> offset = offsetOf(*end, place, {});
  if (failed(offset))
    return failure();
  if (walk->size)
    return end->op->emitOpError("has a `count`, which BDs of shims alone have");
  if (Type element = rings[ring].type.getElementType(); element != walk->element && walk->whole) { // words (typeRing)
    *walk = {{walk->length * bytesOf(walk->element) / bytesOf(element)}, {1}, element, 0, true, {}};
    walk->length = walk->sizes[0];
  }
  int64_t last = *offset, elements = rings[ring].type.getNumElements();
  for (auto [size, stride] : llvm::zip_equal(walk->sizes, walk->strides)) {
    int64_t reach = 0;
    if (stride < 0 || llvm::MulOverflow(size - 1, stride, reach) || llvm::AddOverflow(last, reach, last))
      return use->emitOpError("walks backwards, or beyond all memory");
  }
  if (last >= elements)
    return end->op->emitOpError("walks to element ")
           << last << " of a slot of ring '" << rings[ring].name << "', which has " << elements
           << ": its walk or `size` is another";
  Step step;
  step.buffer = slotAt(at, ring, turns[ring]++);
  step.offset = *offset;
  step.length = walk->length;
  if (!walk->whole) {
    SmallVector<BDDimLayoutAttr> dims;
    for (auto [size, stride] : llvm::zip_equal(walk->sizes, walk->strides))
      dims.push_back(BDDimLayoutAttr::get(b.getContext(), size, stride));
    step.walk = BDDimLayoutArrayAttr::get(b.getContext(), dims);
  }
  const bool fills = isa<dlir::FillOp>(use);
  step.acquire = fills ? emptyLock(at, ring) : fullLock(at, ring);
  step.release = fills ? fullLock(at, ring) : emptyLock(at, ring);
  step.times = fills ? rings[ring].uses : 1;
  return step;
}

/// The endless loop of a DMA channel's queue; before it are BDs of one time.
static FailureOr<dlir::LoopOp> ringOfBds(dlir::DispatchQueueOp queue) {
  auto loop = queue.getBody().front().empty() ? dlir::LoopOp() : dyn_cast<dlir::LoopOp>(queue.getBody().front().back());
  bool forever = loop && loop.getTimes().isSingleConstant() && loop.getTimes().getSingleConstantResult() == kForever;
  if (!forever)
    return queue.emitOpError("is no ring of BDs: one loop of ") << kForever << " trips, which are without an end";
  for (Block *block : {&queue.getBody().front(), &loop.getBody().front()})
    for (Operation &op : *block)
      if (&op != loop.getOperation() && !isa<dlir::FillOp, dlir::DrainOp>(op))
        return op.emitOpError("is no BD of a ring: a fill or a drain");
  if (loop.getBody().front().empty())
    return queue.emitOpError("has nothing in its ring");
  return loop;
}

/// A ring of BDs: a trip of its loop, until it comes to the same slots again.
LogicalResult Placement::placeBds(dlir::DispatchQueueOp queue, ArrayRef<int64_t> place) {
  hw::Tile at = tileOf(queue, place);
  FailureOr<dlir::LoopOp> loop = ringOfBds(queue);
  if (failed(loop))
    return failure();
  std::vector<Step> steps;
  Turns turns;
  auto add = [&](Operation &use) {
    FailureOr<Step> step = stepOf(&use, at, place, turns);
    steps.push_back(step.value_or(Step()));
    return LogicalResult(step);
  };
  for (Operation &use : queue.getBody().front())
    if (&use != loop->getOperation() && failed(add(use)))
      return failure();
  const size_t first = steps.size();
  const int64_t around = dlir::tripsAround(*loop), most = machine.tile(kindOf(queue)).bds;
  for (int64_t trip = 0; trip < around && static_cast<int64_t>(steps.size()) <= most; ++trip)
    for (Operation &use : loop->getBody().front())
      if (failed(add(use)))
        return failure();
  DMAChannelDir direction =
      queue.getEngine() == StringRef(hw::nameOf(hw::Direction::S2MM)) ? DMAChannelDir::S2MM : DMAChannelDir::MM2S;
  if (tiles->channel(at, direction, static_cast<uint32_t>(queue.getIndex()), std::move(steps), first))
    return success();
  auto ring = loop->getBody().front().front().getOperand(0).getDefiningOp<dlir::RingOp>();
  return queue.emitOpError("of ring '") << ring.getName() << "' takes more BDs than a " << queue.getUnit()
                                        << " has left, " << most
                                        << " in all: a ring of BDs has one for each of the `slots`";
}

LogicalResult Placement::placeQueue(dlir::DispatchQueueOp queue, ArrayRef<int64_t> place) {
  if (queue.getEngine() == kComputeEngine) {
    cores.emplace_back(queue, place);
    return success();
  }
  if (failed(addStream(queue, place)))
    return failure();
  return kindOf(queue) == hw::TileKind::Shim ? placeShim(queue, place) : placeBds(queue, place);
}

FailureOr<DeviceOp> Placement::run() {
  if (failed(check()))
    return failure();
  b.setInsertionPoint(program);
  auto device = DeviceOp::create(
      b, where, *symbolizeAIEDevice(machine.name == "npu4" ? "npu2" : StringRef(machine.name)), program.getSymName());
  if (Attribute sizes = program->getAttr(dlir::kTaskDims))
    device->setAttr(dlir::kTaskDims, sizes);
  for (StringRef key : {StringRef(kFunction), StringRef(dmir::kUserBodiesAttr)})
    if (Attribute ofUser = program->getAttr(key))
      device->setAttr(key, ofUser);
  tiles.emplace(b, where, machine);
  b.setInsertionPointToStart(&device.getBody().emplaceBlock());
  auto fail = [&] {
    device.erase();
    return failure();
  };
  if (failed(numberRings()) || failed(placeRings()))
    return fail();
  for (auto queue : graph.getBody().getOps<dlir::DispatchQueueOp>())
    for (ArrayRef<int64_t> place : dlir::placesOf(queue.grid()))
      if (failed(placeQueue(queue, place)))
        return fail();
  for (auto &[queue, place] : cores)
    placeCore(tileOf(queue, place));
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
  if (failed(writeSequence()) || failed(mlir::verify(device)))
    return fail();
  program.erase();
  return device;
}

FailureOr<DeviceOp> aie::place(dlir::DeviceProgramOp program) {
  OpBuilder builder(program);
  return Placement(program, builder).run();
}
