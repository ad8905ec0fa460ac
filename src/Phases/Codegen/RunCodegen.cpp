//===- RunCodegen.cpp - DLIR to bytes -------------------------------------===//
#include "CheckProgram.h"
#include "Exprs.h"
#include "Rounding.h"

#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Dialect/DLIR/TaskDims.h"
#include "dmxc/Dialect/DMIR/Constraints.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Phases/Memory/Layout.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace dmxc {

namespace {

bundle::TensorDesc portOf(Attribute attr) {
  auto entry = cast<DictionaryAttr>(attr);
  Type type = entry.getAs<TypeAttr>("type").getValue();
  auto description = entry.getAs<StringAttr>("description");
  return {entry.getAs<StringAttr>("name").getValue().str(),
          *dmir::dtypeOf(cast<RankedTensorType>(type).getElementType()), exprShape(type),
          description ? description.getValue().str() : ""};
}

class GraphSerializer {
public:
  GraphSerializer(dlir::ProgramOp program, CompiledModel &model, const PhaseContext &context)
      : program(program), model(model), context(context) {}

  void run() {
    graph.name = program.getSymName().str();
    addDims();
    addLengths();
    addComputedDims();
    addRooms();
    for (Attribute attr : program.getArenas()) {
      auto arena = cast<DictionaryAttr>(attr);
      Dim unit = dmir::dimOfAttr(arena.get("unit"), 1);
      graph.arenas.push_back({exprOf(dmir::dimOfAttr(arena.get("size")) * unit),
                              exprOf(dmir::dimOfAttr(arena.get("lower_bound")) * unit), kBufferAlign});
    }
    for (Operation &op : program.getBody().front()) {
      if (auto buffer = dyn_cast<dlir::BufferOp>(op))
        addBuffer(buffer);
      else if (auto dispatch = dyn_cast<dlir::DispatchOp>(op))
        addDispatch(dispatch);
      else if (auto branch = dyn_cast<dlir::IfOp>(op))
        addBranch(branch);
      else if (auto loop = dyn_cast<dlir::WhileOp>(op))
        addLoop(loop);
      else
        addCopy(cast<dlir::CopyOp>(op));
    }
    if (ArrayAttr constraints = program.getConstraintsAttr())
      for (Attribute attr : constraints)
        if (std::optional<dmir::DimConstraint> constraint = dmir::constraintOf(attr))
          graph.constraints.push_back(constraintDesc(*constraint));
    model.graph.graphs.push_back(std::move(graph));
    if (program.getOwned())
      return;
    bundle::EntryPoint entry;
    entry.name = program.getSymName().str();
    for (Attribute port : program.getInputs())
      entry.inputs.push_back(portOf(port));
    for (Attribute port : program.getOutputs())
      entry.outputs.push_back(portOf(port));
    entry.dims = std::move(dims);
    model.entryPoints.push_back(std::move(entry));
  }

private:
  /// The symbols that are dims of inputs, each where it first stands alone.
  void addDims() {
    for (auto [index, port] : llvm::enumerate(program.getInputs())) {
      Type type = cast<DictionaryAttr>(port).getAs<TypeAttr>("type").getValue();
      for (auto [axis, dim] : llvm::enumerate(dmir::dimsOf(type))) {
        std::optional<std::string> symbol = dim.symbolName();
        if (!symbol || isKnown(*symbol) || isLength(*symbol))
          continue;
        DimBounds bounds = dmir::symbolBounds(program, *symbol);
        bundle::DimDesc desc;
        desc.name = *symbol;
        desc.min = bounds.min;
        desc.max = bounds.max;
        desc.input = index;
        desc.axis = axis;
        graph.dims.push_back(std::move(desc));
        dims.push_back({*symbol, bounds.min, bounds.max});
      }
    }
  }

