//===- RunCodegen.cpp - DLIR to bytes -------------------------------------===//
#include "dmxc/Phases/Codegen.h"
#include "dmxc/Phases/Memory/Layout.h"

using namespace mlir;

namespace dmxc {

namespace {

std::vector<bundle::Expr> exprShape(Type type) {
  std::vector<bundle::Expr> shape;
  for (int64_t dim : cast<RankedTensorType>(type).getShape())
    shape.emplace_back(dim);
  return shape;
}

bundle::TensorDesc portOf(Attribute attr) {
  auto entry = cast<DictionaryAttr>(attr);
  Type type = entry.getAs<TypeAttr>("type").getValue();
  return {entry.getAs<StringAttr>("name").getValue().str(),
          *dmir::dtypeOf(cast<RankedTensorType>(type).getElementType()), exprShape(type)};
}

/// The entry all constants go to; offsets are filled in by whoever writes it.
constexpr const char *weightsEntry = "weights/model.safetensors";

class GraphSerializer {
public:
  GraphSerializer(dlir::ProgramOp program, CompiledModel &model, const PhaseContext &context)
      : program(program), model(model), context(context) {}

  void run() {
    graph.name = program.getSymName().str();
    for (Attribute attr : program.getArenas()) {
      auto arena = cast<DictionaryAttr>(attr);
      graph.arenas.push_back(
          {arena.getAs<IntegerAttr>("size").getInt(), arena.getAs<IntegerAttr>("lower_bound").getInt(), kBufferAlign});
    }
    for (Operation &op : program.getBody().front()) {
      if (auto buffer = dyn_cast<dlir::BufferOp>(op))
        addBuffer(buffer);
      else if (auto dispatch = dyn_cast<dlir::DispatchOp>(op))
        addDispatch(dispatch);
      else
        addCopy(cast<dlir::CopyOp>(op));
    }
    model.graph.graphs.push_back(std::move(graph));
    bundle::EntryPoint entry;
    entry.name = program.getSymName().str();
    for (Attribute port : program.getInputs())
      entry.inputs.push_back(portOf(port));
    for (Attribute port : program.getOutputs())
      entry.outputs.push_back(portOf(port));
    model.entryPoints.push_back(std::move(entry));
  }

private:
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
    desc.offset = static_cast<int64_t>(op.getOffset());
    desc.size = static_cast<int64_t>(op.getSize());
    desc.index = op.getIndex();
    switch (op.getKind()) {
    case dlir::BufferKind::input:
      desc.kind = bundle::BufferKind::Input;
      break;
    case dlir::BufferKind::output:
      desc.kind = bundle::BufferKind::Output;
      break;
    case dlir::BufferKind::arena:
      desc.kind = bundle::BufferKind::Arena;
      desc.arena = op.getIndex();
      break;
    case dlir::BufferKind::alias:
      desc.kind = bundle::BufferKind::Alias;
      desc.of = ids.lookup(op.getBase());
      break;
    case dlir::BufferKind::state:
      desc.kind = bundle::BufferKind::State;
      break;
    case dlir::BufferKind::constant:
      desc.kind = bundle::BufferKind::Const;
      desc.entry = weightsEntry;
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

  /// The target whose kernels read a packed constant: a form is one target's own.
  const TargetBackend *targetOf(dlir::BufferOp op) {
    for (Operation *user : op.getResult().getUsers())
      if (auto dispatch = dyn_cast<dlir::DispatchOp>(user))
        return context.target(dispatch.getQueue());
    return context.targets.front();
  }

  std::string addConstant(dlir::BufferOp op, DType dtype) {
    ConstantPayload payload;
    payload.name = (program.getSymName() + "." + op.getName()).str();
    payload.size = op.getSize();
    Attribute data = op.getDataAttr();
    DictionaryAttr form = op.getFormAttr();
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
      const TargetBackend *target = targetOf(op);
      payload.fill = [data, form, target](std::span<std::byte> out) -> Status {
        Result<Tensor> tensor = dmir::constantTensor(data);
        return tensor ? target->pack(form, *tensor, out) : Status(tensor.takeError());
      };
    }
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
    for (Value buffer : op.getInputs())
      desc.buffers.push_back(ids.lookup(buffer));
    for (Value buffer : op.getOutputs())
      desc.buffers.push_back(ids.lookup(buffer));
    desc.outputs = op.getOutputs().size();
    desc.work = static_cast<int64_t>(op.getWork());
    desc.grain = static_cast<int64_t>(op.getGrain());
    desc.scratch = static_cast<int64_t>(op.getScratch());
    desc.flops = static_cast<int64_t>(op.getFlops());
    desc.bytes = static_cast<int64_t>(op.getBytes());
    addTask(op.getDone(), std::move(desc));
  }

  void addCopy(dlir::CopyOp op) {
    bundle::TaskDesc desc = task(op.getQueue(), op.getNodes(), op.getAfter());
    desc.kind = bundle::TaskKind::Copy;
    desc.src = ids.lookup(op.getSource());
    desc.dst = ids.lookup(op.getTarget());
    desc.size = static_cast<int64_t>(op.getSize());
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
  llvm::DenseMap<Value, int64_t> ids, taskIds;
};

} // namespace

Result<CompiledModel> runCodegen(ModuleOp module, const PhaseContext &context) {
  CompiledModel model;
  for (auto program : module.getOps<dlir::ProgramOp>())
    GraphSerializer(program, model, context).run();
  for (const TargetBackend *target : context.targets) {
    SmallVector<Operation *> kernels;
    for (Operation &op : *module.getBody()) {
      auto kernel = dyn_cast<dlir::KernelOp>(op);
      auto program = dyn_cast<dlir::DmmqOp>(op);
      if ((kernel && kernel.getDevice() == target->name()) || (program && program.getDevice() == target->name()))
        kernels.push_back(&op);
    }
    if (kernels.empty())
      continue;
    Result<std::vector<CodeEntry>> entries = target->emit(kernels);
    if (!entries)
      return entries.takeError();
    for (CodeEntry &entry : *entries) {
      model.targets.push_back({target->name().str(), entry.arch, entry.entry, entry.features});
      model.code.push_back(std::move(entry));
    }
  }
  return model;
}

} // namespace dmxc
