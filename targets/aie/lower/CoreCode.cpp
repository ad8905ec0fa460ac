//===- CoreCode.cpp - what a core does, as its program --------------------===//
#include "Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;
using Code = hw::CoreOp; ///< an instruction; aie::CoreOp is the op

namespace {

class CoreCode {
public:
  explicit CoreCode(aie::CoreOp core)
      : program{tileOf(core.getTile()), {}}, machine(core->getParentOfType<DeviceOp>().table()) {}

  LogicalResult add(Block &block);
  hw::CoreProgram program;

private:
  LogicalResult add(UseLockOp op);
  LogicalResult add(scf::ForOp op);
  LogicalResult add(func::CallOp op);
  LogicalResult addUser(func::CallOp op, const CoreFunction &user);
  std::optional<uint32_t> addressOf(Value buffer, int64_t byte);
  hw::Machine machine;
  void put(Code op, size_t index, int64_t value) {
    program.code.push_back({op, static_cast<uint8_t>(index), static_cast<int32_t>(value)});
  }
};

std::optional<int64_t> constantOf(Value value) {
  APInt number;
  return matchPattern(value, m_ConstantInt(&number)) ? std::optional(number.getSExtValue()) : std::nullopt;
}

/// As the core sees it; nullopt where it does not.
std::optional<uint32_t> CoreCode::addressOf(Value value, int64_t byte) {
  auto buffer = value.getDefiningOp<BufferOp>();
  return buffer ? addressFrom(machine, program.tile, tileOf(buffer.getTile()),
                              static_cast<int64_t>(buffer.getAddress()) + byte)
                : std::nullopt;
}

LogicalResult CoreCode::add(UseLockOp op) {
  auto lock = op.getLock().getDefiningOp<LockOp>();
  std::optional<uint32_t> number;
  if (lock)
    number = lockNumber(machine, program.tile, tileOf(lock.getTile()), lock.getLockID());
  int64_t value = static_cast<int32_t>(op.getValue());
  if (!number || value < 1)
    return op.emitOpError("is of a lock that core ") << hw::textOf(program.tile) << " does not reach, or by " << value;
  bool release = op.getAction() == LockAction::Release;
  put(release ? Code::Release : Code::Acquire, *number,
      op.getAction() == LockAction::AcquireGreaterEqual ? -value : value);
  return success();
}

LogicalResult CoreCode::add(scf::ForOp op) {
  if (constantOf(op.getLowerBound()) != 0 || constantOf(op.getStep()) != 1 || op.getNumResults() != 0)
    return op.emitOpError("of a core counts from 0 by 1 and carries nothing");
  std::optional<int64_t> times = constantOf(op.getUpperBound());
  size_t first = program.code.size();
  if (times == kForever) {
    if (failed(add(*op.getBody())))
      return failure();
    put(Code::Jump, 0, static_cast<int64_t>(first));
    return success();
  }
  if (times) {
    if (*times < 1 || *times > INT32_MAX)
      return op.emitOpError("of a core runs ") << *times << " times";
    put(Code::Loop, 0, *times);
  } else {
    Value bound = op.getUpperBound();
    if (auto cast = bound.getDefiningOp<arith::IndexCastOp>())
      bound = cast.getIn();
    auto load = bound.getDefiningOp<memref::LoadOp>();
    std::optional<int64_t> index;
    if (load && load.getIndices().size() == 1 && load.getMemRefType().getElementType().isInteger(32))
      index = constantOf(load.getIndices()[0]);
    std::optional<uint32_t> address;
    if (index && *index >= 0 && *index < load.getMemRefType().getNumElements())
      address = addressOf(load.getMemref(), 4 * *index);
    if (!address)
      return op.emitOpError("of a core runs a constant number of times, or as a word of a buffer says");
    put(Code::LoopParameter, 0, *address);
  }
  if (failed(add(*op.getBody())))
    return failure();
  put(Code::EndLoop, 0, 0);
  return success();
}

/// The first matrix of another kind than the kernel's name says: of a product's operands, of all results.
static MemRefType otherNumbers(hw::KernelId kernel, ArrayRef<MemRefType> types) {
  auto isOf = [](MemRefType type, StringRef kind) {
    Type element = type.getElementType();
    return kind == "bf16"  ? element.isBF16()
           : kind == "f32" ? element.isF32()
                           : element.isInteger(kind == "i8" ? 8 : 32);
  };
  if (std::string_view kind = hw::macKind(kernel); !kind.empty())
    for (MemRefType type : types.drop_back())
      if (!isOf(type, kind))
        return type;
  return isOf(types.back(), StringRef(hw::infoOf(kernel).name).rsplit('_').second) ? MemRefType() : types.back();
}

/// Buffers, then numbers: what it is told, and from where to where it computes.
LogicalResult CoreCode::addUser(func::CallOp op, const CoreFunction &user) {
  const size_t buffers = user.buffers.size();
  if (op.getNumOperands() != buffers + user.dims.size() + 2)
    return op.emitOpError("gives ") << op.getCallee() << " " << op.getNumOperands() << " operands, it takes " << buffers
                                    << " buffers and " << user.dims.size() + 2 << " numbers";
  for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
    std::optional<uint32_t> address = i < buffers ? addressOf(operand, 0) : std::nullopt;
    std::optional<int64_t> value = i < buffers ? std::nullopt : constantOf(operand);
    if (i < buffers ? !address : !value || *value < 0 || *value > INT32_MAX)
      return op.emitOpError("takes as operand ")
             << i << (i < buffers ? " what is no buffer that the core reaches" : " what is no number from 0 on");
    if (address)
      put(Code::Address, i, *address);
    else
      put(Code::Scalar, i - buffers, *value);
  }
  put(Code::CallUser, 0, 0); // the image's number of it comes when it is known
  return success();
}

