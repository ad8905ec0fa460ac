//===- Kernel.cpp - which ops the array computes --------------------------===//
#include "Kernel.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <cmath>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;
using kernels::Contraction;

namespace {

constexpr int64_t kMostSize = int64_t(1) << 30; ///< far above what the array holds, so that no product overflows

/// Those of a (rows, or an image) and b.
const Numbers *numbersOf(const Contraction &contraction) {
  bool isConv = isa<dmir::ConvOp>(contraction.op);
  return aie::numbersOf(isConv ? contraction.rhsElement : contraction.lhsElement,
                        isConv ? contraction.lhsElement : contraction.rhsElement, contraction.element);
}

/// The most that a size of the graph around an op may be; nullopt where nobody says so.
std::optional<int64_t> mostOf(Operation *op, Dim size) {
  auto boundsOf = [&](std::string_view symbol) {
    DimBounds of = dmir::symbolBounds(op, StringRef(symbol));
    return Dim::Bounds{of.min, of.max};
  };
  int64_t most = size.isStatic() ? *size.known() : size.bounds(boundsOf).max;
  return most <= kMostSize ? std::optional(most) : std::nullopt;
}

/// Whether an input of the model has a symbol among its sizes, so that --dim is about it.
bool isOfInput(Operation *op, std::string_view symbol) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  bool found = false;
  for (Type type : function ? function.getArgumentTypes() : ArrayRef<Type>())
    for (Dim size : dmir::dimsOf(type))
      size.forEachSymbol([&](std::string_view each) { found |= each == symbol; });
  return found;
}

/// Why a size has no bound: its first symbol without one.
std::string withoutBound(Operation *op, Dim size) {
  std::string why;
  size.forEachSymbol([&](std::string_view symbol) {
    if (!why.empty() || dmir::symbolBounds(op, StringRef(symbol)).max <= kMostSize)
      return;
    std::string name(symbol);
    why = isOfInput(op, symbol) ? name + " has none: --dim " + name + "=1..N says one" : "a run computes " + name;
  });
  return why.empty() ? size.str() + " has none" : why;
}

std::optional<std::string> refusesSizes(Operation *op, RankedTensorType type) {
  for (Dim size : dmir::dimsOf(type)) {
    std::optional<int64_t> most = mostOf(op, size);
    if (!most)
      return "the array is programmed for sizes that have a bound, and " + withoutBound(op, size);
    if (*most < 1)
      return "the array multiplies no matrices without numbers";
  }
  return std::nullopt;
}

/// What is said of both kinds: numbers, sizes, operands.
std::optional<std::string> refusesOperands(const Contraction &contraction, bool strict) {
  Operation *op = contraction.op;
  if (!::numbersOf(contraction))
    return "the array multiplies bf16, f32 and f16 (as bf16), i32, and i8 or ui8 by i8 so far";
  if (strict && roundsOperands(op))
    return std::string("the array multiplies ") + (contraction.lhsElement.isF16() ? "f16" : "f32") +
           " as bf16, which --numerics strict does not allow and --numerics bf16 does";
  for (Value value : {op->getOperand(0), op->getOperand(1), Value(op->getResult(0))}) {
    RankedTensorType type = typeOf(value);
    if (std::optional<std::string> why = refusesSizes(op, type))
      return why;
    if (dmir::isConstant(value) && type.getNumElements() == 1) // it would be part of the kernel
      return "the array has no numbers in its kernels";
  }
  if (op->getOperand(0) == op->getOperand(1))
    return "the array multiplies two matrices, not one with itself";
  return std::nullopt;
}

std::optional<std::string> refusesMatrices(const Contraction &contraction) {
  if (contraction.unclear)
    return "the array multiplies matrices of which is known whether one meets several, here a run tells";
  for (auto [size, left, right] : llvm::zip(contraction.batchDims, contraction.lhsBatch, contraction.rhsBatch))
    if (!contraction.joined && !size.is(1) && (left.is(0) || right.is(0)))
      return "the array multiplies by one matrix, or as many matrices by each other one by one";
  return std::nullopt;
}

std::optional<std::string> refusesWindows(const Contraction &contraction) {
  auto conv = cast<dmir::ConvOp>(contraction.op);
  const auto &axes = contraction.windows->axes;
  bool isFixed = contraction.windows->channels.isStatic() && contraction.m.isStatic();
  if (llvm::any_of(axes, [](const auto &axis) { return !axis.low.isStatic(); }))
    return "the array reads images with zeros of fixed numbers around";
  if (!isFixed || llvm::any_of(axes, [](const auto &axis) { return !axis.taps.isStatic(); }))
    return "the array convolves by weights of fixed sizes";
  if (axes.size() > 2)
    return "the array computes convolutions of one or two dims, not of " + std::to_string(axes.size());
  if (llvm::any_of(axes, [](const auto &axis) { return *axis.low.known() < 0; }))
    return "the array computes convolutions of whole images, not of ones that are cut at their begin";
  // In a region or kernel its operands are arguments, and it has been asked before.
  if (isa<FunctionOpInterface>(conv->getParentOp()) && !dmir::isConstant(conv.getWeights()))
    return "the array takes a convolution's weights from the bundle, these are computed";
  return std::nullopt;
}

OpenSizes openSizesOf(const Contraction &contraction) {
  OpenSizes open{contraction.batch, contraction.m, contraction.k, contraction.n,
                 contraction.batch * contraction.m * contraction.n * contraction.k};
  if (contraction.windows) {
    open.matrices = 1;
    open.images = contraction.batchDims.front();
    open.across = contraction.windows->axes.back().out;
    if (contraction.windows->axes.size() > 1)
      open.down = contraction.windows->axes.front().out;
  }
  return open;
}

