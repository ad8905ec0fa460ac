//===- Program.cpp - a kernel as a program of queues ----------------------===//
#include "../Interpreter.h"
#include "Arguments.h"
#include "Queues.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;
using dlir::ArgumentRole;

/// The buffers that tasks hand to a kernel as operands: those of its first task, whose forms the others have too.
static Result<SmallVector<dlir::BufferOp>> operandsOf(dlir::DeviceProgramOp program) {
  SmallVector<dlir::BufferOp> operands;
  bool isFirst = true, differ = false;
  program->getParentOfType<ModuleOp>().walk([&](dlir::DispatchOp dispatch) {
    if (dispatch.getKernel() != program.getSymName())
      return;
    for (auto [i, input] : llvm::enumerate(dispatch.getInputs())) {
      auto buffer = input.getDefiningOp<dlir::BufferOp>();
      if (isFirst)
        operands.push_back(buffer);
      else
        differ |= i >= operands.size() || operands[i].getFormAttr() != buffer.getFormAttr();
    }
    isFirst = false;
  });
  if (differ)
    return errorAt(program, "has tasks that bring constants in other forms");
  return operands;
}

/// What programs hold is a card's; what a changed number makes of a buffer may be more than a host has.
static Status checkSizes(dlir::DeviceProgramOp program) {
  constexpr int64_t most = int64_t(1) << 32;
  for (auto memory : program.getBody().getOps<dlir::MemoryOp>())
    if (static_cast<int64_t>(memory.getSize()) > most)
      return notEvaluated(memory, "'" + memory.getName().str() + "' has " + std::to_string(memory.getSize()) +
                                      " bytes; buffers up to " + std::to_string(most) + " are");
  return Status::ok();
}

/// Inputs, constants and states in their places; scalars to the registers of their graphs.
static Status bringAll(dlir::DeviceProgramOp program, ArrayRef<CardArgument> arguments, ArrayRef<Tensor> operands,
                       Card &card, llvm::DenseMap<uint64_t, int64_t> &registers) {
  Result<SmallVector<dlir::BufferOp>> buffers = operandsOf(program);
  if (!buffers)
    return buffers.takeError();
  for (auto [i, argument] : llvm::enumerate(arguments.take_front(operands.size()))) {
    dlir::ArgumentOp op = argument.op;
    if (op.getRole() == ArgumentRole::output)
      return errorAt(op, "'" + op.getName().str() + "' is a result where its task brings an operand");
    if (op.getRole() == ArgumentRole::scalar) {
      registers[*op.getToRegister()] = operands[i].numElements() ? operands[i].asInt(0) : 0;
      continue;
    }
    Tensor tensor = operands[i];
    if (op.getRole() == ArgumentRole::constant) {
      Result<Tensor> bytes =
          packed(argument, tensor, i < buffers->size() ? (*buffers)[i].getFormAttr() : DictionaryAttr(), card.machine);
      if (!bytes)
        return bytes.takeError();
      tensor = std::move(*bytes);
    }
    if (Status brought = bring(argument, tensor, card); !brought)
      return brought;
  }
  return Status::ok();
}

Result<std::vector<Tensor>> dmxc::corsair::stages::evaluateProgram(dlir::DeviceProgramOp program,
                                                                   ArrayRef<Tensor> operands) {
  if (llvm::any_of(program.getDimRegisters().value_or(ArrayRef<int64_t>()), [](int64_t reg) { return reg >= 0; }))
    return notEvaluated(program, "has dims that are known in a run only");
  if (Status fit = checkSizes(program); !fit)
    return fit.takeError();
  Result<std::vector<CardArgument>> arguments = argumentsOf(program);
  if (!arguments)
    return arguments.takeError();
  if (arguments->size() < operands.size())
    return errorAt(program, "has " + std::to_string(arguments->size()) + " arguments, its task brings " +
                                std::to_string(operands.size()));
  Card card(lldmir::machineOf(program.getContext()));
  llvm::DenseMap<uint64_t, int64_t> registers;
  if (Status brought = bringAll(program, *arguments, operands, card, registers); !brought)
    return brought.takeError();
  for (StringRef name : {"init", "main"})
    for (auto graph : program.getBody().getOps<dlir::ScheduledGraphOp>()) {
      if (graph.getName() != name)
        continue;
      card.forget();
      if (Status done = runGraph(graph, card, registers); !done)
        return done.takeError();
    }
  std::vector<Tensor> results;
  for (const CardArgument &argument : ArrayRef(*arguments).drop_front(operands.size())) {
    dlir::ArgumentOp op = argument.op;
    if (op.getRole() != ArgumentRole::output && op.getRole() != ArgumentRole::state)
      return errorAt(op, "'" + op.getName().str() + "' is no result, and its task does not bring it");
    Result<Tensor> result = take(argument, card);
    if (!result)
      return result.takeError();
    results.push_back(std::move(*result));
  }
  return results;
}