  bool isLength(StringRef symbol) {
    auto list = program->getAttrOfType<ArrayAttr>(dmir::kLengthsAttr);
    return list && llvm::any_of(list, [&](Attribute pair) {
             return cast<StringAttr>(cast<ArrayAttr>(pair)[0]).getValue() == symbol;
           });
  }

  /// The dims that the session keeps.
  void addLengths() {
    auto list = program->getAttrOfType<ArrayAttr>(dmir::kLengthsAttr);
    for (Attribute attr : list ? list.getValue() : ArrayRef<Attribute>()) {
      auto pair = cast<ArrayAttr>(attr);
      bundle::DimDesc row;
      row.name = cast<StringAttr>(pair[0]).getValue().str();
      row.max = dmir::symbolBounds(program, row.name).max;
      row.next = exprOf(dmir::dimOfAttr(pair[1]));
      dims.push_back({row.name, row.min, row.max});
      graph.dims.push_back(std::move(row));
    }
  }

  bool isKnown(StringRef symbol) {
    return llvm::any_of(graph.dims, [&](const bundle::DimDesc &row) { return row.name == symbol; });
  }

  /// Rows of the symbols that are computed from those known by now.
  void addComputedDims() {
    auto list = program->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(dmir::kComputedDimsAttr);
    for (Attribute attr : list ? list.getValue() : ArrayRef<Attribute>()) {
      auto pair = cast<ArrayAttr>(attr);
      StringRef name = cast<StringAttr>(pair[0]).getValue();
      Dim dim = dmir::dimOfAttr(pair[1]);
      bool ready = !isKnown(name);
      dim.forEachSymbol([&](std::string_view symbol) { ready &= isKnown(StringRef(symbol.data(), symbol.size())); });
      if (!ready)
        continue;
      bundle::DimDesc row;
      row.name = name.str();
      row.expr = exprOf(dim);
      graph.dims.push_back(std::move(row));
    }
  }

  /// How many rows there is room for in the tensors that a caller gives for caches.
  void addRooms() {
    for (auto op : program.getBody().front().getOps<dlir::BufferOp>())
      if (auto room = op->getAttrOfType<ArrayAttr>(dmir::kRoomAttr)) {
        bundle::DimDesc row;
        row.name = cast<StringAttr>(room[0]).getValue().str();
        row.expr = exprOf(dmir::dimOfAttr(room[2]));
        row.isRoom = true;
        if (!isKnown(row.name))
          graph.dims.push_back(std::move(row));
      }
  }

  /// The caller's tensor has the rows that are there.
  static void setRoom(ArrayAttr room, bundle::BufferDesc &desc) {
    desc.room = cast<StringAttr>(room[0]).getValue().str();
    desc.axis = cast<IntegerAttr>(room[1]).getInt();
    desc.past = cast<IntegerAttr>(room[3]).getInt();
    desc.shape[static_cast<size_t>(desc.axis)] = exprOf(dmir::dimOfAttr(room[2]));
  }

