//===- Kernel.cpp - which ops the array computes --------------------------===//
#include "Kernel.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <cmath>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;
using kernels::Contraction;

namespace {

/// Those of a (rows, or an image) and b.
const Numbers *numbersOf(const Contraction &contraction) {
  bool isConv = isa<dmir::ConvOp>(contraction.op);
  return aie::numbersOf(isConv ? contraction.rhsElement : contraction.lhsElement,
                        isConv ? contraction.lhsElement : contraction.rhsElement, contraction.element);
}

/// What is said of both kinds: numbers, sizes, operands.
std::optional<std::string> refusesOperands(const Contraction &contraction) {
  Operation *op = contraction.op;
  if (!::numbersOf(contraction))
    return "the array multiplies f32 (as bf16), i32, and i8 or ui8 by i8 so far";
  for (Value value : {op->getOperand(0), op->getOperand(1), Value(op->getResult(0))}) {
    RankedTensorType type = typeOf(value);
    if (!type.hasStaticShape() || type.getNumElements() == 0)
      return "the array multiplies matrices of fixed sizes";
    if (dmir::isConstant(value) && type.getNumElements() == 1) // it would be part of the kernel
      return "the array has no numbers in its kernels";
  }
  if (op->getOperand(0) == op->getOperand(1))
    return "the array multiplies two matrices, not one with itself";
  return std::nullopt;
}

std::optional<std::string> refusesMatrices(const Contraction &contraction) {
  for (auto [size, left, right] : llvm::zip(contraction.batchDims, contraction.lhsBatch, contraction.rhsBatch))
    if (!contraction.joined && !size.is(1) && (left.is(0) || right.is(0)))
      return "the array multiplies by one matrix, or as many matrices by each other one by one";
  return std::nullopt;
}

std::optional<std::string> refusesWindows(const Contraction &contraction) {
  auto conv = cast<dmir::ConvOp>(contraction.op);
  const auto &axes = contraction.windows->axes;
  if (llvm::any_of(axes, [](const auto &axis) { return !axis.low.isStatic(); }))
    return "the array reads images with zeros of fixed numbers around";
  if (axes.size() > 2)
    return "the array computes convolutions of one or two dims, not of " + std::to_string(axes.size());
  if (llvm::any_of(axes, [](const auto &axis) { return *axis.low.known() < 0; }))
    return "the array computes convolutions of whole images, not of ones that are cut at their begin";
  // In a region or kernel its operands are arguments, and it has been asked before.
  if (isa<FunctionOpInterface>(conv->getParentOp()) && !dmir::isConstant(conv.getWeights()))
    return "the array takes a convolution's weights from the bundle, these are computed";
  return std::nullopt;
}

/// A product or convolution alone.
Result<Mapping> mappingOf(Operation *op) {
  Contraction contraction = Contraction::ofWhole(op);
  std::optional<std::string> why = refusesOperands(contraction);
  if (!why && contraction.windows) {
    why = refusesWindows(contraction);
  } else if (!why) {
    contraction.joinRows();
    why = refusesMatrices(contraction);
  }
  if (why)
    return modelError(*why);
  Mapping mapping(contraction, *::numbersOf(contraction));
  mapping.operands = {{Part::A, typeOf(op->getOperand(0))},
                      {Part::B, typeOf(op->getOperand(1))},
                      {Part::C, typeOf(contraction.result())}};
  return mapping;
}

/// Of a product with a residual behind it, or without.
std::optional<std::string> refusesProduct(const hw::Machine &machine, const Herd &herd, Operation *op, Value residual) {
  Result<Mapping> mapping = ::mappingOf(op);
  if (!mapping)
    return mapping.error().message;
  mapping->herd = herd;
  if (residual) {
    mapping->operands.push_back({Part::Residual, typeOf(residual)});
    mapping->expectResidual();
  }
  for (Operand &operand : mapping->operands) // which tilings a form leaves is asked of the region
    operand.tensor = operand.tensor.dropEncoding();
  std::optional<std::string> why = aie::refuses(machine, *mapping);
  Tiling tiling = mapping->tiling(); // some number of groups in a matrix that the array holds is enough
  for (int64_t all = mapping->image ? mapping->image->groups : 1; why && ++tiling.groups <= all;)
    if (all % tiling.groups == 0) {
      mapping->setTiling(tiling);
      why = aie::refuses(machine, *mapping);
    }
  return why;
}

/// The arguments of a block in their order, and the result; none where some are not what the product takes.
std::vector<Operand> operandsOf(Block *block, Operation *root, const Epilogue &epilogue, DictionaryAttr packed) {
  std::vector<Operand> operands;
  for (BlockArgument argument : block->getArguments()) {
    RankedTensorType type = typeOf(argument);
    bool isPacked = packed && packed.contains(std::to_string(argument.getArgNumber()));
    if (argument == root->getOperand(0))
      operands.push_back({Part::A, type, isPacked});
    else if (argument == root->getOperand(1))
      operands.push_back({Part::B, type, isPacked});
    else if (argument == epilogue.bias)
      operands.push_back({Part::Bias, type, isPacked, epilogue.negated});
    else if (argument == epilogue.residual || argument == epilogue.bytes)
      operands.push_back({Part::Residual, type});
    else if (argument == epilogue.scales)
      operands.push_back({Part::Scales, type, isPacked});
  }
  size_t takes =
      2 + (epilogue.bias ? 1 : 0) + (epilogue.residual || epilogue.bytes ? 1 : 0) + (epilogue.scales ? 1 : 0);
  if (operands.size() != block->getNumArguments() || operands.size() != takes)
    return {};
  operands.push_back({Part::C, typeOf(block->getTerminator()->getOperand(0))});
  return operands;
}

} // namespace

