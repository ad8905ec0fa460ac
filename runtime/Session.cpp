//===- Session.cpp - creation, shapes and memory of a session -------------===//
//
// What happens when shapes change. SessionDevices.cpp has the choice of devices and
// code, SessionRun.cpp what happens in a run.
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "DType.h"

#include <algorithm>

namespace dmxrt {

std::string Session::tensorName(dmx_io io, uint32_t index) const {
  return cat(io == DMX_INPUT ? "input '" : "output '", tensor(io, index).name, "'");
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Bundle> bundle, const Signature &signature,
                                                 const DeviceOptions &options) {
  std::unique_ptr<Session> session(new Session(std::move(bundle), signature));
  if (Status status = session->load(options); !status)
    return status.takeError();
  return session;
}

Status Session::load(const DeviceOptions &options) {
  if (Status status = loadDevices(options); !status)
    return status;
  bindings[DMX_INPUT].resize(signature.inputs.size());
  bindings[DMX_OUTPUT].resize(signature.outputs.size());
  arenas.resize(graph.arenas.size());
  states.resize(graph.buffers.size());
  bufferData.resize(graph.buffers.size());
  figures.resize(graph.tasks.size());
  spans.resize(graph.tasks.size());
  ranges.reserve(signature.inputs.size() + signature.outputs.size());
  shapeRoom.reserve(DMX_MAX_RANK);
  if (Status status = allocateState(); !status)
    return status;
  if (!isStatic(graph))
    return {};
  if (Status status = evaluateInputs(); !status)
    return status;
  return prepare();
}

Session::~Session() {
  if (asyncStarted) {
    if (state.load() == InFlight)
      (void)finishAsync();
    asyncStop = true;
    asyncGo.raise();
    pthread_join(asyncThread, nullptr);
  }
  for (Memory &memory : arenas)
    if (memory.data)
      sharing->release(memory.data, memory.size);
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].data)
      deviceOfState(i).release(states[i].data, states[i].size);
}

Status Session::allocateState() {
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const Buffer &buffer = graph.buffers[i];
    int64_t size = 0;
    graph.exprs.isConstant(buffer.size, size);
    if (buffer.kind == BufferKind::Const)
      constantBytes += static_cast<uint64_t>(size);
    if (buffer.kind != BufferKind::State || size <= 0)
      continue;
    auto memory = deviceOfState(i).allocate(static_cast<uint64_t>(size));
    if (!memory)
      return within(cat("state buffer ", i), memory.takeError());
    states[i] = {*memory, static_cast<uint64_t>(size)};
  }
  resetState();
  return {};
}

void Session::resetState() {
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].data)
      deviceOfState(i).clear(states[i].data, states[i].size);
}

Status Session::checkTensor(dmx_io io, uint32_t index) const {
  if (io != DMX_INPUT && io != DMX_OUTPUT)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "argument io is ", io, ", neither DMX_INPUT nor DMX_OUTPUT");
  if (index >= bindings[io].size())
    return fail(DMX_STATUS_INVALID_ARGUMENT, io == DMX_INPUT ? "input " : "output ", index,
                " does not exist; the entry point has ", bindings[io].size());
  return {};
}

