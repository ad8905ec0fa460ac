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
  kernels::FreeTile<Tiling> freeOf(mlir::MLIRContext *context, mlir::DictionaryAttr asked) const;
  std::vector<int64_t> sizesOf(int64_t Tiling::*field) const;
  void addHerds(Mapping &tried, Tiling tiling);
  void addTiles(Mapping &tried, Tiling tiling);
  void addWalks(Mapping &tried, Tiling tiling);
  void addPixels(Mapping &tried, Tiling tiling);
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
  mutable std::vector<Candidate> candidates; ///< the cheapest first
};

} // namespace dmxc::aie
