//===- ProductDecisions.cpp - what of a region's products is free -------------===//

#include "ProductDecisions.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

namespace {

constexpr StringLiteral kSplit = "split", kShare = "share", kNumImc = "num_imc";
constexpr StringLiteral kWhole = "whole", kAlongK = "k";

/// What a dim of a product's result is.
StringRef nameOfDim(Operation *op, int64_t dim) {
  const auto rank = static_cast<int64_t>(shapeOf(op->getResult(0)).size());
  if (isa<dmir::ConvOp>(op))
    return dim == 0 ? "batch" : dim == 1 ? "columns" : "pixels";
  return dim == rank - 1 ? "columns" : dim == rank - 2 ? "rows" : "batch";
}

/// The deal of a name: of several dims the outermost that can be dealt. Null where there is none.
lldmir::DealAttr dealOf(Operation *op, StringRef name, const Distribution &deal) {
  using lldmir::DealAttr;
  MLIRContext *context = op->getContext();
  auto fits = [&](int64_t dim) {
    auto attribute = DealAttr::get(context, dim, deal.quads);
    return unfit(op, attribute, deal) ? DealAttr() : attribute;
  };
  if (name == kWhole)
    return fits(DealAttr::kWhole);
  if (name == kAlongK)
    return fits(DealAttr::kSums);
  const auto rank = static_cast<int64_t>(shapeOf(op->getResult(0)).size());
  for (int64_t dim = 0; dim < rank; ++dim)
    if (nameOfDim(op, dim) == name)
      if (DealAttr attribute = fits(dim))
        return attribute;
  return {};
}

StringRef nameOf(Operation *op) {
  auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
  return !deal || deal.isWhole() ? StringRef(kWhole)
         : deal.isSums()         ? StringRef(kAlongK)
                                 : nameOfDim(op, deal.getDim());
}

DictionaryAttr scopeOf(Operation *product, DictionaryAttr decided) {
  return decided ? decided.getAs<DictionaryAttr>(dmir::nodeName(product)) : DictionaryAttr();
}

/// Of the product itself, else of all.
template <typename T> T decidedFor(Operation *product, DictionaryAttr decided, StringRef name) {
  DictionaryAttr own = scopeOf(product, decided);
  T value = own ? own.getAs<T>(name) : T();
  return value || !decided ? value : decided.getAs<T>(name);
}

/// What is decided without some names of products.
DictionaryAttr without(DictionaryAttr decided, ArrayRef<StringRef> names, MLIRContext *context) {
  NamedAttrList kept;
  for (NamedAttribute entry : decided ? decided.getValue() : ArrayRef<NamedAttribute>()) {
    if (auto scope = dyn_cast<DictionaryAttr>(entry.getValue()))
      kept.set(entry.getName(), without(scope, names, context));
    else if (!llvm::is_contained(names, entry.getName()))
      kept.set(entry.getName(), entry.getValue());
  }
  return kept.getDictionary(context);
}

/// A body of its own that is decided for.
class Trial {
public:
  Trial(Block *body, const hw::Machine &machine, int quads, const ArgumentKinds &kinds, DictionaryAttr decided) {
    copy = body->getParentOp()->clone();
    Block *own = &copy->getRegion(0).front();
    auto ofBody = [&](llvm::function_ref<bool(Value)> kind, Value value) {
      auto argument = dyn_cast<BlockArgument>(value);
      return argument && kind(body->getArgument(argument.getArgNumber()));
    };
    auto constant = [&](Value value) { return ofBody(kinds.isConstant, value); };
    auto input = [&](Value value) { return ofBody(kinds.isInput, value); };
    for (Operation &op : *own)
      for (StringRef key : {lldmir::kDealAttr, lldmir::kGatherAttr, lldmir::kBiasAttr, lldmir::kPlanAttr})
        op.removeAttr(key);
    if (Status written = writeSplits(own, decided, quads); !written)
      return;
    Result<Distribution> made = decide(own, machine, {quads, quads}, {}, {constant, input}, decided);
    if (made)
      deal = std::move(*made);
    products = namedProducts(own);
  }
  ~Trial() { copy->erase(); }
  Trial(const Trial &) = delete;
  Trial &operator=(const Trial &) = delete;