std::optional<std::string> aie::refuses(const hw::Machine &machine, const Herd &herd, Operation *op) {
  if (Contraction::is(op))
    return refusesProduct(machine, herd, op, {});
  if (isAddedByCores(op))
    return std::nullopt;
  std::optional<kernels::Chain> chain = op->getNumResults() == 1 ? computedTo(op->getResult(0)) : std::nullopt;
  if (chain && reachesResult(*chain)) {
    Epilogue epilogue = *epilogueOf(*chain);
    if (!refusesProduct(machine, herd, chain->product, epilogue.bytes ? epilogue.bytes : epilogue.residual))
      return std::nullopt;
  }
  return "the array only multiplies matrices and convolves, with a row and a tensor added and few steps (relu, clip, "
         "sigmoid, gelu, a factor) behind";
}

Result<Mapping> aie::mappingOf(Block *block, DictionaryAttr packed) {
  auto root = llvm::find_if(*block, [](Operation &op) { return Contraction::is(&op); });
  if (root == block->end())
    return modelError("it is no product by one matrix and no convolution, with a row added and few steps");
  Result<Mapping> mapping = ::mappingOf(&*root);
  if (!mapping)
    return mapping;
  if (block->getTerminator()->getNumOperands() != 1)
    return modelError("it has other results than its last op's");
  std::optional<kernels::Chain> chain = computedTo(block->getTerminator()->getOperand(0));
  auto isOne = [](Operation &op) { return !isa<dmir::ConstantOp>(op); };
  std::optional<Epilogue> found = chain && isResult(*chain) ? epilogueOf(*chain) : std::nullopt;
  int64_t ops = found ? 1 + static_cast<int64_t>(chain->followers.size()) + found->opsOfBytes : 0;
  if (!found || chain->product != &*root || ops != llvm::count_if(block->without_terminator(), isOne))
    return modelError(
        "it computes something else behind its product than the sum with a row and a tensor, a relu and few steps");
  Epilogue &epilogue = *found;
  mapping->relu = epilogue.relu;
  mapping->steps = std::move(epilogue.steps);
  mapping->floats = epilogue.floats;
  RankedTensorType last = typeOf(block->getTerminator()->getOperand(0));
  Type result = last.getElementType();
  if (std::optional<Kept> kept = keptOf(last); kept && kept->element == "bf16")
    result = Builder(block->getParentOp()->getContext()).getBF16Type();
  if (epilogue.floats || result != typeOf(root->getResult(0)).getElementType())
    mapping->narrow = *narrowTo(result);
  mapping->operands = operandsOf(block, &*root, epilogue, packed);
  if (mapping->operands.empty())
    return modelError("it does not multiply its arguments");
  if (epilogue.residual || epilogue.bytes)
    mapping->expectResidual();
  auto packs = [&](Part part) {
    return llvm::all_of(mapping->operands,
                        [&](const Operand &operand) { return operand.part != part || operand.packed; });
  };
  if (epilogue.negated && !packs(Part::Bias))
    return modelError("it subtracts a row that is not packed");
  if (mapping->image && !packs(Part::B))
    return modelError("a convolution's weights are packed");
  return mapping;
}

/// What a column of padding holds is a number: weights of zero meet it.
static bool padsAreNumbers(const Mapping &mapping) {
  return llvm::all_of(mapping.steps, [](const hw::Step &step) {
    bool divides = step.kind == hw::StepKind::Divide && step.a == 0;
    return !divides && std::isfinite(step.a) && (std::isfinite(step.b) || step.kind == hw::StepKind::Clip);
  });
}

Attribute aie::formBetween(MLIRContext *context, const Mapping &from, const Mapping &to, int64_t pitch) {
  StringRef element = from.operand(Part::C)->tensor.getElementType().isF32() ? "bf16" : from.results();
  bool areRows = !from.image && !to.image && from.matrices == 1 && to.matrices == 1;
  if (!areRows || element != to.numbers.name || !padsAreNumbers(from))
    return {};
  Kept kept{element, std::max(from.paddedM(), to.paddedM()), pitch};
  RankedTensorType tensor = from.operand(Part::C)->tensor;
  int64_t host = tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
  return keptForm(context, kept, std::max(kept.rows * kept.pitch * to.numbers.bytes, host));
}

void aie::keep(Mapping &mapping, Part part, Attribute form) {
  for (Operand &operand : mapping.operands)
    if (operand.part == part)
      operand.tensor = RankedTensorType::get(operand.tensor.getShape(), operand.tensor.getElementType(), form);
  if (std::optional<Kept> kept = mapping.kept(part); kept && part == Part::C && kept->element == "bf16")
    mapping.narrow = *narrowTo(Builder(form.getContext()).getBF16Type());
}
