//===- Select.cpp - selection, interpolation, conversion ------------------===//
#include "Math.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

//===--- Three operands ---------------------------------------------------------===//

void importWhere(AtenContext &c) {
  std::vector<Val> v = promote(c, {c.operand("self"), c.operand("other")});
  c.result(c.e.select(c.truth(c.tensor("condition")), v[0], v[1]));
}

/// Bounds that may be absent; the upper one wins.
void importClamp(AtenContext &c) {
  std::vector<Operand> given{c.operand("self")};
  for (const char *name : {"min", "max"})
    if (c.given(name))
      given.push_back(c.operand(name));
  std::vector<Val> values = promote(c, given);
  Val x = values[0];
  size_t next = 1;
  if (c.given("min"))
    x = c.e.max(x, values[next++]);
  if (c.given("max"))
    x = c.e.min(x, values[next]);
  c.result(x);
}

void importMaskedFill(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.e.select(c.truth(c.tensor("mask")), c.cast(c.operand("value").value, x.dtype()), x));
}

/// self + value * (a . b).
template <typename Op> void importAddc(AtenContext &c) {
  std::vector<Val> v = promote(c, {c.operand("self"), c.operand("tensor1"), c.operand("tensor2")});
  Val x = c.wide(v[0]), product = c.e.emit<Op>({c.wide(v[1]), c.wide(v[2])});
  c.result(c.cast(c.e.add(x, scaled(c, product, "value")), v[0].dtype()));
}

void importLerp(AtenContext &c) {
  std::vector<Val> v = promote(c, {c.operand("self"), c.operand("end")});
  Val start = c.wide(v[0]), end = c.wide(v[1]), weight = c.cast(c.operand("weight").value, start.dtype());
  Val span = c.e.sub(end, start);
  // From the nearer end, as torch does.
  Val low = c.e.add(start, c.e.mul(weight, span));
  Val high = c.e.sub(end, c.e.mul(span, c.e.sub(c.like(start, 1), weight)));
  Val near = c.e.compare(Compare::lt, absOf(c.e, weight), c.like(start, 0.5));
  c.result(c.cast(c.e.select(near, low, high), v[0].dtype()));
}

//===--- Copies -----------------------------------------------------------------===//

void importToCopy(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.cast(x, c.type("dtype", x.dtype())));
}
template <DType type> void importCastTo(AtenContext &c) { c.result(c.cast(c.tensor("self"), type)); }
void importTypeAs(AtenContext &c) { c.result(c.cast(c.tensor("self"), c.tensor("other").dtype())); }
void importCopy(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.e.broadcast(c.cast(c.tensor("src"), x.dtype()), x.dims()));
}
void importFill(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(c.e.broadcast(c.cast(c.operand("value").value, x.dtype()), x.dims()));
}
void importZero(AtenContext &c) { c.result(c.e.splat(c.tensor("self").dtype(), c.tensor("self").dims(), 0)); }

} // namespace

std::vector<AtenRow> selectOps() {
#define CAST(name) "_cast_" name "(Tensor self, bool non_blocking=False) -> Tensor"
  return {
      {CAST("Byte"), importCastTo<DType::U8>},
      {CAST("Char"), importCastTo<DType::I8>},
      {CAST("Double"), importCastTo<DType::F64>},
      {CAST("Float"), importCastTo<DType::F32>},
      {CAST("Half"), importCastTo<DType::F16>},
      {CAST("Int"), importCastTo<DType::I32>},
      {CAST("Long"), importCastTo<DType::I64>},
      {CAST("Short"), importCastTo<DType::I16>},
      {"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", importWhere},
      {"where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", importWhere},
      {"where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", importWhere},
      {"where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", importWhere},
      {"clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", importClamp},
      {"clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", importClamp},
      {"clamp_min(Tensor self, Scalar min) -> Tensor", importClamp},
      {"clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", importClamp},
      {"clamp_max(Tensor self, Scalar max) -> Tensor", importClamp},
      {"clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", importClamp},
      {"masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", importMaskedFill},
      {"masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", importMaskedFill},
      {"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", importAddc<MulOp>},
      {"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", importAddc<DivOp>},
      {"lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", importLerp},
      {"lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", importLerp},
      {"_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, "
       "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
       importToCopy},
      {"to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) -> Tensor(a)",
       importToCopy},
      {"to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
       "MemoryFormat? "
       "memory_format=None) -> Tensor(a)",
       importToCopy},
      {"to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
       importToCopy},
      {"to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) "
       "-> Tensor(a)",
       importTypeAs},
      {"type_as(Tensor self, Tensor other) -> Tensor", importTypeAs},
      {"copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", importCopy},
      {"zero(Tensor self) -> Tensor", importZero},
      {"fill.Scalar(Tensor self, Scalar value) -> Tensor", importFill},
      {"fill.Tensor(Tensor self, Tensor value) -> Tensor", importFill},
  };
#undef CAST
}

} // namespace dmxc::torchfe
