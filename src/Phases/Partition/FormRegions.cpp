//===- FormRegions.cpp - group ops into regions ---------------------------===//
//
// A region has one root (an op with its own kernel, which may compute others on the way), consumers through which the
// root's result is written, and producers that are computed where they are read. What may be fused is the target's
// answer; this pass only keeps the graph sound: whatever a region computes besides its results is used inside it alone,
// and what it gives out besides the last value of all is read behind it.
//
// A target that computes whole graphs gets regions of another kind: all of its ops that no other target's op separates.
//
//===----------------------------------------------------------------------===//
#include "Places.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Constraints.h"
#include "dmxc/Dialect/DMIR/GatherRule.h"
#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace dmxc {
#define GEN_PASS_DEF_FORMREGIONS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// What stays outside of regions: constants are buffers, reshapes are views, branches and loops tasks of their own.
bool staysOutside(Operation *op) {
  return isa<dmir::ConstantOp, dmir::ReshapeOp, dmir::RegionOp, dmir::IfOp, dmir::LoopOp, func::ReturnOp>(op);
}

/// What the kernel of a group is given: counted where the target says how much that may be.
struct Arguments {
  llvm::SetVector<Value> inputs;
  dmir::SymbolSet symbols;
  uint64_t results = 1;

  uint64_t count() const { return inputs.size() + symbols.size() + results; }
  /// Takes an op in whose results, if anything reads them, ops that are there do, or are read behind all of them.
  void add(Operation *op, const llvm::SetVector<Operation *> &ops) {
    for (Value result : op->getResults())
      inputs.remove(result);
    for (Value operand : op->getOperands()) {
      auto constant = operand.getDefiningOp<dmir::ConstantOp>();
      bool sinks = constant && cast<RankedTensorType>(constant.getType()).getNumElements() == 1;
      if (!sinks && (!operand.getDefiningOp() || !ops.contains(operand.getDefiningOp())))
        inputs.insert(operand);
    }
    dmir::collectSymbols(op, symbols);
  }
};

/// A group of ops that becomes one region.
struct Group {
  const TargetBackend *target;
  Operation *root; ///< null: a whole graph
  llvm::SetVector<Operation *> ops;
  Arguments arguments = {}; ///< where there is a root
  Places places = {};
};

/// What each op of a function waits for: what makes its operands, and what gives the sizes that it mentions their
/// values, which no operand shows.
class Dependences {
public:
  explicit Dependences(func::FuncOp function) {
    auto module = function->getParentOfType<ModuleOp>();
    auto list = module ? module->getAttrOfType<ArrayAttr>(dmir::kComputedDimsAttr) : ArrayAttr();
    for (Attribute attr : list ? list.getValue() : ArrayRef<Attribute>())
      computed[cast<StringAttr>(cast<ArrayAttr>(attr)[0])] = dmir::dimOfAttr(cast<ArrayAttr>(attr)[1]);
    for (Type type : function.getArgumentTypes())
      addLone(type, nullptr);
    for (Operation &op : function.getOps())
      addDefined(&op);
  }

  llvm::SetVector<Operation *> of(Operation *op) const {
    llvm::SetVector<Operation *> before;
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        before.insert(maker);
    dmir::SymbolSet symbols;
    op->walk([&](Operation *inner) {
      dmir::collectSymbols(inner, symbols);
      if (auto define = dyn_cast<dmir::DefineDimsOp>(inner))
        for (Dim max : define.getMax().getDims())
          add(max, define.getContext(), symbols);
    });
    for (size_t i = 0; i < symbols.size(); ++i) { // grows while it runs
      if (auto row = computed.find(symbols[i]); row != computed.end())
        add(row->second, op->getContext(), symbols);
      if (Operation *maker = definedBy.lookup(symbols[i]); maker && maker != op)
        before.insert(maker);
    }
    return before;
  }

private:
  static void add(Dim dim, MLIRContext *context, dmir::SymbolSet &symbols) {
    dim.forEachSymbol([&](std::string_view symbol) { symbols.insert(StringAttr::get(context, symbol)); });
  }

