//===- Tilings.h - what of a product on the array is free -------*- C++ -*-===//
#pragma once

#include "place/Mapping.h"

#include "dmxc/Support/Result.h"

namespace dmxc::aie {

/// Of a strategy: the tiling.
inline constexpr llvm::StringLiteral kTiling = "tiling";
/// What any strategy on the array says of its work, which one dispatch does: operations and bytes.
void addFigures(mlir::NamedAttrList &list, mlir::MLIRContext *context, const Dim &flops, const Dim &bytes);

/// The free values of a product on up to so many cores.
class Tilings {
public:
  Tilings(const hw::Machine &machine, const Herd &most, Mapping mapping);

  const Mapping &of() const { return mapping; }
  /// What is free, of what is `asked` for already (may be null): all that the array holds.
  std::vector<Decision> decisions(mlir::MLIRContext *context, mlir::DictionaryAttr asked) const;
  /// The mapping with the tiling that a text has (may be null), and what is `decided` (may be null) instead. The rest
  /// is what costs least (place/Cost.h). A sentence where the text has other fields, or values that the array does not
  /// hold.
  Result<Mapping> choose(mlir::MLIRContext *context, mlir::Attribute written, mlir::DictionaryAttr decided = {}) const;

private:
  using Decided = kernels::DecidedFields<Tiling>;
  /// One that may be, by what it costs.
  struct Candidate {
    Tiling tiling;
    int64_t clocks;
    std::optional<bool> holds; ///< where it has been asked
  };
  struct Sifted {
    std::pair<int64_t Tiling::*, int64_t> by;
    std::vector<uint32_t> places;
  };
  kernels::FreeTile<Tiling> freeOf(mlir::MLIRContext *context, mlir::DictionaryAttr asked) const;
  std::vector<int64_t> sizesOf(int64_t Tiling::*field) const;
  std::set<int64_t> groupsOf() const;
  std::vector<Tiling> walksOf(Mapping &tried, Tiling tiling) const;
  std::vector<Tiling> formsOf(Tiling tiling) const;
  bool fits(const Tiling &tiling) const;
  bool isOne(const Tiling &tiling) const;
  void addTiles(Mapping &tried, Tiling tiling) const;
  std::vector<Candidate> &all() const;
  llvm::ArrayRef<uint32_t> agreeingWith(const Decided &decided) const;
  std::optional<Tiling> wholeOf(mlir::DictionaryAttr written) const;
  std::optional<Tiling> best(const Decided &decided) const;
  std::set<int64_t> domainOf(int64_t Tiling::*field, const Decided &before, std::optional<int64_t> asked) const;
  Mapping at(const Tiling &tiling) const;
  bool holds(const Tiling &tiling) const;
  bool holds(Candidate &candidate) const;

  const hw::Machine &machine;
  Herd most;
  Mapping mapping;
  bool packsWeights;
  std::set<int64_t> groups;                                 ///< that may be together
  mutable std::optional<std::vector<Candidate>> candidates; ///< the cheapest first
  mutable std::vector<Sifted> sifted;                       ///< all of them, then by one decision more each
};

} // namespace dmxc::aie
