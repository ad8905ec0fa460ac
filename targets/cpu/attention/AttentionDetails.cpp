//===- AttentionDetails.cpp - what is decided of an attention for all levels ---===//

#include "AttentionEmitter.h"

#include "targets/cpu/product/GemmDecisions.h"
#include "targets/cpu/product/MatmulRegion.h"

#include "dmxc/Target/DecisionsMade.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

AttentionDetails::AttentionDetails(const RegionBody &body, const Attention &attention, int64_t given, Units units)
    : body(body), attention(attention),
      scores(MatmulProduct::nested(attention.scores, heavyEpilogue(attention.before))),
      result(MatmulProduct::nested(attention.result, heavyEpilogue(epilogue()))), units(units) {
  auto last = isLinear() ? dmir::MaskOp() : weightsSource().getDefiningOp<dmir::MaskOp>();
  online = choosesTiles(last);
  // Few keys are looked at faster than chosen among.
  if (last && result.k.valueOr(kKeyPass) >= kKeyPass && (!needsTiles(last) || (online && canLeaveOut(last))))
    mask = last;
  if (mask && online && mask.getTiles() && (*mask.getTile())[1] % kOnlineKeys)
    keys = kOnlineKeys / 2;
  all = mask && looksAtAllKeys(body.block);
  // What is left out is nothing: keys of a class and the others do not know of each other.
  if (mask && online && std::isinf(fill()) && !adds() && !asksNumbers())
    classes = findClasses(rule());
  if (classes)
    keys = kOnlineKeys / 2;
  group = headsOfGroup();
  rows = given ? std::max<int64_t>(1, given / group) * group : preferredRows();
  std::optional<int64_t> known = result.m.known();
  uniform = known && *known % places() == 0;
}

/// Heads that neighbours in both products' batch share keys and values with, where a mask is one for all of them.
int64_t AttentionDetails::headsOfGroup() const {
  if (scores.batchDims.empty() || result.batchDims.empty() || !scores.lhs || classes)
    return 1;
  std::optional<int64_t> heads = scores.batchDims.back().known();
  bool shares = heads && *heads > 1 && result.batchDims.back() == scores.batchDims.back() && scores.rhs && result.rhs &&
                scores.rhsBatch.back().is(0) && result.rhsBatch.back().is(0);
  return shares && (!mask || isOneForHeads(mask)) ? *heads : 1;
}

Dim AttentionDetails::groups() const {
  return group == 1 ? result.batch : dmir::product(ArrayRef(result.batchDims).drop_back());
}

SmallVector<Operation *> AttentionDetails::epilogue() const {
  SmallVector<Operation *> ops, inner = innerOpsOf(attention.result);
  for (Operation &op : *body.block)
    if (!llvm::is_contained(inner, &op) && !llvm::is_contained(attention.casts, &op))
      ops.push_back(&op);
  return ops;
}

/// Rows at once are a little faster while their scores stay near; weights that are computed with need whole rows.
bool AttentionDetails::choosesTiles(dmir::MaskOp last) const {
  constexpr int64_t most = 1024;
  const int64_t count = result.k.valueOr(nominal(body.block, result.k));
  const bool asks = last && count >= kKeyPass && needsTiles(last) && canLeaveOut(last);
  return isLinear() || (attention.zeroRows && result.n.isStatic() && (asks || count > most));
}

bool AttentionDetails::needsTiles(dmir::MaskOp mask) {
  const double fill = cast<FloatAttr>(mask.getFill()).getValueAsDouble();
  return mask.getTiles() || mask.getAdds() || (std::isfinite(fill) && fill > kMostLookedFor);
}

GemmKernel AttentionDetails::specOf(const MatmulProduct &product, int64_t ofTile) const {
  GemmKernel spec = product.kernel();
  spec.batch = 1;
  spec.m = rowsAtOnce(ofTile);
  spec.nested = true;
  spec.units = units;
  if (&product == &scores && copiesQueries() && !spec.runPairs)
    spec.aType = spec.accType;
  if (&product != &scores || copiesQueries()) // rows in scratch, whose strides are made for that
    spec.apartA = true;
  if (online)
    spec.heavyEpilogue &= &product == &scores; // the result's is emitted once
  if (online || mask)
    (&product == &scores ? spec.n : spec.k) = ofTile < 0 ? openSize() : Dim(ofTile);
  return spec;
}

Dim AttentionDetails::rowsAtOnce(int64_t ofTile) const {
  if (!uniform)
    return openSize();
  if (!classes || (ofTile == kOfClass && !classes->ofRows))
    return rows;
  if (ofTile == kOfClass)
    return rows % classes->step ? openSize() : Dim(rows / classes->step);
  return isStriped() ? Dim(kStripe) : openSize();
}