  void addDefined(Operation *op) {
    op->walk([&](dmir::DefineDimsOp define) {
      for (Attribute symbol : define.getSymbols())
        definedBy.try_emplace(cast<StringAttr>(symbol), op);
    });
    if (isa<dmir::IfOp, dmir::LoopOp>(op))
      for (Type type : op->getResultTypes())
        addLone(type, op);
  }

  /// The symbols that are dims of a type by themselves; the first type that has one defines it.
  void addLone(Type type, Operation *op) {
    for (Dim dim : dmir::dimsOf(type))
      if (std::optional<std::string> symbol = dim.symbolName(); symbol && !computed.contains(name(type, *symbol)))
        definedBy.try_emplace(name(type, *symbol), op);
  }
  static StringAttr name(Type type, StringRef symbol) { return StringAttr::get(type.getContext(), symbol); }

  llvm::DenseMap<StringAttr, Operation *> definedBy; ///< null: an argument
  llvm::DenseMap<StringAttr, Dim> computed;
};

/// Groups of targets that compute whole graphs. An op's turn is the number of times that values changed targets on the
/// way to it: ops of equal target and turn are one group, and no value leaves a group and comes back.
class WholeGraphs {
public:
  WholeGraphs(const PhaseContext &context, func::FuncOp function) : context(context), function(function) {}

  void run(std::vector<Group> &groups) {
    if (llvm::none_of(context.targets, [](const TargetBackend *t) { return t->computesWholeGraphs(); }))
      return;
    Dependences dependences(function);
    for (Operation &op : function.getOps()) {
      if (isa<dmir::ConstantOp, dmir::RegionOp, func::ReturnOp>(op))
        continue;
      const TargetBackend *target = isa<dmir::ReshapeOp>(op) ? targetOfView(&op) : context.responsible(&op);
      int64_t turn = 0;
      for (Operation *before : dependences.of(&op))
        if (auto place = places.find(before); place != places.end())
          turn = std::max(turn, place->second.turn + (place->second.target != target));
      places[&op] = {target, turn};
      if (target && target->computesWholeGraphs() && !context.refusal(*target, &op))
        groupAt(groups, target, turn).ops.insert(&op);
    }
    // A group of views alone computes nothing.
    llvm::erase_if(groups, [](const Group &group) {
      return llvm::all_of(group.ops, [](Operation *op) { return isa<dmir::ReshapeOp>(op); });
    });
  }

  /// 0 where no target computes whole graphs.
  int64_t turnOf(Operation *op) const {
    auto place = places.find(op);
    return place == places.end() ? 0 : place->second.turn;
  }

private:
  /// A view stays with what made its bytes; one of an input goes to its reader. Unless that is no place for it.
  const TargetBackend *targetOfView(Operation *op) {
    auto place = places.find(op->getOperand(0).getDefiningOp());
    const TargetBackend *near = place != places.end() ? place->second.target
                                : op->use_empty()     ? nullptr
                                                      : context.responsible(*op->user_begin());
    return near && context.refusal(*near, op) ? context.responsible(op) : near;
  }

  Group &groupAt(std::vector<Group> &groups, const TargetBackend *target, int64_t turn) {
    auto [at, isNew] = numbers.try_emplace({target, turn}, groups.size());
    if (isNew)
      groups.push_back({target, nullptr, {}});
    return groups[at->second];
  }

  struct Place {
    const TargetBackend *target;
    int64_t turn;
  };
  const PhaseContext &context;
  func::FuncOp function;
  llvm::DenseMap<Operation *, Place> places;
  llvm::DenseMap<std::pair<const TargetBackend *, int64_t>, size_t> numbers;
};

class Grouping {
public:
  Grouping(const PhaseContext &context, func::FuncOp function)
      : context(context), function(function), wholeGraphs(context, function) {}

