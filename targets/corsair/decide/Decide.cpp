//===- Decide.cpp - how a region's ops are computed -----------------------===//

#include "Kernels.h"
#include "Ops.h"
#include "ProductDecisions.h"
#include "scores/Bands.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

SmallVector<int> dmxc::corsair::teamSizes(const hw::Machine &machine, int most) {
  SmallVector<int> sizes;
  const int chiplet = machine.quadsPerChiplet();
  for (int size = 1; !most && size <= machine.quadCount(); ++size)
    sizes.push_back(size);
  for (int size = most; size > 0; --size)
    if (size == most || size < chiplet || size % chiplet == 0) // chiplets that have equally many fetch fastest
      sizes.push_back(size);
  return sizes;
}

/// Whether all quads of a team compute everything.
static bool dealsNothing(const Distribution &deal) {
  return deal.depth.empty() && llvm::none_of(deal.of, [](const auto &each) { return bool(each.second); });
}

/// What a team takes besides what it computes: it fetches what the host brings, gives back results, and waits for its
/// other chiplets wherever it gathers. A byte leaves a chiplet's DDR once for all of its quads, which fetch parts and
/// send them to each other; where there are no equal parts the first quad sends all to each, in part while others
/// compute.
static double teamClocks(Block *body, const Distribution &deal, const hw::Machine &machine,
                         const ArgumentKinds &kinds) {
  constexpr double meeting = 60; // of two chiplets: between 55 and 68 of twelve networks none is over 1.1 of the best
  const hw::MemoryInfo &ddr = machine.memory(hw::Memory::DDR);
  const int sharers = std::min(deal.quads, machine.quadsPerChiplet());
  auto bytesOf = [](Value value) {
    return static_cast<double>(elementsOf(value)) * elementOf(value).getIntOrFloatBitWidth() / 8;
  };
  auto timesOf = [&](Value value) {
    const bool hasParts =
        deal.quads % sharers == 0 && llvm::any_of(shapeOf(value), [&](int64_t dim) { return dim % sharers == 0; });
    return deal.at(value) ? static_cast<double>(sharers) / deal.quads : hasParts ? 1 : 0.25 + 0.6 * sharers;
  };
  double clocks = 0;
  for (BlockArgument argument : body->getArguments())
    if (kinds.isInput(argument) && !argument.use_empty())
      clocks += bytesOf(argument) * timesOf(argument) / ddr.read;
  for (Value result : body->getTerminator()->getOperands()) {
    const Split split = deal.at(result);
    const bool byChannels = split.dim == 1 && shapeOf(result).size() > 3; // measured: chiplets wait for each other
    clocks += bytesOf(result) * (split && !byChannels ? static_cast<double>(sharers) / deal.quads : 1) / ddr.write;
  }
  const int chiplets = (deal.quads + machine.quadsPerChiplet() - 1) / machine.quadsPerChiplet();
  for (const auto &[op, values] : deal.gathers)
    clocks += meeting * (chiplets - 1) * static_cast<double>(values.size());
  return clocks;
}