SmallVector<std::pair<StringRef, GemmKernel>> AttentionDetails::products() const {
  SmallVector<std::pair<StringRef, GemmKernel>> all;
  for (const MatmulProduct *product : {&scores, &result})
    for (int64_t ofTile : {kDynamic, keys, kOfClass})
      if (ofTile == kOfClass ? classes.has_value() : online || ofTile == kDynamic)
        all.emplace_back(nameOf(*product, ofTile), specOf(*product, ofTile));
  return all;
}

/// "_tile": of a whole tile of keys.
StringRef AttentionDetails::nameOf(const MatmulProduct &product, int64_t ofTile) const {
  const bool isScores = &product == &scores;
  if (ofTile == kOfClass)
    return isScores ? "scores_class" : "result_class";
  if (ofTile == kDynamic)
    return isScores ? "scores" : "result";
  return isScores ? "scores_tile" : "result_tile";
}

DictionaryAttr AttentionDetails::chosenTiles(const IsaLevel &level) const {
  MLIRContext *context = body.block->getParentOp()->getContext();
  NamedAttrList tiles;
  for (const auto &[name, spec] : products())
    tiles.set(name, writeTile(chosenTiles(spec, level), context));
  return tiles.getDictionary(context);
}

GemmTiles AttentionDetails::readTiles(DictionaryAttr tiles, StringRef name, const GemmKernel &spec,
                                      const IsaLevel &level) const {
  return readGemmTiles(tiles.getAs<DictionaryAttr>(name), spec, level);
}

GemmTiles AttentionDetails::chosenTiles(const GemmKernel &spec, const IsaLevel &level) const {
  GemmTiles tiles = chooseGemmTiles(spec, level);
  if (!online && mask && !spec.k.isStatic())
    tiles.kBlock = spec.at(level).copiesPairs() ? kKeyPass / 2 : kKeyPass;
  if (online && !spec.k.isStatic())
    tiles.kBlock = keys;
  return tiles;
}

int64_t AttentionDetails::gemmBytes(DictionaryAttr tiles, const IsaLevel &level) const {
  int64_t most = 0;
  for (const auto &[name, spec] : products())
    most = std::max(most, gemmScratchBytes(spec.at(level), readTiles(tiles, name, spec, level)));
  return most;
}

Dim AttentionDetails::scratch(int64_t gemm) const {
  int64_t columns = online ? 4 : 1, fixed = online ? (rows + weighs()) * resultStride() * 4 : 0;
  Dim queries = copiesQueries() ? queryStride() * (rows * 4) : Dim(0);
  return stride() * (rows * 4) + queries + (gemm + columns * column() * 4 + fixed + (mask ? kStateBytes : 0));
}

/// Blocks whose scores fit the second-level cache; some for a few threads to share. Each block copies K and V.
int64_t AttentionDetails::preferredRows() const {
  DecisionsMade::check("a block of rows");
  constexpr int64_t fewestRows = 16, items = 8, mostOfTiles = 128;
  const int64_t fewest = ceilDivInt(fewestRows, group);
  int64_t m = std::max<int64_t>(1, nominal(body.block, result.m)), t = nominal(body.block, result.k);
  if (mask)
    t = std::max(widestKeys(body.block, mask), t / 4);
  int64_t most = std::max(fewest, IsaLevel::nominal().caches.scores / (4 * std::max<int64_t>(t, 1)) / group);
  if (online)
    most = ceilDivInt(mostOfTiles, group);
  if (classes && classes->ofRows) // a class has several rows
    most = ceilDivInt(2 * mostOfTiles, classes->step) * classes->step;
  if (online && mask && dmir::MaskOp(mask).getTiles()) // blocks that have no more than they need
    most = std::min(most, std::max(fewest, (*dmir::MaskOp(mask).getTile())[0]));
  int64_t blocks = ceilDivInt(m, most), batch = std::max<int64_t>(1, nominal(body.block, groups()));
  blocks = std::max(blocks, std::min(ceilDivInt(items, batch), std::max<int64_t>(1, m / fewest)));
  return ceilDivInt(m, blocks) * group;
}

/// Any number would do; scratch is bounded.
Decision AttentionDetails::rowsDecision() const {
  constexpr int64_t mostScratch = 4 << 20, mostRows = 512;
  MLIRContext *context = body.block->getParentOp()->getContext();
  int64_t preferred = preferredRows(), row = 4 * std::max<int64_t>(1, nominal(body.block, stride()));
  int64_t most = std::max<int64_t>(1, std::clamp<int64_t>(mostScratch / row, 1, mostRows) / group);
  std::set<int64_t> values{preferred};
  if (std::optional<int64_t> m = result.m.known())
    for (int64_t places : evenParts(*m, most))
      values.insert(places * group);
  for (int64_t places = 8; places <= most && !result.m.isStatic(); places *= 2)
    values.insert(places * group);
  return {kBlockRows.str(),
          "",
          numbersOf(values, context),
          Builder(context).getI64IntegerAttr(preferred),
          Effect::Order,
          "rows of a block, whose scores wait in scratch"};
}
