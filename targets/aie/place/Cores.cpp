//===- Cores.cpp - compute queues as the programs of cores ----------------===//
#include "Placement.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kMostTrips = 64;

Value Placement::constant(int64_t value) { return arith::ConstantIndexOp::create(b, where, value); }
MemRefType Placement::typeOfParameters() { return MemRefType::get({parameterWords}, b.getI32Type()); }
Value Placement::parameters(hw::Tile core) {
  return tiles->buffer(core, "parameters", typeOfParameters(), parametersAddress);
}
static bool takesParameters(CallOp call) {
  std::optional<hw::KernelId> kernel = libraryKernelOf(call);
  return kernel && hw::takesParameters(*kernel);
}
/// A core waits until the controller has written its parameters.
Value Placement::start(hw::Tile core) { return tiles->lock(core, "start", coreLocks, 0); }

/// What a product in a core makes of two rings that have their types; null of a ring that has none.
MemRefType Placement::typeOfSums(dlir::RingOp ring) {
  for (Operation *user : ring->getUsers()) {
    auto call = dyn_cast<CallOp>(user);
    std::optional<hw::KernelId> kernel = call ? libraryKernelOf(call) : std::nullopt;
    if (!kernel || hw::macKind(*kernel).empty() || call.getBuffers().back() != ring.getResult())
      continue;
    MemRefType b = rings[call.getBuffers()[1]].type;
    if (!b || b.getRank() != 2)
      continue;
    Type element = elementOf(StringRef(hw::infoOf(*kernel).name).rsplit('_').second);
    int64_t size = static_cast<int64_t>(ring.getSize()), row = b.getDimSize(1) * bytesOf(element);
    if (size % row == 0)
      return MemRefType::get({size / row, b.getDimSize(1)}, element);
  }
  return {};
}

/// Matrices that cores put into the order of matrix steps are as long as the second operand says.
void Placement::typeFirstOperands() {
  graph->walk([&](CallOp call) {
    std::optional<hw::KernelId> kernel = libraryKernelOf(call);
    if (!kernel || hw::macKind(*kernel).empty() || call.getBuffers().size() < 2)
      return;
    MemRefType &a = rings[call.getBuffers()[0]].type, b = rings[call.getBuffers()[1]].type;
    if (a.getRank() == 1 && b.getRank() == 2 && a.getNumElements() % b.getDimSize(0) == 0)
      a = MemRefType::get({a.getNumElements() / b.getDimSize(0), b.getDimSize(0)}, a.getElementType());
  });
}

/// What its program names: the device has them all before.
void Placement::placeCore(hw::Tile at) {
  parameters(at);
  start(at);
  for (auto ring : graph.getBody().getOps<dlir::RingOp>()) {
    if (ring.getKind() != "L1")
      continue;
    for (int64_t slot = 0; slot < rings[ring].count; ++slot)
      slotAt(at, ring, slot);
    emptyLock(at, ring);
    fullLock(at, ring);
  }
}

/// Declarations of what is called, by the matrices of the first call.
LogicalResult Placement::writeKernels() {
  llvm::StringMap<FunctionType> types;
  WalkResult done = graph->walk([&](CallOp call) {
    SmallVector<Type> matrices;
    if (takesParameters(call))
      matrices.push_back(typeOfParameters());
    for (Value buffer : call.getBuffers())
      matrices.push_back(rings.find(buffer)->second.type);
    if (std::optional<CoreFunction> user = functionOf(call))
      matrices.append(user->dims.size() + 2, b.getI64Type());
    FunctionType type = b.getFunctionType(matrices, {});
    auto [at, isNew] = types.try_emplace(call.getKernel(), type);
    if (isNew)
      func::FuncOp::create(b, where, call.getKernel(), type).setPrivate();
    if (at->second == type)
      return WalkResult::advance();
    call.emitOpError("takes matrices of other sizes than an earlier call does");
    return WalkResult::interrupt();
  });
  return failure(done.wasInterrupted());
}