/// The fastest of the team sizes whose quads hold their shares. Where none does, the one whose quads need least. A
/// larger team must be worth its energy; a smaller one than was asked for must be clearly faster, for the estimate
/// leaves out how engines overlap.
static Result<Distribution> fastestTeam(Block *body, const hw::Machine &machine, int most, const ArgumentKinds &kinds) {
  const llvm::DenseMap<Value, Split> none;
  const auto room = static_cast<int64_t>(machine.memory(hw::Memory::GM).size);
  // Inputs whole at first: they are dealt only where that is too much.
  auto needs = [&](const Distribution &deal) {
    const int64_t bytes = peakBytes(body, deal);
    if (bytes <= room)
      return room;
    Distribution dealt = deal;
    dealInputs(body, dealt, machine, kinds, {});
    return std::max(room, peakBytes(body, dealt));
  };
  const SmallVector<int> sizes = teamSizes(machine, most);
  const double worth = most ? 0.9 : 0.99;
  auto clocksOf = [&](Distribution deal) {
    dealInputs(body, deal, machine, kinds, {});
    return deal.clocks + teamClocks(body, deal, machine, kinds);
  };
  Result<Distribution> best = distribute(body, machine, sizes.front(), none, kinds);
  double fewest = best ? clocksOf(*best) : 0;
  int64_t least = best ? needs(*best) : 0;
  for (int size : llvm::drop_begin(sizes)) {
    Result<Distribution> other = distribute(body, machine, size, none, kinds);
    if (!best || !other)
      continue;
    const int64_t bytes = needs(*other);
    const double clocks = clocksOf(*other);
    const bool idle = size < best->quads && dealsNothing(*best) && clocks <= fewest;
    if (bytes < least || (bytes == least && (idle || clocks < worth * fewest))) {
      best = std::move(other);
      fewest = clocks;
      least = bytes;
    }
  }
  return best;
}

/// The team that the ops are dealt to already, of `most` quads at most; 0 for none.
static int teamOf(Block *body, int most) {
  for (Operation &op : *body)
    if (auto deal = op.getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr))
      return static_cast<int>(std::min<int64_t>(deal.getQuads(), most));
  return 0;
}