Status Session::bind(dmx_io io, uint32_t index, const dmx_tensor_view &view) {
  const Signature::Tensor &wanted = tensor(io, index);
  auto wrong = [&](const auto &...parts) {
    return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(io, index), ": ", parts...);
  };
  if (view.dtype != wanted.dtype) {
    const char *got = dmx_dtype_name(view.dtype);
    return wrong("dtype is ", got ? got : "unknown", ", expected ", dmx_dtype_name(wanted.dtype));
  }
  if (view.rank != wanted.dims.size())
    return wrong("rank is ", view.rank, ", expected ", wanted.dims.size());
  if (view.rank && !view.dims)
    return wrong("dims is NULL");
  for (uint32_t axis = 0; axis < view.rank; ++axis) {
    const dmx_dim &dim = wanted.dims[axis];
    int64_t extent = view.dims[axis];
    if (extent >= dim.min && extent <= dim.max && extent >= 0)
      continue;
    std::string name = dim.name ? cat(" ('", dim.name, "')") : "";
    if (dim.min == dim.max)
      return wrong("axis ", axis, name, " is ", extent, ", expected ", dim.min);
    return wrong("axis ", axis, name, " is ", extent, ", expected ", dim.min, " to ", dim.max);
  }
  int64_t bytes = dmx_tensor_bytes(view.dtype, view.rank, view.dims);
  if (bytes < 0)
    return wrong("its dims multiply to more than 63 bits");
  if (bytes && !view.data)
    return wrong("data is NULL");
  if (reinterpret_cast<uintptr_t>(view.data) % dtypeAlignment(view.dtype))
    return wrong("data is not aligned to the element size, ", dtypeAlignment(view.dtype), " bytes");

  Binding &binding = bindings[io][index];
  std::span<const int64_t> extents(view.dims, view.rank);
  if (!binding.bound || !std::equal(extents.begin(), extents.end(), binding.dims.begin(), binding.dims.end())) {
    binding.dims.assign(extents.begin(), extents.end());
    inputsChanged |= io == DMX_INPUT;
    pointersChanged = true;
  }
  pointersChanged |= binding.data != view.data;
  binding.data = static_cast<std::byte *>(view.data);
  binding.bytes = static_cast<uint64_t>(bytes);
  binding.bound = true;
  return {};
}

/// Computes the dims and checks all bound inputs against them.
Status Session::evaluateInputs() {
  if (!inputsChanged)
    return {};
  prepared = false;
  auto axisValue = [this](const Dim &dim) -> Result<int64_t> {
    const Binding &binding = bindings[DMX_INPUT][dim.input];
    if (!binding.bound)
      return fail(DMX_STATUS_NOT_READY, tensorName(DMX_INPUT, dim.input), " is not bound; it defines dim '", dim.name,
                  "'; call dmx_session_bind first");
    int64_t value = binding.dims[dim.axis];
    if (value < dim.min || value > dim.max)
      return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(DMX_INPUT, dim.input), ": axis ", dim.axis, " ('", dim.name,
                  "') is ", value, ", expected ", dim.min, " to ", dim.max);
    return value;
  };
  auto values = evaluateDims(graph, axisValue);
  if (!values)
    return values.takeError();
  dims = std::move(*values);
  std::vector<int64_t> shape;
  for (uint32_t i = 0; i < signature.inputs.size(); ++i) {
    const Binding &binding = bindings[DMX_INPUT][i];
    uint32_t buffer = graph.inputBuffers[i];
    if (!binding.bound || buffer == kNone)
      continue;
    if (Status status = evaluateShape(graph, buffer, dims, shape); !status)
      return within(tensorName(DMX_INPUT, i), status.takeError());
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] != binding.dims[axis])
        return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(DMX_INPUT, i), ": axis ", axis, " is ", binding.dims[axis],
                    ", but ", graph.exprs.text(graph.buffers[buffer].shape[axis], graph.dimNames), " is ", shape[axis],
                    " by the other inputs");
  }
  inputsChanged = false;
  prepared = !tasks.empty() && dims == preparedDims;
  return {};
}

Status Session::shape(dmx_io io, uint32_t index, int64_t *out, uint32_t capacity, uint32_t &rank) {
  const Signature::Tensor &wanted = tensor(io, index);
  size_t count = wanted.dims.size();
  if (count > capacity || (count && !out))
    return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(io, index), " has rank ", count, ", but there is room for ",
                out ? capacity : 0, " extents");
  std::vector<int64_t> shape;
  bool fixed = true;
  for (const dmx_dim &dim : wanted.dims) {
    fixed &= dim.name == nullptr;
    shape.push_back(dim.min);
  }
  if (!fixed) {
    uint32_t buffer = io == DMX_INPUT ? graph.inputBuffers[index] : graph.outputBuffers[index];
    if (buffer == kNone) { // an input that nothing reads has any shape
      if (!bindings[io][index].bound)
        return fail(DMX_STATUS_NOT_READY, tensorName(io, index), " is not bound");
      shape = bindings[io][index].dims;
    } else {
      if (Status status = evaluateInputs(); !status)
        return status;
      if (Status status = evaluateShape(graph, buffer, dims, shape); !status)
        return within(tensorName(io, index), status.takeError());
    }
  }
  std::copy(shape.begin(), shape.end(), out);
  rank = static_cast<uint32_t>(count);
  return {};
}

