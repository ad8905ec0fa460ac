//===- GemmDecisions.cpp - what of a product's blocking is free ----------===//

#include "GemmDecisions.h"
#include "GemmTile.h"

#include <set>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

constexpr StringLiteral kRows = "rows", kVectors = "vectors", kDepth = "k_block", kPackA = "pack_a";
/// Panels of B are 16 columns wide: a tile takes a part of one, or whole ones.
bool fitsPanels(int64_t columns) { return columns % 16 == 0 || 16 % columns == 0; }

template <typename T> std::optional<T> numberIn(DictionaryAttr dictionary, StringRef key) {
  auto value = dictionary ? dictionary.getAs<IntegerAttr>(key) : IntegerAttr();
  return value ? std::optional<T>(static_cast<T>(value.getValue().getZExtValue())) : std::nullopt;
}

/// Depths of a pass: powers of two and all of k, multiples of what an iteration takes.
Domain depthsOf(const GemmSpec &spec, const GemmTiles &tiles, Builder &b) {
  std::set<int64_t> depths{tiles.kBlock};
  bool oneRead = spec.skinny() && !spec.copiesB(); // B is read once, whole
  if (!oneRead && spec.k > 0) {
    int64_t whole = ceilDivInt(spec.k, tiles.unroll) * tiles.unroll;
    for (int64_t depth = 64; depth < whole && depth <= 4096; depth *= 2)
      depths.insert(depth);
    if (whole <= 4096)
      depths.insert(whole);
  }
  SmallVector<Attribute> values;
  for (int64_t depth : depths)
    values.push_back(b.getI64IntegerAttr(depth));
  return Domain::oneOf(values);
}

/// Those with which as many rows as are decided fit registers.
Domain vectorsOf(const GemmSpec &spec, const IsaLevel &isa, const GemmTiles &tiles, std::optional<int64_t> rows,
                 Builder &b) {
  std::set<int64_t> counts{tiles.vectors};
  int64_t most = spec.n < 0 ? 4 : std::min<int64_t>(4, ceilDivInt(spec.n, tiles.lanes));
  for (int64_t vectors = 1; vectors <= most; ++vectors)
    if (fitsPanels(vectors * tiles.lanes) && rows.value_or(1) <= mostGemmRows(isa, vectors))
      counts.insert(vectors);
  SmallVector<Attribute> values;
  for (int64_t count : counts)
    values.push_back(b.getI64IntegerAttr(count));
  return Domain::oneOf(values);
}

/// Up to `most`; rows of a known number are shared out evenly, so that of those which give as many tiles one is enough.
Domain rowsOf(const GemmSpec &spec, int64_t most, Builder &b) {
  SmallVector<Attribute> values;
  for (int64_t rows = 1; rows <= (spec.m < 0 ? most : std::min(most, spec.m)); ++rows)
    if (spec.m < 0 || ceilDivInt(spec.m, ceilDivInt(spec.m, rows)) == rows)
      values.push_back(b.getI64IntegerAttr(rows));
  return Domain::oneOf(values);
}

} // namespace

GemmChoice dmxc::cpu::gemmChoiceOf(DictionaryAttr levels, StringRef level, DictionaryAttr whole) {
  auto own = levels ? levels.getAs<DictionaryAttr>(level) : DictionaryAttr();
  auto number = [&](StringRef key) {
    std::optional<int64_t> value = numberIn<int64_t>(own, key);
    return value ? value : numberIn<int64_t>(whole, key);
  };
  GemmChoice choice{number(kRows), number(kVectors), number(kDepth), {}};
  if (std::optional<int64_t> copy = number(kPackA))
    choice.packA = *copy != 0;
  return choice;
}

std::vector<Decision> dmxc::cpu::gemmDecisions(const GemmSpec &spec, const IsaLevel &isa, const GemmChoice &choice) {
  std::vector<Decision> free;
  if (spec.fours || spec.blocks || spec.grouped || spec.nested || spec.m == 0 || spec.n == 0 || spec.k == 0)
    return free;
  Builder b(spec.accType.getContext());
  auto add = [&](StringRef name, Domain domain, Attribute preferred, Effect effect, const char *help) {
    if (domain.count() > 1)
      free.push_back({name.str(), isa.name, std::move(domain), preferred, effect, help});
  };
  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  GemmTiles own = completeGemmTiles(spec, isa, {});
  add(kVectors, vectorsOf(spec, isa, own, choice.rows, b), number(own.vectors), Effect::Order,
      "vectors of a register tile");
  GemmTiles wide = completeGemmTiles(spec, isa, {{}, choice.vectors, {}, {}});
  int64_t rows = std::max(mostGemmRows(isa, wide.vectors), wide.rows);
  add(kRows, rowsOf(spec, rows, b), number(wide.rows), Effect::Order, "rows of a register tile");
  GemmTiles tile = completeGemmTiles(spec, isa, {choice.rows, choice.vectors, {}, {}});
  add(kDepth, depthsOf(spec, tile, b), number(tile.kBlock), Effect::Order, "depth of a pass over k");
  if (!spec.skinny() && spec.k > 0)
    add(kPackA, Domain::oneOf({b.getBoolAttr(false), b.getBoolAttr(true)}), b.getBoolAttr(tile.packA), Effect::Bits,
        "a block of A is copied before it is read");
  return free;
}

DictionaryAttr dmxc::cpu::decidedTiles(const GemmSpec &spec, ArrayRef<IsaLevel> levels, DictionaryAttr decided) {
  MLIRContext *context = spec.accType.getContext();
  NamedAttrList all;
  for (const IsaLevel &isa : levels) {
    NamedAttrList own;
    GemmChoice choice = gemmChoiceOf(decided, isa.name, decided);
    auto level = decided.getAs<DictionaryAttr>(isa.name);
    for (const Decision &decision : gemmDecisions(spec, isa, choice)) {
      Attribute value = level ? level.get(decision.name) : Attribute();
      if (!value)
        value = decided.get(decision.name);
      if (value && decision.domain.contains(value) && value != decision.preferred)
        own.set(decision.name, value);
    }
    if (!own.empty())
      all.set(isa.name, own.getDictionary(context));
  }
  return all.getDictionary(context);
}
