//===- Place.cpp - the program of a herd on tiles -------------------------===//
#include "Place.h"
#include "Tiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;
using herd::By;
using herd::ChannelOp;
using herd::Level;

namespace {

constexpr size_t kDepth = 2; ///< buffers of a ring

class Placement {
public:
  Placement(herd::ProgramOp program, OpBuilder &builder)
      : program(program), b(builder), where(program.getLoc()),
        herd{static_cast<int64_t>(program.getRows()), static_cast<int64_t>(program.getColumns())} {}

  FailureOr<DeviceOp> run();

private:
  struct Core {
    hw::Tile at;
    std::map<StringRef, Ring> rings; ///< by channel
    Value parameters, start;
    // While its program is written:
    std::map<StringRef, size_t> next; ///< buffer of each ring
    IRMapping values;
  };
  struct ShimChannel {
    std::string name;
    DMAChannelDir direction;
    int64_t column;
  };

  LogicalResult check();
  ChannelOp channel(StringRef name) { return dyn_cast_or_null<ChannelOp>(SymbolTable::lookupSymbolIn(program, name)); }
  void placeCores();
  LogicalResult place(herd::RelayOp relay, int64_t column);
  SmallVector<hw::Tile> sinksOf(ChannelOp to, int64_t element);
  uint32_t shimChannel(StringRef name, int64_t column, DMAChannelDir direction);
  LogicalResult writeCore(Core &core, Block &body);
  LogicalResult write(Core &core, Block &block);
  LogicalResult write(Core &core, scf::ForOp loop);
  LogicalResult writeLock(Core &core, Operation &op);
  LogicalResult writeSequence(herd::SequenceOp from);
  FailureOr<int64_t> flightsOf(herd::SequenceOp from);
  void writeMoves(herd::BlockOp block, int64_t flight, const IRMapping &values);
  void use(Value lock, LockAction action) { UseLockOp::create(b, where, lock, action, 1); }

