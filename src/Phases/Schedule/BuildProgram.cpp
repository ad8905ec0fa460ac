//===- BuildProgram.cpp - from placed regions to DLIR ---------------------===//
#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/Constraints.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"
#include "dmxc/Phases/Decisions.h"
#include "dmxc/Phases/Memory/Layout.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"

namespace dmxc {
#define GEN_PASS_DEF_BUILDPROGRAM
#include "dmxc/Phases/Schedule/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// Outlines region bodies; regions with equal text (locations aside) share one kernel, unless it owns its constants.
class Outliner {
public:
  Outliner(ModuleOp module, const PhaseContext &context) : module(module), context(context) {}

  dlir::KernelOp lookup(dmir::RegionOp region) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    NamedAttrList kernelStrategy(region.getStrategyAttr());
    for (StringRef key : taskKeys)
      kernelStrategy.erase(key);
    auto kernel = dlir::KernelOp::create(builder, region.getLoc(), "kernel", region.getDevice(),
                                         kernelStrategy.getDictionary(module.getContext()));
    IRMapping mapping;
    region.getBody().cloneInto(&kernel.getBody(), mapping);
    if (usesFacts(region))
      dmir::keepFactsOfOperands(region, kernel);
    else
      kernel->walk([](Operation *op) { op->removeAttr(dmir::kSparsityAttr); });
    std::string text;
    llvm::raw_string_ostream stream(text);
    // Whatever dmx-opt prints of its result.
    kernel->print(stream, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
    if (region.getStrategyAttr().contains(strategy::kOwnsConstants))
      stream << kernels.size();
    auto [entry, isNew] = kernels.try_emplace(text, kernel);
    if (!isNew) {
      kernel.erase();
      return entry->second;
    }
    auto algorithm = region.getStrategyAttr().getAs<StringAttr>(strategy::kAlgorithm);
    std::string name = "k" + std::to_string(kernels.size() - 1) + "_";
    // Its first word: what follows says how it is used, "bf16-tiles of 64x32x64".
    for (char c : algorithm ? algorithm.getValue().split(' ').first : StringRef("region"))
      name += llvm::isAlnum(c) ? c : '_';
    kernel.setSymName(name);
    return kernel;
  }

private:
  /// Whether code is made by what is known of tensors. In stages of a target ops get other types, which it is not known
  /// of.
  bool usesFacts(dmir::RegionOp region) const {
    const TargetBackend *target = context.target(region.getDevice());
    return target && target->stages().empty() && !region.getBlock()->getOps<dmir::MatMulOp>().empty();
  }

  ModuleOp module;
  const PhaseContext &context;
  llvm::StringMap<dlir::KernelOp> kernels;
};

class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp function, Outliner &kernels, StringRef queue, StringRef hostQueue)
      : function(function), kernels(kernels), builder(function.getContext()),
        defaultQueue(function.isPrivate() ? hostQueue : queue), hostQueue(hostQueue) {}

  void run() {
    builder.setInsertionPoint(function);
    auto arenas = function->getAttrOfType<ArrayAttr>(dmir::kArenasAttr);
    program = dlir::ProgramOp::create(builder, function.getLoc(), function.getSymName(), signature(true),
                                      signature(false), arenas ? arenas : builder.getArrayAttr({}),
                                      function->getAttrOfType<ArrayAttr>(dmir::kConstraintsAttr), function.isPrivate());
    if (Attribute lengths = function->getAttr(dmir::kLengthsAttr))
      program->setAttr(dmir::kLengthsAttr, lengths);
    builder.createBlock(&program.getBody());
    tasks = OpBuilder::atBlockEnd(&program.getBody().front());
    for (BlockArgument argument : function.getArguments())
      buffers[argument] = argumentBuffer(argument);
    for (Operation &op : function.getOps()) {
      if (auto constant = dyn_cast<dmir::ConstantOp>(op))
        continue; // made where they are used: the form depends on the user
      if (auto reshape = dyn_cast<dmir::ReshapeOp>(op))
        addView(reshape);
      else if (auto region = dyn_cast<dmir::RegionOp>(op))
        addDispatch(region);
      else if (auto branch = dyn_cast<dmir::IfOp>(op))
        addBranch(branch);
      else if (auto loop = dyn_cast<dmir::LoopOp>(op))
        addLoop(loop);
    }
    addCopies(cast<func::ReturnOp>(function.getBody().front().getTerminator()));
  }

