//===- Interpreter.cpp - the table of ops and the walk over functions -----===//
#include "dmxc/Reference/Interpreter.h"
#include "Evaluator.h"
#include "dmxc/Reference/KernelReference.h"
#include "dmxc/Support/WorkCount.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DMIR.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVectorExtras.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

namespace dmxc::reference {

namespace {

const Table &table() {
  static const Table ops = [] {
    Table table;
    addConstants(table);
    addUnary(table);
    addBinary(table);
    addCast(table);
    addMovement(table);
    addGather(table);
    addDequantize(table);
    addScatter(table);
    addReduce(table);
    addSelection(table);
    addLinearAlgebra(table);
    addWindow(table);
    addNormalize(table);
    addBlockFloat(table);
    return table;
  }();
  return ops;
}

Error nodeError(mlir::Operation *op, const std::string &reason) {
  return modelError("node '" + dmir::nodeName(op) + "' (" + op->getName().getStringRef().str() + "): " + reason);
}

std::string describe(const Tensor &tensor) {
  return shapeString(tensor.shape()) + " " + std::string(dtypeName(tensor.dtype()));
}

/// Tensors past this size are refused: nothing the interpreter is for needs them, and a hostile shape would.
constexpr int64_t maxElements = int64_t(1) << 36;

bool tooLarge(llvm::ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return false;
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim > maxElements / count)
      return true;
    count *= dim;
  }
  return false;
}

/// Checks that a type is one the interpreter has, and static.
Status checkType(mlir::Operation *op, mlir::Type type, llvm::StringRef what) {
  auto ranked = llvm::dyn_cast<mlir::RankedTensorType>(type);
  dmir::BlockFpType block = dmir::blockFpOf(type);
  if (!ranked || (!block && !dmir::dtypeOf(ranked.getElementType())))
    return nodeError(op, "its " + what.str() + " is not a tensor of a DMIR element type");
  if (!ranked.hasStaticShape())
    return nodeError(op, "its " + what.str() +
                             " has a shape that is not known; the interpreter needs static "
                             "shapes, fix the dims with --dim or --shape");
  if (tooLarge(ranked.getShape()))
    return nodeError(op, "its " + what.str() + " of shape " + shapeString(ranked.getShape()) +
                             " has more than 2^36 elements, too many for the interpreter");
  std::string error;
  if (block && block.hasBlocks() && !dmir::blockLayoutOf(ranked, error))
    return nodeError(op, "its " + what.str() + " cannot be held: " + error);
  return Status::ok();
}

/// Checks a host tensor against the type the IR gives it.
Status checkTensor(mlir::Operation *op, mlir::Type type, const Tensor &tensor, const std::string &what) {
  if (Status status = checkType(op, type, what); !status)
    return status;
  auto [dtype, shape] = *dmir::hostFormOf(type);
  if (tensor.dtype() != dtype || tensor.shape() != shape)
    return nodeError(op, "its " + what + " is " + shapeString(shape) + " " + std::string(dtypeName(dtype)) +
                             " in the module but " + describe(tensor) + " was given");
  if (tensor.empty())
    return nodeError(op, "its " + what + " has no data");
  return Status::ok();
}

/// The tensors alive while a block runs. A value is dropped after its last use, so memory stays bounded by what is
/// alive, not by the size of the function.
class Frame {
public:
  void define(mlir::Value value, Tensor tensor) {
    unsigned uses = std::distance(value.use_begin(), value.use_end());
    if (uses)
      live[value] = {std::move(tensor), uses};
  }
  /// Reads one use of a value.
  Tensor use(mlir::Value value) {
    auto found = live.find(value);
    Tensor tensor = found->second.first;
    if (--found->second.second == 0)
      live.erase(found);
    return tensor;
  }

private:
  llvm::DenseMap<mlir::Value, std::pair<Tensor, unsigned>> live;
};

/// Weights lie in a model's file wherever its format put them, but elements are read where their type may lie.
bool isAligned(const Tensor &tensor) {
  unsigned bytes = std::max(dtypeBits(tensor.dtype()) / 8, 1U);
  return reinterpret_cast<uintptr_t>(tensor.data()) % bytes == 0;
}

Tensor aligned(const Tensor &tensor) {
  if (isAligned(tensor))
    return tensor;
  Tensor copy(tensor.dtype(), tensor.shape());
  std::memcpy(copy.mutableData(), tensor.data(), tensor.byteSize());
  return copy;
}

class Runner {
public:
  /// `counts`: the ops are the work that this process does (Support/WorkCount.h).
  explicit Runner(const OpObserver &observer, const KernelEvaluators &devices, bool counts = false)
      : observer(observer), devices(devices), counts(counts) {}

