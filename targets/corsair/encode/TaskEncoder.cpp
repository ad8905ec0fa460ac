//===- TaskEncoder.cpp - one instruction a task ---------------------------===//

#include "StreamEncoder.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

LogicalResult StreamEncoder::task(Operation *op) {
  if (failed(checkAlignment(op)))
    return failure();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<dlir::DmaCopyOp, engine::MatmulOp, engine::ConvOp, engine::SimdOp, engine::ReshapeOp, engine::CpuOp,
            engine::SignalRemoteOp, engine::WaitRemoteOp, engine::SendOp, engine::ReceiveOp, engine::ResetOp,
            engine::NopOp>([&](auto typed) { return encode(typed); })
      .Default([](Operation *other) { return other->emitOpError("is no task of the device"); });
}

/// Sets a field of an optional clause.
static void number(hw::Instruction &in, const char *field, std::optional<uint64_t> value) {
  if (value)
    in.set(field, static_cast<int64_t>(*value));
}

LogicalResult StreamEncoder::encode(dlir::DmaCopyOp op) {
  FailureOr<int> slot = configure(op.getOperation());
  if (failed(slot))
    return failure();
  hw::Instruction &in = emit(hw::Opcode::Move);
  in.set("src", static_cast<int64_t>(memoryOf(op.getBuffers()[0])));
  in.set("dst", static_cast<int64_t>(memoryOf(op.getBuffers()[1])));
  in.set("slot", *slot);
  number(in, "slices", op.getUnits());
  number(in, "cores", op.getSubunits());
  if (op.getRows() && (failed(value(op, in, "srow", *op.getRows(), op.getIndices(), 0, 0)) ||
                       failed(value(op, in, "drow", *op.getRows(), op.getIndices(), 0, 1))))
    return failure();
  return success(succeeded(place(op, in, "saddr", 0)) && succeeded(place(op, in, "daddr", 1)) &&
                 succeeded(clause(op, in, "n", op.getCount())) && succeeded(clause(op, in, "quads", op.getPeers())));
}

template <typename OpTy> LogicalResult StreamEncoder::product(OpTy op, hw::Instruction &in) {
  in.set("imc", static_cast<int64_t>(op.getNumImc())).set("ppr", static_cast<int64_t>(op.getPprMode()));
  number(in, "groups", op.getGroups());
  number(in, "core", op.getCore());
  number(in, "slices", op.getSlices());
  bool streamed = op.getBuffers().size() == 4;
  in.set("stream", streamed);
  return success(succeeded(place(op, in, "wb", 1)) && succeeded(place(op, in, "ob", 2)) &&
                 (!streamed || succeeded(place(op, in, "st", 3))) && succeeded(clause(op, in, "rows", op.getRows())) &&
                 succeeded(clause(op, in, "k0", op.getK0())) && succeeded(clause(op, in, "acc", op.getAccumulate())) &&
                 succeeded(clause(op, in, "steps", op.getSteps())));
}

LogicalResult StreamEncoder::encode(engine::MatmulOp op) {
  FailureOr<int> slot = configure(op.getOperation());
  if (failed(slot))
    return failure();
  hw::Instruction &in = emit(hw::Opcode::Matmul);
  in.set("slot", *slot);
  return success(succeeded(product(op, in)) && succeeded(place(op, in, "ib", 0)) &&
                 succeeded(clause(op, in, "row", op.getRow())));
}

LogicalResult StreamEncoder::encode(engine::ConvOp op) {
  FailureOr<int> slot = configure(op.getOperation());
  if (failed(slot))
    return failure();
  hw::Instruction &in = emit(hw::Opcode::Conv);
  in.set("slot", *slot);
  return success(succeeded(product(op, in)) && succeeded(place(op, in, "img", 0)) &&
                 succeeded(clause(op, in, "irow", op.getImageRow())) &&
                 succeeded(clause(op, in, "pix", std::optional<AffineMap>(op.getPixel()))));
}

LogicalResult StreamEncoder::encode(engine::SimdOp op) {
  std::optional<hw::SimdFunction> function = hw::simdFunctionFromName(op.getFunction());
  if (!function)
    return op.emitOpError("the vector device has no function '") << op.getFunction() << "'";
  FailureOr<int> slot = configure(op.getOperation());
  if (failed(slot))
    return failure();
  hw::Instruction &in = emit(hw::Opcode::ExecSimd);
  in.set("fn", static_cast<int64_t>(*function)).set("slot", *slot);
  number(in, "slices", op.getSlices());
  if (op.getImm0())
    in.setFloat("imm0", op.getImm0()->convertToFloat());
  if (op.getImm1())
    in.setFloat("imm1", op.getImm1()->convertToFloat());
  static constexpr const char *kOperands[] = {"d", "a", "b", "c"};
  for (unsigned i = 0; i < op.getBuffers().size(); ++i)
    if (failed(place(op, in, kOperands[i], i)))
      return failure();
  return success(succeeded(clause(op, in, "index", op.getIndex())) && succeeded(clause(op, in, "n", op.getCount())));
}