  Operation *copy;
  std::optional<Distribution> deal;
  SmallVector<std::pair<std::string, Operation *>> products;
};

/// num_imc: of the cores that a slice has, up to the blocks along K that are read at once.
int64_t mostImc(const hw::Machine &machine, Spread product) {
  product.pitch = Spread::pitchOf(product.m);
  const int64_t chunks = std::min(product.kChunks, product.longestSegment());
  return std::min<int64_t>({chunks, machine.cores, int64_t(1) << machine.maxPprMode});
}

SmallVector<Attribute> sharesOf(const Spread &product, Builder &b) {
  const bool has[] = {product.n > 64, product.m > 64, product.batch > 1};
  SmallVector<Attribute> names;
  for (auto [share, can] : llvm::zip(kShares, has))
    if (can)
      names.push_back(b.getStringAttr(share));
  return names;
}

/// Decisions of one product after another.
class Lister {
public:
  Lister(Block *body, const hw::Machine &machine, int quads, const ArgumentKinds &kinds, DictionaryAttr decided)
      : body(body), machine(machine), quads(quads), kinds(kinds), decided(decided), b(body->front().getContext()) {}

  std::vector<Decision> list() {
    // Of splits that cannot be nothing follows.
    if (!Trial(body, machine, quads, kinds, without(decided, {kShare, kNumImc}, b.getContext())).deal)
      decided = without(decided, {kSplit}, b.getContext());
    Trial now(body, machine, quads, kinds, without(decided, {kShare, kNumImc}, b.getContext()));
    for (auto [number, product] : llvm::enumerate(now.products))
      if (now.deal)
        add(number, product.first, product.second, *now.deal);
    return std::move(all);
  }

private:
  void add(size_t number, const std::string &scope, Operation *op, const Distribution &deal) {
    SmallVector<Attribute> splits;
    for (StringRef name : {StringRef(kWhole), StringRef("batch"), StringRef("rows"), StringRef("pixels"),
                           StringRef("columns"), StringRef(kAlongK)})
      if (dealOf(op, name, deal))
        splits.push_back(b.getStringAttr(name));
    add(scope, kSplit, fastestFirst(scope, kSplit, splits, without(decided, {kShare, kNumImc}, b.getContext())),
        preferredSplit(number, op), "what each quad of the team has of the product");
    const Spread product = planOf(op, deal);
    if (!op->getOperand(1).hasOneUse()) // others read the same tiles, and want them as they are
      return;
    DictionaryAttr split = without(decided, {kNumImc}, b.getContext());
    add(scope, kShare, fastestFirst(scope, kShare, sharesOf(product, b), split),
        b.getStringAttr(kShares[static_cast<int>(product.sharing)]), "what each slice of a quad has of it");
    SmallVector<Attribute> counts;
    for (int64_t count = 1; count <= mostImc(machine, product); ++count)
      counts.push_back(b.getI64IntegerAttr(count));
    counts = fastestFirst(scope, kNumImc, counts, split);
    Trial shared(body, machine, quads, kinds, without(decided, {kNumImc}, b.getContext()));
    Operation *same = shared.deal ? shared.products[number].second : op;
    add(scope, kNumImc, counts, b.getI64IntegerAttr(planOf(same, shared.deal ? *shared.deal : deal).imc),
        "cores whose sums of blocks along K are added");
  }

  void add(const std::string &scope, StringRef name, ArrayRef<Attribute> values, Attribute preferred,
           const char *help) {
    SmallVector<Attribute> with(values);
    if (!llvm::is_contained(with, preferred))
      with.push_back(preferred);
    if (with.size() > 1)
      all.push_back({name.str(), scope, Domain::oneOf(with), preferred, Effect::Order, help});
  }