/// All sizes that a mapping asks for as large as they may be, which refusesSizes has seen.
void setMost(Contraction &contraction) {
  auto set = [&](Dim &size) { size = mostOf(contraction.op, size).value_or(1); };
  for (Dim *size : {&contraction.batch, &contraction.m, &contraction.k, &contraction.n})
    set(*size);
  for (Dim &size : contraction.batchDims)
    set(size);
  if (!contraction.windows)
    return;
  set(contraction.windows->channels);
  for (auto &axis : contraction.windows->axes)
    for (Dim *size : {&axis.in, &axis.out, &axis.taps})
      set(*size);
}

Operand operandOf(Operation *op, Part part, Value value) {
  Operand operand{part, typeOf(value), false, false, {}};
  if (operand.tensor.hasStaticShape())
    return operand;
  for (Dim size : dmir::dimsOf(value))
    operand.most.push_back(mostOf(op, size).value_or(1));
  return operand;
}

/// A product or convolution alone.
Result<Mapping> mappingOf(Operation *op, bool strict) {
  Contraction contraction = Contraction::ofWhole(op);
  std::optional<std::string> why = refusesOperands(contraction, strict);
  if (!why && contraction.windows) {
    why = refusesWindows(contraction);
  } else if (!why) {
    contraction.joinRows();
    why = refusesMatrices(contraction);
  }
  if (why)
    return modelError(*why);
  OpenSizes open = openSizesOf(contraction);
  setMost(contraction);
  Mapping mapping(contraction, *::numbersOf(contraction));
  for (auto [part, value] :
       {std::pair(Part::A, op->getOperand(0)), {Part::B, op->getOperand(1)}, {Part::C, contraction.result()}}) {
    mapping.operands.push_back(operandOf(op, part, value));
    if (!mapping.operands.back().most.empty())
      mapping.open = open;
  }
  return mapping;
}

/// Of a product with a residual behind it, or without.
std::optional<std::string> refusesProduct(const hw::Machine &machine, const Herd &herd, bool strict, Operation *op,
                                          Value residual) {
  Result<Mapping> mapping = ::mappingOf(op, strict);
  if (!mapping)
    return mapping.error().message;
  mapping->herd = herd;
  if (residual) {
    mapping->operands.push_back(operandOf(op, Part::Residual, residual));
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
  return why && mapping->open ? *why + ", where sizes are as large as --dim lets them be: smaller bounds may fit" : why;
}

/// The arguments of a block in their order, and the result; none where some are not what the product takes.
std::vector<Operand> operandsOf(Block *block, Operation *root, const Epilogue &epilogue, DictionaryAttr packed) {
  std::vector<Operand> operands;
  for (BlockArgument argument : block->getArguments()) {
    for (auto [part, value] : {std::pair(Part::A, root->getOperand(0)),
                               {Part::B, root->getOperand(1)},
                               {Part::Bias, epilogue.bias},
                               {Part::Residual, epilogue.residual},
                               {Part::Residual, epilogue.bytes},
                               {Part::Scales, epilogue.scales}}) {
      if (argument != value)
        continue;
      Operand &operand = operands.emplace_back(operandOf(root, part, argument));
      operand.packed = part != Part::Residual && packed && packed.contains(std::to_string(argument.getArgNumber()));
      operand.negated = part == Part::Bias && epilogue.negated;
      break;
    }
  }
  size_t takes =
      2 + (epilogue.bias ? 1 : 0) + (epilogue.residual || epilogue.bytes ? 1 : 0) + (epilogue.scales ? 1 : 0);
  if (operands.size() != block->getNumArguments() || operands.size() != takes)
    return {};
  operands.push_back(operandOf(root, Part::C, block->getTerminator()->getOperand(0)));
  return operands;
}

} // namespace

bool aie::roundsOperands(Operation *product) {
  Type element = getElementTypeOrSelf(product->getOperand(0));
  return element.isF32() || element.isF16();
}

std::optional<std::string> aie::refuses(const hw::Machine &machine, const Herd &herd, bool strict, Operation *op) {
  if (Contraction::is(op))
    return refusesProduct(machine, herd, strict, op, {});
  if (isAddedByCores(op))
    return std::nullopt;
  std::optional<kernels::Chain> chain = op->getNumResults() == 1 ? computedTo(op->getResult(0)) : std::nullopt;
  if (chain && reachesResult(*chain)) {
    Epilogue epilogue = *epilogueOf(*chain);
    if (!refusesProduct(machine, herd, strict, chain->product, epilogue.bytes ? epilogue.bytes : epilogue.residual))
      return std::nullopt;
  }
  return "the array only multiplies matrices and convolves, with a row and a tensor added and few steps (relu, clip, "
         "sigmoid, gelu, a factor) behind";
}

Result<Mapping> aie::mappingOf(Block *block, DictionaryAttr packed, bool strict) {
  auto root = llvm::find_if(*block, [](Operation &op) { return Contraction::is(&op); });
  if (root == block->end())
    return modelError("it is no product by one matrix and no convolution, with a row added and few steps");
  Result<Mapping> mapping = ::mappingOf(&*root, strict);
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
  if (epilogue.floats || (result != typeOf(root->getResult(0)).getElementType() && !epilogue.casts))
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
  bool areRows = !from.image && !to.image && !from.open && !to.open && from.matrices == 1 && to.matrices == 1;
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