private:
  std::string portName(bool input, unsigned index) {
    auto attr = input ? function.getArgAttrOfType<StringAttr>(index, dmir::kNameAttr)
                      : function.getResultAttrOfType<StringAttr>(index, dmir::kNameAttr);
    return attr ? attr.getValue().str() : (input ? "in" : "out") + std::to_string(index);
  }

  Value argumentBuffer(BlockArgument argument) {
    const unsigned number = argument.getArgNumber();
    const bool isState = static_cast<bool>(stateOf(true, number));
    if (auto room = function.getArgAttrOfType<ArrayAttr>(number, dmir::kRoomAttr)) {
      buffer(dlir::BufferKind::input, argument, position(true, number), 0, storageSize(publicType(true, number)),
             portName(true, number));
      return cacheBuffer(argument);
    }
    Value made = buffer(isState ? dlir::BufferKind::state : dlir::BufferKind::input, argument, position(true, number),
                        0, storageSize(argument.getType()), portName(true, number));
    if (Attribute length = function.getArgAttr(number, dmir::kLengthAttr))
      made.getDefiningOp()->setAttr(dmir::kLengthAttr, length);
    return made;
  }

  /// The output that a cache of the caller is: the runtime puts the rows of the input there before the first task.
  Value cacheBuffer(BlockArgument argument) {
    StringAttr name = dmir::keptName(function, true, argument.getArgNumber());
    unsigned result = 0;
    while (dmir::keptName(function, false, result) != name)
      ++result;
    Value made =
        buffer(dlir::BufferKind::output, argument, result, 0, storageSize(argument.getType()), portName(false, result));
    SmallVector<Attribute> room(function.getResultAttrOfType<ArrayAttr>(result, dmir::kRoomAttr).getValue());
    room.push_back(builder.getI64IntegerAttr(position(true, argument.getArgNumber())));
    made.getDefiningOp()->setAttr(dmir::kRoomAttr, builder.getArrayAttr(room));
    return made;
  }

  Type publicType(bool input, unsigned index) {
    Type type = input ? function.getArgumentTypes()[index] : function.getResultTypes()[index];
    bool isCache = input ? static_cast<bool>(function.getArgAttr(index, dmir::kRoomAttr))
                         : static_cast<bool>(function.getResultAttr(index, dmir::kRoomAttr));
    return isCache ? dmir::tensorOf(dmir::callersDims(function, input, index),
                                    cast<RankedTensorType>(type).getElementType())
                   : type;
  }

  /// The name of the state that an argument or a result is, or null.
  StringAttr stateOf(bool input, unsigned index) {
    return input ? function.getArgAttrOfType<StringAttr>(index, dmir::kStateAttr)
                 : function.getResultAttrOfType<StringAttr>(index, dmir::kStateAttr);
  }

  /// The number of an argument or a result among those of the caller, or among the states.
  int64_t position(bool input, unsigned index) {
    bool isState = static_cast<bool>(stateOf(input, index));
    int64_t before = 0;
    for (unsigned i = 0; i < index; ++i)
      before += static_cast<bool>(stateOf(input, i)) == isState;
    return before;
  }

  /// The buffer of a state or of a cache.
  Value keptBuffer(StringAttr name) {
    for (BlockArgument argument : function.getArguments())
      if (dmir::keptName(function, true, argument.getArgNumber()) == name)
        return buffers.at(argument);
    return {};
  }

  /// The buffer of the state whose next value a region's result is, when the region keeps it on its device; null when
  /// not.
  Value keptState(dmir::RegionOp region, OpResult result) {
    if (region.getStrategyAttr().contains(strategy::kKeepsStates))
      for (auto [operand, number] : dmir::stateUpdates(region))
        if (number == result.getResultNumber())
          return buffers.at(region.getInputs()[operand]);
    return {};
  }

  ArrayAttr signature(bool input) {
    SmallVector<Attribute> entries;
    TypeRange types = input ? TypeRange(function.getArgumentTypes()) : TypeRange(function.getResultTypes());
    for (unsigned i = 0; i < types.size(); ++i) {
      if (stateOf(input, i))
        continue;
      NamedAttrList entry;
      entry.set("name", builder.getStringAttr(portName(input, i)));
      entry.set("type", TypeAttr::get(publicType(input, i)));
      if (Attribute text = input ? function.getArgAttr(i, dmir::kDescriptionAttr)
                                 : function.getResultAttr(i, dmir::kDescriptionAttr))
        entry.set("description", text);
      entries.push_back(entry.getDictionary(builder.getContext()));
    }
    return builder.getArrayAttr(entries);
  }

  /// Buffers are created before all tasks: at the front part of the block.
  Value buffer(dlir::BufferKind kind, Value value, int64_t index, int64_t offset, StorageSize size,
               const std::string &name, TypedAttr data = {}, DictionaryAttr form = {}, Value base = {}) {
    // An output may be written through a view of it: what the caller binds has the function's type.
    Type type = value.getType();
    if (kind == dlir::BufferKind::input)
      type = publicType(true, cast<BlockArgument>(value).getArgNumber());
    if (kind == dlir::BufferKind::output) {
      type = function.getResultTypes()[index];
      index = position(false, index);
    }
    OpBuilder at(function.getContext());
    Block *block = &program.getBody().front();
    if (lastBuffer)
      at.setInsertionPointAfter(lastBuffer);
    else
      at.setInsertionPointToStart(block);
    auto op = dlir::BufferOp::create(at, value.getLoc(), dlir::BufferType::get(function.getContext()), kind, type,
                                     index, offset, size.count, data, form, name, base, unitAttr(size));
    lastBuffer = op;
    return op;
  }

  Attribute unitAttr(const StorageSize &size) {
    return size.unit.isStatic() ? Attribute() : dmir::dimAttr(function.getContext(), size.unit);
  }

  static StorageSize sizeOf(dlir::BufferOp buffer) {
    return {static_cast<int64_t>(buffer.getSize()), dmir::dimOfAttr(buffer.getUnitAttr(), 1)};
  }

  /// A view is an alias of the bytes it looks at; a view of a constant is made by its user.
  void addView(dmir::ReshapeOp reshape) {
    Value base = reshape.getInput();
    if (base.getDefiningOp<dmir::ConstantOp>())
      base = constantBuffer(base, {});
    else
      base = buffers.at(base);
    auto whole = base.getDefiningOp<dlir::BufferOp>();
    int64_t offset = 0;
    if (whole.getKind() == dlir::BufferKind::alias) {
      offset = whole.getOffset();
      base = whole.getBase();
    }
    buffers[reshape] =
        buffer(dlir::BufferKind::alias, reshape, 0, offset, sizeOf(whole), dmir::nodeName(reshape), {}, {}, base);
  }

  Value constantBuffer(Value value, DictionaryAttr form) {
    TypedAttr data = value.getDefiningOp<dmir::ConstantOp>().getValue();
    Value &found = constants[{data, form}];
    if (!found) {
      int64_t size = form ? form.getAs<IntegerAttr>("size").getInt() : storageBytes(value.getType());
      found = buffer(dlir::BufferKind::constant, value, 0, 0, StorageSize{size, 1},
                     "c" + std::to_string(constants.size() - 1), data, form);
      if (Attribute rounded = value.getDefiningOp()->getAttr(dmir::kRoundedAttr))
        found.getDefiningOp()->setAttr(dmir::kRoundedAttr, rounded);
    }
    return found;
  }

  /// A value as it is, as tasks that need no other form of constants read it.
  Value plainBuffer(Value value) {
    return value.getDefiningOp<dmir::ConstantOp>() ? constantBuffer(value, {}) : buffers.at(value);
  }

  /// A value as a graph of a branch or loop gets it: with its own shape, which the graph's parameter has. A region that
  /// writes an output or a state through a view of it has the type of that as its buffer's, so that it takes an alias.
  Value passedBuffer(Value value) {
    Value plain = plainBuffer(value);
    auto whole = plain.getDefiningOp<dlir::BufferOp>();
    if (whole.getTensor() == value.getType())
      return plain;
    Value &found = passed[value];
    if (!found)
      found = buffer(dlir::BufferKind::alias, value, 0, 0, sizeOf(whole), dmir::nodeName(value.getDefiningOp()), {}, {},
                     plain);
    return found;
  }

  SmallVector<Value> passedBuffers(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return passedBuffer(value); });
  }

  /// What a branch or loop gives.
  SmallVector<Value> resultBuffers(Operation *op) {
    SmallVector<Value> made;
    for (OpResult result : op->getResults())
      made.push_back(buffers[result] = buffer(dlir::BufferKind::result, result, result.getResultNumber(), 0,
                                              storageSize(result.getType()), dmir::nodeName(op)));
    return made;
  }

  void addBranch(dmir::IfOp op) {
    SmallVector<Value> inputs = passedBuffers(op.getCaptures()), outputs = resultBuffers(op);
    lastToken = dlir::IfOp::create(tasks, op.getLoc(), dlir::TokenType::get(function.getContext()),
                                   passedBuffer(op.getCondition()), op.getThenGraph(), op.getElseGraph(), inputs,
                                   outputs, afterLast(), hostQueue, nodesOf(op));
  }

  void addLoop(dmir::LoopOp op) {
    SmallVector<Value> carried = passedBuffers(op.getCarried()), inputs = passedBuffers(op.getCaptures());
    Value trips = op.getTripCount() ? passedBuffer(op.getTripCount()) : Value();
    Value condition = op.getCondition() ? passedBuffer(op.getCondition()) : Value();
    SmallVector<Value> outputs = resultBuffers(op);
    lastToken = dlir::WhileOp::create(tasks, op.getLoc(), dlir::TokenType::get(function.getContext()), op.getBody(),
                                      trips, condition, carried, inputs, outputs, afterLast(), hostQueue, nodesOf(op));
  }

  ArrayAttr nodesOf(Operation *op) {
    llvm::SetVector<StringAttr> nodes;
    dmir::collectNodes(op->getLoc(), nodes);
    return builder.getArrayAttr(SmallVector<Attribute>(nodes.begin(), nodes.end()));
  }

  Value operandBuffer(dmir::RegionOp region, unsigned index) {
    Value value = region.getInputs()[index];
    if (!value.getDefiningOp<dmir::ConstantOp>())
      return buffers.at(value);
    auto packed = region.getStrategyAttr().getAs<DictionaryAttr>(strategy::kPacked);
    return constantBuffer(value, packed ? packed.getAs<DictionaryAttr>(std::to_string(index)) : DictionaryAttr());
  }

  void addDispatch(dmir::RegionOp region) {
    SmallVector<Value> inputs, outputs;
    for (unsigned i = 0; i < region.getInputs().size(); ++i)
      inputs.push_back(operandBuffer(region, i));
    for (auto [result, place] : llvm::zip(region->getResults(), region.getPlacementAttr())) {
      auto slot = cast<DictionaryAttr>(place);
      auto number = [&](StringRef key) {
        return slot.getAs<IntegerAttr>(key) ? slot.getAs<IntegerAttr>(key).getInt() : -1;
      };
      StorageSize size{number("size"), dmir::dimOfAttr(slot.get("unit"), 1)};
      bool isOutput = number("output") >= 0;
      StringAttr name =
          isOutput ? dmir::keptName(function, false, static_cast<unsigned>(number("output"))) : StringAttr();
      Value kept = name ? keptBuffer(name) : keptState(region, result);
      Value made = kept       ? kept
                   : isOutput ? buffer(dlir::BufferKind::output, result, number("output"), 0, size,
                                       portName(false, number("output")))
                              : buffer(dlir::BufferKind::arena, result, number("arena"), number("offset"), size,
                                       dmir::nodeName(region));
      if (isOutput)
        written.insert(number("output"));
      buffers[result] = made;
      outputs.push_back(made);
    }
    Dim counts[] = {dmir::dimOfAttr(region.getStrategyAttr().get(strategy::kWork), 1),
                    dmir::dimOfAttr(region.getStrategyAttr().get(strategy::kGrain), 1),
                    dmir::dimOfAttr(region.getStrategyAttr().get(strategy::kScratch)),
                    dmir::dimOfAttr(region.getStrategyAttr().get(strategy::kFlops)),
                    dmir::dimOfAttr(region.getStrategyAttr().get(strategy::kBytes))};
    bool dynamic = llvm::any_of(counts, [](Dim count) { return !count.isStatic(); });
    auto number = [&](int i) { return counts[i].valueOr(1); };
    lastToken = dlir::DispatchOp::create(
        tasks, region.getLoc(), dlir::TokenType::get(function.getContext()), kernels.lookup(region).getSymName(),
        inputs, outputs, afterLast(), region.getDevice(), nodesOf(region), number(0), number(1), number(2), number(3),
        number(4), dynamic ? Attribute(dmir::DimsAttr::get(function.getContext(), counts)) : Attribute(), ArrayAttr(),
        Attribute());
    for (auto define : region.getBlock()->getOps<dmir::DefineDimsOp>()) {
      auto dispatch = lastToken.getDefiningOp<dlir::DispatchOp>();
      dispatch.setSymbolsAttr(define.getSymbols());
      dispatch.setMaxAttr(define.getMax());
    }
  }

  /// A copy to an output, or to the next value of a state.
  struct Copy {
    Value source, target;
    StorageSize size;
    std::string name;
  };

  static Value wholeOf(Value buffer) {
    Value base = buffer.getDefiningOp<dlir::BufferOp>().getBase();
    return base ? base : buffer;
  }

  /// Outputs that no region writes: inputs, constants and bytes that another output has already.
  SmallVector<Copy> copiesOf(func::ReturnOp ret) {
    SmallVector<Copy> copies;
    for (OpOperand &operand : ret->getOpOperands()) {
      if (written.contains(operand.getOperandNumber()))
        continue;
      Value value = operand.get();
      Value source = plainBuffer(value);
      StorageSize size = sizeOf(source.getDefiningOp<dlir::BufferOp>());
      std::string name = portName(false, operand.getOperandNumber());
      StringAttr kept = dmir::keptName(function, false, operand.getOperandNumber());
      if (kept && source == keptBuffer(kept))
        continue;
      Value target =
          kept ? keptBuffer(kept) : buffer(dlir::BufferKind::output, value, operand.getOperandNumber(), 0, size, name);
      copies.push_back({source, target, size, name});
    }
    return copies;
  }

  /// What reads a state's value comes before what gives it the next one; no states exchange theirs (dmir-bind-states).
  void addCopies(func::ReturnOp ret) {
    StringRef queue = defaultQueue;
    for (auto dispatch : program.getBody().front().getOps<dlir::DispatchOp>()) {
      queue = dispatch.getQueue();
      break;
    }
    SmallVector<Copy> left = copiesOf(ret);
    while (!left.empty()) {
      auto next = llvm::find_if(left, [&](const Copy &copy) {
        return llvm::none_of(
            left, [&](const Copy &other) { return &other != &copy && wholeOf(other.source) == copy.target; });
      });
      if (next == left.end())
        next = left.begin();
      lastToken = dlir::CopyOp::create(tasks, ret.getLoc(), dlir::TokenType::get(function.getContext()), next->source,
                                       next->target, afterLast(), queue, builder.getStrArrayAttr({next->name}),
                                       next->size.count, unitAttr(next->size));
      left.erase(next);
    }
  }

  /// Tasks wait for the one before them until dlir-order-tasks finds out what they need: the program is valid in
  /// between.
  SmallVector<Value> afterLast() { return lastToken ? SmallVector<Value>{lastToken} : SmallVector<Value>{}; }

  func::FuncOp function;
  Outliner &kernels;
  OpBuilder builder;
  StringRef defaultQueue, hostQueue;
  Value lastToken;
  OpBuilder tasks{function.getContext()};
  dlir::ProgramOp program;
  Operation *lastBuffer = nullptr;
  llvm::DenseMap<Value, Value> buffers; ///< DMIR value -> DLIR buffer
  llvm::DenseMap<Value, Value> passed;  ///< DMIR value -> alias that has its type
  llvm::DenseMap<std::pair<Attribute, Attribute>, Value> constants;
  llvm::DenseSet<int64_t> written;
};

