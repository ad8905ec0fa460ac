//===- SimdOp.cpp - one EXEC_SIMD over strided tensors --------------------===//

#include "SimdOp.h"

using namespace dmxc::corsair;
using hw::ConfigKey;
using llvm::ArrayRef;
using llvm::SmallVector;

SimdOperand SimdOp::operand(const DeviceTensor &tensor, ArrayRef<int64_t> dims) {
  SimdOperand operand{tensor.kind, tensor.address, SmallVector<int64_t>(dims.size(), 0)};
  size_t missing = dims.size() - tensor.rank();
  for (size_t i = 0; i < tensor.rank(); ++i)
    if (tensor.shape[i] != 1)
      operand.strides[i + missing] = tensor.strides[i];
  return operand;
}

static SmallVector<SimdOperand *> operandsOf(SimdOp &op) {
  SmallVector<SimdOperand *> all{&op.result};
  for (SimdOperand &source : op.sources)
    all.push_back(&source);
  return all;
}

static void eraseDim(SimdOp &op, size_t dim) {
  if (dim >= op.dims.size() - op.inner)
    --op.inner;
  op.dims.erase(op.dims.begin() + dim);
  for (SimdOperand *operand : operandsOf(op))
    operand->strides.erase(operand->strides.begin() + dim);
}

/// Drops dims of one element and joins neighbours that every operand walks as one. Dims of rows stay apart from the
/// others, and a row keeps one dim.
static void joinDims(SimdOp &op) {
  for (size_t i = op.dims.size(); i-- > 0;) {
    bool isRow = i >= op.dims.size() - op.inner;
    if (op.dims[i] == 1 && op.dims.size() > 1 && (!isRow || op.inner > 1))
      eraseDim(op, i);
  }
  for (size_t i = op.dims.size(); i-- > 1;) {
    if (op.inner && i == op.dims.size() - op.inner)
      continue;
    bool joins = llvm::all_of(operandsOf(op), [&](SimdOperand *operand) {
      return operand->strides[i - 1] == operand->strides[i] * op.dims[i];
    });
    if (!joins)
      continue;
    op.dims[i] *= op.dims[i - 1];
    eraseDim(op, i - 1);
  }
}

/// The dim that the slices share: the largest that is no part of a row; -1 when there is none.
static int sharedDim(const SimdOp &op) {
  int best = -1;
  for (size_t i = 0; i + op.inner < op.dims.size(); ++i)
    if (op.dims[i] > 1 && (best < 0 || op.dims[i] > op.dims[best]))
      best = static_cast<int>(i);
  return best;
}

static void emitOne(QueueCode &stream, const SimdOp &op, int sliceCount) {
  static constexpr ConfigKey kinds[] = {ConfigKey::DKind, ConfigKey::AKind, ConfigKey::BKind, ConfigKey::CKind};
  static constexpr ConfigKey steps[] = {ConfigKey::D0, ConfigKey::A0, ConfigKey::B0, ConfigKey::C0};
  static constexpr const char *fields[] = {"d", "a", "b", "c"};
  std::vector<hw::ConfigPair> keys = op.keys;
  size_t missing = 4 - op.dims.size();
  for (size_t i = 0; i < op.dims.size(); ++i)
    keys.emplace_back(keyAfter(ConfigKey::N0, i + missing), op.dims[i]);
  SmallVector<const SimdOperand *> operands{&op.result};
  for (const SimdOperand &source : op.sources)
    operands.push_back(&source);
  for (size_t k = 0; k < 4; ++k)
    if (k >= operands.size()) // absent: raw
      keys.emplace_back(kinds[k], static_cast<int64_t>(hw::ElemKind::Raw));
    else {
      keys.emplace_back(kinds[k], static_cast<int64_t>(operands[k]->kind));
      for (size_t i = 0; i < op.dims.size(); ++i)
        keys.emplace_back(keyAfter(steps[k], i + missing), operands[k]->strides[i]);
    }
  if (op.inner)
    keys.emplace_back(ConfigKey::Inner, op.inner);
  int shared = sharedDim(op);
  keys.emplace_back(ConfigKey::Split, shared < 0 ? 0 : shared + static_cast<int>(missing) + 1);
  int slot = stream.config(hw::Unit::SIMD, std::move(keys));
  hw::Instruction &instruction = stream.emit(hw::Opcode::ExecSimd);
  instruction.set("fn", static_cast<int64_t>(op.function)).set("slot", slot);
  instruction.set("slices", shared < 0 ? 1 : (1 << sliceCount) - 1).set("index", op.index);
  instruction.setFloat("imm0", op.imm0).setFloat("imm1", op.imm1);
  for (size_t k = 0; k < operands.size(); ++k)
    stream.address(fields[k], operands[k]->address);
}

bool dmxc::corsair::emitSimd(Program &program, SimdOp op, int sliceCount) {
  if (llvm::is_contained(op.dims, 0))
    return true;
  if (op.split) {
    op.dims[op.split.dim] = op.split.part;
    for (SimdOperand *operand : operandsOf(op))
      operand->address = operand->address.plusQuad(op.split.part * operand->strides[op.split.dim]);
    op.split = {};
  }
  if (op.joinable)
    joinDims(op);
  if (op.inner > 4 || (op.dims.size() > 4 && !op.joinable))
    return false;
  if (op.dims.size() <= 4) {
    emitOne(program.on(Queue::Vector), op, sliceCount);
    return true;
  }
  bool good = true;
  program.loop(op.dims.front(), [&](int depth) {
    SimdOp rest = op;
    for (SimdOperand *operand : operandsOf(rest))
      operand->address = operand->address.plusLoop(depth, operand->strides.front());
    eraseDim(rest, 0);
    good = emitSimd(program, std::move(rest), sliceCount);
  });
  return good;
}
