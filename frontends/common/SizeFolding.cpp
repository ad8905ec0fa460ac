//===- SizeFolding.cpp - arithmetic on dims that graphs do ----------------===//
//
// Exporters compute shapes in the graph: Shape, Gather, Mul, Concat, Reshape. With symbolic dims these integers are no
// constants, yet known as expressions, and they must stay known: the shape of a result depends on them. An op over such
// sizes is evaluated here on expressions. What cannot be (a comparison that depends on a symbol's value) becomes an op
// like any other, over `dmir.dim_tensor`.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace dmxc::frontend {
namespace {

/// Longer tensors are data, not shapes.
constexpr int64_t kMaxSizes = 1024;

bool isPositive(Dim dim) { return (dim - 1).neverNegative(); }

/// a / b as integers are divided in DMIR: towards zero. A run that divides by 0 fails either way.
std::optional<Dim> divide(Dim a, Dim b) {
  if (a.isStatic() && b.isStatic())
    return b.is(0) ? std::nullopt : std::optional<Dim>(*a.known() / *b.known());
  if (std::optional<Dim> exact = Dim::divideExactly(a, b))
    return exact;
  return a.neverNegative() && b.neverNegative() && !b.is(0) ? std::optional<Dim>(Dim::floorDiv(a, b)) : std::nullopt;
}

/// The rest has the divisor's sign (mod), or the dividend's (fmod).
std::optional<Dim> rest(Dim a, Dim b) {
  return a.neverNegative() && isPositive(b) ? std::optional<Dim>(Dim::mod(a, b)) : std::nullopt;
}

using Arithmetic = std::optional<Dim> (*)(Dim, Dim);

Arithmetic arithmeticOf(StringRef name) {
  return llvm::StringSwitch<Arithmetic>(name)
      .Case("dmir.add", [](Dim a, Dim b) -> std::optional<Dim> { return a + b; })
      .Case("dmir.sub", [](Dim a, Dim b) -> std::optional<Dim> { return a - b; })
      .Case("dmir.mul", [](Dim a, Dim b) -> std::optional<Dim> { return a * b; })
      .Case("dmir.max", [](Dim a, Dim b) -> std::optional<Dim> { return Dim::max(a, b); })
      .Case("dmir.min", [](Dim a, Dim b) -> std::optional<Dim> { return Dim::min(a, b); })
      .Case("dmir.div", divide)
      .Cases({"dmir.mod", "dmir.fmod"}, rest)
      .Default(nullptr);
}

/// What a comparison gives for every value of the symbols; nothing where that differs.
std::optional<bool> compareSizes(dmir::Compare kind, Dim a, Dim b) {
  bool less = isPositive(b - a), greater = isPositive(a - b), equal = a == b;
  bool lessOrEqual = (b - a).neverNegative(), greaterOrEqual = (a - b).neverNegative();
  auto known = [](bool yes, bool no) { return yes || no ? std::optional<bool>(yes) : std::nullopt; };
  switch (kind) {
  case dmir::Compare::eq:
    return known(equal, less || greater);
  case dmir::Compare::ne:
    return known(less || greater, equal);
  case dmir::Compare::lt:
    return known(less, greaterOrEqual);
  case dmir::Compare::le:
    return known(lessOrEqual, greater);
  case dmir::Compare::gt:
    return known(greater, lessOrEqual);
  case dmir::Compare::ge:
    return known(greaterOrEqual, less);
  }
  return std::nullopt;
}

template <typename T> T attribute(ArrayRef<NamedAttribute> attributes, StringRef name) {
  for (const NamedAttribute &attr : attributes)
    if (attr.getName() == name)
      return dyn_cast<T>(attr.getValue());
  return {};
}

/// All elements of a vector combined; nothing for other reductions.
std::optional<Dim> reduceAll(dmir::Reduction kind, const Dims &values) {
  if (values.empty() || kind == dmir::Reduction::mean)
    return std::nullopt;
  Dim total = values.front();
  for (Dim value : ArrayRef<Dim>(values).drop_front())
    total = kind == dmir::Reduction::sum    ? total + value
            : kind == dmir::Reduction::prod ? total * value
            : kind == dmir::Reduction::max  ? Dim::max(total, value)
                                            : Dim::min(total, value);
  return total;
}

} // namespace