/// Arenas only ever grow, so alternating shapes settle on the largest.
Status Session::growArenas() {
  for (size_t i = 0; i < arenas.size(); ++i) {
    uint64_t needed = layout.arenaSizes[i];
    if (needed <= arenas[i].size)
      continue;
    if (arenas[i].data)
      sharing->release(arenas[i].data, arenas[i].size);
    arenas[i] = {};
    auto memory = sharing->allocate(needed);
    if (!memory)
      return within(cat("arena ", i), memory.takeError());
    arenas[i] = {*memory, needed};
  }
  return {};
}

/// Addresses of all buffers but those in bound tensors.
void Session::placeBuffers() {
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const Buffer &buffer = graph.buffers[i];
    std::byte *base = nullptr;
    if (buffer.kind == BufferKind::Arena)
      base = static_cast<std::byte *>(arenas[buffer.parent].data);
    else if (buffer.kind == BufferKind::State)
      base = static_cast<std::byte *>(states[i].data);
    else if (buffer.kind == BufferKind::Const)
      // Kernels get void *, but the graph was checked not to write constants.
      base = const_cast<std::byte *>(bundle->archive().find(buffer.entry)->data.data());
    bufferData[i] = base ? base + layout.places[i].offset : nullptr;
  }
  for (size_t i = 0; i < graph.buffers.size(); ++i)
    if (graph.buffers[i].kind == BufferKind::Alias && bufferData[graph.buffers[i].parent])
      bufferData[i] = bufferData[graph.buffers[i].parent] + layout.places[i].offset;
}

void Session::makeTasks() {
  size_t operandCount = 0;
  for (const Task &task : graph.tasks)
    operandCount += task.buffers.size();
  operands.assign(operandCount, nullptr);
  operandBytes.assign(operandCount, 0);
  boundSlots.clear();
  tasks.clear();
  uint32_t position = 0;
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task &task = graph.tasks[i];
    const Layout::TaskNumbers &numbers = layout.tasks[i];
    DeviceTask out;
    out.kernel = kernels[i];
    out.buffers = operands.data() + position;
    out.bufferBytes = std::span(operandBytes).subspan(position, task.buffers.size());
    out.dims = task.dims.empty() ? nullptr : layout.taskDims.data() + numbers.firstDim;
    out.dimCount = static_cast<uint32_t>(task.dims.size());
    out.work = numbers.work;
    out.grain = numbers.grain;
    out.scratch = numbers.scratch;
    out.srcOffset = numbers.srcOffset;
    out.dstOffset = numbers.dstOffset;
    out.deps = task.deps;
    // 20 GFLOP/s and 10 GB/s: the right order of magnitude is all that placing needs.
    out.costNs = 200 + static_cast<double>(std::max<int64_t>(numbers.flops, 0)) / 20 +
                 static_cast<double>(std::max(numbers.bytes, task.isCopy ? 2 * numbers.work : 0)) / 10;
    for (uint32_t buffer : task.buffers) {
      const Buffer &root = graph.buffers[buffer];
      BufferKind kind = root.kind == BufferKind::Alias ? graph.buffers[root.parent].kind : root.kind;
      if (kind == BufferKind::Input || kind == BufferKind::Output)
        boundSlots.push_back({position, buffer});
      operandBytes[position] = layout.places[buffer].size;
      operands[position++] = bufferData[buffer];
    }
    tasks.push_back(out);
  }
}

/// Everything that depends on shapes: layout, memory, plans.
Status Session::prepare() {
  auto made = layOut(graph, bundle->archive(), dims);
  if (!made)
    return made.takeError();
  layout = std::move(*made);
  preparedDims.clear();
  tasks.clear();
  if (Status status = growArenas(); !status)
    return status;
  placeBuffers();
  makeTasks();
  for (Unit &unit : units)
    if (Status status = unit.device->prepare(tasks, unit.segments); !status)
      return status;
  size_t mostSlices = 0;
  for (const Task &task : graph.tasks)
    mostSlices += deviceOf(task).threads();
  slices.reserve(mostSlices);
  preparedDims = dims;
  prepared = true;
  pointersChanged = true;
  return {};
}

} // namespace dmxrt
