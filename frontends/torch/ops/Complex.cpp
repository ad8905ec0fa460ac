//===- Complex.cpp - complex tensors --------------------------------------===//
//
// A complex tensor is two real ones. What only moves elements, and sums, is done to each; the others have forms here.
//
//===----------------------------------------------------------------------===//
#include "Math.h"

#include <cmath>
#include <map>
#include <set>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// A tensor of [.., 2] as complex numbers, and back.
void importViewAsComplex(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() > 0 && mayEqual(x.extent(-1), 2), "expected a last axis of 2, not " + x.describe());
  c.result(partsOf(c.e, x));
}
void importViewAsReal(AtenContext &c) {
  ComplexParts x = c.parts("self");
  c.require(bool(x.im), "view_as_real takes a complex tensor");
  const int64_t last = x.re.rank();
  c.result(c.e.concat({unsqueeze(c.e, x.re, last), unsqueeze(c.e, x.im, last)}, last));
}
void importComplex(AtenContext &c) {
  std::vector<Val> both = promote(c, {c.operand("real"), c.operand("imag")});
  Dims dims = c.e.add(both[0], both[1]).dims();
  c.result(ComplexParts{c.e.broadcast(both[0], dims), c.e.broadcast(both[1], dims)});
}
/// Parts of half width.
void importComplexHalf(AtenContext &c) {
  ComplexParts x = c.parts("self");
  Val real = c.cast(x.re, DType::F16);
  c.result(ComplexParts{real, x.im ? c.cast(x.im, DType::F16) : c.e.splat(DType::F16, real.dims(), 0)});
}
void importPolar(AtenContext &c) {
  Val length = c.tensor("abs"), angle = c.tensor("angle");
  c.result(ComplexParts{c.e.mul(length, c.e.emit<CosOp>({angle})), c.e.mul(length, c.e.emit<SinOp>({angle}))});
}

void importReal(AtenContext &c) { c.result(c.parts("self").re); }
void importImaginary(AtenContext &c) {
  ComplexParts x = c.parts("self");
  c.require(bool(x.im), "imag takes a complex tensor");
  c.result(x.im);
}
void importConjugate(AtenContext &c) {
  ComplexParts x = c.parts("self");
  c.result(x.im ? ComplexParts{x.re, c.e.emit<NegOp>({x.im})} : x);
}

void importAngle(AtenContext &c) {
  ComplexParts x = c.parts("self");
  Emitter &e = c.e;
  if (!x.im) { // 0 or pi, and NaN of NaN
    Val real = c.asFloat(x.re),
        half = e.select(e.compare(Compare::lt, real, c.like(real, 0)), c.like(real, M_PI), c.like(real, 0));
    return c.result(e.select(e.compare(Compare::ne, real, real), real, half));
  }
  c.result(
      callOperator(*AtenTable::get().find("atan2.default"), {Arg::tensor(x.im), Arg::tensor(x.re)}, c.name, e).front());
}

//===--- Forms of operators of real tensors -----------------------------------------===//

/// An operand, numbers as tensors of `type`.
ComplexParts operandAs(AtenContext &c, const char *name, DType type) {
  Operand x = c.operand(name);
  if (x.value.isComplex())
    return {x.value.real(), x.value.imaginary()};
  return {c.cast(x.value, type), Val()};
}
/// The type of the parts.
DType partType(AtenContext &c) {
  for (const char *name : {"self", "other"})
    if (Val x = c.operand(name).value; x.isComplex())
      return x.real().dtype();
  return DType::F32;
}

ComplexParts product(Emitter &e, const ComplexParts &x, const ComplexParts &y) {
  if (!x.im || !y.im)
    return {e.mul(x.re, y.re), x.im ? e.mul(x.im, y.re) : e.mul(x.re, y.im)};
  return {e.sub(e.mul(x.re, y.re), e.mul(x.im, y.im)), e.add(e.mul(x.re, y.im), e.mul(x.im, y.re))};
}
Val squaredLength(Emitter &e, const ComplexParts &x) { return e.add(square(e, x.re), square(e, x.im)); }

void multiply(AtenContext &c) {
  const DType type = partType(c);
  c.result(product(c.e, operandAs(c, "self", type), operandAs(c, "other", type)));
}
void divide(AtenContext &c) {
  Emitter &e = c.e;
  const DType type = partType(c);
  ComplexParts x = operandAs(c, "self", type), y = operandAs(c, "other", type);
  if (!y.im)
    return c.result(ComplexParts{e.div(x.re, y.re), e.div(x.im, y.re)});
  ComplexParts by = product(e, x, {y.re, e.emit<NegOp>({y.im})});
  Val length = squaredLength(e, y);
  c.result(ComplexParts{e.div(by.re, length), e.div(by.im, length)});
}
void length(AtenContext &c) { c.result(c.e.emit<SqrtOp>({squaredLength(c.e, c.parts("self"))})); }
void exponential(AtenContext &c) {
  ComplexParts x = c.parts("self");
  Val scale = expOf(c.e, x.re);
  c.result(ComplexParts{c.e.mul(scale, c.e.emit<CosOp>({x.im})), c.e.mul(scale, c.e.emit<SinOp>({x.im}))});
}
void squareOf(AtenContext &c) {
  ComplexParts x = c.parts("self");
  c.require(c.number("exponent") == 2, "of complex numbers only the power 2 is supported");
  c.result(product(c.e, x, x));
}

