//===- Cores.cpp - compute queues as the programs of cores ----------------===//
#include "Placement.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

Value Placement::constant(int64_t value) { return arith::ConstantIndexOp::create(b, where, value); }
MemRefType Placement::typeOfParameters() { return MemRefType::get({parameterWords}, b.getI32Type()); }
Value Placement::parameters(hw::Tile core) {
  return tiles->buffer(core, "parameters", typeOfParameters(), parametersAddress);
}
static bool takesParameters(CallOp call) {
  std::optional<hw::KernelId> kernel = hw::kernelNamed(call.getKernel().str());
  return kernel && hw::takesParameters(*kernel);
}
/// A core waits until the controller has written its parameters.
Value Placement::start(hw::Tile core) { return tiles->lock(core, "start", coreTokens, 0); }

/// Declarations of what is called, by the matrices of the first call.
LogicalResult Placement::writeKernels() {
  llvm::StringMap<FunctionType> types;
  WalkResult done = graph->walk([&](CallOp call) {
    SmallVector<Type> matrices;
    if (takesParameters(call))
      matrices.push_back(typeOfParameters());
    for (Value buffer : call.getBuffers())
      matrices.push_back(memories.find(buffer)->second.type);
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

LogicalResult Placement::writeLoop(hw::Tile core, dlir::LoopOp loop) {
  AffineMap map = loop.getTimes();
  auto reg =
      map.getNumResults() == 1 && isa<AffineDimExpr>(map.getResult(0))
          ? loop.getIndices()[cast<AffineDimExpr>(map.getResult(0)).getPosition()].getDefiningOp<dlir::RegisterOp>()
          : dlir::RegisterOp();
  Value times;
  if (reg) {
    Value word =
        memref::LoadOp::create(b, where, parameters(core), ValueRange{constant(static_cast<int64_t>(reg.getNumber()))});
    times = arith::IndexCastOp::create(b, where, b.getIndexType(), word);
  } else if (map.isSingleConstant()) {
    times = constant(map.getSingleConstantResult());
  } else {
    return loop.emitOpError("of cores runs a constant number of times, or as a register says");
  }
  auto made = scf::ForOp::create(b, where, constant(0), times, constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  return writeBlock(core, loop.getBody().front());
}

LogicalResult Placement::writeBlock(hw::Tile core, Block &block) {
  auto use = [&](const dlir::TokenCount &token, LockAction action) {
    UseLockOp::create(b, where, lockAt(core, token.token), action, static_cast<uint32_t>(token.count));
  };
  for (Operation &op : block) {
    if (auto loop = dyn_cast<dlir::LoopOp>(op)) {
      if (failed(writeLoop(core, loop)))
        return failure();
    } else if (auto group = dyn_cast<dlir::TaskGroupOp>(op)) {
      for (const dlir::TokenCount &token : group.waits())
        use(token, LockAction::AcquireGreaterEqual);
      if (failed(writeBlock(core, group.getBody().front())))
        return failure();
      for (const dlir::TokenCount &token : group.signals())
        use(token, LockAction::Release);
    } else if (auto call = dyn_cast<CallOp>(op)) {
      SmallVector<Value> buffers;
      if (takesParameters(call))
        buffers.push_back(parameters(core));
      for (Value buffer : call.getBuffers())
        buffers.push_back(bufferAt(core, buffer));
      func::CallOp::create(b, where, call.getKernel(), TypeRange(), buffers);
    } else {
      return op.emitOpError("is not what cores do");
    }
  }
  return success();
}

LogicalResult Placement::writeCore(dlir::DispatchQueueOp queue, ArrayRef<int64_t> place) {
  hw::Tile at = tileOf(queue, place);
  auto op = CoreOp::create(b, where, b.getIndexType(), tiles->tile(at), b.getStringAttr("kernels.o"));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&op.getBody().emplaceBlock());
  UseLockOp::create(b, where, start(at), LockAction::AcquireGreaterEqual, 1);
  LogicalResult done = writeBlock(at, queue.getBody().front());
  EndOp::create(b, where);
  return done;
}
