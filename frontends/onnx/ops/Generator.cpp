//===- Generator.cpp - tensors made of nothing or of a shape --------------===//
#include "../Differences.h"
#include "../NodeContext.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

void importConstant(NodeContext &c) {
  if (c.hasAttr("value"))
    return c.result(c.attrTensor("value"));
  if (c.hasAttr("sparse_value"))
    return c.result(c.attrSparseTensor("sparse_value"));
  if (c.hasAttr("value_float"))
    return c.result(c.e.scalar(DType::F32, c.attrFloat("value_float", 0)));
  if (auto floats = c.attrFloats("value_floats"))
    return c.result(c.e.floats(DType::F32, {static_cast<int64_t>(floats->size())}, *floats));
  if (c.hasAttr("value_int"))
    return c.result(c.e.intScalar(DType::I64, c.attrInt("value_int")));
  if (auto ints = c.attrInts("value_ints"))
    return c.result(c.e.ints(*ints));
  c.requireAttr(!c.hasAttr("value_string") && !c.hasAttr("value_strings"), "strings have no tensor meaning here");
  c.requireAttr(false, "the value is missing");
}

void importConstantOfShape(NodeContext &c) {
  Dims dims = c.sizes(0, "shape", c.declaredShape(), c.declaredRank());
  for (Dim dim : dims)
    c.requireShape(dim.valueOr(0) >= 0, "the shape has the dim " + dim.str());
  Val value = c.e.scalar(DType::F32, 0);
  if (c.hasAttr("value")) {
    value = c.attrTensor("value");
    c.requireShape(value.numElements() == 1, "the attribute 'value' must have one element");
    value = c.e.reshape(value, {});
  }
  c.result(c.e.broadcast(value, dims));
}

/// A range whose ends are known at run time only: the declared shape says how many elements it has, or the run does.
void importRuntimeRange(NodeContext &c, std::optional<int64_t> declared) {
  Emitter &e = c.e;
  std::vector<Val> ends, wide;
  for (int i = 0; i < 3; ++i) {
    ends.push_back(e.reshape(c.operand(i), {}));
    wide.push_back(e.cast(ends.back(), DType::F64));
  }
  Val steps = e.emit<CeilOp>({e.div(e.sub(wide[1], wide[0]), wide[2])});
  c.requireAtRun(e.compare(Compare::ne, wide[2], e.scalar(DType::F64, 0)));
  Val length = e.max(steps, e.scalar(DType::F64, 0));
  if (declared)
    c.requireAtRun(e.compare(Compare::eq, length, e.scalar(DType::F64, static_cast<double>(*declared))));
  Dim count = declared ? Dim(*declared) : e.dimsOf(e.reshape(e.cast(length, DType::I64), {1}))[0];
  c.result(e.add(ends[0], e.mul(e.iota(ends[0].dtype(), {count}, 0), ends[2])));
}

/// A range over sizes: how many elements it has is an expression.
bool importSizeRange(NodeContext &c) {
  for (int i : {0, 1, 2})
    if (!c.operand(i).hasSizes())
      return false;
  Dim start = c.sizes(0, "start")[0], limit = c.sizes(1, "limit")[0], step = c.sizes(2, "delta")[0];
  if (step.valueOr(0) == 0 || (start.isStatic() && limit.isStatic()))
    return false;
  Dim count = *step.known() > 0 ? Dim::ceilDiv(limit - start, step) : Dim::ceilDiv(start - limit, Dim(0) - step);
  count = count.neverNegative() ? count : Dim::max(count, 0);
  Val index = c.e.iota(c.operand(0).dtype(), {count}, 0);
  auto number = [&](int i) { return c.e.reshape(c.operand(i), {}); };
  c.result(c.e.add(number(0), c.e.mul(index, number(2))));
  return true;
}

void importRange(NodeContext &c) {
  for (int i : {0, 1, 2})
    c.requireShape(mayEqual(c.operand(i).elements(), 1), "expected scalars");
  if (importSizeRange(c))
    return;
  if (!c.operand(0).isConstant() || !c.operand(1).isConstant() || !c.operand(2).isConstant())
    return importRuntimeRange(c, c.declaredDim(0, 0));
  Tensor start = c.constantOperand(0, "start"), limit = c.constantOperand(1, "limit"),
         delta = c.constantOperand(2, "delta");
  c.requireShape(start.numElements() == 1 && limit.numElements() == 1 && delta.numElements() == 1, "expected scalars");
  double step = delta.asDouble(0);
  c.requireShape(step != 0 && std::isfinite(step), "delta is " + std::to_string(step));
  double count = std::ceil((limit.asDouble(0) - start.asDouble(0)) / step);
  c.requireShape(count < 1e13, "the range has too many elements");
  Val first = c.e.constant(start.reshaped({})), by = c.e.constant(delta.reshaped({}));
  Val index = c.e.iota(start.dtype(), {count > 0 ? static_cast<int64_t>(count) : 0}, 0);
  c.result(c.e.add(first, c.e.mul(index, by)));
}

void importEyeLike(NodeContext &c) {
  Val x = c.operand(0);
  c.requireShape(x.rank() == 2, "expected rank 2");
  Val rows = c.e.iota(DType::I64, {x.extent(0), 1}, 0), columns = c.e.iota(DType::I64, {1, x.extent(1)}, 1);
  Val diagonal = c.e.compare(Compare::eq, c.e.sub(columns, rows), c.e.intScalar(DType::I64, c.attrInt("k", 0)));
  c.result(c.e.cast(diagonal, c.attrType("dtype", x.dtype())));
}

} // namespace

std::vector<OpRows> generatorOps() {
  using namespace types;
  return {
      {"Constant", {1, 9}, ">1", importConstant, "value"},
      {"Constant", {11}, ">1", importConstant, "sparse_value,value"},
      {"Constant",
       {12, 13, 19, 21, 23, 24, 25},
       ">1",
       importConstant,
       "sparse_value,value,value_float,value_floats,value_int,value_ints,value_"
       "string,value_strings",
       {},
       "strings are refused"},
      {"ConstantOfShape",
       {9, 20, 21, 23, 24, 25},
       ".>1",
       importConstantOfShape,
       "value",
       {Index},
       "the shape must be known at compile time or declared"},
      {"Range",
       {11},
       "TTT>1",
       importRange,
       "",
       {Number},
       "the operands must be known at compile time or the shape declared"},
      {"EyeLike", {9, 22}, ".>1", importEyeLike, "dtype,k"},
  };
}

std::vector<Difference> generatorDifferences() {
  return {
      {"range-decimals", "Range", "floats whose quotient is a whole number up to rounding", "rounded in f32",
       "rounded in f32", "rounded in f64, of the decimals", "rounded in f32",
       "a file has only the f32 numbers, and exporters declare the size that they give"},
  };
}

} // namespace dmxc::onnxfe
