//===- Facts.cpp - what is known of products' operands, and used ----------===//
#include "Facts.h"

#include "Sparsity.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"
#include "dmxc/Dialect/DMIR/masks/Tiles.h"
#include "dmxc/Target/TargetBackend.h"

#include "llvm/Support/FormatVariadic.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using Json = nlohmann::ordered_json;

namespace dmxc::driver {

namespace {

/// The op that a fact of a value began at: of the operands that it follows from the first, and so on.
Operation *originOf(Value value) {
  Operation *op = dmir::acrossRegions(value).getDefiningOp();
  constexpr int most = 64;
  for (int steps = 0; op && steps < most; ++steps) {
    auto next = llvm::find_if(op->getOperands(), [](Value v) { return dmir::knownOf(v).has_value(); });
    if (next == op->operand_end())
      return op;
    op = dmir::acrossRegions(*next).getDefiningOp();
  }
  return op;
}

std::string nameOf(Operation *op) {
  if (!op)
    return "an input";
  return "'" + dmir::nodeName(op) + "' (" + op->getName().getStringRef().str() + ")";
}

std::string textOf(const dmir::Rule &rule) { return rule.cases.empty() ? "nowhere" : dmir::describe(rule); }

/// The share of elements that a rule keeps.
std::optional<double> shareOf(const dmir::Rule &rule, Value value) {
  SmallVector<int64_t> extents;
  for (Dim dim : dmir::dimsOf(value)) {
    if (!dim.known())
      return std::nullopt;
    extents.push_back(*dim.known());
  }
  std::optional<SmallVector<int64_t>> symbols = dmir::symbolsOf(rule);
  if (!symbols || extents.size() < 2)
    return std::nullopt;
  constexpr int64_t tile = 64;
  auto counts = dmir::countAllTiles(rule, extents, *symbols, dmir::TileSize{tile, tile, tile}, /*mostPresent=*/0);
  if (!counts || !counts->elements)
    return std::nullopt;
  return static_cast<double>(counts->kept) / static_cast<double>(counts->elements);
}

/// Reads one product of a region.
class ProductReader {
public:
  ProductReader(dmir::RegionOp region, dmir::MatMulOp product, std::vector<ProductFact> &all)
      : region(region), product(product), all(all) {
    auto own = product->getAttrOfType<DictionaryAttr>(dmir::kProductAttr);
    strategy = own ? own : region.getStrategyAttr();
  }

  void read() {
    for (bool left : {true, false}) {
      Value operand = left ? product.getLhs() : product.getRhs();
      const char *what = left ? "left" : "right";
      std::optional<dmir::Known> known = dmir::knownOf(operand);
      if (known && known->value == 0)
        add(what, textOf(known->keep), nameOf(originOf(operand)), shareOf(known->keep, operand));
      else if (skips(strategy, what)) // zeros that no rule says
        add(what, "its blocks have other than zeros", nameOf(originOf(operand)), std::nullopt);
    }
    if (std::optional<dmir::Demand> demand = dmir::demandOf(product.getResult()))
      add("result", textOf(demand->keep), "what reads it", shareOf(demand->keep, product.getResult()));
  }

private:
  void add(StringRef what, std::string rule, std::string from, std::optional<double> kept) {
    ProductFact fact;
    fact.node = dmir::nodeName(product);
    fact.of = what == "result" ? "its result, of which the rest is not read" : "its " + what.str() + " operand";
    fact.rule = std::move(rule);
    fact.from = std::move(from);
    fact.kept = kept;
    auto text = [&](DictionaryAttr of, StringRef key) {
      auto attr = of ? of.getAs<StringAttr>(key) : StringAttr();
      return attr ? attr.str() : std::string();
    };
    fact.kernel = text(region.getStrategyAttr(), strategy::kAlgorithm) + " on " + region.getDevice().str();
    fact.operations = operations();
    auto flops = strategy ? strategy.getAs<IntegerAttr>(strategy::kFlops) : IntegerAttr();
    fact.issued = flops ? static_cast<double>(flops.getInt()) : fact.operations;
    if (!skips(strategy, what)) {
      fact.reason = text(strategy, dmir::kFactsKey);
      if (fact.reason.empty())
        fact.reason = "the kernel computes all of it";
    }
    all.push_back(std::move(fact));
  }

  double operations() {
    double count = 2;
    for (Dim dim : dmir::dimsOf(product.getResult()))
      count *= static_cast<double>(dim.valueOr(0));
    return count * static_cast<double>(dmir::dimsOf(product.getLhs()).back().valueOr(0));
  }

  dmir::RegionOp region;
  dmir::MatMulOp product;
  DictionaryAttr strategy; ///< the product's, or null
  std::vector<ProductFact> &all;
};

std::string percent(double share) { return llvm::formatv("{0:f1} %", 100 * share).str(); }

} // namespace

std::vector<ProductFact> productFacts(ModuleOp module) {
  std::vector<ProductFact> all;
  module.walk([&](dmir::RegionOp region) {
    // Of attention more is said where its masks are.
    const bool isAttention = !region.getBlock()->getOps<dmir::SoftmaxOp>().empty();
    for (auto product : region.getBlock()->getOps<dmir::MatMulOp>())
      if (!isAttention || product->hasAttr(dmir::kProductAttr))
        ProductReader(region, product, all).read();
  });
  return all;
}

std::string factsText(const std::vector<ProductFact> &all) {
  if (all.empty())
    return "";
  auto used = llvm::count_if(all, [](const ProductFact &fact) { return fact.isUsed(); });
  std::string text = "\nproducts: " + std::to_string(used) + " of " + std::to_string(all.size()) + " facts used\n";
  for (const ProductFact &fact : all) {
    text += "\n'" + fact.node + "'\n";
    auto line = [&](StringRef name, const std::string &value) {
      text += llvm::formatv("  {0,-10} {1}\n", name, value).str();
    };
    line("of", fact.of);
    line("only where", fact.rule + (fact.kept ? ", " + percent(*fact.kept) : ""));
    line("from", fact.from);
    line("kernel", fact.kernel);
    if (!fact.isUsed())
      line("not used", fact.reason);
    else if (fact.operations > 0)
      line("products", llvm::formatv("{0:e3} of {1:e3} operations, {2}", fact.issued, fact.operations,
                                     percent(fact.issued / fact.operations))
                           .str());
  }
  return text;
}

Json factsJson(const std::vector<ProductFact> &all) {
  Json list = Json::array();
  for (const ProductFact &fact : all) {
    Json json = {
        {"node", fact.node}, {"of", fact.of}, {"rule", fact.rule}, {"from", fact.from}, {"kernel", fact.kernel}};
    if (fact.kept)
      json["kept"] = *fact.kept;
    if (fact.operations > 0) {
      json["operations"] = fact.operations;
      json["issued"] = fact.issued;
    }
    if (!fact.isUsed())
      json["not_used"] = fact.reason;
    list.push_back(std::move(json));
  }
  return list;
}

} // namespace dmxc::driver
