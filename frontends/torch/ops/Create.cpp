//===- Create.cpp - tensors made from numbers -----------------------------===//
#include "Math.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// The type that torch gives a tensor made of one Python number.
DType typeOfNumber(AtenContext &c, const char *name) {
  switch (c.arg(name).kind) {
  case Arg::Kind::Int:
    return DType::I64;
  case Arg::Kind::Bool:
    return DType::Bool;
  default:
    return DType::F32;
  }
}

Val filled(AtenContext &c, DType type, const Dims &dims, const char *name) {
  return c.e.broadcast(c.cast(c.operand(name).value, type), dims);
}

template <int value> void importConstant(AtenContext &c) {
  c.result(c.e.splat(c.type("dtype", DType::F32), c.dims("size"), value));
}
template <int value> void importLike(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.e.splat(c.type("dtype", x.dtype()), x.dims(), value));
}
template <int value> void importNew(AtenContext &c) {
  c.result(c.e.splat(c.type("dtype", c.tensor("self").dtype()), c.dims("size"), value));
}
void importFull(AtenContext &c) {
  c.result(filled(c, c.type("dtype", typeOfNumber(c, "fill_value")), c.dims("size"), "fill_value"));
}
void importFullLike(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(filled(c, c.type("dtype", x.dtype()), x.dims(), "fill_value"));
}
void importNewFull(AtenContext &c) {
  c.result(filled(c, c.type("dtype", c.tensor("self").dtype()), c.dims("size"), "fill_value"));
}
void importScalarTensor(AtenContext &c) { c.result(filled(c, c.type("dtype", DType::F32), {}, "s")); }

/// A number without a fraction, which may be a size.
std::optional<Dim> wholeNumber(AtenContext &c, const char *name, int64_t otherwise) {
  if (!c.given(name))
    return otherwise;
  if (c.arg(name).kind == Arg::Kind::Int)
    return c.dim(name);
  double number = c.number(name);
  bool whole = number == std::trunc(number) && std::abs(number) < 1e9;
  return whole ? std::optional<Dim>(static_cast<int64_t>(number)) : std::nullopt;
}

/// start, start + step, ... below end. Sizes may be symbolic, other numbers are known.
void importArange(AtenContext &c) {
  Emitter &e = c.e;
  bool ints = true;
  for (const char *name : {"start", "end", "step"})
    ints &= !c.given(name) || c.arg(name).kind == Arg::Kind::Int;
  DType type = c.type("dtype", ints ? DType::I64 : DType::F32);
  std::optional<Dim> first = wholeNumber(c, "start", 0), last = wholeNumber(c, "end", 0),
                     by = wholeNumber(c, "step", 1);
  if (first && last && by && by->isStatic()) {
    int64_t step = *by->known();
    c.require(step != 0, "the step is 0");
    Dim count = Dim::max(step > 0 ? Dim::ceilDiv(*last - *first, step) : Dim::ceilDiv(*first - *last, -step), 0);
    Val line = e.mul(e.iota(DType::I64, {count}, 0), e.intScalar(DType::I64, step));
    return c.result(c.cast(e.add(line, e.size(*first)), type));
  }
  double start = c.number("start", 0), end = c.number("end"), step = c.number("step", 1);
  double count = std::ceil((end - start) / step);
  c.require(step != 0 && std::isfinite(count) && count < 1e9, "the range has no sensible length");
  Val line = e.cast(e.iota(DType::I64, {static_cast<int64_t>(std::max(count, 0.0))}, 0), DType::F64);
  c.result(c.cast(e.add(e.mul(line, step), start), type));
}
void importLinspace(AtenContext &c) {
  int64_t steps = c.integer("steps");
  double start = c.number("start"), end = c.number("end"), step = steps > 1 ? (end - start) / (steps - 1) : 0;
  c.require(steps >= 0, "steps is negative");
  Val line = c.e.cast(c.e.iota(DType::I64, {steps}, 0), DType::F64);
  c.result(c.cast(c.e.add(c.e.mul(line, step), start), c.type("dtype", DType::F32)));
}
void importEye(AtenContext &c) {
  Dim rows = c.dim("n"), columns = c.given("m") ? c.dim("m") : rows;
  Val same = c.e.compare(Compare::eq, c.e.iota(DType::I64, {rows, 1}, 0), c.e.iota(DType::I64, {1, columns}, 1));
  c.result(c.cast(same, c.type("dtype", DType::F32)));
}

} // namespace

std::vector<AtenRow> createOps() {
#define OPTIONS "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define FORMAT ", MemoryFormat? memory_format=None) -> Tensor"
  const char *undefined = "what torch leaves undefined is 0";
  return {
      {"zeros(SymInt[] size, " OPTIONS ") -> Tensor", importConstant<0>},
      {"ones(SymInt[] size, " OPTIONS ") -> Tensor", importConstant<1>},
      {"empty.memory_format(SymInt[] size, " OPTIONS FORMAT, importConstant<0>, undefined},
      {"empty_strided(SymInt[] size, SymInt[] stride, " OPTIONS ") -> Tensor", importConstant<0>, undefined},
      {"empty_permuted(SymInt[] size, int[] physical_layout, " OPTIONS ") -> Tensor", importConstant<0>, undefined},
      {"zeros_like(Tensor self, " OPTIONS FORMAT, importLike<0>},
      {"ones_like(Tensor self, " OPTIONS FORMAT, importLike<1>},
      {"empty_like(Tensor self, " OPTIONS FORMAT, importLike<0>, undefined},
      {"new_zeros(Tensor self, SymInt[] size, " OPTIONS ") -> Tensor", importNew<0>},
      {"new_ones(Tensor self, SymInt[] size, " OPTIONS ") -> Tensor", importNew<1>},
      {"new_empty(Tensor self, SymInt[] size, " OPTIONS ") -> Tensor", importNew<0>, undefined},
      {"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, " OPTIONS ") -> Tensor", importNew<0>,
       undefined},
      {"full(SymInt[] size, Scalar fill_value, " OPTIONS ") -> Tensor", importFull},
      {"full_like(Tensor self, Scalar fill_value, " OPTIONS FORMAT, importFullLike},
      {"new_full(Tensor self, SymInt[] size, Scalar fill_value, " OPTIONS ") -> Tensor", importNewFull},
      {"scalar_tensor(Scalar s, " OPTIONS ") -> Tensor", importScalarTensor},
      {"arange(Scalar end, " OPTIONS ") -> Tensor", importArange},
      {"arange.start(Scalar start, Scalar end, " OPTIONS ") -> Tensor", importArange},
      {"arange.start_step(Scalar start, Scalar end, Scalar step=1, " OPTIONS ") -> Tensor", importArange},
      {"linspace(Scalar start, Scalar end, int steps, " OPTIONS ") -> Tensor", importLinspace},
      {"eye(SymInt n, " OPTIONS ") -> Tensor", importEye},
      {"eye.m(SymInt n, SymInt m, " OPTIONS ") -> Tensor", importEye},
  };
#undef OPTIONS
#undef FORMAT
}

} // namespace dmxc::torchfe