  /// Runs a block whose operations use nothing from outside; the terminator's operands are the results. `inputs` is
  /// taken over so that a block argument dies after its last use as any value does.
  Outputs run(mlir::Block &block, std::vector<Tensor> inputs) {
    Frame frame;
    for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), inputs))
      frame.define(argument, std::move(tensor));
    inputs.clear();
    for (mlir::Operation &op : block) {
      std::vector<Tensor> operands;
      for (mlir::Value operand : op.getOperands())
        operands.push_back(aligned(frame.use(operand)));
      if (op.hasTrait<mlir::OpTrait::IsTerminator>())
        return operands;
      if (counts)
        noteWork(dmir::nodeName(&op));
      Outputs results = runOp(op, std::move(operands));
      if (!results)
        return results;
      if (counts)
        advanceWork();
      if (observer)
        observer(&op, *results);
      for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results))
        frame.define(value, std::move(tensor));
    }
    return std::vector<Tensor>();
  }

private:
  Outputs runOp(mlir::Operation &op, std::vector<Tensor> operands) {
    if (auto region = llvm::dyn_cast<dmir::RegionOp>(op)) {
      auto device = devices.find(region.getDevice());
      return device == devices.end() ? run(*region.getBlock(), std::move(operands))
                                     : checked(op, device->second(&op, operands));
    }
    if (auto branch = llvm::dyn_cast<dmir::IfOp>(op))
      return checked(op, runIf(branch, operands));
    if (auto loop = llvm::dyn_cast<dmir::LoopOp>(op))
      return checked(op, runLoop(loop, operands));
    if (auto kernel = llvm::dyn_cast<dmir::ExternOp>(op))
      return checked(op, evaluateKernel(kernel, operands));
    return evaluateOp(&op, operands);
  }

  /// Results whose shapes are what the op's types say.
  static Outputs checked(mlir::Operation &op, Outputs results) {
    for (size_t i = 0; results && i < results->size(); ++i)
      if (Status status = checkTensor(&op, op.getResult(i).getType(), (*results)[i], "result " + std::to_string(i));
          !status)
        return status.takeError();
    return results;
  }

  Outputs call(mlir::Operation *op, llvm::StringRef graph, llvm::ArrayRef<Tensor> inputs) {
    auto function = op->getParentOfType<mlir::ModuleOp>().lookupSymbol<mlir::func::FuncOp>(graph);
    return evaluateFunction(function, inputs, observer, devices);
  }

  Outputs runIf(dmir::IfOp op, llvm::ArrayRef<Tensor> operands) {
    return call(op, operands[0].asInt(0) ? op.getThenGraph() : op.getElseGraph(), operands.drop_front());
  }

  Outputs runLoop(dmir::LoopOp op, llvm::ArrayRef<Tensor> operands) {
    size_t limits = (op.getTripCount() ? 1 : 0) + (op.getCondition() ? 1 : 0), states = op.getCarried().size();
    int64_t trips = op.getTripCount() ? operands[0].asInt(0) : INT64_MAX;
    Tensor go(DType::Bool, {}), number(DType::I64, {});
    go.setInt(0, op.getCondition() ? operands[limits - 1].asInt(0) : 1);
    std::vector<Tensor> carried(operands.begin() + limits, operands.begin() + limits + states);
    std::vector<std::vector<Tensor>> scanned(op.getNumResults() - states);
    for (int64_t i = 0; i < trips && go.asInt(0); ++i) {
      number = Tensor(DType::I64, {});
      number.setInt(0, i);
      std::vector<Tensor> inputs{number, go};
      llvm::append_range(inputs, carried);
      llvm::append_range(inputs, operands.drop_front(limits + states));
      Outputs outputs = call(op, op.getBody(), inputs);
      if (!outputs)
        return outputs;
      go = outputs->front();
      std::copy_n(outputs->begin() + 1, states, carried.begin());
      for (size_t k = 0; k < scanned.size(); ++k)
        scanned[k].push_back((*outputs)[1 + states + k]);
    }
    for (size_t k = 0; k < scanned.size(); ++k)
      carried.push_back(stacked(llvm::cast<mlir::RankedTensorType>(op.getResult(states + k).getType()), scanned[k]));
    return carried;
  }

  /// The parts along a new first axis; their shapes are checked with the result's.
  static Tensor stacked(mlir::RankedTensorType type, llvm::ArrayRef<Tensor> parts) {
    Shape shape(type.getShape().begin(), type.getShape().end());
    // Without a part, what only the parts would say is 0.
    for (int64_t &extent : shape)
      extent = mlir::ShapedType::isDynamic(extent) ? 0 : extent;
    if (!parts.empty()) {
      shape = parts.front().shape();
      shape.insert(shape.begin(), parts.size());
    }
    Tensor all(*dmir::dtypeOf(type.getElementType()), shape);
    size_t at = 0;
    for (const Tensor &part : parts) {
      std::memcpy(all.mutableData() + at, part.data(), part.byteSize());
      at += part.byteSize();
    }
    return all;
  }

  const OpObserver &observer;
  const KernelEvaluators &devices;
  bool counts;
};

