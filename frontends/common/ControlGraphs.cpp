//===- ControlGraphs.cpp - graphs that branches and loops own -------------===//
#include "ControlGraphs.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace dmxc::frontend {

//===--- One graph
//--------------------------------------------------------------===//

Emitter::OwnedGraph::OwnedGraph(Emitter &e, const std::string &suffix, ArrayRef<RankedTensorType> types,
                                const OwnedGraph *sibling)
    : e(e), outerBlock(e.block), node(e.node) {
  auto around = mlir::cast<func::FuncOp>(e.block->getParentOp());
  std::string stem = around.isPrivate() ? node + "." + suffix : (around.getSymName() + "." + node + "." + suffix).str();
  std::string name = stem;
  for (int i = 1; !e.graphNames.insert(name).second; ++i)
    name = stem + "." + std::to_string(i);
  SmallVector<Type> all(types.begin(), types.end());
  OpBuilder module = OpBuilder::atBlockEnd(around->getParentOfType<ModuleOp>().getBody());
  frame.function = func::FuncOp::create(module, e.loc, name, module.getFunctionType(all, {}));
  frame.function.setPrivate();
  e.block = frame.function.addEntryBlock();
  e.builder.setInsertionPointToEnd(e.block);
  e.frames.push_back(&frame);
  frame.given = types.size();
  for (BlockArgument argument : e.block->getArguments())
    arguments.push_back(e.fromSSA(argument));
  if (sibling)
    for (const Val &value : sibling->captures())
      e.capture(value);
}

Emitter::OwnedGraph::~OwnedGraph() {
  if (active)
    leave();
  if (!kept)
    eraseGraph(frame.function->getParentOfType<ModuleOp>(), frame.function.getSymName());
}

void Emitter::OwnedGraph::leave() {
  active = false;
  e.frames.pop_back();
  e.block = outerBlock;
  e.builder.setInsertionPointToEnd(outerBlock);
  e.setNode(node);
}

void Emitter::OwnedGraph::finish(ArrayRef<Val> results) {
  e.setNode(node);
  SmallVector<Value> values;
  for (const Val &result : results)
    values.push_back(e.ssa(result));
  func::ReturnOp::create(e.builder, e.loc, values);
  std::vector<std::string> missing = missingSymbols();
  leave();
  for (const std::string &symbol : missing)
    addCapture(e.symbolCarrier(symbol));
  Block &body = frame.function.getBody().front();
  frame.function.setFunctionType(e.builder.getFunctionType(body.getArgumentTypes(), ValueRange(values).getTypes()));
}

void Emitter::OwnedGraph::addCapture(const Val &value) {
  frame.captures.push_back(value);
  frame.function.getBody().front().addArgument(value.type(), e.loc);
}

void Emitter::OwnedGraph::adoptCaptures(const OwnedGraph &other) {
  for (const Val &value : other.captures().drop_front(frame.captures.size()))
    addCapture(value);
  Block &body = frame.function.getBody().front();
  frame.function.setFunctionType(e.builder.getFunctionType(body.getArgumentTypes(), frame.function.getResultTypes()));
}

/// The symbols that a graph uses and that neither its arguments nor its ops define; `own` gets those that ops define.
std::vector<std::string> Emitter::OwnedGraph::missingSymbols() {
  Block &body = frame.function.getBody().front();
  std::set<std::string> defined;
  dmir::SymbolSet used;
  auto lone = [](Type type, auto visit) {
    for (Dim dim : dmir::dimsOf(type))
      if (std::optional<std::string> symbol = dim.symbolName())
        visit(*symbol);
  };
  for (BlockArgument argument : body.getArguments()) {
    lone(argument.getType(), [&](const std::string &symbol) { defined.insert(symbol); });
    for (Dim dim : dmir::dimsOf(argument))
      dim.forEachSymbol([&](std::string_view symbol) { used.insert(e.builder.getStringAttr(symbol)); });
  }
  for (Operation &op : body) {
    dmir::collectSymbols(&op, used);
    if (auto define = dyn_cast<dmir::DefineDimsOp>(op))
      for (Attribute symbol : define.getSymbols())
        own.insert(mlir::cast<StringAttr>(symbol).getValue().str());
  }
  for (Operation &op : body)
    if (isa<dmir::IfOp, dmir::LoopOp>(op))
      for (Type type : op.getResultTypes())
        lone(type, [&](const std::string &symbol) {
          if (e.resultSymbols.count(symbol))
            own.insert(symbol);
        });
  defined.insert(own.begin(), own.end());
  std::vector<std::string> missing, waiting;
  for (StringAttr symbol : used)
    waiting.push_back(symbol.getValue().str());
  while (!waiting.empty()) {
    std::string symbol = waiting.back();
    waiting.pop_back();
    if (!defined.insert(symbol).second)
      continue;
    auto row = llvm::find_if(e.computed, [&](const auto &entry) { return entry.first == symbol; });
    if (row == e.computed.end())
      missing.push_back(symbol);
    else
      row->second.forEachSymbol([&](std::string_view part) { waiting.push_back(std::string(part)); });
  }
  llvm::sort(missing);
  return missing;
}