/// To a complex type, or from one to a real type as torch does it: without the imaginary part.
void convert(AtenContext &c) {
  ComplexParts x = c.parts("self");
  const Arg &type = c.arg("dtype");
  if (type.kind != Arg::Kind::Type)
    return c.result(x);
  Val real = c.cast(x.re, type.type);
  if (!type.isComplex)
    return c.result(real);
  c.result(ComplexParts{real, x.im ? c.cast(x.im, type.type) : c.e.splat(type.type, real.dims(), 0)});
}

/// Operators that take complex tensors themselves, or that have a form for them above.
const std::map<std::string, ImportFn, std::less<>> &formsOfComplex() {
  static const std::map<std::string, ImportFn, std::less<>> forms = {
      {"mul.Tensor", multiply},        {"mul.Scalar", multiply},     {"div.Tensor", divide},
      {"div.Scalar", divide},          {"abs.default", length},      {"exp.default", exponential},
      {"pow.Tensor_Scalar", squareOf}, {"to.dtype", convert},        {"to.dtype_layout", convert},
      {"to.device", convert},          {"_to_copy.default", convert}};
  return forms;
}

/// Operators that make a tensor of real numbers, which may have a complex type.
bool createsReal(const std::string &name) {
  static const std::set<std::string, std::less<>> names = {
      "zeros.default",     "ones.default",       "empty.memory_format",  "full.default",      "zeros_like.default",
      "ones_like.default", "empty_like.default", "full_like.default",    "new_zeros.default", "new_ones.default",
      "new_empty.default", "new_full.default",   "scalar_tensor.default"};
  return names.count(name) != 0;
}

/// Sums of products of two tensors.
bool isProduct(const std::string &name) {
  static const std::set<std::string, std::less<>> names = {"einsum.default", "matmul.default", "mm.default",
                                                           "bmm.default", "mv.default"};
  return names.count(name) != 0;
}

/// Operators that do to each part what they do to a real tensor.
bool worksByParts(const std::string &name) {
  static const std::set<std::string, std::less<>> names = {"add.Tensor",
                                                           "sub.Tensor",
                                                           "neg.default",
                                                           "sum.default",
                                                           "sum.dim_IntList",
                                                           "mean.default",
                                                           "mean.dim",
                                                           "cumsum.default",
                                                           "cat.default",
                                                           "copy.default",
                                                           "slice_scatter.default",
                                                           "select_scatter.default",
                                                           "lift_fresh_copy.default",
                                                           "stack.default",
                                                           "alias.default",
                                                           "detach.default",
                                                           "clone.default",
                                                           "contiguous.default",
                                                           "view.default",
                                                           "_unsafe_view.default",
                                                           "reshape.default",
                                                           "unsqueeze.default",
                                                           "squeeze.default",
                                                           "squeeze.dim",
                                                           "squeeze.dims",
                                                           "permute.default",
                                                           "transpose.int",
                                                           "swapaxes.default",
                                                           "movedim.int",
                                                           "t.default",
                                                           "flatten.using_ints",
                                                           "unflatten.int",
                                                           "slice.Tensor",
                                                           "select.int",
                                                           "narrow.default",
                                                           "index_select.default",
                                                           "index.Tensor",
                                                           "expand.default",
                                                           "repeat.default",
                                                           "roll.default",
                                                           "fft_fftshift.default",
                                                           "fft_ifftshift.default",
                                                           "flip.default",
                                                           "split.Tensor",
                                                           "chunk.default",
                                                           "split_with_sizes.default",
                                                           "unbind.int",
                                                           "constant_pad_nd.default",
                                                           "resolve_conj.default",
                                                           "resolve_neg.default"};
  return names.count(name) != 0;
}

/// The arguments with the real or the imaginary parts of their tensors.
std::vector<Arg> partOf(const AtenOp &op, std::vector<Arg> arguments, bool imaginary, Emitter &e) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &name = op.schema.parameters[i].name;
    bool isNumber = arguments[i].tensors.empty() && (name == "self" || name == "other");
    if (isNumber && imaginary)
      arguments[i] = Arg::integer(0);
    bool isIndex = name == "index" || name == "indices";
    for (Val &x : arguments[i].tensors)
      if (x && x.isComplex())
        x = imaginary ? x.imaginary() : x.real();
      else if (x && imaginary && !isIndex)
        x = e.splat(x.dtype(), x.dims(), 0);
  }
  return arguments;
}