  /// All groups, each with its ops; false after an error was reported.
  bool run(std::vector<Group> &groups) {
    wholeGraphs.run(groups);
    for (const Group &group : groups)
      grouped.insert(group.ops.begin(), group.ops.end());
    claimInner();
    SmallVector<Operation *> pulls;
    for (Operation &op : function.getOps()) {
      if (staysOutside(&op) || grouped.contains(&op))
        continue;
      if (dmir::isPulled(&op)) {
        pulls.push_back(&op);
      } else if (!startGroup(&op, groups, /*takesConsumers=*/true)) {
        return false;
      }
    }
    // From the end, so that a chain's last op is its root and pulls the others in.
    for (Operation *op : llvm::reverse(pulls))
      if (!grouped.contains(op) && !startGroup(op, groups, /*takesConsumers=*/false))
        return false;
    return true;
  }

private:
  /// Puts aside what the kernels of later ops compute on the way; no kernel is part of another one.
  void claimInner() {
    for (Operation &op : function.getOps()) {
      bool candidate = context.optLevel > 0 && !dmir::isPulled(&op) && !staysOutside(&op) && !grouped.contains(&op);
      const TargetBackend *target = candidate ? context.responsible(&op) : nullptr;
      SmallVector<Operation *> ops = target ? target->computedWith(&op) : SmallVector<Operation *>();
      if (llvm::any_of(ops, [&](Operation *inside) {
            return grouped.contains(inside) || inner.contains(inside) || context.responsible(inside) != target;
          }))
        continue;
      grouped.insert(ops.begin(), ops.end());
      if (!ops.empty())
        inner[&op] = std::move(ops);
    }
  }

  bool startGroup(Operation *root, std::vector<Group> &groups, bool takesConsumers) {
    const TargetBackend *target = context.responsibleAlone(root);
    if (!target) {
      root->emitError() << "no target computes '" << root->getName() << "' [op-unsupported]";
      return false;
    }
    Group group{target, root, {}};
    for (Operation *op : inner.lookup(root))
      add(group, op);
    add(group, root);
    if (context.optLevel > 0) {
      if (takesConsumers && root->getNumResults() == 1)
        absorbConsumers(group);
      absorbProducers(group);
    }
    groups.push_back(std::move(group));
    return true;
  }

  void add(Group &group, Operation *op, bool isFurther = false) {
    group.ops.insert(op);
    grouped.insert(op);
    if (group.target->mostArguments() == UINT64_MAX)
      return;
    group.arguments.add(op, group.ops);
    group.arguments.results += isFurther;
  }

  /// Whether the group's kernel could still be given its arguments with these ops, of which one is a further result.
  static bool hasRoom(const Group &group, ArrayRef<Operation *> ops, bool isFurther = false) {
    const uint64_t most = group.target->mostArguments();
    if (most == UINT64_MAX)
      return true;
    uint64_t more = isFurther; // at most
    dmir::SymbolSet symbols;
    for (Operation *op : ops) {
      more += op->getNumOperands();
      dmir::collectSymbols(op, symbols);
    }
    if (group.arguments.count() + more + symbols.size() <= most)
      return true;
    Arguments arguments = group.arguments;
    llvm::SetVector<Operation *> all(ops.begin(), ops.end());
    all.insert_range(group.ops);
    for (Operation *op : ops)
      arguments.add(op, all);
    return arguments.count() + isFurther <= most;
  }

  void absorbConsumers(Group &group) {
    for (Value result = group.root->getResult(0); result;) {
      llvm::SetVector<Operation *> consumers;
      result = join(group, result, consumers);
      if (!hasRoom(group, consumers.getArrayRef()))
        return;
      for (Operation *consumer : consumers)
        add(group, consumer);
    }
  }