static std::string textOf(Attribute attribute) {
  if (!attribute)
    return "none";
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

static Error refused(Operation *op, StringRef key, const std::string &why) {
  return modelError("node '" + dmir::nodeName(op) + "': '" + key.str() + "' is " + textOf(op->getAttr(key)) + ", but " +
                    why + "; what is left out is decided");
}

/// Takes up the deals of inputs that the text has.
static Result<llvm::DenseMap<Value, Split>> readInputs(Block *body, DictionaryAttr given, int team,
                                                       const ArgumentKinds &kinds) {
  llvm::DenseMap<Value, Split> splits;
  for (NamedAttribute entry : given ? given.getValue() : ArrayRef<NamedAttribute>()) {
    unsigned number = 0;
    const bool exists = !entry.getName().getValue().getAsInteger(10, number) && number < body->getNumArguments();
    auto refuse = [&](const Twine &why) {
      Operation *reader =
          exists && !body->getArgument(number).use_empty() ? *body->getArgument(number).user_begin() : &body->front();
      return modelError("node '" + dmir::nodeName(reader) + "': '" + kDealsKey.str() + "' of argument " +
                        entry.getName().str() + " is " + textOf(entry.getValue()) + ", but " + why.str() +
                        "; what is left out is decided");
    };
    if (!exists || !kinds.isInput(body->getArgument(number)))
      return refuse("the host brings no such argument in every run");
    ArrayRef<int64_t> shape = shapeOf(body->getArgument(number));
    auto deal = dyn_cast<lldmir::DealAttr>(entry.getValue());
    if (!deal || deal.isSums())
      return refuse("a deal of a value is needed");
    if (deal.getQuads() != team)
      return refuse("the region is for a team of " + Twine(team));
    if (deal.isWhole())
      continue;
    if (deal.getDim() >= static_cast<int64_t>(shape.size()))
      return refuse("the value has " + Twine(shape.size()) + " dims");
    if (team < 2 || shape[deal.getDim()] % team || shape[deal.getDim()] == 0)
      return refuse("dim " + Twine(deal.getDim()) + " has " + Twine(shape[deal.getDim()]) + " elements");
    splits[body->getArgument(number)] = {static_cast<int>(deal.getDim()), shape[deal.getDim()] / team};
  }
  return splits;
}

/// The inputs that the text folds, and views of values that it folds.
static void readFolds(Block *body, DictionaryAttr inputs, Distribution &deal) {
  for (BlockArgument argument : body->getArguments())
    if (auto given =
            inputs ? inputs.getAs<lldmir::DealAttr>(std::to_string(argument.getArgNumber())) : lldmir::DealAttr();
        given && given.getFolded())
      deal.folded.insert(argument);
  for (Operation &op : body->without_terminator())
    if (isView(&op) && deal.folded.contains(op.getOperand(0)))
      deal.folded.insert(op.getResult(0));
}

static void writeKept(Operation *op, const Rounds &rounds) {
  op->setAttr(lldmir::kKeptAttr, attributeOf(rounds, op->getContext()));
}

/// Of a product that has its plan: checks what it is said to take of its weights, or decides that.
static Status keep(Operation *op, const Distribution &deal, const hw::Machine &machine, bool computesZeros) {
  Spread product = planOf(op, deal);
  Attribute given = op->getAttr(lldmir::kKeptAttr);
  if (!given && product.columns) {
    const double all = arrayClocks(machine, product);
    if (product.bytesPerSlice() > static_cast<int64_t>(machine.memory(hw::Memory::ST).size))
      return Status::ok(); // weights that come in pieces come whole
    product.kept = roundsOf(product, *product.columns, /*all=*/false);
    if (arrayClocks(machine, product) < 0.9 * all)
      writeKept(op, roundsOf(product, *product.columns, computesZeros));
    return Status::ok();
  }
  if (!given)
    return Status::ok();
  if (product.conv || !deal.packed.contains(op->getOperand(1)) || deal.depth.contains(op))
    return refused(op, lldmir::kKeptAttr, "the op is no product by weights of which each quad has whole columns");
  std::optional<Rounds> rounds = readRounds(given, product.rounds(), product.kChunks);
  if (!rounds)
    return refused(op, lldmir::kKeptAttr,
                   "a list is needed of different blocks below " + std::to_string(product.kChunks) + " for each of " +
                       std::to_string(product.rounds()) + " rounds of columns");
  const int64_t width = 64 * product.tilesARound();
  for (auto [number, blocks] : llvm::enumerate(*rounds)) {
    const auto round = static_cast<int64_t>(number);
    auto isZero = [&](int64_t block) {
      return product.columns && !product.columns->any(block, round * width, (round + 1) * width);
    };
    for (int64_t block = 0; block < product.kChunks; ++block)
      if (!llvm::is_contained(blocks, block) && !isZero(block))
        return refused(op, lldmir::kKeptAttr,
                       "round " + std::to_string(round) + " leaves out block " + std::to_string(block) +
                           ", where the weights have other numbers than zeros");
    if (std::optional<std::string> why = outOfOrder(blocks, isZero))
      return refused(op, lldmir::kKeptAttr, "round " + std::to_string(round) + " has " + *why);
  }
  return Status::ok();
}

/// Gives a product its plan, or checks that it can be computed by the one it has.
static Status plan(Operation *op, Distribution &deal, const hw::Machine &machine, PlanChoice choice) {
  const Spread product = productOf(op, deal);
  Attribute given = op->getAttr(lldmir::kPlanAttr);
  auto planned = [&](PlanChoice chosen) {
    return chooseSpread(machine, product, chosen, !product.conv && isOfWindow(cast<dmir::MatMulOp>(op), deal));
  };
  if (!given) {
    const Spread made = planned(choice);
    if (made.k == 0)
      return modelError("node '" + dmir::nodeName(op) + "' has no plan such as is decided for it");
    if (choice) // the deal counts what would be fastest
      deal.clocks += arrayClocks(machine, made) - arrayClocks(machine, planned({}));
    op->setAttr(lldmir::kPlanAttr, made.plan(op->getContext()));
    return Status::ok();
  }
  auto attribute = dyn_cast<lldmir::PlanAttr>(given);
  if (!attribute)
    return refused(op, lldmir::kPlanAttr, "a plan is needed");
  auto obeys = [&](int64_t imc, StringRef share) {
    return choice.imc.value_or(imc) == imc && (!choice.sharing || kShares[static_cast<int>(*choice.sharing)] == share);
  };
  // What is decided for all products is for those that can be computed so.
  const Spread made = choice ? planned(choice) : Spread();
  if (!obeys(attribute.getNumImc(), attribute.getSpread().getShare()) &&
      obeys(made.imc, kShares[static_cast<int>(made.sharing)]))
    return refused(op, lldmir::kPlanAttr, "another one is decided");
  if (std::optional<std::string> why = unfit(product, attribute, machine))
    return refused(op, lldmir::kPlanAttr, *why);
  return Status::ok();
}

/// The tiles of a constant serve all of its readers, whose plans must then want the same ones.
static Status agree(Operation *op, const Distribution &deal) {
  if (!deal.packed.contains(op->getOperand(1)))
    return Status::ok();
  for (Operation *other : op->getOperand(1).getUsers())
    for (StringRef key : {lldmir::kPlanAttr, lldmir::kKeptAttr})
      if (isProduct(other) && other->getAttr(key) != op->getAttr(key))
        return modelError("node '" + dmir::nodeName(op) + "' has '" + key.str() + "' " + textOf(op->getAttr(key)) +
                          ", but node '" + dmir::nodeName(other) + "' reads the same weights and has " +
                          textOf(other->getAttr(key)) + "; what is left out is decided");
  return Status::ok();
}

Result<Distribution> dmxc::corsair::decide(Block *body, const hw::Machine &machine, Team wanted, DictionaryAttr inputs,
                                           const ArgumentKinds &kinds, DictionaryAttr decided) {
  DecisionsMade::check("a deal");
  const int team = wanted.size ? wanted.size : teamOf(body, wanted.most ? wanted.most : machine.quadCount());
  Result<llvm::DenseMap<Value, Split>> given = readInputs(body, inputs, std::max(team, 1), kinds);
  if (!given)
    return given.takeError();
  Result<Distribution> deal =
      team ? distribute(body, machine, team, *given, kinds) : fastestTeam(body, machine, wanted.most, kinds);
  if (!deal)
    return deal;
  for (const auto &[op, values] : deal->gathers)
    for (Value value : values)
      if (auto argument = dyn_cast<BlockArgument>(value); argument && crossesAsTiles(argument, deal->packed))
        return modelError("node '" + dmir::nodeName(op) + "': '" + kDealsKey.str() + "' of argument " +
                          std::to_string(argument.getArgNumber()) + " is " +
                          textOf(inputs.get(std::to_string(argument.getArgNumber()))) +
                          ", but it comes as tiles, of which each quad needs others; what is left out is decided");
  const bool isGiven = teamOf(body, machine.quadCount()) || (inputs && !inputs.empty());
  deal->write(body);
  dealInputs(body, *deal, machine, kinds, inputs);
  if (isGiven)
    readFolds(body, inputs, *deal);
  else
    chooseFolds(body, *deal, kinds.isInput);
  if (Status folds = checkFolds(body, *deal); !folds)
    return folds.takeError();
  deal->write(body);
  deal->clocks += teamClocks(body, *deal, machine, kinds);
  for (Operation &op : body->without_terminator()) {
    if (!isProduct(&op) && op.hasAttr(lldmir::kPlanAttr))
      return refused(&op, lldmir::kPlanAttr, "the op is no product of the arrays");
    if (!isProduct(&op) && op.hasAttr(lldmir::kKeptAttr))
      return refused(&op, lldmir::kKeptAttr, "the op is no product of the arrays");
    if (!isProduct(&op))
      continue;
    if (Status planned = plan(&op, *deal, machine, planChoiceOf(&op, decided)); !planned)
      return planned.takeError();
    if (Status kept = keep(&op, *deal, machine, kinds.computesZeros); !kept)
      return kept.takeError();
  }
  for (Operation &op : body->without_terminator())
    if (isProduct(&op))
      if (Status same = agree(&op, *deal); !same)
        return same.takeError();
  return deal;
}
