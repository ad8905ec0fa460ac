//===- Val.cpp - tensors, sequences and optionals during import -----------===//
#include "Val.h"

using namespace mlir;

namespace dmxc::frontend {

[[noreturn]] void fail(std::string id, std::string text, std::vector<std::string> helps) {
  throw NodeFailure{std::move(id), std::move(text), std::move(helps)};
}

[[noreturn]] void failOpen(std::string id, std::string text, ArrayRef<Dim> dims) {
  NodeFailure failure{std::move(id), std::move(text)};
  for (Dim dim : dims)
    dim.forEachSymbol([&](std::string_view name) {
      if (!llvm::is_contained(failure.open, name))
        failure.open.emplace_back(name);
    });
  throw failure;
}

DType Val::dtype() const { return *dmir::dtypeOf(elementType()); }

std::string Val::describe() const {
  if (isPoison())
    return "unknown";
  if (pieces())
    return "sequence whose length is known at run time only";
  if (isSequence())
    return "sequence of " + std::to_string(items().size());
  if (isNone())
    return "optional without a value";
  if (isComplex())
    return "complex tensor of " + real().describe();
  return std::string(dtypeName(dtype())) + "[" + (rank() ? dimsString(dims()) : "") + "]";
}

/// Fails the node when a dim that must be a number has none.
[[noreturn]] static void failSymbolic(const Val &value) {
  std::string symbols;
  for (Dim dim : value.dims())
    dim.forEachSymbol([&](std::string_view name) {
      if (symbols.find("'" + std::string(name) + "'") == std::string::npos)
        symbols += (symbols.empty() ? "'" : ", '") + std::string(name) + "'";
    });
  failOpen("op-dynamic-dim",
           "an operand has the shape " + dimsString(value.dims()) +
               "; the operator is computed for sizes that are known at compile time only (" + symbols +
               (symbols.find(',') == std::string::npos ? " is not)" : " are not)"),
           value.dims());
}

ArrayRef<int64_t> Val::shape() const {
  if (!type().hasStaticShape())
    failSymbolic(*this);
  return type().getShape();
}

int64_t Val::dim(int64_t axis) const {
  std::optional<int64_t> number = extent(axis).known();
  if (!number)
    failSymbolic(*this);
  return *number;
}

Dims Val::sizes() const {
  if (state->sizes)
    return *state->sizes;
  Dims result;
  for (int64_t i = 0, count = constant().numElements(); i < count; ++i)
    result.push_back(constant().asInt(i));
  return result;
}

bool mayEqual(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [](auto pair) {
           auto [x, y] = pair;
           return x == y || !x.isStatic() || !y.isStatic();
         });
}

std::string dimsString(ArrayRef<Dim> dims) {
  if (dims.empty())
    return "scalar";
  std::string text;
  for (Dim dim : dims) {
    bool simple = dim.isStatic() || dim.symbolName();
    text += (text.empty() ? "" : "x") + (simple ? dim.str() : "(" + dim.str() + ")");
  }
  return text;
}

Val Val::poison() {
  Val value;
  value.state = std::make_shared<State>();
  value.state->poison = true;
  return value;
}

Val Val::complexOf(const Val &real, const Val &imaginary) {
  Val value;
  value.state = std::make_shared<State>();
  value.state->type = real.type();
  value.state->complex = true;
  value.state->items = {real, imaginary};
  return value;
}

Val Val::sequenceOf(std::vector<Val> items) {
  Val value;
  value.state = std::make_shared<State>();
  value.state->sequence = true;
  value.state->items = std::move(items);
  return value;
}

Val Val::sequenceOf(Pieces pieces) {
  Val value;
  value.state = std::make_shared<State>();
  value.state->sequence = true;
  value.state->pieces = std::make_shared<const Pieces>(std::move(pieces));
  return value;
}

Val Val::none() {
  Val value;
  value.state = std::make_shared<State>();
  value.state->none = true;
  return value;
}

} // namespace dmxc::frontend