  herd::ProgramOp program;
  OpBuilder &b;
  Location where;
  Herd herd;
  hw::Machine machine;
  std::optional<Tiles> tiles;
  std::vector<Core> cores;                    ///< row after row
  std::map<StringRef, uint32_t> coreChannels; ///< by channel, the same in all cores
  std::vector<ShimChannel> shims;
  std::map<std::pair<int64_t, DMAChannelDir>, uint32_t> shimChannels; ///< how many are taken
  int64_t perFlight = 0;                                              ///< BDs of a shim for a block
};

hw::Tile coreAt(int64_t row, int64_t column) { return {static_cast<uint32_t>(column), static_cast<uint32_t>(2 + row)}; }
hw::Tile memoryOf(int64_t column) { return {static_cast<uint32_t>(column), 1}; }
hw::Tile shimOf(int64_t column) { return {static_cast<uint32_t>(column), 0}; }

/// What the rest takes for granted.
LogicalResult Placement::check() {
  if (herd.rows < 1 || herd.rows > machine.coreRows() || herd.columns < 1 || herd.columns > machine.columns)
    return program.emitOpError("has ") << herd.rows << " by " << herd.columns << " cores, the machine " << machine.name
                                       << " has " << machine.coreRows() << " by " << machine.columns;
  for (auto op : program.getBody().getOps<ChannelOp>()) {
    bool inner = op.getFrom() == Level::core || op.getTo() == Level::core;
    bool known = (op.getFrom() == Level::core && op.getTo() == Level::memory && op.getBy() == By::cores) ||
                 (op.getFrom() == Level::memory && op.getTo() == Level::core && op.getBy() != By::cores) ||
                 (!inner && op.getFrom() != op.getTo() && op.getBy() == By::columns);
    auto type = dyn_cast<MemRefType>(op.getMatrix());
    if (!known || !type || !type.hasStaticShape() || elementBytes(type) == 0)
      return op.emitOpError("is no way of matrices of bf16, f32 or i32 between DDR, memory and cores");
  }
  auto once = [&](auto all) { return std::distance(all.begin(), all.end()) == 1; };
  if (!once(program.getBody().getOps<herd::CoresOp>()) || !once(program.getBody().getOps<herd::SequenceOp>()))
    return program.emitOpError("has one herd.cores and one herd.sequence");
  return success();
}

//===--- tiles -----------------------------------------------------------------------===//

void Placement::placeCores() {
  auto sequence = *program.getBody().getOps<herd::SequenceOp>().begin();
  auto words = static_cast<int64_t>(std::max<size_t>(sequence.getParameters().size(), 1));
  for (int64_t i = 0; i < herd.rows * herd.columns; ++i) {
    hw::Tile at = coreAt(i / herd.columns, i % herd.columns);
    Core &core = cores.emplace_back();
    core.at = at;
    for (auto op : program.getBody().getOps<ChannelOp>()) {
      bool in = op.getTo() == Level::core;
      if (!in && op.getFrom() != Level::core)
        continue;
      bool isFirst = core.rings.empty();
      core.rings[op.getSymName()] =
          tiles->ring(at, op.getSymName().str(), cast<MemRefType>(op.getMatrix()), kDepth, /*bank=*/!isFirst);
      if (isFirst)
        core.parameters = tiles->buffer(at, "parameters", MemRefType::get({words}, b.getI32Type()));
      coreChannels[op.getSymName()] =
          tiles->channel(at, in ? DMAChannelDir::S2MM : DMAChannelDir::MM2S, core.rings[op.getSymName()]);
    }
    core.start = tiles->lock(at, "start", 0);
  }
}

/// The cores that an element of a channel into cores goes to.
SmallVector<hw::Tile> Placement::sinksOf(ChannelOp to, int64_t element) {
  SmallVector<hw::Tile> out;
  for (const Core &core : cores)
    if ((to.getBy() == By::rows ? core.at.row - 2 : core.at.column) == element)
      out.push_back(core.at);
  return out;
}

uint32_t Placement::shimChannel(StringRef name, int64_t column, DMAChannelDir direction) {
  uint32_t number = shimChannels[{column, direction}]++;
  shims.push_back({name.str() + std::to_string(column), direction, column});
  ShimDMAAllocationOp::create(b, where, shims.back().name, tiles->tile(shimOf(column)), direction, number);
  return number;
}

/// What the memory tile of a column does of a relay: of several elements in turn on the side of DDR.
LogicalResult Placement::place(herd::RelayOp relay, int64_t column) {
  ChannelOp from = channel(relay.getSource()), to = channel(relay.getDest());
  bool spreads = from && to && from.getFrom() == Level::ddr && to.getTo() == Level::core;
  bool joins = from && to && from.getFrom() == Level::core && to.getTo() == Level::ddr;
  if ((!spreads && !joins) || from.getMatrix() != to.getMatrix())
    return relay.emitOpError("joins a channel of DDR with one of cores, for matrices of one type");
  hw::Tile memory = memoryOf(column);
  ChannelOp inner = spreads ? to : from;
  SmallVector<int64_t> elements = {column};
  if (inner.getBy() == By::rows)
    elements = rowsOf(herd, column);
  else if (inner.getBy() == By::cores)
    elements = llvm::to_vector(llvm::seq<int64_t>(0, herd.rows));
  std::vector<Ring> rings;
  auto type = cast<MemRefType>(from.getMatrix());
  for (int64_t element : elements) {
    bool several = inner.getBy() != By::columns;
    rings.push_back(tiles->ring(
        memory, inner.getSymName().str() + (several ? "_row" + std::to_string(element) : std::string()), type, kDepth));
  }
  if (rings.empty())
    return success();
  if (spreads) {
    uint32_t shim = shimChannel(from.getSymName(), column, DMAChannelDir::MM2S);
    tiles->flow(shimOf(column), shim, memory, tiles->channel(memory, DMAChannelDir::S2MM, rings, relay.getInAttr()));
    for (auto [element, ring] : llvm::zip_equal(elements, rings)) {
      uint32_t out = tiles->channel(memory, DMAChannelDir::MM2S, ring, relay.getOutAttr());
      for (hw::Tile core : sinksOf(to, element))
        tiles->flow(memory, out, core, coreChannels[to.getSymName()]);
    }
    return success();
  }
  for (auto [element, ring] : llvm::zip_equal(elements, rings))
    tiles->flow(coreAt(element, column), coreChannels[from.getSymName()], memory,
                tiles->channel(memory, DMAChannelDir::S2MM, ring, relay.getInAttr()));
  // A BD gives one lock, so what joins drains part after part.
  uint32_t out = tiles->channel(memory, DMAChannelDir::MM2S, rings, relay.getOutAttr());
  tiles->flow(memory, out, shimOf(column), shimChannel(to.getSymName(), column, DMAChannelDir::S2MM));
  return success();
}

//===--- cores -------------------------------------------------------------------------===//

LogicalResult Placement::writeCore(Core &core, Block &body) {
  auto op = CoreOp::create(b, where, b.getIndexType(), tiles->tile(core.at), b.getStringAttr("kernels.o"));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&op.getBody().emplaceBlock());
  use(core.start, LockAction::AcquireGreaterEqual);
  LogicalResult done = write(core, body);
  EndOp::create(b, where);
  return done;
}

