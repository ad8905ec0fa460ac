//===- VectorMathTable.cpp - names and errors of the functions ----------------===//

#include "VectorMath.h"

#include "llvm/ADT/STLExtras.h"

namespace dmxc::kernels {

namespace {

using Unary = mlir::Value (VectorMath::*)(mlir::Value);
using Binary = mlir::Value (VectorMath::*)(mlir::Value, mlir::Value);

constexpr VectorMathFunction unary(llvm::StringRef name, Unary f, double f32, double f64, llvm::StringRef notes,
                                   double absoluteF32 = 0, double absoluteF64 = 0) {
  return {name, f, nullptr, f32, f64, absoluteF32, absoluteF64, notes};
}
constexpr VectorMathFunction binary(llvm::StringRef name, Binary f, double f32, double f64, llvm::StringRef notes) {
  return {name, nullptr, f, f32, f64, 0, 0, notes};
}

} // namespace

llvm::ArrayRef<VectorMathFunction> vectorMathFunctions() {
  using M = VectorMath;
  static const VectorMathFunction table[] = {
      unary("acos", &M::acos, 1, 3, "NaN outside [-1, 1]"),
      unary("acosh", &M::acosh, 1, 3, "NaN below 1"),
      unary("asin", &M::asin, 1, 3, "NaN outside [-1, 1]"),
      unary("asinh", &M::asinh, 1, 4, "all reals"),
      unary("atan", &M::atan, 1, 3, "all reals"),
      binary("atan2", &M::atan2, 1, 3, "all pairs, with C99's signed zeros and infinities"),
      unary("atanh", &M::atanh, 1, 4, "NaN outside [-1, 1], infinite at its ends"),
      unary("cos", &M::cos, 1, 2, "all finite reals; NaN for infinities"),
      unary("cosh", &M::cosh, 1, 3, "all reals"),
      unary("erf", &M::erf, 3, 3, "all reals"),
      unary("exp", &M::exp, 2, 2, "all reals"),
      unary("exp2", &M::exp2, 2, 2, "all reals"),
      unary("expm1", &M::expm1, 2, 3, "all reals"),
      binary("fmod", &M::fmod, 0, 0, "exact; NaN for an infinite x or a zero y; loops"),
      unary("log", &M::log, 2, 2, "NaN below 0, -infinity at 0"),
      unary("log1p", &M::log1p, 2, 3, "NaN below -1, -infinity at -1"),
      unary("log2", &M::log2, 1, 2, "as log; exact for powers of two"),
      binary("pow", &M::pow, 1, 2, "all special cases of C99 F.9.4.4"),
      unary("round_half_away", &M::roundHalfAway, 0, 0, "exact"),
      unary("round_half_even", &M::roundHalfEven, 0, 0, "exact"),
      unary("sigmoid", &M::sigmoid, 7, 3, "all reals, f32 within 4 from -20 up; subnormal results kept"),
      unary("silu", &M::silu, 7, 4, "all reals, f32 within 4 from -20 up", 0x1p-120, 0x1p-1010),
      unary("sin", &M::sin, 1, 2, "all finite reals; NaN for infinities"),
      unary("sinh", &M::sinh, 1, 4, "all reals"),
      unary("tan", &M::tan, 1, 4, "all finite reals; NaN for infinities"),
      unary("tanh", &M::tanh, 2, 4, "all reals"),
  };
  return table;
}

const VectorMathFunction *findVectorMathFunction(llvm::StringRef name) {
  auto rows = vectorMathFunctions();
  auto at = llvm::find_if(rows, [&](const VectorMathFunction &row) { return row.name == name; });
  return at == rows.end() ? nullptr : at;
}

} // namespace dmxc::kernels
