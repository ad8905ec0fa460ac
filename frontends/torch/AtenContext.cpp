//===- AtenContext.cpp - one ATen node being imported ---------------------===//
#include "AtenContext.h"

#include <algorithm>
#include <numeric>

using namespace dmxc::dmir;

namespace dmxc::torchfe {

//===--- Arguments -----------------------------------------------------------------===//

const Arg &AtenContext::arg(std::string_view name) const {
  for (size_t i = 0; i < op.schema.parameters.size(); ++i)
    if (op.schema.parameters[i].name == name)
      return arguments[i];
  static const Arg none;
  return none;
}

bool AtenContext::given(std::string_view name) const { return !arg(name).isNone(); }

static std::string named(std::string_view name) { return "the argument '" + std::string(name) + "' "; }

/// A number as a tensor of rank 0: i64, f32 or bool.
static Val scalarOf(Emitter &e, const Arg &arg) {
  if (arg.kind == Arg::Kind::Int)
    return e.size(arg.ints.front());
  if (!arg.numbers.empty())
    return arg.kind == Arg::Kind::Bool ? e.intScalar(DType::Bool, arg.numbers.front() != 0)
                                       : e.scalar(DType::F64, arg.numbers.front());
  return arg.tensors.front();
}

Operand AtenContext::operand(std::string_view name) const {
  const Arg &given = arg(name);
  if (given.isNone())
    fail("op-argument", named(name) + "is missing");
  return {scalarOf(e, given), given.kind != Arg::Kind::Tensor};
}

Val AtenContext::tensor(std::string_view name) const {
  Operand found = operand(name);
  if (found.value.isComplex())
    fail("op-dtype", named(name) + "is a " + found.value.describe() + "; a real tensor is expected");
  return found.wrapped && found.value.dtype() == DType::F64 ? e.cast(found.value, DType::F32) : found.value;
}

ComplexParts AtenContext::parts(std::string_view name) const {
  const Val &found = operand(name).value;
  return found.isComplex() ? ComplexParts{found.real(), found.imaginary()} : ComplexParts{tensor(name), Val()};
}

Val AtenContext::optional(std::string_view name) const { return given(name) ? tensor(name) : Val(); }

std::vector<Val> AtenContext::tensors(std::string_view name) const { return arg(name).tensors; }

Dim AtenContext::dim(std::string_view name) const {
  const Arg &found = arg(name);
  if (found.kind != Arg::Kind::Int || found.ints.size() != 1)
    fail("op-argument", named(name) + "must be an integer");
  return found.ints.front();
}

Dims AtenContext::dims(std::string_view name) const { return arg(name).ints; }

[[noreturn]] static void failSymbolic(std::string_view name, Dim value) {
  failOpen("op-dynamic-dim", named(name) + "depends on dims that are known at run time only: " + value.str(), value);
}

int64_t AtenContext::integer(std::string_view name) const {
  Dim value = dim(name);
  if (!value.isStatic())
    failSymbolic(name, value);
  return *value.known();
}

std::vector<int64_t> AtenContext::integers(std::string_view name) const {
  std::vector<int64_t> list;
  for (Dim value : dims(name)) {
    if (!value.isStatic())
      failSymbolic(name, value);
    list.push_back(*value.known());
  }
  return list;
}

std::vector<int64_t> AtenContext::integers(std::string_view name, size_t count, int64_t otherwise) const {
  std::vector<int64_t> list = integers(name);
  if (list.empty())
    list.push_back(otherwise);
  if (list.size() == 1)
    list.resize(count, list.front());
  require(list.size() == count,
          named(name) + "has " + std::to_string(list.size()) + " numbers for " + std::to_string(count) + " axes");
  return list;
}

double AtenContext::number(std::string_view name) const {
  const Arg &found = arg(name);
  if (found.kind == Arg::Kind::Int)
    return static_cast<double>(integer(name));
  if (found.numbers.size() == 1)
    return found.numbers.front();
  if (found.tensors.size() == 1 && found.tensors[0] && found.tensors[0].isConstant())
    return found.tensors[0].constant().asDouble(0);
  fail("op-operand-not-constant", named(name) + "must be a number known at compile time");
}

std::vector<double> AtenContext::numbers(std::string_view name) const { return arg(name).numbers; }

bool AtenContext::flag(std::string_view name) const {
  const Arg &found = arg(name);
  if (found.numbers.size() != 1)
    fail("op-argument", named(name) + "must be a bool known at compile time");
  return found.numbers.front() != 0;
}

std::string AtenContext::text(std::string_view name) const { return arg(name).text; }

DType AtenContext::type(std::string_view name, DType otherwise) const {
  const Arg &found = arg(name);
  if (found.isComplex)
    fail("op-dtype", named(name) + "is complex" + std::to_string(2 * dtypeBits(found.type)) +
                         ", which the operator has no meaning for here");
  return found.kind == Arg::Kind::Type ? found.type : otherwise;
}

int64_t AtenContext::axis(std::string_view name, int64_t rank) const {
  requireShape(rank > 0, "a scalar has no axis");
  return normalizeAxis(integer(name), rank);
}

std::vector<int64_t> AtenContext::axes(std::string_view name, int64_t rank) const {
  std::vector<int64_t> list = integers(name);
  if (list.empty()) {
    list.resize(rank);
    std::iota(list.begin(), list.end(), 0);
    return list;
  }
  for (int64_t &axis : list)
    axis = normalizeAxis(axis, rank);
  if (rank == 0)
    list.clear();
  std::sort(list.begin(), list.end());
  require(std::adjacent_find(list.begin(), list.end()) == list.end(), named(name) + "names an axis twice");
  return list;
}

//===--- Types ---------------------------------------------------------------------===//

namespace {

/// The type that holds values of both (torch.promote_types).
DType joined(DType a, DType b) {
  if (a == b)
    return a;
  if (a == DType::Bool || b == DType::Bool)
    return a == DType::Bool ? b : a;
  if (isFloat(a) != isFloat(b))
    return isFloat(a) ? a : b;
  auto bits = [](DType type) { return dtypeBits(type); };
  if (isFloat(a)) {
    if (bits(a) == bits(b)) // f16 and bf16
      return DType::F32;
    return bits(a) > bits(b) ? a : b;
  }
  if (isSignedInt(a) == isSignedInt(b))
    return bits(a) > bits(b) ? a : b;
  DType withSign = isSignedInt(a) ? a : b, without = isSignedInt(a) ? b : a;
  if (without != DType::U8)
    fail("op-dtype", "torch has no common type for " + std::string(dtypeName(a)) + " and " + std::string(dtypeName(b)));
  return withSign == DType::I8 ? DType::I16 : withSign;
}

/// The type of operands of higher priority, raised to the kind of the others.
std::optional<DType> raised(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower)
    return higher ? higher : lower;
  if (isFloat(*higher))
    return higher;
  return *higher == DType::Bool || isFloat(*lower) ? joined(*higher, *lower) : *higher;
}

} // namespace

