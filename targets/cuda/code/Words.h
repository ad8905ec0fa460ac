//===- Words.h - index arithmetic in 32 bits --------------------*- C++ -*-===//
#pragma once

#include "CudaBuilder.h"

namespace dmxc::cuda {

/// What KernelBuilder has for i64, of numbers that fit i32 or, where `isWide`, of i64: a GPU computes with words of 32
/// bits, and each i64 takes it two or more instructions.
class Words {
public:
  using Value = mlir::Value;
  Words(CudaBuilder &b, bool isWide)
      : b(b), type(isWide ? b.getI64Type() : b.getI32Type()), most((int64_t{1} << (isWide ? 62 : 31)) - 1) {}

  Value of(int64_t value) { return b.constantInt(type, value); }
  /// Of an i64 that fits; of a size, which counts as the largest number where it is more.
  Value from(Value index) { return type.isInteger(64) ? index : Value(mlir::arith::TruncIOp::create(b, type, index)); }
  Value size(Dim value) {
    return from(value.known() ? b.idx(std::min(*value.known(), most)) : b.minS(b.idx(value), b.idx(most)));
  }
  /// As an index of memory.
  Value index(Value value) {
    return type.isInteger(64) ? value : Value(mlir::arith::ExtSIOp::create(b, b.getI64Type(), value));
  }

  Value add(Value x, Value y) { return mlir::arith::AddIOp::create(b, x, y, kFits); }
  Value addC(Value x, int64_t y) { return y ? add(x, of(y)) : x; }
  Value sub(Value x, Value y) { return mlir::arith::SubIOp::create(b, x, y, kFits); }
  Value mul(Value x, Value y) { return mlir::arith::MulIOp::create(b, x, y, kFits); }
  Value mulC(Value x, int64_t y) { return y == 1 ? x : mul(x, of(y)); }
  Value min(Value x, Value y) { return mlir::arith::MinSIOp::create(b, x, y); }
  /// Quotient and remainder of numbers that are not negative.
  std::pair<Value, Value> divRem(Value x, int64_t y) {
    if (y == 1)
      return {x, of(0)};
    return {mlir::arith::DivUIOp::create(b, x, of(y)), mlir::arith::RemUIOp::create(b, x, of(y))};
  }
  /// x < y, where neither is negative or x counts as behind all others if it is.
  Value isBelow(Value x, Value y) { return b.cmp(mlir::arith::CmpIPredicate::ult, x, y); }

private:
  static constexpr auto kFits = mlir::arith::IntegerOverflowFlags::nsw;
  CudaBuilder &b;
  mlir::Type type;
  int64_t most;
};

} // namespace dmxc::cuda
