//===- VectorMath.h - mathematical functions as vector IR -------*- C++ -*-===//
//
// Emits exp, tanh, erf, pow, ... as straight-line arith/math operations on scalars or vectors, so
// that a kernel needs no library: every operation used here becomes inline instructions. All
// functions keep C99's special values (NaN, infinities, signed zeros, subnormal inputs and results)
// and need no fast-math; the floating-point environment is assumed to round to nearest with
// subnormals on.
//
// The accuracy of every function is in the table of VectorMathTable.cpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "MathTraits.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace dmxc::kernels {

namespace expr {
class Expr;
} // namespace expr

/// What becomes of values beyond the largest finite one of an f8 format. A format without infinity has
/// NaN in its place.
enum class Overflow : uint8_t {
  Saturate,       ///< the largest finite value, also for infinities: ONNX Cast with saturate = 1
  SaturateFinite, ///< the same, but an infinity stays one in formats that have it: arithmetic
  Infinity,       ///< infinity: ONNX Cast with saturate = 0
};

/// Emits at the builder's insertion point. Operands are floats or 1-D vectors of them, of any
/// lane count; the result has the operand's type. f32 and f64 are native; f16 and bf16 are
/// computed in f32 and rounded once. Two operands must have equal types.
/// Not thread-safe (as the builder is not); cheap to make, so make one where it is needed.
class VectorMath {
public:
  using Value = mlir::Value;

  /// Processors with and without fused multiply-add may differ in the last bits of results; all are inside
  /// the documented error.
  VectorMath(mlir::ImplicitLocOpBuilder &builder, const MathTraits &traits) : b(builder), traits(traits) {}

  // --- exponentials --------------------------------------------------------------
  Value exp(Value x);
  Value exp2(Value x);
  Value expm1(Value x);
  Value sigmoid(Value x); ///< 1 / (1 + e^-x), no overflow, subnormal results kept
  Value silu(Value x);    ///< x / (1 + e^-x)
  Value tanh(Value x);
  Value sinh(Value x);
  Value cosh(Value x);
  // --- logarithms ------------------------------------------------------------------
  Value log(Value x);
  Value log2(Value x);
  Value log1p(Value x);
  Value asinh(Value x);
  Value acosh(Value x);
  Value atanh(Value x);
  // --- trigonometry ------------------------------------------------------------------
  Value sin(Value x);
  Value cos(Value x);
  Value tan(Value x);
  Value asin(Value x);
  Value acos(Value x);
  Value atan(Value x);
  Value atan2(Value y, Value x);
  // --- others --------------------------------------------------------------------------
  Value erf(Value x);
  Value pow(Value x, Value y);
  /// C's fmod: x - trunc(x/y)*y, exact, with the sign of x. Contains a loop.
  Value fmod(Value x, Value y);
  Value roundHalfEven(Value x);
  Value roundHalfAway(Value x);

  // --- conversions ---------------------------------------------------------------------
  /// To a wider float element type. f8 operands may be of the f8 type or, as i8, be given to
  /// decodeF8. f16 and bf16 become arith.extf, which FloatLowering makes free of library calls.
  Value extendFloat(Value x, mlir::FloatType element);
  /// To a narrower float element type: nearest even, rounded once from any source; NaN stays
  /// NaN. `overflow` concerns f8 only.
  Value truncateFloat(Value x, mlir::FloatType element, Overflow overflow = Overflow::Saturate);
  /// The same between i8 bit patterns and f32 or f64.
  Value decodeF8(Value bits, mlir::FloatType format, mlir::FloatType element);
  Value encodeF8(Value x, mlir::FloatType format, Overflow overflow);

  /// Truncates towards zero. In range this is C's conversion; out of range it is defined here:
  /// NaN gives 0; 32- and 64-bit signed results saturate; u64 saturates above and wraps below
  /// zero (modulo 2^64); narrower types and u32 take the low bits of the saturated i32 (for u32:
  /// i64) result, which is what numpy does (300.0 -> 44 as u8, -1.0 -> 255).
  Value floatToInt(Value x, mlir::IntegerType element, bool isUnsigned);
  /// Rounds once to nearest even, for any target (f16 and bf16 included).
  Value intToFloat(Value x, mlir::FloatType element, bool isUnsigned);

private:
  /// Calls the function of the operand's width; without an f32 one, computes in f64.
  Value apply(Value x, expr::Expr (*f32)(expr::Expr), expr::Expr (*f64)(expr::Expr));
  Value apply(Value x, Value y, expr::Expr (*f32)(expr::Expr, expr::Expr), expr::Expr (*f64)(expr::Expr, expr::Expr));

  mlir::ImplicitLocOpBuilder &b;
  const MathTraits &traits;
};

/// One row of the table of functions.
struct VectorMathFunction {
  llvm::StringRef name;
  mlir::Value (VectorMath::*unary)(mlir::Value);
  mlir::Value (VectorMath::*binary)(mlir::Value, mlir::Value); ///< null for unary functions
  /// Largest error allowed, in units in the last place of the exact result; 0 is exact.
  double maxUlpF32, maxUlpF64;
  double maxAbsoluteF32, maxAbsoluteF64; ///< errors that are allowed where they are larger than those
  llvm::StringRef notes;                 ///< domain, and what was measured
};

/// All functions, sorted by name.
llvm::ArrayRef<VectorMathFunction> vectorMathFunctions();
/// Row of a name; null if there is none.
const VectorMathFunction *findVectorMathFunction(llvm::StringRef name);

} // namespace dmxc::kernels