  void addBuffer(dlir::BufferOp op) {
    bundle::BufferDesc desc;
    auto type = cast<RankedTensorType>(op.getTensor());
    if (dmir::blockFpOf(type)) {
      // The bundle knows no block_fp: it is the bytes of its wire format.
      dmir::HostForm form = *dmir::hostFormOf(type);
      desc.dtype = form.dtype;
      desc.shape.assign(form.shape.begin(), form.shape.end());
    } else {
      desc.dtype = *dmir::dtypeOf(type.getElementType());
      desc.shape = exprShape(type);
    }
    desc.offset = exprOf(op.getOffsetDim());
    desc.size = exprOf(op.getSizeDim());
    desc.index = op.getIndex();
    switch (op.getKind()) {
    case dlir::BufferKind::input:
      desc.kind = bundle::BufferKind::Input;
      break;
    case dlir::BufferKind::output:
      desc.kind = bundle::BufferKind::Output;
      if (auto room = op->getAttrOfType<ArrayAttr>(dmir::kRoomAttr))
        setRoom(room, desc);
      break;
    case dlir::BufferKind::arena:
      desc.kind = bundle::BufferKind::Arena;
      desc.arena = op.getIndex();
      break;
    case dlir::BufferKind::alias:
      desc.kind = bundle::BufferKind::Alias;
      desc.of = ids.lookup(op.getBase());
      break;
    case dlir::BufferKind::result:
      desc.kind = bundle::BufferKind::Result;
      break;
    case dlir::BufferKind::state:
      desc.kind = bundle::BufferKind::State;
      if (auto length = op->getAttrOfType<ArrayAttr>(dmir::kLengthAttr)) {
        desc.length = cast<StringAttr>(length[0]).getValue().str();
        desc.axis = cast<IntegerAttr>(length[1]).getInt();
      }
      break;
    case dlir::BufferKind::constant:
      desc.kind = bundle::BufferKind::Const;
      desc.entry = kWeightsEntry;
      desc.tensor = addConstant(op, desc.dtype);
      if (op.getFormAttr()) { // bytes that only its kernels understand, of any size
        desc.dtype = DType::U8;
        desc.shape = {static_cast<int64_t>(op.getSize())};
      }
      break;
    }
    ids[op.getResult()] = graph.buffers.size();
    graph.buffers.push_back(std::move(desc));
  }

  /// The first task that reads a constant; null where a copy does.
  dlir::DispatchOp readerOf(dlir::BufferOp op) {
    dlir::DispatchOp first;
    for (Operation *user : op.getResult().getUsers())
      if (auto dispatch = dyn_cast<dlir::DispatchOp>(user); dispatch && (!first || dispatch->isBeforeInBlock(first)))
        first = dispatch;
    return first;
  }

  /// The node of the model that has a constant.
  static std::string nodeOf(dlir::BufferOp op, dlir::DispatchOp reader) {
    auto nodes = reader ? reader.getNodes() : ArrayAttr();
    return nodes && !nodes.empty() ? cast<StringAttr>(nodes[0]).getValue().str() : op.getName().str();
  }

  std::string addConstant(dlir::BufferOp op, DType dtype) {
    ConstantPayload payload;
    payload.name = (program.getSymName() + "." + op.getName()).str();
    payload.size = op.getSize();
    Attribute data = op.getDataAttr();
    DictionaryAttr form = op.getFormAttr();
    dlir::DispatchOp reader = readerOf(op);
    const std::string node = nodeOf(op, reader);
    // A form is one target's own.
    const TargetBackend *target = reader ? context.target(reader.getQueue()) : context.targets.front();
    if (!form) {
      payload.dtype = dtype;
      ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getTensor()).getShape();
      payload.shape.assign(shape.begin(), shape.end());
      payload.fill = [data](std::span<std::byte> out) -> Status {
        Result<Tensor> tensor = dmir::constantTensor(data);
        if (!tensor)
          return tensor.takeError();
        std::memcpy(out.data(), tensor->data(), out.size());
        return Status::ok();
      };
    } else {
      payload.dtype = DType::U8;
      payload.shape = {static_cast<int64_t>(payload.size)};
      payload.form = form.getAs<StringAttr>("form").getValue().str();
      payload.fill = [data, form, target, node](std::span<std::byte> out) -> Status {
        Result<Tensor> tensor = dmir::constantTensor(data);
        Status done = tensor ? target->pack(form, *tensor, out) : Status(tensor.takeError());
        if (done)
          return done;
        Error error = done.takeError();
        error.message = "node '" + node + "': " + error.message;
        return error;
      };
    }
    payload.rounded = roundingOf(op, node, *target);
    model.constants.push_back(std::move(payload));
    return model.constants.back().name;
  }

  int64_t queueOf(StringRef name) {
    for (size_t i = 0; i < graph.queues.size(); ++i)
      if (graph.queues[i].name == name)
        return i;
    graph.queues.push_back({name.str(), name.str()});
    return graph.queues.size() - 1;
  }