LogicalResult Placement::writeLock(Core &core, Operation &op) {
  bool takes = isa<herd::AcquireOp>(op);
  StringRef name = takes ? cast<herd::AcquireOp>(op).getChannel() : cast<herd::ReleaseOp>(op).getChannel();
  auto found = core.rings.find(name);
  if (found == core.rings.end())
    return op.emitOpError("names '") << name << "', which is no channel of cores";
  const Ring &ring = found->second;
  bool in = channel(name).getTo() == Level::core;
  size_t &next = core.next[found->first];
  use(takes == in ? ring.full : ring.empty, takes ? LockAction::AcquireGreaterEqual : LockAction::Release);
  if (takes) {
    if (op.getResult(0).getType() != ring.buffers[next].getType())
      return op.emitOpError("takes another matrix than its channel's ") << ring.buffers[next].getType();
    core.values.map(op.getResult(0), ring.buffers[next]);
  } else {
    next = (next + 1) % kDepth;
  }
  return success();
}

LogicalResult Placement::write(Core &core, scf::ForOp loop) {
  Value times;
  if (auto parameter = loop.getUpperBound().getDefiningOp<herd::ParameterOp>()) {
    if (parameter.getNumber() >= static_cast<uint64_t>(cast<MemRefType>(core.parameters.getType()).getNumElements()))
      return parameter.emitOpError("is number ") << parameter.getNumber() << ", which the sequence does not give";
    Value index = arith::ConstantIndexOp::create(b, where, static_cast<int64_t>(parameter.getNumber()));
    Value word = memref::LoadOp::create(b, where, core.parameters, ValueRange{index});
    times = arith::IndexCastOp::create(b, where, b.getIndexType(), word);
  } else {
    times = core.values.lookupOrNull(loop.getUpperBound());
  }
  Value first = core.values.lookupOrNull(loop.getLowerBound()), step = core.values.lookupOrNull(loop.getStep());
  if (!times || !first || !step || loop.getNumResults())
    return loop.emitOpError("of cores runs a constant number of times, or as a parameter says");
  auto made = scf::ForOp::create(b, where, first, times, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  std::map<StringRef, size_t> before = core.next;
  do {
    if (failed(write(core, *loop.getBody())))
      return failure();
  } while (llvm::any_of(core.next, [&](const auto &each) { return each.second != before[each.first]; }));
  return success();
}

LogicalResult Placement::write(Core &core, Block &block) {
  for (Operation &op : block) {
    LogicalResult done = success();
    if (isa<herd::AcquireOp, herd::ReleaseOp>(op))
      done = writeLock(core, op);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      done = write(core, loop);
    else if (isa<arith::ConstantOp, func::CallOp>(op))
      b.clone(op, core.values);
    else if (!isa<herd::ParameterOp, scf::YieldOp>(op))
      done = op.emitOpError("is not what cores do");
    if (failed(done))
      return failure();
  }
  return success();
}

//===--- the runtime sequence ------------------------------------------------------------===//

/// How many blocks may be begun before the first has to be done: what BDs and queues of shims hold.
FailureOr<int64_t> Placement::flightsOf(herd::SequenceOp from) {
  int64_t bds = 0, tasks = 0;
  for (auto block : from.getBody().getOps<herd::BlockOp>()) {
    std::map<int64_t, int64_t> perShim;
    std::map<std::string, int64_t> perChannel;
    for (auto move : block.getBody().getOps<herd::MoveOp>()) {
      std::string name = move.getChannel().str() + std::to_string(move.getColumn());
      if (llvm::none_of(shims, [&](const ShimChannel &shim) { return shim.name == name; }))
        return move.emitOpError("names '")
               << move.getChannel() << "' of column " << move.getColumn() << ", which is no channel of DDR";
      bds = std::max(bds, ++perShim[static_cast<int64_t>(move.getColumn())]);
      tasks = std::max(tasks, ++perChannel[name]);
    }
  }
  int64_t flights = bds ? std::min(machine.queueDepth / tasks, machine.tile(hw::TileKind::Shim).bds / bds) : 1;
  if (flights < 1)
    return from.emitOpError("has a block of ")
           << bds << " moves of a column, " << tasks << " of one channel; a shim has "
           << machine.tile(hw::TileKind::Shim).bds << " BDs and queues of " << machine.queueDepth;
  perFlight = bds;
  return flights;
}

void Placement::writeMoves(herd::BlockOp block, int64_t flight, const IRMapping &values) {
  std::map<int64_t, int64_t> perShim;
  for (auto move : block.getBody().getOps<herd::MoveOp>()) {
    auto column = static_cast<int64_t>(move.getColumn());
    std::string name = move.getChannel().str() + std::to_string(column);
    const int64_t offsets[] = {0, 0, 0, static_cast<int64_t>(move.getOffset())};
    aiex::NpuDmaMemcpyNdOp::create(b, where, values.lookup(move.getMemref()), offsets, move.getSizes(),
                                   move.getStrides(), name,
                                   static_cast<uint64_t>(flight * perFlight + perShim[column]++),
                                   channel(move.getChannel()).getTo() == Level::ddr);
  }
}

LogicalResult Placement::writeSequence(herd::SequenceOp from) {
  FailureOr<int64_t> flights = flightsOf(from);
  if (failed(flights))
    return failure();
  auto sequence = RuntimeSequenceOp::create(b, where, from.getOperandsAttr());
  Block &block = sequence.getBody().emplaceBlock();
  IRMapping values;
  for (BlockArgument argument : from.getBody().getArguments())
    values.map(argument, block.addArgument(argument.getType(), where));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&block);
  for (Core &core : cores) {
    for (auto [i, value] : llvm::enumerate(from.getParameters()))
      aiex::NpuWriteRTPOp::create(b, where, bufferOf(core.parameters).getSymName(), static_cast<uint32_t>(i),
                                  static_cast<uint32_t>(value));
    aiex::SetLockOp::create(b, where, core.start, 1);
  }
  auto wait = [&] {
    for (const ShimChannel &shim : shims)
      if (shim.direction == DMAChannelDir::S2MM)
        aiex::NpuDmaWaitOp::create(b, where, shim.name);
  };
  int64_t count = 0;
  for (auto each : from.getBody().getOps<herd::BlockOp>()) {
    if (count >= *flights)
      wait();
    writeMoves(each, count++ % *flights, values);
  }
  for (int64_t i = 0; i < std::min(*flights, count); ++i)
    wait();
  return success();
}

