//===- Types.h - from run-time element types to C++ types -------*- C++ -*-===//
//
// Each function calls `f` with a zero of the C++ type, so a loop is instantiated once a type and the type is switched
// on once an op, not once an element. Bool is a byte, 0 or 1.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/DType.h"

#include "llvm/Support/ErrorHandling.h"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace dmxc::reference {

/// i8 .. i64, u8 .. u64; with bool as u8.
template <typename F> auto withInt(DType type, F &&f) {
  switch (type) {
  case DType::Bool:
  case DType::U8:
    return f(uint8_t{});
  case DType::U16:
    return f(uint16_t{});
  case DType::U32:
    return f(uint32_t{});
  case DType::U64:
    return f(uint64_t{});
  case DType::I8:
    return f(int8_t{});
  case DType::I16:
    return f(int16_t{});
  case DType::I32:
    return f(int32_t{});
  case DType::I64:
    return f(int64_t{});
  default:
    llvm_unreachable("not a native integer type");
  }
}

/// f32 and f64.
template <typename F> auto withFloat(DType type, F &&f) { return type == DType::F64 ? f(double{}) : f(float{}); }

/// Every native type.
template <typename F> auto withNumber(DType type, F &&f) {
  switch (type) {
  case DType::F32:
    return f(float{});
  case DType::F64:
    return f(double{});
  default:
    return withInt(type, f);
  }
}

/// An unsigned type of the element's size, for ops that only move bits. Not for 4-bit types.
template <typename F> auto withBits(DType type, F &&f) {
  switch (dtypeBits(type)) {
  case 8:
    return f(uint8_t{});
  case 16:
    return f(uint16_t{});
  case 32:
    return f(uint32_t{});
  default:
    return f(uint64_t{});
  }
}

/// The type sums and products of T are kept in: exact for integers modulo 2^64, f64 for floats.
template <typename T>
using Accumulator =
    std::conditional_t<std::is_floating_point_v<T>, double, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// Arithmetic that wraps. Signed overflow is undefined in C++, so it goes through the unsigned type; 64 bits because
// narrower operands would be promoted to int.
template <typename T> T wrapAdd(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <typename T> T wrapSub(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}
template <typename T> T wrapMul(T a, T b) {
  if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

/// False for integers.
template <typename T> bool isNaN(T value) {
  if constexpr (std::floating_point<T>)
    return __builtin_isnan(value);
  else
    return false;
}

/// IEEE 754-2019 maximum: NaN if either is, and +0 is larger than -0.
template <typename T> T maximum(T a, T b) {
  if constexpr (std::floating_point<T>) {
    if (isNaN(a) || isNaN(b))
      return isNaN(a) ? a : b;
    if (a == b)
      return __builtin_signbit(a) ? b : a;
  }
  return a < b ? b : a;
}
template <typename T> T minimum(T a, T b) {
  if constexpr (std::floating_point<T>) {
    if (isNaN(a) || isNaN(b))
      return isNaN(a) ? a : b;
    if (a == b)
      return __builtin_signbit(a) ? a : b;
  }
  return b < a ? b : a;
}

} // namespace dmxc::reference