  bundle::TaskDesc task(StringRef queue, ArrayAttr nodes, OperandRange after) {
    bundle::TaskDesc desc;
    desc.queue = queueOf(queue);
    for (Attribute node : nodes)
      desc.nodes.push_back(cast<StringAttr>(node).getValue().str());
    desc.name = desc.nodes.empty() ? "" : desc.nodes.front();
    for (Value token : after)
      desc.deps.push_back(taskIds.lookup(token));
    llvm::sort(desc.deps);
    return desc;
  }

  void addDispatch(dlir::DispatchOp op) {
    bundle::TaskDesc desc = task(op.getQueue(), op.getNodes(), op.getAfter());
    desc.kernel = op.getKernel().str();
    if (desc.name.empty())
      desc.name = desc.kernel;
    desc.buffers = idsOf(op.getInputs());
    llvm::append_range(desc.buffers, idsOf(op.getOutputs()));
    desc.outputs = op.getOutputs().size();
    auto dynamic = dyn_cast_or_null<dmir::DimsAttr>(op.getDimsAttr());
    auto count = [&](unsigned i, uint64_t number) {
      return dynamic ? exprOf(dynamic.getDims()[i]) : bundle::Expr(static_cast<int64_t>(number));
    };
    desc.work = count(0, op.getWork());
    desc.grain = count(1, op.getGrain());
    desc.scratch = count(2, op.getScratch());
    desc.flops = count(3, op.getFlops());
    desc.bytes = count(4, op.getBytes());
    Operation *kernel = SymbolTable::lookupNearestSymbolFrom(op, op.getKernelAttr());
    if (auto code = dyn_cast_or_null<dlir::KernelOp>(kernel))
      for (StringAttr symbol : dmir::symbolsOf(code.getBlock()))
        desc.dims.push_back(bundle::Expr::dim(symbol.getValue().str()));
    else if (kernel)
      for (Dim dim : dlir::taskDims(kernel))
        desc.dims.push_back(exprOf(dim));
    if (op.getSymbols())
      addReturnedDims(op, desc);
    addTask(op.getDone(), std::move(desc));
  }

  /// Rows of the dim table that the next task returns.
  void addReturnedDims(dlir::DispatchOp op, bundle::TaskDesc &desc) {
    auto max = dyn_cast_or_null<dmir::DimsAttr>(op.getMaxAttr());
    for (auto [i, symbol] : llvm::enumerate(op.getSymbolsAttr())) {
      bundle::DimDesc row;
      row.name = cast<StringAttr>(symbol).getValue().str();
      row.task = graph.tasks.size();
      row.result = i;
      if (max)
        row.upper = exprOf(max.getDims()[i]);
      graph.dims.push_back(std::move(row));
    }
    desc.results = op.getSymbols()->size();
    addComputedDims();
  }

  std::vector<int64_t> idsOf(OperandRange buffers) {
    std::vector<int64_t> list;
    for (Value buffer : buffers)
      list.push_back(ids.lookup(buffer));
    return list;
  }

  void addBranch(dlir::IfOp op) {
    bundle::TaskDesc desc = task(op.getQueue(), op.getNodes(), op.getAfter());
    desc.kind = bundle::TaskKind::If;
    desc.cond = ids.lookup(op.getCondition());
    desc.thenGraph = op.getThenGraph().str();
    desc.elseGraph = op.getElseGraph().str();
    desc.buffers = idsOf(op.getInputs());
    desc.outputs = op.getOutputs().size();
    addResults(op.getOutputs());
    addTask(op.getDone(), std::move(desc));
  }

