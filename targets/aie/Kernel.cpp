//===- Kernel.cpp - which ops the array computes --------------------------===//
#include "Kernel.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The row that an op adds to a value, or a constant one that it subtracts, whose columns are this dim; null where it
/// does something else.
Value biasOf(Operation *sum, Value to, int64_t columns) {
  bool subtracts = isa<dmir::SubOp>(sum);
  Value lhs = sum->getOperand(0), rhs = sum->getOperand(1);
  if (lhs == rhs || (lhs != to && (rhs != to || subtracts)) || sum->getResult(0).getType() != to.getType())
    return {};
  Value bias = lhs == to ? rhs : lhs;
  if (subtracts && isa<FunctionOpInterface>(sum->getParentOp()) && !dmir::isConstant(bias))
    return {};
  RankedTensorType type = typeOf(bias), whole = typeOf(to);
  int64_t dim = columns - (whole.getRank() - type.getRank()); // trailing dims are the same ones
  bool row = type.hasStaticShape() && dim >= 0 &&
             type.getDimSize(static_cast<unsigned>(dim)) == whole.getDimSize(static_cast<unsigned>(columns)) &&
             type.getNumElements() == type.getDimSize(static_cast<unsigned>(dim)) && type.getNumElements() > 1;
  return row ? bias : Value();
}

/// A product, or the convolution that is computed as one.
Operation *productAt(Operation *op) { return isa_and_present<dmir::MatMulOp, dmir::ConvOp>(op) ? op : nullptr; }
/// The dim of its result that is the product's columns.
int64_t columnsOf(Operation *product) {
  return isa<dmir::ConvOp>(product) ? 1 : typeOf(product->getResult(0)).getRank() - 1;
}

/// Leading dims of the left operand are rows like others where the right one has none, else they count matrices.
void setSizes(Product &out, dmir::MatMulOp product) {
  ArrayRef<int64_t> lhs = typeOf(product.getLhs()).getShape(), rhs = typeOf(product.getRhs()).getShape();
  out.matrices = ShapedType::getNumElements(rhs.drop_back(2));
  out.m = ShapedType::getNumElements(lhs.drop_back()) / out.matrices;
  out.k = lhs.back();
  out.n = rhs.back();
}

/// Of an image of one row or of rows, with pixels one beside the other.
void setSizes(Product &out, dmir::ConvOp conv) {
  ArrayRef<int64_t> input = typeOf(conv.getInput()).getShape(), weights = typeOf(conv.getWeights()).getShape(),
                    result = typeOf(conv.getResult()).getShape();
  Window &w = out.window.emplace();
  w.bytes = out.numbers->bytes;
  w.images = input[0];
  w.channels = input[1];
  w.outputs = result[1];
  w.width = input.back();
  w.outWidth = result.back();
  w.kernelWidth = weights.back();
  w.strideWidth = conv.getStrides().back();
  w.left = conv.getLow().back();
  if (input.size() == 4) {
    w.height = input[2];
    w.outHeight = result[2];
    w.kernelHeight = weights[2];
    w.strideHeight = conv.getStrides()[0];
    w.top = conv.getLow()[0];
  }
  out.setSizes();
}

const Numbers *numbersOf(Operation *op) {
  auto element = [](Value value) { return typeOf(value).getElementType(); };
  return aie::numbersOf(element(op->getOperand(0)), element(op->getOperand(1)), element(op->getResult(0)));
}