/// The product of the real or the imaginary parts of each operand, as `imaginary` says.
Val productOfParts(const AtenOp &op, std::vector<Arg> arguments, std::vector<bool> imaginary, const std::string &name,
                   Emitter &e) {
  size_t operand = 0;
  for (Arg &arg : arguments)
    for (Val &x : arg.tensors) {
      if (x && x.isComplex())
        x = imaginary[operand] ? x.imaginary() : x.real();
      else if (x && imaginary[operand])
        return Val();
      ++operand;
    }
  return callOperator(op, std::move(arguments), name, e)[0].tensors[0];
}

ComplexParts productOf(const AtenOp &op, const std::vector<Arg> &arguments, const std::string &name, Emitter &e) {
  size_t operands = 0;
  for (const Arg &arg : arguments)
    operands += arg.tensors.size();
  if (operands != 2)
    fail("op-unsupported", "of complex tensors two are multiplied at once, not " + std::to_string(operands));
  auto part = [&](bool first, bool second) { return productOfParts(op, arguments, {first, second}, name, e); };
  Val re = part(false, false), im = part(false, true), other = part(true, false), both = part(true, true);
  return {both ? e.sub(re, both) : re, !im ? other : !other ? im : e.add(im, other)};
}

/// Of a creator: the real tensor, and zeros where its type is complex.
Arg createdOf(const AtenOp &op, std::vector<Arg> arguments, const std::string &name, Emitter &e) {
  bool asksReal = false;
  for (Arg &arg : arguments) {
    asksReal |= arg.kind == Arg::Kind::Type && !arg.isComplex;
    arg.isComplex = false;
    for (Val &x : arg.tensors)
      x = x && x.isComplex() ? x.real() : x;
  }
  Val real = callOperator(op, std::move(arguments), name, e)[0].tensors[0];
  return Arg::tensor(asksReal ? real : Val::complexOf(real, e.splat(real.dtype(), real.dims(), 0)));
}

} // namespace

ComplexParts partsOf(Emitter &e, const Val &pairs) {
  Dims dims = pairs.dims();
  dims.pop_back();
  auto part = [&](int64_t i) { return e.reshape(e.sliceAxis(pairs, pairs.rank() - 1, i, 1), dims); };
  return {part(0), part(1)};
}

bool hasComplex(const Arg &arg) {
  return arg.isComplex ||
         std::any_of(arg.tensors.begin(), arg.tensors.end(), [](const Val &x) { return x && x.isComplex(); });
}

std::vector<Arg> callWithComplex(const AtenOp &op, std::vector<Arg> arguments, const std::string &name, Emitter &e) {
  const std::string &target = op.schema.name;
  if (auto form = formsOfComplex().find(target); form != formsOfComplex().end()) {
    AtenContext context(op, arguments, name, e);
    form->second(context);
    return context.results();
  }
  if (createsReal(target))
    return {createdOf(op, std::move(arguments), name, e)};
  if (isProduct(target)) {
    ComplexParts product = productOf(op, arguments, name, e);
    return {Arg::tensor(Val::complexOf(product.re, product.im))};
  }
  if (!worksByParts(target)) // those that take complex tensors; the others fail where they ask for a real one
    return callOperator(op, arguments, name, e);
  std::vector<Arg> results = callOperator(op, partOf(op, arguments, false, e), name, e);
  std::vector<Arg> others = callOperator(op, partOf(op, arguments, true, e), name, e);
  for (size_t i = 0; i < results.size(); ++i)
    for (size_t j = 0; j < results[i].tensors.size(); ++j)
      results[i].tensors[j] = Val::complexOf(results[i].tensors[j], others[i].tensors[j]);
  return results;
}

std::vector<AtenRow> complexOps() {
  return {
      {"view_as_complex(Tensor(a) self) -> Tensor(a)", importViewAsComplex},
      {"view_as_real(Tensor(a) self) -> Tensor(a)", importViewAsReal},
      {"complex(Tensor real, Tensor imag) -> Tensor", importComplex},
      {"chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", importComplexHalf},
      {"polar(Tensor abs, Tensor angle) -> Tensor", importPolar},
      {"real(Tensor(a) self) -> Tensor(a)", importReal},
      {"imag(Tensor(a) self) -> Tensor(a)", importImaginary},
      {"angle(Tensor self) -> Tensor", importAngle},
      {"_conj(Tensor(a) self) -> Tensor(a)", importConjugate},
      {"conj(Tensor(a) self) -> Tensor(a)", importConjugate},
      {"_conj_physical(Tensor self) -> Tensor", importConjugate},
      {"conj_physical(Tensor self) -> Tensor", importConjugate},
  };
}

} // namespace dmxc::torchfe