  /// The first value that everything computed from `result` goes through, and the consumers on the way: one op, or all
  /// of x * sigmoid(x). Null, and none, where there is no such value near or the target does not fuse a consumer.
  Value join(const Group &group, Value result, llvm::SetVector<Operation *> &absorbed) const {
    constexpr size_t kMost = 16; // what takes more is no activation
    llvm::SetVector<Operation *> consumers;
    for (Value next = result; consumers.size() < kMost;) {
      for (Operation *user : next.getUsers()) {
        if (!dmir::isPulled(user) || staysOutside(user) || grouped.contains(user) ||
            context.refusal(*group.target, user) || !group.target->fusesConsumer(group.root, result, user))
          return {};
        consumers.insert(user);
      }
      SmallVector<Operation *> open; // used outside
      for (Operation *op : consumers)
        if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !consumers.contains(user); }))
          open.push_back(op);
      if (open.empty())
        break;
      Operation *first = *llvm::min_element(open, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      next = first->getResult(0);
      if (open.size() == 1) {
        absorbed = std::move(consumers);
        return next;
      }
    }
    return {};
  }

  void absorbProducers(Group &group) {
    for (size_t i = 0; i < group.ops.size(); ++i) // grows while it runs
      for (Value operand : group.ops[i]->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (!producer || !dmir::isPulled(producer) || isa<dmir::ConstantOp>(producer) || grouped.contains(producer) ||
            context.refusal(*group.target, producer))
          continue;
        bool isPrivate = llvm::all_of(producer->getUsers(), [&](Operation *user) { return group.ops.contains(user); });
        if ((isPrivate || isFurtherResult(group, producer)) && hasRoom(group, producer, !isPrivate) &&
            fuses(group, producer) && group.places.enter(producer, group.ops))
          add(group, producer, !isPrivate);
      }
  }

  /// Whether all that reads a producer in the group can: an epilogue computes what a product needs in memory.
  static bool fuses(const Group &group, Operation *producer) {
    return llvm::all_of(producer->getUses(), [&](OpOperand &use) {
      return !group.ops.contains(use.getOwner()) || group.target->fusesProducer(group.root, use, producer);
    });
  }

  /// Whether the group may give out the producer's value too: all others that read it stand behind the group, and in no
  /// earlier turn, which the group may wait for.
  bool isFurtherResult(const Group &group, Operation *producer) const {
    if (!dmir::isPulled(group.root) || !group.target->yieldsProducer(group.root, producer))
      return false;
    return llvm::all_of(producer->getUsers(), [&](Operation *user) {
      Operation *reader = group.root->getBlock()->findAncestorOpInBlock(*user);
      return group.ops.contains(user) ||
             (reader && group.root->isBeforeInBlock(reader) &&
              (isa<func::ReturnOp>(reader) || wholeGraphs.turnOf(reader) >= wholeGraphs.turnOf(group.root)));
    });
  }

  const PhaseContext &context;
  func::FuncOp function;
  WholeGraphs wholeGraphs;
  llvm::DenseSet<Operation *> grouped;
  llvm::DenseMap<Operation *, SmallVector<Operation *>> inner; // by root
};

/// Whether a group reads a constant as nothing but indices that kernels of regions compute.
bool isRuledIndex(const Group &group, Value constant) {
  return !group.target->computesWholeGraphs() && llvm::all_of(constant.getUses(), [&](OpOperand &use) {
    return !group.ops.contains(use.getOwner()) || dmir::isRuledIndex(use);
  });
}

/// Scalars become part of the kernel, and indices that it computes; larger constants stay buffers, so that kernels
/// which differ in them alone are one, and so do weights of convolutions for a target that computes whole graphs, which
/// packs them.
bool sinksIntoRegion(const Group &group, Value value) {
  auto constant = value.getDefiningOp<dmir::ConstantOp>();
  if (!constant || isa_and_nonnull<dmir::ExternOp>(group.root))
    return false;
  if (isRuledIndex(group, constant))
    return true;
  if (cast<RankedTensorType>(constant.getType()).getNumElements() != 1 || !isa<DenseElementsAttr>(constant.getValue()))
    return false;
  return group.root || llvm::none_of(value.getUses(), [&](OpOperand &use) {
           return isa<dmir::ConvOp>(use.getOwner()) && use.getOperandNumber() == 1 &&
                  group.ops.contains(use.getOwner());
         });
}