/// What is said of both kinds: numbers, sizes, operands.
std::optional<std::string> refusesOperands(Operation *op) {
  if (!::numbersOf(op))
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

std::optional<std::string> refusesShape(dmir::MatMulOp product) {
  ArrayRef<int64_t> lhs = typeOf(product.getLhs()).getShape(), rhs = typeOf(product.getRhs()).getShape();
  bool one = rhs.size() == 2, pairs = rhs.size() > 2 && lhs.size() > 1 && lhs.drop_back(2) == rhs.drop_back(2);
  return one || pairs ? std::nullopt
                      : std::optional<std::string>("the array multiplies by one matrix, or as many matrices by each "
                                                   "other one by one");
}

std::optional<std::string> refusesShape(dmir::ConvOp conv) {
  if (int64_t groups = static_cast<int64_t>(conv.getGroups()); groups != 1)
    return "the array computes convolutions of one group, not of " + std::to_string(groups);
  if (llvm::any_of(conv.getDilations(), [](int64_t dilation) { return dilation != 1; }))
    return "the array computes convolutions without dilation";
  if (int64_t rank = typeOf(conv.getInput()).getRank(); rank > 4)
    return "the array computes convolutions of one or two dims, not of " + std::to_string(rank - 2);
  if (llvm::any_of(conv.getLow(), [](int64_t low) { return low < 0; }))
    return "the array computes convolutions of whole images, not of ones that are cut at their begin";
  // In a region or kernel its operands are arguments, and it has been asked before.
  bool outside = isa<FunctionOpInterface>(conv->getParentOp());
  if (outside && !dmir::isConstant(conv.getWeights()))
    return "the array takes a convolution's weights from the bundle, these are computed";
  return std::nullopt;
}

template <typename Op> std::optional<std::string> refuses(const hw::Machine &machine, const Herd &herd, Op op) {
  if (std::optional<std::string> why = refusesOperands(op))
    return why;
  if (std::optional<std::string> why = refusesShape(op))
    return why;
  Product out;
  out.herd = herd;
  out.numbers = ::numbersOf(op);
  setSizes(out, op);
  return aie::refuses(machine, out);
}

std::optional<std::string> refusesProduct(const hw::Machine &machine, const Herd &herd, Operation *op) {
  if (auto conv = dyn_cast<dmir::ConvOp>(op))
    return ::refuses(machine, herd, conv);
  return ::refuses(machine, herd, cast<dmir::MatMulOp>(op));
}

/// The number that a constant of one element is; of a NaN nothing.
std::optional<float> numberOf(Value value) {
  bool isOne = typeOf(value).getElementType().isF32() && typeOf(value).hasStaticShape() &&
               typeOf(value).getNumElements() == 1 && dmir::isConstant(value);
  std::optional<Tensor> tensor = isOne ? dmir::constantTensor(value) : std::nullopt;
  return tensor && !std::isnan(*tensor->as<float>()) ? std::optional(*tensor->as<float>()) : std::nullopt;
}

/// What an op does to each number of `value`, as a step of the cores; nullopt where it is none.
std::optional<hw::Step> stepOf(Operation *op, Value value) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  using Kind = hw::StepKind;
  if (!typeOf(value).getElementType().isF32() || op->getNumResults() != 1 ||
      op->getResult(0).getType() != value.getType())
    return std::nullopt;
  Kind kind = llvm::TypeSwitch<Operation *, Kind>(op)
                  .Case<dmir::ReluOp>([](auto) { return Kind::Relu; })
                  .Case<dmir::SigmoidOp>([](auto) { return Kind::Sigmoid; })
                  .Case<dmir::SiluOp>([](auto) { return Kind::Silu; })
                  .Case<dmir::TanhOp>([](auto) { return Kind::Tanh; })
                  .Case<dmir::GeluOp>([](auto) { return Kind::Gelu; })
                  .Case<dmir::GeluTanhOp>([](auto) { return Kind::GeluTanh; })
                  .Default([](auto) { return Kind::None; });
  if (kind != Kind::None)
    return hw::Step{kind};
  bool isSecond = op->getNumOperands() == 2 && op->getOperand(0) != value;
  std::optional<float> number = op->getNumOperands() == 2 ? numberOf(op->getOperand(isSecond ? 0 : 1)) : std::nullopt;
  if (!number)
    return std::nullopt;
  using Found = std::optional<hw::Step>;
  return llvm::TypeSwitch<Operation *, Found>(op)
      .Case<dmir::AddOp>([&](auto) { return hw::Step{Kind::Add, *number}; })
      .Case<dmir::MulOp>([&](auto) { return hw::Step{Kind::Multiply, *number}; })
      .Case<dmir::MaxOp>([&](auto) { return hw::Step{Kind::Clip, *number, infinity}; })
      .Case<dmir::MinOp>([&](auto) { return hw::Step{Kind::Clip, -infinity, *number}; })
      .Case<dmir::SubOp>([&](auto) { return isSecond ? Found() : hw::Step{Kind::Add, -*number}; })
      .Case<dmir::DivOp>([&](auto) { return isSecond ? Found() : hw::Step{Kind::Divide, *number}; })
      .Default([](auto) { return Found(); });
}

/// A product and what cores do behind it, up to a value.
struct Chain {
  Operation *product = nullptr;
  Value bias;
  bool negated = false, relu = false;
  std::vector<hw::Step> steps;
  int64_t ops = 1;

  /// Takes one more op behind `value`, which is the chain's so far; false where the cores do not do it there.
  bool add(Operation *op, Value value);
};

bool Chain::add(Operation *op, Value value) {
  ++ops;
  bool isFirst = value.getDefiningOp() == product;
  if (isFirst && isa<dmir::AddOp, dmir::SubOp>(op))
    if (Value row = biasOf(op, value, columnsOf(product));
        row && row != product->getOperand(0) && row != product->getOperand(1)) {
      bias = row;
      negated = isa<dmir::SubOp>(op);
      return true;
    }
  if (isa<dmir::ReluOp>(op) && !relu && steps.empty()) {
    relu = true;
    return true;
  }
  std::optional<hw::Step> step = stepOf(op, value);
  if (!step)
    return false;
  hw::Step *last = steps.empty() ? nullptr : &steps.back();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (last && last->kind == hw::StepKind::Clip && step->kind == hw::StepKind::Clip && last->b == infinity &&
      step->a == -infinity && last->a <= step->b) {
    last->b = step->b;
    return true;
  }
  steps.push_back(*step);
  return steps.size() <= hw::kMostSteps;
}

