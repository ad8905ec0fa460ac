//===- KernelFamilies.h - kernels that are equal but for numbers -*- C++ -*-===//
//
// Layers of a network often differ in how many channels they have, and their kernels in how often a loop runs and how
// far apart things lie. Such kernels are a family: its body is compiled once and takes the numbers in which they differ
// as arguments, and each kernel is a call of it. Steps of loops, divisors, and what decides which instructions there
// are, stay numbers of the code, so that a family's body has the instructions that each kernel's own would have.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace dmxc::cpu {

/// A module of one kernel, written with CpuBuilder, as what all of a family have and its own numbers. The same for the
/// same code in any context.
struct KernelShape {
  std::string code;             ///< a digest
  std::vector<int64_t> numbers; ///< sizes, strides and places
  std::vector<int64_t> floats;  ///< the bits of f32: scales and zero points of bytes, bounds of activations
};
KernelShape shapeOf(mlir::ModuleOp module);

/// Which of some numbers differ among kernels, and how they follow from few.
class Varying {
public:
  /// The numbers of each kernel, as many for all. `linear`: a number may be a multiple of another one and something.
  Varying(std::vector<std::vector<int64_t>> kernels, bool linear);

  /// Number `slot` is `factor` times that of slot `base`, plus `offset`.
  struct Derived {
    size_t slot, base;
    int64_t factor = 1, offset = 0;
  };
  std::vector<std::vector<int64_t>> kernels;
  std::vector<size_t> bases; ///< the slots that the others follow from
  std::vector<Derived> all;
  /// Whether the numbers of a slot are the bits of finite f32.
  bool isFinite(size_t slot) const;

private:
  std::optional<Derived> derive(size_t slot, bool linear) const;
};

/// What is to be brought to the body of a family by each of its kernels. Kernels that differ by more than kMost... are
/// no family: their loops would run out of registers, or their calls cost what they do.
class FamilyNumbers {
public:
  static constexpr size_t kMost = 4;
  explicit FamilyNumbers(const std::vector<const KernelShape *> &shapes);
  bool areFew() const { return numbers.bases.size() <= kMost; }

  /// Makes the module of the first kernel one of the whole family, whose kernels get these names.
  void widen(mlir::ModuleOp module, const std::vector<std::string> &names) const;

private:
  Varying numbers, floats;
};

} // namespace dmxc::cpu
