//===- Tilings.h - what of a product on the array is free -------*- C++ -*-===//
#pragma once

#include "place/Mapping.h"

#include "dmxc/Support/Result.h"

namespace dmxc::aie {

/// Of a strategy: the tiling.
inline constexpr llvm::StringLiteral kTiling = "tiling";

/// The free values of a product on up to so many cores.
class Tilings {
public:
  Tilings(const hw::Machine &machine, const Herd &most, Mapping mapping)
      : machine(machine), most(most), mapping(std::move(mapping)) {}

  /// What is free, of what is `asked` for already (may be null): all that the array holds.
  std::vector<Decision> decisions(mlir::MLIRContext *context, mlir::DictionaryAttr asked) const;
  /// The mapping with the tiling that a text has (may be null), and what is `decided` (may be null) instead. The rest
  /// is as by default: the whole herd, the tiles of the number type or the next smaller ones that fit, and the groups
  /// and output pixels that cost least. A sentence where the text has other fields, or values that the array does not
  /// hold.
  Result<Mapping> choose(mlir::MLIRContext *context, mlir::Attribute written, mlir::DictionaryAttr decided = {}) const;

private:
  using Decided = kernels::DecidedFields<Tiling>;
  kernels::FreeTile<Tiling> freeOf(mlir::MLIRContext *context, mlir::DictionaryAttr asked) const;
  std::vector<int64_t> sizesOf(int64_t Tiling::*field) const;
  std::vector<int64_t> pixelsOf(const Tiling &tiling) const;
  std::optional<Tiling> complete(const Decided &decided) const;
  std::vector<int64_t> groupsOf() const;
  std::optional<Tiling> withWalk(Tiling tiling, std::optional<int64_t> groups, std::optional<int64_t> pixels) const;
  bool holds(const Tiling &tiling) const;

  const hw::Machine &machine;
  Herd most;
  Mapping mapping;
};

} // namespace dmxc::aie