/// Its body as often as it takes to come round to the same slots.
LogicalResult Placement::writeLoop(hw::Tile core, dlir::LoopOp loop, Turns &turns) {
  AffineMap map = loop.getTimes();
  auto reg =
      map.getNumResults() == 1 && isa<AffineDimExpr>(map.getResult(0))
          ? loop.getIndices()[cast<AffineDimExpr>(map.getResult(0)).getPosition()].getDefiningOp<dlir::RegisterOp>()
          : dlir::RegisterOp();
  const int64_t around = dlir::tripsAround(loop);
  Value times;
  if (around > kMostTrips)
    return loop.emitOpError("comes back to the same slots of its rings after more than ")
           << kMostTrips << " trips, for each of which cores have code";
  if (reg) {
    for (int64_t value : reg.getValues())
      if (value < 0 || value > INT32_MAX)
        return loop.emitOpError("runs ") << value << " times, as register " << reg.getNumber()
                                         << " says; cores count from 0 to " << INT32_MAX;
    Value word =
        memref::LoadOp::create(b, where, parameters(core), ValueRange{constant(static_cast<int64_t>(reg.getNumber()))});
    times = arith::IndexCastOp::create(b, where, b.getIndexType(), word);
  } else if (map.isSingleConstant() && map.getSingleConstantResult() > 0) {
    int64_t trips = map.getSingleConstantResult();
    times = constant(trips == kForever ? trips : trips / around);
  } else {
    return loop.emitOpError("of cores runs a constant number of times from 1 on, or as a register says");
  }
  auto made = scf::ForOp::create(b, where, constant(0), times, constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  for (int64_t trip = 0; trip < around; ++trip)
    if (failed(writeBlock(core, loop.getBody().front(), turns)))
      return failure();
  return success();
}

/// A fill or a drain.
LogicalResult Placement::writeUse(hw::Tile core, Operation *use, Turns &turns) {
  const bool fills = isa<dlir::FillOp>(use);
  auto times = [&](Value ring) { return static_cast<uint32_t>(fills ? rings.find(ring)->second.uses : 1); };
  for (Value ring : use->getOperands())
    UseLockOp::create(b, where, fills ? emptyLock(core, ring) : fullLock(core, ring), LockAction::AcquireGreaterEqual,
                      times(ring));
  if (failed(writeBlock(core, use->getRegion(0).front(), turns)))
    return failure();
  for (Value ring : use->getOperands()) {
    UseLockOp::create(b, where, fills ? fullLock(core, ring) : emptyLock(core, ring), LockAction::Release, times(ring));
    ++turns[ring];
  }
  return success();
}

/// What a user's function is told besides its buffers.
void Placement::addNumbers(CallOp call, SmallVector<Value> &operands) {
  std::optional<CoreFunction> user = functionOf(call);
  if (!user)
    return;
  llvm::append_range(user->dims, *call.getPart());
  for (int64_t number : user->dims)
    operands.push_back(arith::ConstantOp::create(b, where, b.getI64IntegerAttr(number)));
}

void Placement::writeCall(hw::Tile core, CallOp call, const Turns &turns) {
  SmallVector<Value> buffers;
  if (takesParameters(call))
    buffers.push_back(parameters(core));
  for (Value ring : call.getBuffers())
    buffers.push_back(slotAt(core, ring, turns.lookup(ring)));
  addNumbers(call, buffers);
  func::CallOp::create(b, where, call.getKernel(), TypeRange(), buffers);
}

LogicalResult Placement::writeBlock(hw::Tile core, Block &block, Turns &turns) {
  for (Operation &op : block) {
    LogicalResult done = success();
    if (auto loop = dyn_cast<dlir::LoopOp>(op))
      done = writeLoop(core, loop, turns);
    else if (isa<dlir::FillOp, dlir::DrainOp>(op))
      done = writeUse(core, &op, turns);
    else if (auto call = dyn_cast<CallOp>(op))
      writeCall(core, call, turns);
    else
      return op.emitOpError("is not what cores do");
    if (failed(done))
      return failure();
  }
  return success();
}

LogicalResult Placement::writeCore(dlir::DispatchQueueOp queue, ArrayRef<int64_t> place) {
  hw::Tile at = tileOf(queue, place);
  std::optional<CoreFunction> user = functionOf(program);
  StringRef library = user && !user->library.empty() ? StringRef(user->library) : "kernels.o";
  auto op = CoreOp::create(b, where, b.getIndexType(), tiles->tile(at), b.getStringAttr(library));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&op.getBody().emplaceBlock());
  UseLockOp::create(b, where, start(at), LockAction::AcquireGreaterEqual, 1);
  Turns turns;
  LogicalResult done = writeBlock(at, queue.getBody().front(), turns);
  EndOp::create(b, where);
  return done;
}
