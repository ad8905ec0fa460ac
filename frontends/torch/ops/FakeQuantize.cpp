//===- FakeQuantize.cpp - numbers rounded as quantisation would -----------===//
#include "Math.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

struct Rounded {
  Val value, inside; ///< and which numbers lie within the codes
};

/// The numbers that codes in [quant_min, quant_max] stand for: code = x / scale + zero. As torch has it, zeros that are
/// floats (a code is a whole number, its zero is not) are added before the code is rounded, in f32, others behind.
Rounded fakeQuantized(AtenContext &c, const Val &scale, const Val &zero) {
  Emitter &e = c.e;
  Val x = c.tensor("self"), wide = c.wide(x);
  int64_t least = c.integer("quant_min"), most = c.integer("quant_max");
  c.require(isFloat(x.dtype()), "floats are quantised");
  c.require(least <= most && least > -(1 << 24) && most < 1 << 24,
            "quant_min and quant_max must be in order, and codes exact as floats");
  auto widened = [&](const Val &value) { return c.cast(value, wide.dtype()); };
  Val step = c.cast(scale, DType::F32), places = e.mul(wide, widened(reciprocal(e, step))), shift = widened(zero);
  Val code = isFloat(zero.dtype()) ? widened(e.emit<RoundOp>({c.cast(e.add(places, shift), DType::F32)}))
                                   : e.add(e.emit<RoundOp>({places}), shift);
  Val low = c.like(code, static_cast<double>(least)), high = c.like(code, static_cast<double>(most));
  Val inside = both(e, e.compare(Compare::ge, code, low), e.compare(Compare::le, code, high));
  Val clamped = e.select(isNaN(e, code), low, e.min(e.max(code, low), high));
  return {c.cast(e.mul(e.sub(clamped, shift), widened(step)), x.dtype()), inside};
}

Val oneNumber(AtenContext &c, const char *name) {
  Val value = c.tensor(name);
  c.requireShape(value.elements().valueOr(1) == 1, std::string(name) + " must be one number");
  return c.e.reshape(value, {});
}
Val numbersOfChannels(AtenContext &c, const char *name) {
  Val x = c.tensor("self"), value = c.tensor(name);
  int64_t axis = c.axis("axis", x.rank());
  c.requireShape(value.rank() == 1 && mayEqual(value.extent(0), x.extent(axis)),
                 std::string(name) + " must be one number a channel");
  return alongAxis(c.e, value, axis, x.rank());
}
/// The zero of quantisation that is learnt: a float, of which the code it lies at counts.
Val roundedZero(AtenContext &c, const Val &zero) {
  Emitter &e = c.e;
  Val at = e.emit<RoundOp>({c.cast(zero, DType::F32)});
  at = e.min(e.max(at, c.like(at, static_cast<double>(c.integer("quant_min")))),
             c.like(at, static_cast<double>(c.integer("quant_max"))));
  return c.cast(at, DType::I32);
}

void setBoth(AtenContext &c, const Rounded &rounded) {
  c.result(0, rounded.value);
  c.result(1, rounded.inside);
}
Rounded byNumbers(AtenContext &c) {
  return fakeQuantized(c, c.e.scalar(DType::F32, c.number("scale")),
                       c.e.intScalar(DType::I64, c.integer("zero_point")));
}
Rounded byTensors(AtenContext &c) {
  return fakeQuantized(c, oneNumber(c, "scale"), c.cast(oneNumber(c, "zero_point"), DType::I64));
}
Rounded byChannels(AtenContext &c) {
  return fakeQuantized(c, numbersOfChannels(c, "scale"), numbersOfChannels(c, "zero_point"));
}
void importByNumbers(AtenContext &c) { c.result(byNumbers(c).value); }
void importByTensors(AtenContext &c) { c.result(byTensors(c).value); }
void importByChannels(AtenContext &c) { c.result(byChannels(c).value); }
void importByNumbersMask(AtenContext &c) { setBoth(c, byNumbers(c)); }
void importByChannelsMask(AtenContext &c) { setBoth(c, byChannels(c)); }
void importSwitched(AtenContext &c) {
  Val on = c.truth(oneNumber(c, "fake_quant_enabled"));
  Rounded rounded = byTensors(c);
  c.result(0, c.e.select(on, rounded.value, c.tensor("self")));
  c.result(1, either(c.e, notOf(c.e, on), rounded.inside));
}
void importLearnt(AtenContext &c) {
  c.result(fakeQuantized(c, oneNumber(c, "scale"), roundedZero(c, oneNumber(c, "zero_point"))).value);
}
void importLearntChannels(AtenContext &c) {
  Val zero = roundedZero(c, numbersOfChannels(c, "zero_point"));
  c.result(fakeQuantized(c, numbersOfChannels(c, "scale"), zero).value);
}

} // namespace

std::vector<AtenRow> fakeQuantizeOps() {
#define CODES "int quant_min, int quant_max"
#define TENSORS "Tensor self, Tensor scale, Tensor zero_point, "
  return {
      {"fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, " CODES ") -> Tensor",
       importByNumbers},
      {"fake_quantize_per_tensor_affine.tensor_qparams(" TENSORS CODES ") -> Tensor", importByTensors},
      {"fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, " CODES
       ") -> (Tensor output, Tensor mask)",
       importByNumbersMask},
      {"_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(" TENSORS "Tensor fake_quant_enabled, " CODES
       ") -> (Tensor output, Tensor mask)",
       importSwitched},
      {"fake_quantize_per_channel_affine(" TENSORS "int axis, " CODES ") -> Tensor", importByChannels},
      {"fake_quantize_per_channel_affine_cachemask(" TENSORS "int axis, " CODES ") -> (Tensor output, Tensor mask)",
       importByChannelsMask},
      {"_fake_quantize_learnable_per_tensor_affine(" TENSORS CODES ", float grad_factor=1.) -> Tensor", importLearnt},
      {"_fake_quantize_learnable_per_channel_affine(" TENSORS "int axis, " CODES ", float grad_factor=1.) -> Tensor",
       importLearntChannels},
  };
#undef TENSORS
#undef CODES
}

} // namespace dmxc::torchfe