bool Emitter::OwnedGraph::knownOutside(Dim dim) const {
  bool known = true;
  dim.forEachSymbol([&](std::string_view part) {
    std::string symbol(part);
    auto row = llvm::find_if(e.computed, [&](const auto &entry) { return entry.first == symbol; });
    known &= !own.count(symbol) && (row == e.computed.end() || knownOutside(row->second));
  });
  return known;
}

Value Emitter::capture(const Val &value) {
  Frame &frame = *frames.back();
  if (auto found = frame.values.find(value.state.get()); found != frame.values.end())
    return found->second;
  Value here;
  if (value.state->ssa && !value.state->isConstant && !value.state->sizes) {
    frame.captures.push_back(value);
    here = block->addArgument(value.type(), loc);
  } else {
    here = materialise(value);
  }
  frame.kept.push_back(value);
  return frame.values[value.state.get()] = here;
}

Val Emitter::symbolCarrier(const std::string &symbol) { return splat(DType::Bool, {Dim::symbol(symbol), 0}, 0); }

//===--- Branches
//---------------------------------------------------------------===//

static std::vector<Val> poisons(size_t count) { return std::vector<Val>(count, Val::poison()); }

static void requireTensors(ArrayRef<Val> values, const char *what) {
  for (const Val &value : values)
    if (!value.isTensor())
      fail("op-unsupported",
           std::string(what) + " that a run decides has a sequence or an optional; only tensors can be passed there");
}

Dim Emitter::resultDim() { return Dim::symbol(*resultSymbols.insert(freshSymbol()).first); }

std::vector<Val> Emitter::branch(const Val &condition, const Branch &onTrue, const Branch &onFalse) {
  Val decides = reshape(condition, {});
  OwnedGraph first(*this, "then", {});
  std::vector<Val> a = onTrue();
  if (Val::anyPoison(a))
    return poisons(a.size());
  requireTensors(a, "a branch");
  first.finish(a);
  OwnedGraph second(*this, "else", {}, &first);
  std::vector<Val> b = onFalse();
  if (Val::anyPoison(b))
    return poisons(b.size());
  requireTensors(b, "a branch");
  if (a.size() != b.size())
    fail("onnx-graph",
         "the branches have " + std::to_string(a.size()) + " and " + std::to_string(b.size()) + " outputs");
  second.finish(b);
  first.adoptCaptures(second);
  SmallVector<Type> types;
  for (auto [i, pair] : llvm::enumerate(llvm::zip(a, b))) {
    auto &[x, y] = pair;
    if (x.dtype() != y.dtype() || x.rank() != y.rank())
      fail(kBranchesDiffer, "output " + std::to_string(i) + " is " + x.describe() + " in one branch and " +
                                y.describe() + " in the other; they must agree in type and rank");
    Dims dims;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
      Dim dim = x.extent(axis);
      bool same = dim == y.extent(axis) && first.knownOutside(dim) && second.knownOutside(dim);
      dims.push_back(same ? dim : resultDim());
    }
    types.push_back(typeOf(x.dtype(), dims));
  }
  SmallVector<Value> captures;
  for (const Val &value : second.captures())
    captures.push_back(ssa(value));
  auto op = dmir::IfOp::create(builder, loc, types, ssa(decides), captures, first.symbol(), second.symbol());
  first.keep();
  second.keep();
  return resultsOf(op);
}

//===--- Loops
//------------------------------------------------------------------===//

