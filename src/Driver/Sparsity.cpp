//===- Sparsity.cpp - what masks leave out --------------------------------===//
#include "Sparsity.h"

#include "dmxc/Dialect/DMIR/Columns.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/TargetBackend.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace dmxc::driver {

namespace {

/// Counts of one mask, whose sizes are known.
class Counter {
public:
  Counter(dmir::MaskOp mask) : rule(dmir::ruleOf(mask)) {
    for (Dim dim : dmir::dimsOf(mask.getInput()))
      sizes.push_back(dim.valueOr(-1));
    for (Dim dim : rule.dims)
      symbols.push_back(dim.valueOr(-1));
    keys = sizes.pop_back_val();
  }
  bool known() const {
    return keys >= 0 && llvm::all_of(sizes, [](int64_t n) { return n >= 0; }) &&
           llvm::all_of(symbols, [](int64_t n) { return n >= 0; });
  }
  int64_t scores() const { return outer() * sizes.back() * keys; }

  int64_t kept() const {
    return sum([&](SmallVector<int64_t> &row, int64_t rows) {
      int64_t count = 0;
      for (int64_t i = 0; i < rows; ++i, ++row.back())
        count += dmir::keptInRow(rule, row, keys, symbols);
      return count;
    });
  }

private:
  int64_t outer() const {
    int64_t count = 1;
    for (int64_t size : ArrayRef(sizes).drop_back())
      count *= size;
    return count;
  }

  /// The sum over matrices, each of which is counted once where the rule asks for no index before the rows.
  int64_t sum(llvm::function_ref<int64_t(SmallVector<int64_t> &, int64_t)> matrix) const {
    bool same = llvm::all_of(rule.cases, [&](IntegerSet set) {
      return llvm::all_of(set.getConstraints(), [&](AffineExpr expr) {
        for (unsigned axis = 0; axis + 1 < sizes.size(); ++axis)
          if (expr.isFunctionOfDim(axis))
            return false;
        return true;
      });
    });
    SmallVector<int64_t> row(sizes.size(), 0);
    if (same)
      return outer() ? outer() * matrix(row, sizes.back()) : 0;
    int64_t total = 0;
    for (int64_t item = 0; item < outer(); ++item) {
      int64_t rest = item;
      for (size_t axis = sizes.size() - 1; axis-- > 0; rest /= sizes[axis])
        row[axis] = rest % sizes[axis];
      row.back() = 0;
      total += matrix(row, sizes.back());
    }
    return total;
  }

  dmir::Rule rule;
  SmallVector<int64_t> sizes, symbols;
  int64_t keys;
};

std::string percent(double part, double whole) {
  return llvm::formatv("{0:f1} %", whole ? 100 * part / whole : 0.0).str();
}

} // namespace

static AttentionSparsity sparsityOf(dmir::RegionOp region, dmir::SoftmaxOp softmax) {
  AttentionSparsity one;
  auto strategy = region.getStrategyAttr();
  auto algorithm = strategy ? strategy.getAs<StringAttr>(strategy::kAlgorithm) : StringAttr();
  one.skips = algorithm && algorithm.getValue() == "attention-tiles";
  one.unknown = softmax->hasAttr("dmir.mask_unknown");
  auto mask = softmax.getInput().getDefiningOp<dmir::MaskOp>();
  if (!mask)
    return one;
  one.byRule = true;
  Counter counter(mask);
  if (counter.known()) {
    one.scores = counter.scores();
    one.kept = counter.kept();
  }
  return one;
}

std::vector<AttentionSparsity> sparsityOf(ModuleOp module) {
  std::vector<AttentionSparsity> all;
  module.walk([&](dmir::RegionOp region) {
    region.walk([&](dmir::SoftmaxOp softmax) {
      AttentionSparsity one = sparsityOf(region, softmax);
      if (one.byRule || one.unknown)
        all.push_back(one);
    });
  });
  return all;
}

std::string summaryOf(const std::vector<AttentionSparsity> &all) {
  size_t rules = 0, skipping = 0;
  int64_t scores = 0, kept = 0;
  bool open = false;
  for (const AttentionSparsity &one : all) {
    rules += one.byRule;
    skipping += one.skips;
    open |= one.byRule && !one.scores;
    scores += one.scores.value_or(0), kept += one.kept.value_or(0);
  }
  if (all.empty())
    return "";
  std::string text =
      llvm::formatv("masks: {0} of {1} masked attention{2} by rule", rules, all.size(), all.size() == 1 ? "" : "s")
          .str();
  if (scores)
    text += ", " + percent(kept, scores) + " of " + (open ? "the known scores" : "their scores") + " kept";
  return text + ", masked keys skipped in " + std::to_string(skipping);
}

} // namespace dmxc::driver
