//===- SymbolicOps.cpp - arithmetic on host scalars -----------------------===//
//
// Programs compute sizes by nodes of their own. What is an expression over the symbols stays one; comparisons that
// depend on a symbol's value and floats become ops on scalars.
//
//===----------------------------------------------------------------------===//
#include "AtenContext.h"
#include "ProgramImporter.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

using Function = Arg (*)(Emitter &, const std::vector<Arg> &);

bool bothInt(const std::vector<Arg> &operands) {
  return std::all_of(operands.begin(), operands.end(), [](const Arg &arg) { return arg.kind == Arg::Kind::Int; });
}

/// A scalar as a tensor of rank 0: i64, f64 or bool.
Val scalar(Emitter &e, const Arg &arg) {
  if (arg.kind == Arg::Kind::Int)
    return e.size(arg.ints.front());
  if (!arg.numbers.empty())
    return arg.kind == Arg::Kind::Bool ? e.intScalar(DType::Bool, arg.numbers[0] != 0)
                                       : e.scalar(DType::F64, arg.numbers[0]);
  if (arg.tensors.empty() || !arg.tensors[0])
    fail("op-argument", "an operand is no number");
  return arg.tensors[0];
}
Val real(Emitter &e, const Arg &arg) { return e.cast(scalar(e, arg), DType::F64); }

/// A scalar that was computed; a number where it is known.
Arg computed(Arg::Kind kind, const Val &value) {
  if (!value.isConstant())
    return Arg::computed(kind, value);
  double number = value.constant().asDouble(0);
  return kind == Arg::Kind::Bool ? Arg::flag(number != 0) : Arg::number(number);
}

template <typename Ints, typename Floats>
Arg arithmetic(Emitter &e, const std::vector<Arg> &operands, Ints ints, Floats floats) {
  if (bothInt(operands))
    return Arg::integer(ints(operands[0].ints[0], operands[1].ints[0]));
  return computed(Arg::Kind::Float, floats(real(e, operands[0]), real(e, operands[1])));
}

Dim divisor(Dim value) {
  if (value.is(0))
    fail("op-argument", "a division by 0");
  return value;
}

Arg add(Emitter &e, const std::vector<Arg> &o) {
  return arithmetic(e, o, [](Dim a, Dim b) { return a + b; }, [&](const Val &a, const Val &b) { return e.add(a, b); });
}
Arg sub(Emitter &e, const std::vector<Arg> &o) {
  return arithmetic(e, o, [](Dim a, Dim b) { return a - b; }, [&](const Val &a, const Val &b) { return e.sub(a, b); });
}
Arg mul(Emitter &e, const std::vector<Arg> &o) {
  return arithmetic(e, o, [](Dim a, Dim b) { return a * b; }, [&](const Val &a, const Val &b) { return e.mul(a, b); });
}
Arg floorDiv(Emitter &e, const std::vector<Arg> &o) {
  return arithmetic(
      e, o, [](Dim a, Dim b) { return Dim::floorDiv(a, divisor(b)); },
      [&](const Val &a, const Val &b) { return e.emit<FloorOp>({e.div(a, b)}); });
}
Arg mod(Emitter &e, const std::vector<Arg> &o) {
  return arithmetic(
      e, o, [](Dim a, Dim b) { return Dim::mod(a, divisor(b)); },
      [&](const Val &a, const Val &b) { return e.emit<ModOp>({a, b}); });
}
Arg greatest(Emitter &e, const std::vector<Arg> &o) {
  return arithmetic(e, o, Dim::max, [&](const Val &a, const Val &b) { return e.max(a, b); });
}
Arg least(Emitter &e, const std::vector<Arg> &o) {
  return arithmetic(e, o, Dim::min, [&](const Val &a, const Val &b) { return e.min(a, b); });
}
Arg power(Emitter &e, const std::vector<Arg> &o) {
  if (bothInt(o))
    if (std::optional<int64_t> count = o[1].ints[0].known(); count && *count >= 0 && *count <= 16) {
      Dim value = 1;
      for (int64_t i = 0; i < *count; ++i)
        value *= o[0].ints[0];
      return Arg::integer(value);
    }
  return computed(Arg::Kind::Float, e.emit<PowOp>({real(e, o[0]), real(e, o[1])}));
}
Arg divide(Emitter &e, const std::vector<Arg> &o) {
  return computed(Arg::Kind::Float, e.div(real(e, o[0]), real(e, o[1])));
}
Arg negate(Emitter &e, const std::vector<Arg> &o) {
  return bothInt(o) ? Arg::integer(Dim(0) - o[0].ints[0]) : computed(Arg::Kind::Float, e.emit<NegOp>({real(e, o[0])}));
}

