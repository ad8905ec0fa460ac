//===- Ways.cpp - in which ways a product can be computed ---------------------===//

#include "Ways.h"
#include "attention/FewQueries.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/TargetBackend.h"

#include <cmath>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

StringRef dmxc::cuda::specialisedOf(Operation *product) {
  return isa<dmir::ConvOp>(product) ? StringRef(kSpecialisedConv) : StringRef(kSpecialised);
}
StringRef dmxc::cuda::plainOf(Operation *product) { return isa<dmir::ConvOp>(product) ? "conv-plain" : "matmul-plain"; }

StringRef dmxc::cuda::algorithmIn(DictionaryAttr dictionary) {
  auto name = dictionary ? dictionary.getAs<StringAttr>(strategy::kAlgorithm) : StringAttr();
  return name ? name.getValue() : StringRef();
}

PipelineOp dmxc::cuda::pipelineOf(Block *kernel) {
  auto found = kernel->getOps<PipelineOp>();
  return found.empty() ? PipelineOp() : *found.begin();
}

RegionBody dmxc::cuda::bodyOf(Block *block) {
  RegionBody body;
  body.block = block;
  for (Operation &op : *block)
    if (Contraction::is(&op))
      body.root = &op;
  return body;
}

StringRef Ways::chosen(Operation *op, DictionaryAttr decided) const {
  if (StringRef asked = algorithmIn(decided); !asked.empty())
    return asked;
  if (few && few->pays())
    return kByWarps;
  if (specialised && rowsOf(op, specialised->groupsTogether()) > kPlainRows)
    return specialisedOf(op);
  const bool isTiled = tiled && tiled->pays(machine);
  const double others = isTiled ? tiled->clocks(machine, tiled->choose(machine, {})) : plainClocks(machine, op);
  if (patched && patched->pays(machine, others))
    return kConvByPatches;
  return isTiled ? tiledOf(op) : plainOf(op);
}

namespace {

/// A region's product, and how it can be computed.
struct RegionProduct {
  RegionBody body;
  std::shared_ptr<GemmProduct> product; ///< null where the root is none
  std::optional<FewRows> few;
  std::shared_ptr<const TileProduct> tiled;
  std::shared_ptr<const PatchProduct> patched;

  const hw::Machine &machine;

  RegionProduct(const hw::Machine &machine, dmir::RegionOp region) : body(bodyOf(region.getBlock())), machine(machine) {
    if (!body.root)
      return;
    auto constant = [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); };
    product = std::make_shared<GemmProduct>(body, constant);
    if (product->refusal().empty())
      product->look(region.getInputs());
    few = FewRows::of(body, constant);
    if (normBefore(body.root).empty())
      tiled = TileProduct::of(body.root);
    patched = PatchProduct::of(body.root, machine);
  }
  StringRef chosen(DictionaryAttr decided) const {
    return Ways(machine, *product, few, tiled, patched).chosen(body.root, decided);
  }
  bool isSpecialised(DictionaryAttr decided) const {
    return product && product->refusal().empty() && chosen(decided) == specialisedOf(body.root);
  }
  bool isFew(DictionaryAttr decided) const { return few && chosen(decided) == kByWarps; }
  bool isTiled(DictionaryAttr decided) const { return tiled && chosen(decided) == tiledOf(body.root); }
  bool isPatched(DictionaryAttr decided) const { return patched && chosen(decided) == kConvByPatches; }
  std::vector<Decision> ways() const;
};

/// Which way is free where there are several.
std::vector<Decision> RegionProduct::ways() const {
  Builder b(body.root->getContext());
  SmallVector<Attribute> names;
  std::string about;
  auto add = [&](bool can, StringRef name, const char *clause) {
    if (!can)
      return;
    names.push_back(b.getStringAttr(name));
    about += (about.empty() ? "" : ", ") + std::string(clause);
  };
  add(product->refusal().empty(), specialisedOf(body.root), "by tensor cores");
  add(few.has_value(), kByWarps, "by warps that share terms");
  add(tiled != nullptr, tiledOf(body.root), "by tiles in shared memory");
  add(patched != nullptr, kConvByPatches, "by patches in shared memory");
  add(normBefore(body.root).empty(), plainOf(body.root), "or an element a thread");
  if (names.size() < 2)
    return {};
  return {{strategy::kAlgorithm.str(), "", Domain::oneOf(names), b.getStringAttr(chosen({})), Effect::Order, about}};
}

} // namespace

std::vector<Decision> dmxc::cuda::gemmDecisions(const hw::Machine &machine, dmir::RegionOp region,
                                                DictionaryAttr decided) {
  RegionProduct of(machine, region);
  if (std::optional<FewQueries> few = of.body.root ? FewQueries::of(of.body.root) : std::nullopt)
    return attentionDecisions(machine, region, *few, decided);
  if (!of.product || (!of.product->refusal().empty() && !of.few && !of.tiled && !of.patched))
    return {};
  std::vector<Decision> free = of.ways();
  if (of.isSpecialised(decided))
    llvm::append_range(
        free, gemmDecisions(machine, of.product->nominalSizes(region.getBlock()), decided, region.getContext()));
  if (of.isFew(decided))
    llvm::append_range(free, of.few->decisions(machine, decided));
  if (of.isTiled(decided))
    llvm::append_range(free, of.tiled->decisions(machine, decided));
  if (of.isPatched(decided))
    llvm::append_range(free, of.patched->decisions(machine, decided));
  return free;
}

std::string dmxc::cuda::whyNotLeftOut(dmir::RegionOp region, const KernelPlan &plan) {
  if (!region.getBlock()->getOps<dmir::SoftmaxOp>().empty())
    return ""; // of attention more is said where its mask is
  auto products = region.getBlock()->getOps<dmir::MatMulOp>();
  StringRef fact = products.empty() ? StringRef() : unusedFact(*products.begin(), plan.skips);
  if (fact.empty())
    return "";
  if (plan.algorithm != kSpecialised)
    return "each thread sums all terms of its element";
  if (fact == "result")
    return "all tiles of the result are computed";
  return fact == "left" ? "steps are left out of packed right operands, what a run brings is multiplied whole"
                        : "less than a tenth of the steps of 64 terms of its tiles are zero, or it is no packed matrix";
}

std::string dmxc::cuda::explainGemm(const hw::Machine &machine, dmir::RegionOp region, DictionaryAttr decided) {
  RegionProduct of(machine, region);
  auto expected = [&](const auto &way) {
    return std::to_string(std::llround(way.clocks(machine, way.choose(machine, decided)))) + " clocks expected";
  };
  if (of.isFew(decided))
    return expected(*of.few);
  if (of.isTiled(decided))
    return expected(*of.tiled);
  if (of.isPatched(decided))
    return expected(*of.patched);
  if (!of.isSpecialised(decided))
    return {};
  std::string tiles =
      explainGemmTile(machine, of.product->nominalSizes(region.getBlock()), decided, region.getContext());
  return of.product->threadCopies().empty() ? tiles : tiles + "; without what threads copy";
}
