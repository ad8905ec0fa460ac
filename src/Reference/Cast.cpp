//===- Cast.cpp - conversion between element types ------------------------===//
//
// The rules, which every target's kernels follow:
// - float -> float rounds once, to nearest even. To f16, bf16, f32 an overflow is an infinity. To f8 and f4 it is the
//   largest finite value with `saturate`, else what the format has for it (infinity or NaN).
// - float -> integer: NaN is 0. Other values are clamped to the range of int64 (of uint64 where the result is u64),
//   truncated toward zero, then wrapped to the result's width: -1.0 is 255 as u8, 3e9 is -1294967296 as i32.
// - integer -> integer wraps. integer -> float rounds once, to nearest even.
// - anything -> bool is x != 0 (true for NaN). bool -> anything is 0 or 1.
//
//===----------------------------------------------------------------------===//
#include "Convert.h"
#include "Evaluator.h"
#include "Types.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Half.h"

#include <cmath>
#include <limits>

namespace dmxc::reference {

namespace {

/// The integer part of a float, clamped to the range of Wide (int64 or uint64).
template <typename Wide, typename From> Wide clampToInt(From x) {
  // The limits are powers of two (or one less, which rounds up to one), so the comparisons are exact.
  constexpr From upper = static_cast<From>(std::numeric_limits<Wide>::max());
  constexpr From lower = static_cast<From>(std::numeric_limits<Wide>::min());
  if (x >= upper)
    return std::numeric_limits<Wide>::max();
  if (x <= lower)
    return std::numeric_limits<Wide>::min();
  return __builtin_isnan(x) ? Wide{} : static_cast<Wide>(x);
}

template <typename To, typename From> To convert(From x) {
  if constexpr (std::floating_point<From> && std::integral<To>)
    return static_cast<To>(clampToInt<std::conditional_t<std::same_as<To, uint64_t>, uint64_t, int64_t>>(x));
  else
    return static_cast<To>(x);
}

template <typename From> double exactDouble(From x) {
  if constexpr (std::integral<From> && sizeof(From) == 8)
    return toDoubleSticky(x);
  else
    return static_cast<double>(x);
}

/// To f16, bf16, f8 and f4. Sources wider than f32 go through double, which is exact (or sticky), and round there.
template <typename From> void convertToNarrow(const From *in, Tensor &result, bool saturate) {
  DType to = result.dtype();
  for (int64_t i = 0, count = result.numElements(); i < count; ++i) {
    if (to == DType::F16 || to == DType::BF16) {
      uint16_t &bits = result.as<uint16_t>()[i];
      if constexpr (std::same_as<From, float>)
        bits = to == DType::F16 ? floatToHalf(in[i]) : floatToBfloat(in[i]);
      else
        bits = to == DType::F16 ? doubleToHalf(exactDouble(in[i])) : doubleToBfloat(exactDouble(in[i]));
      continue;
    }
    uint8_t bits = doubleToNarrow(to, exactDouble(in[i]), saturate);
    if (isPacked(to))
      setPackedBits(to, result.mutableData(), i, bits);
    else
      result.as<uint8_t>()[i] = bits;
  }
}

Outputs evaluateCast(const Call &call) {
  Tensor in = toNative(call.in[0], Mode::Arithmetic);
  DType to = call.declaredType();
  if (call.in[0].dtype() == to)
    return one(call.in[0]);
  bool saturate = llvm::cast<dmir::CastOp>(call.op).getSaturate();
  DType native = nativeType(to, Mode::Arithmetic);
  bool narrowFloat = native == DType::F32 && to != DType::F32;
  Tensor result(narrowFloat ? to : native, in.shape());
  withNumber(in.dtype(), [&]<typename From>(From) {
    const From *__restrict source = in.as<From>();
    if (narrowFloat)
      return convertToNarrow(source, result, saturate);
    int64_t count = result.numElements();
    if (to == DType::Bool) {
      uint8_t *__restrict out = result.as<uint8_t>();
      for (int64_t i = 0; i < count; ++i)
        out[i] = source[i] != From{};
      return;
    }
    withNumber(native, [&]<typename To>(To) {
      To *__restrict out = result.as<To>();
      for (int64_t i = 0; i < count; ++i)
        out[i] = convert<To>(source[i]);
    });
  });
  return one(narrowFloat ? result : fromNative(result, to, Mode::Arithmetic));
}

/// The same bytes under the other type.
Outputs evaluateBitcast(const Call &call) {
  const Tensor &in = call.in[0];
  return one(Tensor(call.declaredType(), in.shape(), in.data(), in.owner()));
}

} // namespace

void addCast(Table &table) {
  table["dmir.cast"] = {evaluateCast, Mode::Raw};
  table["dmir.bitcast"] = {evaluateBitcast, Mode::Raw};
}

} // namespace dmxc::reference