  /// The split that it has where it is not decided.
  Attribute preferredSplit(size_t number, Operation *op) {
    if (!decidedFor<StringAttr>(op, decided, kSplit))
      return b.getStringAttr(nameOf(op));
    NamedAttrList open(without(decided, {kShare, kNumImc}, b.getContext()));
    open.erase(dmir::nodeName(op));
    open.erase(kSplit);
    Trial free(body, machine, quads, kinds, open.getDictionary(b.getContext()));
    return b.getStringAttr(nameOf(free.deal ? free.products[number].second : op));
  }

  /// The values that all other ops can do with, those first that take the fewest clocks by the estimate.
  SmallVector<Attribute> fastestFirst(const std::string &scope, StringRef name, ArrayRef<Attribute> values,
                                      DictionaryAttr others) {
    SmallVector<std::pair<double, Attribute>> possible;
    for (Attribute value : values) {
      auto before = others.getAs<DictionaryAttr>(scope);
      NamedAttrList given(others), own(before ? before : b.getDictionaryAttr({}));
      own.set(name, value);
      given.set(scope, own.getDictionary(b.getContext()));
      Trial trial(body, machine, quads, kinds, given.getDictionary(b.getContext()));
      if (trial.deal)
        possible.emplace_back(trial.deal->clocks, value);
    }
    llvm::stable_sort(possible, [](const auto &a, const auto &b) { return a.first < b.first; });
    return llvm::map_to_vector(possible, [](const auto &one) { return one.second; });
  }

  Block *body;
  const hw::Machine &machine;
  int quads;
  const ArgumentKinds &kinds;
  DictionaryAttr decided;
  Builder b;
  std::vector<Decision> all;
};

} // namespace

SmallVector<std::pair<std::string, Operation *>> dmxc::corsair::namedProducts(Block *body) {
  SmallVector<std::pair<std::string, Operation *>> products;
  for (Operation &op : *body) {
    std::string name = dmir::nodeName(&op);
    auto sameNode =
        llvm::count_if(*body, [&](Operation &other) { return isProduct(&other) && dmir::nodeName(&other) == name; });
    if (isProduct(&op) && sameNode == 1)
      products.emplace_back(std::move(name), &op);
  }
  return products;
}

bool dmxc::corsair::decidesSplits(Block *body, DictionaryAttr decided) {
  return llvm::any_of(namedProducts(body), [&](const auto &product) {
    return decidedFor<StringAttr>(product.second, decided, kSplit) != nullptr;
  });
}

Status dmxc::corsair::writeSplits(Block *body, DictionaryAttr decided, int quads) {
  Distribution team;
  team.quads = quads;
  for (const auto &[scope, op] : namedProducts(body)) {
    auto split = decidedFor<StringAttr>(op, decided, kSplit);
    if (!split)
      continue;
    // What can be dealt rests on which constants are tiles: assumed here, and checked where it is obeyed.
    if (op->getNumOperands() > 1)
      team.packed.insert(op->getOperand(1));
    lldmir::DealAttr deal = dealOf(op, split.getValue(), team);
    Attribute given = op->getAttr(lldmir::kDealAttr);
    if (!deal || (given && given != deal))
      return modelError("node '" + scope + "' cannot be split by " + split.str() + " over " + std::to_string(quads) +
                        " quads" + (given ? ", its " + lldmir::kDealAttr.str() + " is another" : ""));
    op->setAttr(lldmir::kDealAttr, deal);
  }
  return Status::ok();
}

PlanChoice dmxc::corsair::planChoiceOf(Operation *product, DictionaryAttr decided) {
  PlanChoice choice;
  if (auto count = decidedFor<IntegerAttr>(product, decided, kNumImc))
    choice.imc = static_cast<int>(count.getInt());
  if (auto share = decidedFor<StringAttr>(product, decided, kShare))
    for (auto [number, name] : llvm::enumerate(kShares))
      if (share == name)
        choice.sharing = static_cast<Sharing>(number);
  return choice;
}

std::vector<Decision> dmxc::corsair::productDecisions(Block *body, const hw::Machine &machine, int quads,
                                                      const ArgumentKinds &kinds, DictionaryAttr decided) {
  return Lister(body, machine, quads, kinds, decided).list();
}