  void addLoop(dlir::WhileOp op) {
    bundle::TaskDesc desc = task(op.getQueue(), op.getNodes(), op.getAfter());
    desc.kind = bundle::TaskKind::Loop;
    desc.body = op.getBody().str();
    if (op.getTripCount())
      desc.tripCount = ids.lookup(op.getTripCount());
    if (op.getCondition())
      desc.cond = ids.lookup(op.getCondition());
    desc.carried = idsOf(op.getCarried());
    desc.buffers = idsOf(op.getInputs());
    desc.scans = op.getOutputs().size() - op.getCarried().size();
    addResults(op.getOutputs());
    addTask(op.getDone(), std::move(desc));
  }

  /// The next task's results, and rows of the symbols that they define.
  void addResults(OperandRange buffers) {
    for (Value value : buffers) {
      auto buffer = value.getDefiningOp<dlir::BufferOp>();
      graph.buffers[ids.lookup(value)].task = graph.tasks.size();
      for (auto [axis, dim] : llvm::enumerate(dmir::dimsOf(buffer.getTensor()))) {
        std::optional<std::string> symbol = dim.symbolName();
        if (!symbol || isKnown(*symbol))
          continue;
        bundle::DimDesc row;
        row.name = *symbol;
        row.task = graph.tasks.size();
        row.output = buffer.getIndex();
        row.axis = axis;
        graph.dims.push_back(std::move(row));
      }
    }
    addComputedDims();
  }

  void addCopy(dlir::CopyOp op) {
    bundle::TaskDesc desc = task(op.getQueue(), op.getNodes(), op.getAfter());
    desc.kind = bundle::TaskKind::Copy;
    desc.src = ids.lookup(op.getSource());
    desc.dst = ids.lookup(op.getTarget());
    desc.size = exprOf(dmir::dimOfAttr(op.getUnitAttr(), 1) * static_cast<int64_t>(op.getSize()));
    addTask(op.getDone(), std::move(desc));
  }

  void addTask(Value token, bundle::TaskDesc desc) {
    taskIds[token] = graph.tasks.size();
    graph.tasks.push_back(std::move(desc));
  }

  dlir::ProgramOp program;
  CompiledModel &model;
  const PhaseContext &context;
  bundle::GraphDesc graph;
  std::vector<bundle::SymbolicDim> dims; ///< of the entry point
  llvm::DenseMap<Value, int64_t> ids, taskIds;
};

} // namespace

Result<CompiledModel> runCodegen(ModuleOp module, const PhaseContext &context) {
  CompiledModel model;
  for (auto program : module.getOps<dlir::ProgramOp>())
    if (Status checked = checkKernels(program, context); !checked)
      return checked.takeError();
  for (auto program : module.getOps<dlir::ProgramOp>())
    GraphSerializer(program, model, context).run();
  if (context.checkStrategies)
    if (Status checked = checkGraphs(module, model); !checked)
      return checked.takeError();
  for (const TargetBackend *target : context.targets) {
    SmallVector<Operation *> kernels;
    for (Operation &op : *module.getBody()) {
      auto kernel = dyn_cast<dlir::KernelOp>(op);
      auto program = dyn_cast<dlir::DeviceProgramOpInterface>(op);
      if ((kernel && kernel.getDevice() == target->name()) || (program && program.getDevice() == target->name()))
        kernels.push_back(&op);
    }
    if (kernels.empty())
      continue;
    Result<std::vector<CodeEntry>> entries = target->emit(kernels);
    if (!entries)
      return entries.takeError();
    // What is of no level has the kernels that all levels share.
    std::string common;
    for (const CodeEntry &entry : *entries)
      if (entry.arch.empty())
        common = entry.entry;
    for (CodeEntry &entry : *entries) {
      if (!entry.arch.empty())
        model.targets.push_back(
            {target->name().str(), entry.arch, entry.entry, entry.features, entry.entry == common ? "" : common});
      if (!entry.bytes.empty())
        model.code.push_back(std::move(entry));
    }
  }
  return model;
}

} // namespace dmxc