struct BuildProgram : dmxc::impl::BuildProgramBase<BuildProgram> {
  explicit BuildProgram(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    StringRef queue = context.targets.empty() ? "host" : context.targets.front()->name(), host = queue;
    for (const TargetBackend *target : context.targets)
      if (target->runsOnHost())
        host = target->name();
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Operation &op : function.getOps())
        if (std::optional<std::string> missing = missingOf(&op)) {
          op.emitError() << *missing;
          return signalPassFailure();
        }
    Outliner kernels(getOperation(), context);
    for (func::FuncOp function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      ProgramBuilder(function, kernels, queue, host).run();
      function.erase();
    }
  }

private:
  /// What an op lacks that the phases before give it: text may be that of none of them.
  static std::optional<std::string> missingOf(Operation *op) {
    auto region = dyn_cast<dmir::RegionOp>(op);
    if (!region)
      return isa<dmir::ConstantOp, dmir::ReshapeOp, dmir::IfOp, dmir::LoopOp, func::ReturnOp>(op)
                 ? std::nullopt
                 : std::optional<std::string>("it is in no region, which the phase partition makes");
    if (!region.getStrategyAttr())
      return "the region has no strategy, which the phase partition gives it";
    if (!region.getPlacementAttr())
      return "the region has no placement, which the phase memory gives it";
    return std::nullopt;
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createBuildProgramPass(const PhaseContext &context) {
  return std::make_unique<BuildProgram>(context);
}
} // namespace dmxc
