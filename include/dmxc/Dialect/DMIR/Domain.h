//===- Domain.h - the values that a choice has ------------------*- C++ -*-===//
//
// A finite, ordered set of numbers (i64), texts or truth values: what a decision of a target, or a parameter of a
// schedule, may be. Ranges are not written out, so they may be large.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinAttributes.h"

#include <string>

namespace dmxc {

class Domain {
public:
  /// The values as they are given, each once.
  static Domain oneOf(llvm::ArrayRef<mlir::Attribute> values);
  /// low, low + step, ... up to `high`, which counts if it is reached; none where high < low. `step` is at least 1.
  static Domain range(mlir::MLIRContext *context, int64_t low, int64_t high, int64_t step = 1);
  /// The positive divisors of n, least first; none for n < 1. In steps of the root of n: n is at most kLargestDivided.
  static Domain divisorsOf(mlir::MLIRContext *context, int64_t n);
  static constexpr int64_t kLargestDivided = int64_t{1} << 40;

  /// How many values there are; exact.
  uint64_t count() const { return steps ? steps : values.size(); }
  /// Value `i`, i < count().
  mlir::Attribute at(uint64_t i) const;
  /// Integers are compared by value, whatever their width.
  bool contains(mlir::Attribute value) const;
  /// "8, 12, 16", "1 to 32", "2 to 64 step 2": for messages.
  std::string str() const;

private:
  mlir::SmallVector<mlir::Attribute> values;
  mlir::MLIRContext *context = nullptr;
  int64_t low = 0, step = 1;
  uint64_t steps = 0; ///< values of a range; 0: `values` has them
};

/// A value as domains hold it: integers as i64; others as they are.
mlir::Attribute domainValue(mlir::Attribute value);
/// A value as users write it: 8, "winograd", true.
std::string valueText(mlir::Attribute value);

} // namespace dmxc