std::vector<Val> Emitter::loop(const Val &trips, const Val &start, const std::vector<Val> &carried,
                               const LoopBody &body) {
  requireTensors(carried, "a loop");
  Val condition = start && start.isConstant() && start.constant().asInt(0) ? Val() : start;
  RankedTensorType number = typeOf(DType::I64, {}), truth = typeOf(DType::Bool, {});
  std::vector<Dims> dims; ///< of the carried values: those that change are symbols of the body
  for (const Val &value : carried)
    dims.push_back(value.dims());
  std::set<std::string> own;
  // Each round finds dims that change, at most as many as there are.
  while (true) {
    SmallVector<RankedTensorType> types{number, truth};
    for (auto [value, shape] : llvm::zip(carried, dims))
      types.push_back(typeOf(value.dtype(), shape));
    OwnedGraph graph(*this, "body", types);
    graph.own = own;
    ArrayRef<Val> inputs(graph.arguments);
    std::vector<Val> outputs = body(inputs[0], inputs[1], inputs.drop_front(2));
    if (Val::anyPoison(outputs))
      return poisons(outputs.size() - 1);
    requireTensors(outputs, "a loop");
    outputs[0] = reshape(cast(outputs[0], DType::Bool), {});
    graph.finish(outputs);
    bool changed = false;
    for (size_t i = 0; i < carried.size(); ++i) {
      const Val &next = outputs[i + 1];
      if (next.dtype() != carried[i].dtype() || next.rank() != carried[i].rank())
        fail("op-unsupported", "carried value " + std::to_string(i) + " is " + carried[i].describe() +
                                   " at first and " + next.describe() + " after an iteration; type and rank must stay");
      for (int64_t axis = 0; axis < next.rank(); ++axis) {
        Dim &dim = dims[i][axis];
        std::optional<std::string> symbol = dim.symbolName();
        if (next.extent(axis) == dim || (symbol && own.count(*symbol)))
          continue;
        dim = Dim::symbol(freshSymbol());
        own.insert(*dim.symbolName());
        changed = true;
      }
    }
    if (!changed)
      return makeLoop(graph, trips, condition, carried, dims, outputs);
  }
}

/// Whether the next condition is true, or that of the iteration.
bool Emitter::goesOn(const OwnedGraph &graph, const Val &condition) {
  return condition.isConstant() ? condition.constant().asInt(0) != 0
                                : condition.state->ssa && condition.state->ssa == graph.arguments[1].state->ssa;
}

std::vector<Val> Emitter::makeLoop(OwnedGraph &graph, const Val &trips, const Val &condition,
                                   const std::vector<Val> &carried, const std::vector<Dims> &dims,
                                   const std::vector<Val> &outputs) {
  auto outside = [&](const Dims &inside) {
    Dims result;
    for (Dim dim : inside)
      result.push_back(graph.knownOutside(dim) ? dim : resultDim());
    return result;
  };
  SmallVector<Type> types;
  for (auto [value, shape] : llvm::zip(carried, dims))
    types.push_back(typeOf(value.dtype(), outside(shape)));
  std::optional<Dim> count; // the iterations are as many as trips says unless the condition ends them
  if (trips && trips.hasSizes() && !condition && goesOn(graph, outputs[0]))
    count = trips.isConstant() ? Dim(std::max<int64_t>(trips.constant().asInt(0), 0)) : trips.sizes()[0];
  for (size_t i = carried.size() + 1; i < outputs.size(); ++i) {
    if (!count)
      count = resultDim();
    Dims shape = outside(outputs[i].dims());
    shape.insert(shape.begin(), *count);
    types.push_back(typeOf(outputs[i].dtype(), shape));
  }
  auto all = [&](ArrayRef<Val> values) { return llvm::map_to_vector(values, [&](const Val &v) { return ssa(v); }); };
  Value limit = trips ? ssa(reshape(trips, {})) : Value();
  Value start = condition ? ssa(reshape(condition, {})) : Value();
  auto op =
      dmir::LoopOp::create(builder, loc, types, limit, start, all(carried), all(graph.captures()), graph.symbol());
  graph.keep();
  return resultsOf(op);
}

//===--- Going back
//-------------------------------------------------------------===//

Emitter::Checkpoint Emitter::checkpoint() {
  Checkpoint here;
  here.block = block;
  here.last = block->empty() ? nullptr : &block->back();
  here.node = node;
  return here;
}

/// Constants and sizes, which values made before may be kept as.
static bool isMaterialised(Operation *op) {
  while (isa<dmir::CastOp, dmir::ReshapeOp>(op) && op->getOperand(0).getDefiningOp())
    op = op->getOperand(0).getDefiningOp();
  return isa<dmir::ConstantOp, dmir::DimTensorOp>(op);
}

void Emitter::eraseGraph(ModuleOp module, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  for (Operation &op : function.getBody().front())
    eraseGraphsOf(&op);
  function.erase();
}

void Emitter::eraseGraphsOf(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  if (auto branch = dyn_cast<dmir::IfOp>(op)) {
    eraseGraph(module, branch.getThenGraph());
    eraseGraph(module, branch.getElseGraph());
  } else if (auto loop = dyn_cast<dmir::LoopOp>(op)) {
    eraseGraph(module, loop.getBody());
  }
}

void Emitter::rollBack(const Checkpoint &checkpoint) {
  for (Operation *op = block->empty() ? nullptr : &block->back(), *before; op && op != checkpoint.last; op = before) {
    before = op->getPrevNode();
    if (isMaterialised(op))
      continue;
    eraseGraphsOf(op);
    op->erase();
  }
  builder.setInsertionPointToEnd(block);
  setNode(checkpoint.node);
}

} // namespace dmxc::frontend
