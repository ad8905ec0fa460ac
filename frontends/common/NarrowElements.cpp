//===- NarrowElements.cpp - element types that targets do not compute with ----===//
//
// Elements of 4 and 2 bits share bytes, and those of f8e8m0 are exponents. Ops that only move elements move them as
// bytes, so that no target has to know more of them than their casts and their bits.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

using namespace mlir;
using namespace dmxc::dmir;

namespace dmxc::frontend {
namespace {

Val sameBits(Emitter &e, const Val &value, DType type) {
  return value.dtype() == type ? value : e.emitAs<BitcastOp>(e.typeOf(type, value.dims()), {value});
}

/// The integer type of a packed type's bits.
DType integerOf(DType type) { return type == DType::F4E2M1 ? DType::U4 : type; }
DType byteOf(DType type) { return isSignedInt(type) ? DType::I8 : DType::U8; }

bool isNarrow(DType type) { return isPacked(type) || type == DType::F8E8M0; }

Val asBytes(Emitter &e, const Val &value) {
  return value.dtype() == DType::F8E8M0 ? sameBits(e, value, DType::U8)
                                        : e.cast(sameBits(e, value, integerOf(value.dtype())), byteOf(value.dtype()));
}

Val fromBytes(Emitter &e, const Val &value, DType type) {
  return type == DType::F8E8M0 ? sameBits(e, value, type) : sameBits(e, e.cast(value, integerOf(type)), type);
}

/// 2^(bits - 127); 255 is NaN.
Val floatOfScale(Emitter &e, const Val &scale) {
  auto number = [&](int64_t value) { return e.intScalar(DType::I32, value); };
  Val exponent = e.cast(sameBits(e, scale, DType::U8), DType::I32);
  Val bits = e.emit<ShlOp>({exponent, number(23)});
  bits = e.select(e.compare(Compare::eq, exponent, number(0)), number(0x00400000), bits); // subnormal in f32
  bits = e.select(e.compare(Compare::eq, exponent, number(255)), number(0x7fc00000), bits);
  return sameBits(e, bits, DType::F32);
}

} // namespace

bool Emitter::movesAsBytes(llvm::StringRef op, llvm::ArrayRef<Val> operands) const {
  return !operands.empty() && OperationName(op, context()).hasTrait<dmir::DataMovement>() &&
         isNarrow(operands.front().dtype());
}

std::vector<Val> Emitter::moveBytes(Kind kind, llvm::ArrayRef<Val> operands, llvm::ArrayRef<NamedAttribute> attributes,
                                    RankedTensorType given) {
  const DType type = operands.front().dtype();
  std::vector<Val> bytes;
  for (const Val &operand : operands)
    bytes.push_back(operand.dtype() == type ? asBytes(*this, operand) : operand);
  if (given)
    given = mlir::cast<RankedTensorType>(given.clone(elementTypeOf(bytes.front().dtype(), context())));
  std::vector<Val> results = build(kind, bytes, attributes, given);
  for (Val &result : results)
    result = fromBytes(*this, result, type);
  return results;
}

Val Emitter::castFromScale(const Val &scale, DType type, bool saturate) {
  return cast(floatOfScale(*this, scale), type, saturate);
}

// The exponent of the f32, one more where what is left of it rounds up. Adding just less than a unit of the exponent to
// the bits, or half of one, carries into it; subnormal numbers have no leading one and are compared with 2^-127.
Val Emitter::castToScale(const Val &value, bool saturate, ScaleRounding rounding) {
  auto number = [&](int64_t bits) { return intScalar(DType::I32, bits); };
  constexpr int64_t one = 1 << 23, infinity = 255LL << 23, least = one / 2, none = INT32_MAX;
  const int64_t carry = rounding == ScaleRounding::Up ? one - 1 : rounding == ScaleRounding::Nearest ? one / 2 : 0;
  const int64_t second = rounding == ScaleRounding::Up        ? least
                         : rounding == ScaleRounding::Nearest ? least + one / 4 - 1
                                                              : none;
  Val magnitude = emit<AndOp>({sameBits(*this, cast(value, DType::F32), DType::I32), number(INT32_MAX)});
  // No more than the bits of infinity: the sum would wrap.
  Val exponent = emit<ShrOp>({add(min(magnitude, number(infinity)), number(carry)), number(23)});
  Val small = cast(compare(Compare::gt, magnitude, number(second)), DType::I32);
  exponent = select(compare(Compare::lt, magnitude, number(one)), small, exponent);
  exponent = min(exponent, number(saturate ? 254 : 255));
  Val isNaN = compare(Compare::gt, magnitude, number(infinity));
  if (!saturate)
    isNaN = emit<OrOp>({isNaN, compare(Compare::lt, magnitude, number(least))});
  exponent = select(isNaN, number(255), exponent);
  return sameBits(*this, cast(exponent, DType::U8), DType::F8E8M0);
}

} // namespace dmxc::frontend