DType AtenContext::promoted(llvm::ArrayRef<Operand> operands) {
  std::optional<DType> ranked, scalar, wrapped;
  for (const Operand &operand : operands) {
    DType type = operand.value.dtype();
    if (operand.wrapped && isFloat(type))
      type = DType::F32;
    std::optional<DType> &place = operand.wrapped ? wrapped : operand.value.rank() ? ranked : scalar;
    place = place ? joined(*place, type) : type;
  }
  return *raised(ranked, raised(scalar, wrapped));
}

Val AtenContext::asFloat(const Val &value) const { return isFloat(value.dtype()) ? value : e.cast(value, DType::F32); }

Val AtenContext::wide(const Val &value) const {
  return isFloat(value.dtype()) && dtypeBits(value.dtype()) < 32 ? e.cast(value, DType::F32) : value;
}

Val AtenContext::truth(const Val &value) const {
  return value.dtype() == DType::Bool ? value : e.compare(Compare::ne, value, e.scalar(value.dtype(), 0));
}

int64_t AtenContext::normalizeAxis(int64_t axis, int64_t rank) {
  int64_t range = std::max<int64_t>(rank, 1); // a scalar has the axes 0 and -1
  if (axis < -range || axis >= range)
    fail("op-rank", "the axis " + std::to_string(axis) + " is outside of a tensor of rank " + std::to_string(rank));
  return axis < 0 ? axis + range : axis;
}

std::vector<Arg> callOperator(const AtenOp &op, std::vector<Arg> arguments, const std::string &name, Emitter &e) {
  return callForSome(op, std::move(arguments), name, e, {});
}

std::vector<Arg> callForSome(const AtenOp &op, std::vector<Arg> arguments, const std::string &name, Emitter &e,
                             std::vector<bool> read) {
  AtenContext context(op, std::move(arguments), name, e, std::move(read));
  op.row.import(context);
  return context.results();
}

} // namespace dmxc::torchfe