/// nullopt where something on the way is not what cores do, or is needed elsewhere too. An op without readers is asked
/// about in the place of a formula, whose ops are there until the answer.
std::optional<Chain> chainTo(Value value) {
  Operation *op = value.getDefiningOp();
  if (productAt(op))
    return Chain{op};
  for (Value before : op ? op->getOperands() : ValueRange()) {
    if (!before.getDefiningOp() || !(before.hasOneUse() || op->use_empty()))
      continue;
    std::optional<Chain> chain = chainTo(before);
    if (chain && chain->add(op, before))
      return chain;
  }
  return std::nullopt;
}

/// With the output pixels of a row that the strategy says, or the best number.
Result<Product> convolutionOf(const hw::Machine &machine, dmir::ConvOp conv, Product out, DictionaryAttr strategy) {
  setSizes(out, conv);
  auto said = strategy ? strategy.getAs<IntegerAttr>(kTogetherKey) : IntegerAttr();
  if (said && said.getInt() >= 1 && said.getInt() <= out.window->outWidth) {
    out.window->together = said.getInt();
    out.setSizes();
  } else {
    chooseTogether(machine, out);
  }
  bool isPacked = llvm::all_of(out.operands, [&](const Operand &operand) {
    return operand.packed || operand.part == Part::A || operand.part == Part::C ||
           (operand.part == Part::Bias && out.window->together == 1);
  });
  if (!isPacked)
    return Error{ErrorKind::Model, "a convolution's weights, and a bias for several pixels of a row, are packed"};
  return out;
}

} // namespace

bool aie::isProduct(Operation *op) { return productAt(op); }

Operation *aie::productIn(Block *block) {
  auto found = llvm::find_if(*block, [](Operation &op) { return isProduct(&op); });
  return found == block->end() ? nullptr : &*found;
}

bool aie::isEpilogue(Operation *op, Value result) {
  std::optional<Chain> chain = chainTo(result);
  return chain && chain->add(op, result);
}

std::optional<std::string> aie::refuses(const hw::Machine &machine, const Herd &herd, Operation *op) {
  if (isProduct(op))
    return refusesProduct(machine, herd, op);
  std::optional<Chain> chain = op->getNumResults() == 1 ? chainTo(op->getResult(0)) : std::nullopt;
  if (chain && !refusesProduct(machine, herd, chain->product))
    return std::nullopt;
  return "the array only multiplies matrices and convolves, with a row added and few steps (relu, clip, sigmoid, gelu, "
         "a factor) behind";
}

Result<Product> aie::productOf(const hw::Machine &machine, Block *block, const Herd &herd, DictionaryAttr strategy) {
  auto wrong = [](const std::string &why) { return Error{ErrorKind::Model, why}; };
  Operation *root = productIn(block), *end = block->getTerminator();
  if (!root)
    return wrong("it is no product by one matrix and no convolution, with a row added and few steps");
  std::optional<std::string> why = refusesOperands(root);
  auto conv = dyn_cast<dmir::ConvOp>(root);
  if (!why)
    why = conv ? refusesShape(conv) : refusesShape(cast<dmir::MatMulOp>(root));
  if (why)
    return wrong(*why);
  Product out;
  out.herd = herd;
  out.numbers = ::numbersOf(root);
  if (end->getNumOperands() != 1)
    return wrong("it has other results than its last op's");
  Value result = end->getOperand(0);
  std::optional<Chain> chain = chainTo(result);
  auto isOne = [](Operation &op) { return !isa<dmir::ConstantOp>(op); };
  if (!chain || chain->product != root || chain->ops != llvm::count_if(block->without_terminator(), isOne))
    return wrong("it computes something else behind its product than the sum with a row, a relu and few steps");
  out.relu = chain->relu;
  out.steps = chain->steps;
  auto packed = strategy ? strategy.getAs<DictionaryAttr>(strategy::kPacked) : DictionaryAttr();
  for (BlockArgument argument : block->getArguments()) {
    RankedTensorType type = typeOf(argument);
    bool isPacked = packed && packed.contains(std::to_string(argument.getArgNumber()));
    if (argument == root->getOperand(0))
      out.operands.push_back({Part::A, type, isPacked});
    else if (argument == root->getOperand(1))
      out.operands.push_back({Part::B, type, isPacked});
    else if (argument == chain->bias)
      out.operands.push_back({Part::Bias, type, isPacked, chain->negated});
  }
  if (out.operands.size() != block->getNumArguments() || out.operands.size() != (chain->bias ? 3u : 2u))
    return wrong("it does not multiply its arguments");
  if (llvm::any_of(out.operands, [](const Operand &operand) { return operand.negated && !operand.packed; }))
    return wrong("it subtracts a row that is not packed");
  out.operands.push_back({Part::C, typeOf(result)});
  if (conv)
    return convolutionOf(machine, conv, std::move(out), strategy);
  setSizes(out, cast<dmir::MatMulOp>(root));
  return out;
}