FailureOr<DeviceOp> Placement::run() {
  b.setInsertionPoint(program);
  auto device = DeviceOp::create(b, where, program.getMachine(), program.getSymName());
  machine = device.table();
  tiles.emplace(b, where, machine);
  b.setInsertionPointToStart(&device.getBody().emplaceBlock());
  auto fail = [&] {
    device.erase();
    return failure();
  };
  if (failed(check()))
    return fail();
  placeCores();
  for (int64_t column = 0; column < herd.columns; ++column) {
    for (auto relay : program.getBody().getOps<herd::RelayOp>())
      if (failed(place(relay, column)))
        return fail();
    // The tokens of tasks that are done.
    Value shim = tiles->tile(shimOf(column));
    FlowOp::create(b, where, shim, WireBundle::TileControl, 0, shim, WireBundle::South, 0);
  }
  tiles->writeChannels();
  for (auto kernel : program.getBody().getOps<func::FuncOp>())
    b.clone(*kernel);
  for (Core &core : cores)
    if (failed(writeCore(core, (*program.getBody().getOps<herd::CoresOp>().begin()).getBody().front())))
      return fail();
  if (failed(writeSequence(*program.getBody().getOps<herd::SequenceOp>().begin())))
    return fail();
  program.erase();
  return device;
}

} // namespace

FailureOr<DeviceOp> aie::place(herd::ProgramOp program) {
  OpBuilder builder(program);
  return Placement(program, builder).run();
}