template <Compare kind> Arg compare(Emitter &e, const std::vector<Arg> &o) {
  Val a = scalar(e, o[0]), b = scalar(e, o[1]);
  DType type = AtenContext::promoted({{a, false}, {b, false}});
  return computed(Arg::Kind::Bool, e.compare(kind, e.cast(a, type), e.cast(b, type)));
}
Arg logicalAnd(Emitter &e, const std::vector<Arg> &o) {
  return computed(Arg::Kind::Bool,
                  e.emit<AndOp>({e.cast(scalar(e, o[0]), DType::Bool), e.cast(scalar(e, o[1]), DType::Bool)}));
}
Arg logicalOr(Emitter &e, const std::vector<Arg> &o) {
  return computed(Arg::Kind::Bool,
                  e.emit<OrOp>({e.cast(scalar(e, o[0]), DType::Bool), e.cast(scalar(e, o[1]), DType::Bool)}));
}
Arg logicalNot(Emitter &e, const std::vector<Arg> &o) {
  return computed(Arg::Kind::Bool, e.emit<NotOp>({e.cast(scalar(e, o[0]), DType::Bool)}));
}

/// An integer of a float, which only a run may know.
Arg toInt(Emitter &e, const std::vector<Arg> &o) {
  if (o[0].kind == Arg::Kind::Int)
    return o[0];
  Val whole = e.cast(real(e, o[0]), DType::I64); // truncates
  return Arg::integer(e.dimsOf(e.reshape(whole, {1}))[0]);
}
Arg toFloat(Emitter &e, const std::vector<Arg> &o) { return computed(Arg::Kind::Float, real(e, o[0])); }
Arg root(Emitter &e, const std::vector<Arg> &o) { return computed(Arg::Kind::Float, e.emit<SqrtOp>({real(e, o[0])})); }
Arg choose(Emitter &e, const std::vector<Arg> &o) {
  if (o[0].numbers.size() != 1)
    fail("op-unsupported", "a size depends on a condition that is known at run time only");
  return o[o[0].numbers[0] != 0 ? 1 : 2];
}

struct Row {
  const char *target;
  size_t operands;
  Function function;
};
const Row kRows[] = {
    {"_operator.add", 2, add},
    {"_operator.sub", 2, sub},
    {"_operator.mul", 2, mul},
    {"_operator.floordiv", 2, floorDiv},
    {"_operator.truediv", 2, divide},
    {"_operator.mod", 2, mod},
    {"_operator.pow", 2, power},
    {"_operator.neg", 1, negate},
    {"_operator.eq", 2, compare<Compare::eq>},
    {"_operator.ne", 2, compare<Compare::ne>},
    {"_operator.lt", 2, compare<Compare::lt>},
    {"_operator.le", 2, compare<Compare::le>},
    {"_operator.gt", 2, compare<Compare::gt>},
    {"_operator.ge", 2, compare<Compare::ge>},
    {"_operator.and_", 2, logicalAnd},
    {"_operator.or_", 2, logicalOr},
    {"math.trunc", 1, toInt},
    {"torch.sym_int", 1, toInt},
    {"torch.sym_float", 1, toFloat},
    {"torch.sym_sqrt", 1, root},
    {"torch._sym_sqrt", 1, root},
    {"torch.sym_max", 2, greatest},
    {"torch.sym_min", 2, least},
    {"torch.sym_not", 1, logicalNot},
    {"torch.sym_ite", 3, choose},
};

const Row *find(const std::string &target) {
  for (const Row &row : kRows)
    if (target == row.target)
      return &row;
  return nullptr;
}

} // namespace

bool isSymbolic(const std::string &target) { return find(target) != nullptr; }

std::optional<Arg> importSymbolic(Emitter &e, const std::string &target, const std::vector<Arg> &operands) {
  const Row *row = find(target);
  if (!row)
    return std::nullopt;
  if (operands.size() != row->operands)
    fail("op-argument",
         "the operator takes " + std::to_string(row->operands) + " numbers, not " + std::to_string(operands.size()));
  for (const Arg &operand : operands)
    if (operand.list || operand.kind == Arg::Kind::None || operand.kind == Arg::Kind::String)
      fail("op-argument", "an operand is " + operand.describe() + ", not a number");
  return row->function(e, operands);
}

} // namespace dmxc::torchfe