LogicalResult StreamEncoder::transpose(engine::ReshapeOp op) {
  hw::Instruction &in = emit(hw::Opcode::Transpose);
  in.set("src", static_cast<int64_t>(memoryOf(op.getBuffers()[0])));
  if (memoryOf(op.getBuffers()[1]) != hw::Memory::GM)
    return op.emitOpError("transposes to GM only");
  number(in, "slice", op.getSlice());
  number(in, "esize", op.getElement());
  number(in, "spitch", op.getSourcePitch());
  number(in, "dpitch", op.getTargetPitch());
  number(in, "sbatch", op.getSourceBatch());
  number(in, "dbatch", op.getTargetBatch());
  return success(succeeded(place(op, in, "saddr", 0)) && succeeded(place(op, in, "daddr", 1)) &&
                 succeeded(clause(op, in, "rows", op.getRows())) &&
                 succeeded(clause(op, in, "cols", op.getColumns())) &&
                 succeeded(clause(op, in, "batch", op.getBatch())));
}

LogicalResult StreamEncoder::encode(engine::ReshapeOp op) {
  if (op.getFunction() == "transpose")
    return transpose(op);
  FailureOr<int> slot = configure(op.getOperation());
  if (failed(slot))
    return failure();
  static constexpr const char *kRules[] = {"strided", "gather", "scatter", "window"};
  hw::Instruction &in = emit(op.getFunction() == "extract" ? hw::Opcode::Extract : hw::Opcode::Insert);
  in.set("rule", std::find(std::begin(kRules), std::end(kRules), op.getRule().value_or("strided")) - kRules);
  in.set("slot", *slot);
  in.set("src", static_cast<int64_t>(memoryOf(op.getBuffers()[0])));
  in.set("dst", static_cast<int64_t>(memoryOf(op.getBuffers()[1])));
  number(in, "slice", op.getSlice());
  return success(succeeded(place(op, in, "saddr", 0)) && succeeded(place(op, in, "daddr", 1)) &&
                 (op.getBuffers().size() < 3 || succeeded(place(op, in, "iaddr", 2))) &&
                 succeeded(clause(op, in, "pix", op.getPixel())) && succeeded(clause(op, in, "n", op.getCount())));
}

LogicalResult StreamEncoder::encode(engine::CpuOp op) {
  for (auto [i, function] : llvm::enumerate(image.functions))
    if (function.name ==
        op->getParentOfType<dlir::DeviceProgramOp>().getSymName().str() + "." + op.getFunction().str()) {
      emit(hw::Opcode::ExecCpu).set("fn", static_cast<int64_t>(i));
      return success();
    }
  return op.emitOpError("calls a function that the program has not");
}

LogicalResult StreamEncoder::encode(engine::SignalRemoteOp op) {
  hw::Instruction &in = emit(hw::Opcode::SignalRemote);
  in.set("id", static_cast<int64_t>(op.getToken()));
  number(in, "n", op.getAmount());
  return clause(op, in, "quads", std::optional<AffineMap>(op.getQuads()));
}

LogicalResult StreamEncoder::encode(engine::WaitRemoteOp op) {
  hw::Instruction &in = emit(hw::Opcode::WaitRemote);
  in.set("id", static_cast<int64_t>(op.getToken()));
  number(in, "n", op.getAmount());
  return clause(op, in, "quad", std::optional<AffineMap>(op.getQuad()));
}

template <typename OpTy> LogicalResult StreamEncoder::mail(OpTy op, hw::Opcode opcode) {
  hw::Instruction &in = emit(opcode);
  in.set("reg", static_cast<int64_t>(op.getFirst()));
  number(in, "n", op.getAmount());
  return clause(op, in, "quad", std::optional<AffineMap>(op.getQuad()));
}

LogicalResult StreamEncoder::encode(engine::SendOp op) { return mail(op, hw::Opcode::Send); }
LogicalResult StreamEncoder::encode(engine::ReceiveOp op) { return mail(op, hw::Opcode::Recv); }

LogicalResult StreamEncoder::encode(engine::ResetOp op) {
  hw::Instruction &in = emit(hw::Opcode::Reset);
  in.set("units", static_cast<int64_t>(op.getUnits()));
  number(in, "slices", op.getSlices());
  if (op.getUnits() & hw::kResetConfig)
    slots.clear();
  return success();
}

LogicalResult StreamEncoder::encode(engine::NopOp op) {
  number(emit(hw::Opcode::Nop), "n", op.getClocks());
  return success();
}