/// The scalars of a call are the sizes of its buffers.
LogicalResult CoreCode::add(func::CallOp op) {
  if (std::optional<CoreFunction> user = functionOf(op->getParentOfType<DeviceOp>());
      user && user->symbol == op.getCallee())
    return addUser(op, *user);
  std::optional<hw::KernelId> kernel = hw::kernelNamed(op.getCallee().str());
  if (!kernel)
    return op.emitOpError("calls '") << op.getCallee() << "', which the cores' library does not have";
  const hw::KernelInfo &info = hw::infoOf(*kernel);
  if (op.getNumOperands() != info.addresses.size())
    return op.emitOpError("gives ") << op.getCallee() << " " << op.getNumOperands() << " buffers, it takes "
                                    << info.addresses.size();
  SmallVector<MemRefType> types;
  for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
    std::optional<uint32_t> address = addressOf(operand, 0);
    if (!address)
      return op.emitOpError("takes a buffer that core ") << hw::textOf(program.tile) << " does not reach";
    types.push_back(cast<MemRefType>(operand.getType()));
    put(Code::Address, i, *address);
  }
  for (MemRefType type : ArrayRef(types).drop_front(hw::takesParameters(*kernel)))
    if (type.getRank() != 2)
      return op.emitOpError("takes matrices, not ") << type;
  if (MemRefType other = otherNumbers(*kernel, types))
    return op.emitOpError() << op.getCallee() << " computes other numbers than those of " << other;
  MemRefType c = types.back();
  SmallVector<int64_t> scalars;
  if (info.scalars.size() == 1)
    scalars = {c.getNumElements()};
  else if (info.scalars.size() == 2)
    scalars = {c.getDimSize(0), c.getDimSize(1)};
  else
    scalars = {types[0].getDimSize(0), types[0].getDimSize(1), types[1].getDimSize(1)};
  hw::Call call;
  call.kernel = *kernel;
  for (auto [i, scalar] : llvm::enumerate(scalars)) {
    put(Code::Scalar, i, scalar);
    call.scalars[i] = scalar;
  }
  std::string error;
  std::vector<hw::Touch> touched = hw::touches(call, error);
  if (touched.empty())
    return op.emitOpError() << error;
  for (const hw::Touch &touch : touched)
    if (MemRefType type = types[touch.address]; touch.bytes > type.getNumElements() * elementBytes(type))
      return op.emitOpError("touches ") << touch.bytes << " bytes of " << type;
  put(Code::Call, static_cast<size_t>(*kernel), 0);
  return success();
}

LogicalResult CoreCode::add(Block &block) {
  for (Operation &op : block) {
    LogicalResult done = success();
    if (auto use = dyn_cast<UseLockOp>(op))
      done = add(use);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      done = add(loop);
    else if (auto call = dyn_cast<func::CallOp>(op))
      done = add(call);
    else if (!isa<arith::ConstantOp, arith::IndexCastOp, memref::LoadOp, scf::YieldOp, EndOp>(op))
      return op.emitOpError("is not what a core's program has");
    if (failed(done))
      return failure();
  }
  return success();
}

} // namespace

FailureOr<hw::CoreProgram> aie::coreProgramOf(aie::CoreOp core) {
  CoreCode code(core);
  if (failed(code.add(core.getBody().front())))
    return failure();
  if (code.program.code.empty() || code.program.code.back().op != Code::Jump)
    code.program.code.push_back({Code::Halt, 0, 0});
  if (std::string wrong = hw::check(core->getParentOfType<DeviceOp>().table(), code.program); !wrong.empty())
    return core.emitOpError() << wrong;
  return code.program;
}