Outputs evaluateConstant(const Call &call) {
  Result<Tensor> tensor = dmir::constantTensor(llvm::cast<dmir::ConstantOp>(call.op).getValue());
  if (!tensor) {
    Error error = call.error(tensor.error().message);
    error.kind = tensor.error().kind;
    return error;
  }
  return one(std::move(*tensor));
}

/// Converts the operands to native types, evaluates, converts back.
Outputs evaluateNative(mlir::Operation *op, llvm::ArrayRef<Tensor> operands, const Entry &entry) {
  std::vector<Tensor> native;
  for (const Tensor &operand : operands)
    native.push_back(toNative(operand, entry.mode));
  Call call{op, native, entry.mode};
  Outputs results = entry.evaluate(call);
  if (results)
    for (auto [i, result] : llvm::enumerate(*results))
      result = fromNative(result, call.declaredType(i), entry.mode);
  return results;
}

} // namespace

void addConstants(Table &table) { table["dmir.constant"] = {evaluateConstant, Mode::Raw}; }

Shape Call::shape(unsigned i) const {
  llvm::ArrayRef<int64_t> dims = shapeOf(op->getResult(i));
  return Shape(dims.begin(), dims.end());
}

DType Call::declaredType(unsigned i) const { return *dmir::dtypeOf(elementOf(op->getResult(i))); }

Error Call::error(const std::string &reason) const { return nodeError(op, reason); }

bool canEvaluate(mlir::OperationName name) {
  llvm::StringRef text = name.getStringRef();
  return text == dmir::RegionOp::getOperationName() || table().contains(text);
}

Outputs evaluateOp(mlir::Operation *op, llvm::ArrayRef<Tensor> operands) {
  bool isRegion = llvm::isa<dmir::RegionOp>(op);
  auto found = table().find(op->getName().getStringRef());
  if (!isRegion && found == table().end())
    return nodeError(op, "the interpreter does not know this op; it runs DMIR ops only");
  if (operands.size() != op->getNumOperands())
    return nodeError(op, std::to_string(op->getNumOperands()) + " operands are needed but " +
                             std::to_string(operands.size()) + " were given");
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (Status status = checkTensor(op, operand.getType(), operands[i], "operand " + std::to_string(i)); !status)
      return status.takeError();
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (Status status = checkType(op, result.getType(), "result " + std::to_string(i)); !status)
      return status.takeError();
  if (isRegion)
    return evaluateBlock(*llvm::cast<dmir::RegionOp>(op).getBlock(), operands);

  // Tensor's only exception is that of an allocation that failed.
  try {
    if (!llvm::all_of(operands, isAligned))
      return evaluateOp(op, llvm::map_to_vector(operands, aligned));
    if (usesBlockFloat(op))
      return evaluateBlockFloat({op, operands, Mode::Raw});
    return evaluateNative(op, operands, found->second);
  } catch (const std::bad_alloc &) {
    Error error = nodeError(op, "there is not enough memory for its results");
    error.kind = ErrorKind::IO;
    return error;
  }
}

Outputs evaluateBlock(mlir::Block &block, llvm::ArrayRef<Tensor> inputs) {
  return Runner({}, {}).run(block, inputs.vec());
}

Outputs evaluateFunction(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs, const OpObserver &observer,
                         const KernelEvaluators &devices) {
  std::string name = function.getName().str();
  if (!function.getBody().hasOneBlock())
    return modelError("function '" + name + "' must have a body of one block to be interpreted");
  if (inputs.size() != function.getNumArguments())
    return modelError("function '" + name + "' has " + std::to_string(function.getNumArguments()) + " inputs but " +
                      std::to_string(inputs.size()) + " were given");
  for (auto [i, argument] : llvm::enumerate(function.getArguments()))
    if (Status status = checkTensor(function, argument.getType(), inputs[i], "input " + std::to_string(i)); !status)
      return status.takeError();
  mlir::Block &body = function.getBody().front();
  bool counts = function.isPublic(); // not the graphs of branches and loops, which its ops run
  if (counts)
    beginWork("values", body.getOperations().size() - 1);
  return Runner(observer, devices, counts).run(body, inputs.vec());
}

} // namespace dmxc::reference