/// Ops that only move elements are folded on numbers that stand for the sizes.
std::optional<Val> Emitter::moveSizes(const Kind &kind, ArrayRef<Val> operands, ArrayRef<NamedAttribute> attributes,
                                      RankedTensorType given) {
  // Indices and conditions must be known; they are no elements that move.
  int indices =
      llvm::StringSwitch<int>(kind.name)
          .Cases({"dmir.gather", "dmir.gather_elements", "dmir.gather_nd", "dmir.scatter_elements", "dmir.scatter_nd"},
                 1)
          .Case("dmir.select", 0)
          .Default(-1);
  Dims table;
  std::vector<Val> numbered;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (static_cast<int>(i) == indices) {
      if (!operand.isConstant())
        return std::nullopt;
      numbered.push_back(operand);
      continue;
    }
    if (!operand.hasSizes())
      return std::nullopt;
    Tensor numbers(operand.dtype(), Shape(operand.shape().begin(), operand.shape().end()));
    for (auto [k, size] : llvm::enumerate(operand.sizes())) {
      numbers.setInt(k, table.size());
      table.push_back(size);
    }
    numbered.push_back(constant(std::move(numbers)));
  }
  Val moved = build(kind, numbered, attributes, given).front();
  if (!moved.isConstant())
    return std::nullopt;
  Dims result;
  for (Dim number : moved.sizes())
    result.push_back(table[*number.known()]);
  return sizes(result, moved.type());
}

std::optional<Val> Emitter::foldSizes(const Kind &kind, ArrayRef<Val> operands, ArrayRef<NamedAttribute> attributes,
                                      RankedTensorType given) {
  if (!fold || llvm::none_of(operands, [](const Val &v) { return v.state->sizes.has_value(); }))
    return std::nullopt;
  for (const Val &operand : operands)
    if (!operand.hasStaticShape() || operand.numElements() > kMaxSizes || !(operand.hasSizes() || operand.isConstant()))
      return std::nullopt;
  StringRef name = kind.name;
  std::optional<RegisteredOperationName> known = RegisteredOperationName::lookup(name, context());
  auto mode = attribute<dmir::ScatterModeAttr>(attributes, "mode");
  bool moves = known && known->hasTrait<dmir::DataMovement>();
  if (moves || name == "dmir.select" ||
      (name.starts_with("dmir.scatter") && (!mode || mode.getValue() == dmir::ScatterMode::replace)))
    return moveSizes(kind, operands, attributes, given);
  if (name == "dmir.cast") {
    DType to = *dmir::dtypeOf(given.getElementType());
    bool integer = to == DType::I64 || to == DType::I32 || to == DType::U64 || to == DType::U32;
    return integer ? std::optional<Val>(sizes(operands[0].sizes(), given)) : std::nullopt;
  }
  if (name == "dmir.neg")
    return mul(operands[0], intScalar(operands[0].dtype(), -1));
  if (name == "dmir.reduce") {
    auto kindAttr = attribute<dmir::ReductionAttr>(attributes, "kind");
    auto keep = attribute<BoolAttr>(attributes, "keepDims");
    if (operands[0].rank() != 1 || !kindAttr)
      return std::nullopt;
    std::optional<Dim> total = reduceAll(kindAttr.getValue(), operands[0].sizes());
    Dims shape = !keep || keep.getValue() ? Dims{1} : Dims{};
    return total ? std::optional<Val>(sizes({*total}, typeOf(operands[0].dtype(), shape))) : std::nullopt;
  }
  Arithmetic arithmetic = arithmeticOf(name);
  if ((!arithmetic && name != "dmir.compare") || !operands[0].hasSizes() || !operands[1].hasSizes())
    return std::nullopt;
  std::optional<SmallVector<Dim>> joined = dmir::broadcastDims(operands[0].dims(), operands[1].dims());
  if (!joined)
    return std::nullopt; // the op itself says so
  Val lhs = broadcast(operands[0], *joined), rhs = broadcast(operands[1], *joined);
  Dims result;
  for (auto [a, b] : llvm::zip(lhs.sizes(), rhs.sizes())) {
    std::optional<Dim> value;
    if (arithmetic)
      value = arithmetic(a, b);
    else if (std::optional<bool> truth =
                 compareSizes(attribute<dmir::CompareAttr>(attributes, "kind").getValue(), a, b))
      value = *truth;
    if (!value)
      return std::nullopt;
    result.push_back(*value);
  }
  return sizes(result, typeOf(arithmetic ? lhs.dtype() : DType::Bool, Dims(*joined)));
}

} // namespace dmxc::frontend
