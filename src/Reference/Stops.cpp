//===- Stops.cpp - the meaning of a module at any stop --------------------===//
//
// A program's tasks run in the order in which they stand, on bytes: what lies where another value still is shows.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Reference/Stops.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Reference/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cstring>

using namespace mlir;

namespace dmxc::reference {

namespace {

Error notEvaluated(Operation *op, const std::string &why) {
  return {ErrorKind::Constraint, "'" + op->getName().getStringRef().str() + "' " + why};
}

class ProgramRunner {
public:
  ProgramRunner(dlir::ProgramOp program, const KernelEvaluators &devices) : program(program), devices(devices) {}

  Result<std::vector<Tensor>> run(ArrayRef<Tensor> inputs) {
    for (auto buffer : program.getOps<dlir::BufferOp>())
      if (Status begun = begin(buffer, inputs); !begun)
        return begun.takeError();
    for (Operation &op : program.getBody().front())
      if (!isa<dlir::BufferOp>(op))
        if (Status done = run(&op); !done)
          return done.takeError();
    std::vector<Tensor> outputs(program.getOutputs().size());
    for (auto buffer : program.getOps<dlir::BufferOp>())
      if (buffer.getKind() == dlir::BufferKind::output) {
        Result<Tensor> tensor = read(buffer);
        if (!tensor)
          return tensor.takeError();
        outputs[buffer.getIndex()] = std::move(*tensor);
      }
    return outputs;
  }

private:
  using Space = std::pair<dlir::BufferKind, int64_t>;

  /// The bytes of a buffer.
  std::byte *bytes(dlir::BufferOp buffer) {
    const dlir::ByteRange range = dlir::byteRange(buffer);
    std::vector<std::byte> &space = spaces[Space(range.kind, range.index)];
    if (static_cast<int64_t>(space.size()) < range.end)
      space.resize(range.end);
    return space.data() + range.begin;
  }

  Status begin(dlir::BufferOp buffer, ArrayRef<Tensor> inputs) {
    auto type = dyn_cast<RankedTensorType>(buffer.getTensor());
    if (buffer.getKind() == dlir::BufferKind::state)
      return notEvaluated(buffer, "'" + buffer.getName().str() + "' is a state, which the interpreter has no runs of");
    if (!type || !type.hasStaticShape() || !dmir::dtypeOf(type.getElementType()))
      return notEvaluated(buffer, "'" + buffer.getName().str() + "' has a shape that is not known");
    if (buffer.getKind() == dlir::BufferKind::input && buffer.getIndex() < inputs.size())
      return write(buffer, inputs[buffer.getIndex()]);
    if (buffer.getKind() != dlir::BufferKind::constant)
      return Status::ok();
    Result<Tensor> tensor = dmir::constantTensor(buffer.getDataAttr());
    if (!tensor)
      return tensor.takeError();
    constants[buffer] = *tensor; // its packed form may have other bytes
    return Status::ok();
  }

  Result<Tensor> read(dlir::BufferOp buffer) {
    if (auto constant = constants.find(buffer); constant != constants.end())
      return constant->second;
    auto type = cast<RankedTensorType>(buffer.getTensor());
    Tensor tensor(*dmir::dtypeOf(type.getElementType()), Shape(type.getShape().begin(), type.getShape().end()));
    const dlir::ByteRange range = dlir::byteRange(buffer);
    if (range.end - range.begin < static_cast<int64_t>(tensor.byteSize()))
      return modelError("buffer '" + buffer.getName().str() + "' is smaller than its tensor");
    if (tensor.byteSize())
      std::memcpy(tensor.mutableData(), bytes(buffer), tensor.byteSize());
    return tensor;
  }

  Status write(dlir::BufferOp buffer, const Tensor &tensor) {
    const dlir::ByteRange range = dlir::byteRange(buffer);
    if (range.end - range.begin < static_cast<int64_t>(tensor.byteSize()))
      return modelError("buffer '" + buffer.getName().str() + "' is smaller than what is written to it");
    if (tensor.byteSize())
      std::memcpy(bytes(buffer), tensor.data(), tensor.byteSize());
    return Status::ok();
  }

  Status run(Operation *op) {
    if (auto dispatch = dyn_cast<dlir::DispatchOp>(op))
      return runDispatch(dispatch);
    auto copy = dyn_cast<dlir::CopyOp>(op);
    if (!copy || copy.getUnit())
      return notEvaluated(op, "is no task that the interpreter of stops runs: it has dispatches and copies");
    auto from = copy.getSource().getDefiningOp<dlir::BufferOp>(), to = copy.getTarget().getDefiningOp<dlir::BufferOp>();
    bytes(to), bytes(from); // both are there
    std::memmove(bytes(to), bytes(from), copy.getSize());
    return Status::ok();
  }

  Status runDispatch(dlir::DispatchOp op) {
    std::vector<Tensor> operands;
    for (Value input : op.getInputs()) {
      Result<Tensor> tensor = read(input.getDefiningOp<dlir::BufferOp>());
      if (!tensor)
        return tensor.takeError();
      operands.push_back(std::move(*tensor));
    }
    Operation *kernel = SymbolTable::lookupNearestSymbolFrom(program, op.getKernelAttr());
    if (!kernel)
      return modelError("there is no kernel '" + op.getKernel().str() + "'");
    Result<std::vector<Tensor>> results = evaluate(kernel, op.getQueue(), operands);
    if (!results)
      return results.takeError();
    if (results->size() != op.getOutputs().size())
      return modelError("kernel '" + op.getKernel().str() + "' has not as many results as its task");
    for (auto [output, tensor] : llvm::zip(op.getOutputs(), *results))
      if (Status done = write(output.getDefiningOp<dlir::BufferOp>(), tensor); !done)
        return done;
    return Status::ok();
  }

  Result<std::vector<Tensor>> evaluate(Operation *kernel, StringRef queue, ArrayRef<Tensor> operands) {
    auto outlined = dyn_cast<dlir::KernelOp>(kernel);
    const StringRef device = outlined ? outlined.getDevice() : queue;
    if (auto own = devices.find(device); own != devices.end())
      return own->second(kernel, operands);
    if (outlined)
      return evaluateBlock(*outlined.getBlock(), operands);
    return notEvaluated(kernel, "is no DMIR, and device '" + device.str() + "' evaluates none of its kernels");
  }

  dlir::ProgramOp program;
  const KernelEvaluators &devices;
  std::map<Space, std::vector<std::byte>> spaces;
  llvm::DenseMap<Operation *, Tensor> constants;
};

} // namespace

Result<std::vector<Tensor>> evaluateEntry(ModuleOp module, StringRef entry, ArrayRef<Tensor> inputs,
                                          const KernelEvaluators &devices) {
  Operation *symbol = SymbolTable::lookupSymbolIn(module, entry);
  if (auto program = dyn_cast_if_present<dlir::ProgramOp>(symbol))
    return ProgramRunner(program, devices).run(inputs);
  if (auto function = dyn_cast_if_present<func::FuncOp>(symbol))
    return evaluateFunction(function, inputs, {}, devices);
  return modelError("the module has no entry point '" + entry.str() + "'");
}

} // namespace dmxc::reference
