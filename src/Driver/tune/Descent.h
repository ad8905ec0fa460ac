//===- Descent.h - one decision of a region after the other -----*- C++ -*-===//
//
// The decisions of a graph's products have more values together than anybody can try; each by itself has few. First
// those of the whole region, as the team of a device, the estimate's best first; then product by product.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Target/TargetBackend.h"

#include <functional>
#include <set>

namespace dmxc::driver {

class Descent {
public:
  /// The measure of what is decided, less is better; nullopt where it failed, or nothing more may be measured.
  using Measure = std::function<std::optional<double>(mlir::DictionaryAttr decided)>;
  struct Found {
    mlir::DictionaryAttr decided;
    double value = 0, first = 0;  ///< of the best, and of the default
    std::vector<double> measured; ///< in order, without those that failed
    size_t trials = 0;
  };

  /// `counts`: whether a measure can tell values of a decision apart.
  Descent(const TargetBackend &target, dmir::RegionOp region, size_t trials,
          std::function<bool(const Decision &)> counts, Measure measure)
      : target(target), region(region), left(trials), counts(std::move(counts)), measure(std::move(measure)) {}

  /// With at most `trials` measures, the default's first. nullopt where that fails. Deterministic.
  std::optional<Found> run();

private:
  bool attempt(mlir::DictionaryAttr decided);
  void tryWhole(size_t most, bool trusts);
  bool tryEach(size_t depth);
  std::vector<mlir::Attribute> othersOf(const Decision &decision, mlir::DictionaryAttr decided);
  mlir::DictionaryAttr settled(mlir::DictionaryAttr wanted);
  /// Whether the cost model expects so much more of this than of the best that it is not worth a measure.
  bool isHopeless(mlir::DictionaryAttr decided);

  const TargetBackend &target;
  dmir::RegionOp region;
  size_t left;
  std::function<bool(const Decision &)> counts;
  Measure measure;
  std::set<const void *> tried;
  Found found;
};

} // namespace dmxc::driver