/// What other groups and the function's results read of a group.
SmallVector<Value> resultsOf(const Group &group) {
  SmallVector<Value> results;
  for (Operation *op : group.ops)
    for (Value result : op->getResults())
      // Of the last op of a fused region, used or not.
      if ((op == group.ops.back() && group.root) ||
          llvm::any_of(result.getUsers(), [&](Operation *user) { return !group.ops.contains(user); }))
        results.push_back(result);
  return results;
}

void outline(Group &group) {
  SmallVector<Operation *> ops(group.ops.begin(), group.ops.end());
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  group.ops = llvm::SetVector<Operation *>(ops.begin(), ops.end());
  llvm::SetVector<Value> inputs;
  SmallVector<Operation *> constants;
  for (Operation *op : ops)
    for (Value operand : op->getOperands()) {
      if (group.ops.contains(operand.getDefiningOp()))
        continue;
      if (sinksIntoRegion(group, operand)) {
        if (!llvm::is_contained(constants, operand.getDefiningOp()))
          constants.push_back(operand.getDefiningOp());
      } else {
        inputs.insert(operand);
      }
    }
  SmallVector<Location> locations;
  for (Operation *op : ops)
    locations.push_back(op->getLoc());
  SmallVector<Value> outer = resultsOf(group), inner;
  OpBuilder builder(ops.back());
  Location loc = builder.getFusedLoc(locations);
  auto region = dmir::RegionOp::create(builder, loc, ValueRange(outer).getTypes(), inputs.getArrayRef(),
                                       builder.getStringAttr(group.target->name()), DictionaryAttr(), ArrayAttr());
  Block *block = builder.createBlock(&region.getBody());
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, block->addArgument(input.getType(), input.getLoc()));
  for (Operation *constant : constants)
    dmir::cloneInText(builder, constant, mapping);
  for (Operation *op : ops)
    builder.clone(*op, mapping);
  for (Value result : outer)
    inner.push_back(mapping.lookup(result));
  dmir::YieldOp::create(builder, loc, inner);
  for (auto [before, after] : llvm::zip(outer, region.getResults()))
    before.replaceAllUsesWith(after);
  for (Operation *op : llvm::reverse(ops))
    op->erase();
}

/// Puts every op behind what it waits for, and moves no op that it need not.
LogicalResult sortByDependences(func::FuncOp function) {
  Dependences dependences(function);
  Operation *end = function.getBody().front().getTerminator();
  llvm::DenseSet<Operation *> waiting;
  SmallVector<std::pair<Operation *, llvm::SetVector<Operation *>>> rest;
  for (Operation &op : function.getBody().front().without_terminator()) {
    rest.emplace_back(&op, dependences.of(&op));
    waiting.insert(&op);
  }
  while (!rest.empty()) {
    const size_t before = rest.size();
    llvm::erase_if(rest, [&](auto &entry) {
      if (llvm::any_of(entry.second, [&](Operation *op) { return waiting.contains(op); }))
        return false;
      entry.first->moveBefore(end);
      waiting.erase(entry.first);
      return true;
    });
    if (rest.size() == before)
      return rest.front().first->emitError() << "internal error: regions wait for each other";
  }
  return success();
}

struct FormRegions : dmxc::impl::FormRegionsBase<FormRegions> {
  explicit FormRegions(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    std::vector<Group> groups;
    if (!Grouping(context, getOperation()).run(groups))
      return signalPassFailure();
    for (Group &group : groups)
      outline(group);
    // A whole graph stands where its last op was, behind the first readers of its other results.
    if (llvm::any_of(groups, [](const Group &group) { return !group.root; }) &&
        failed(sortByDependences(getOperation())))
      return signalPassFailure();
    // Constants that were sunk everywhere are left without users.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getOperation().getBody().front())))
      if (isa<dmir::ConstantOp, dmir::ReshapeOp>(op) && op.use_empty())
        op.erase();
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createFormRegionsPass(const PhaseContext &context) {
  return std::make_unique<FormRegions>(context);
}
} // namespace dmxc
