//===- FrameMemory.cpp - shapes and memory of a frame ---------------------===//

#include "Frame.h"

#include <algorithm>

namespace dmxrt {

void Frame::bind(dmx_io io, uint32_t index, std::span<const int64_t> extents, std::byte *data, uint64_t bytes,
                 std::span<const int64_t> strides) {
  Binding &binding = bindings[io][index];
  auto differs = [](std::span<const int64_t> given, const std::vector<int64_t> &old) {
    return !std::equal(given.begin(), given.end(), old.begin(), old.end());
  };
  bool reshaped = !binding.bound || differs(extents, binding.dims);
  if (reshaped)
    binding.dims.assign(extents.begin(), extents.end());
  if (strides.empty() ? reshaped || binding.isStrided : differs(strides, binding.strides)) {
    if (strides.empty())
      denseStrides(extents, binding.strides);
    else
      binding.strides.assign(strides.begin(), strides.end());
    inputsChanged |= io == DMX_OUTPUT && hasRooms;
    ++version;
  }
  if (reshaped) {
    inputsChanged |= io == DMX_INPUT || hasRooms;
    ++version;
  }
  binding.isStrided = !strides.empty();
  if (binding.data != data)
    ++version;
  binding.data = data;
  binding.bytes = bytes;
  binding.bound = true;
}

void Frame::unbind(dmx_io io, uint32_t index) {
  release(bindings[io][index].own);
  bindings[io][index] = {};
  inputsChanged |= io == DMX_INPUT || hasRooms;
  ++version;
}

Result<int64_t> Frame::inputDim(const Dim &dim) const {
  const Binding &binding = bindings[DMX_INPUT][dim.input];
  if (!binding.bound)
    return fail(DMX_STATUS_NOT_READY, tensorName(DMX_INPUT, dim.input), " is not bound; it defines dim '", dim.name,
                "'; call dmx_session_bind first");
  int64_t value = binding.dims[dim.axis];
  if (value < dim.min || value > dim.max)
    return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(DMX_INPUT, dim.input), ": axis ", dim.axis, " ('", dim.name,
                "') is ", value, ", expected ", dim.min, " to ", dim.max);
  return value;
}

Result<int64_t> Frame::returnedDim(const Dim &dim) const {
  const Control *control = controls[dim.task].get();
  int64_t value = dim.output != kNone ? control->results[dim.output].dims[dim.axis]
                  : control           ? control->iterations
                                      : results[firstResult[dim.task] + dim.result];
  auto lower = graph.exprs.evaluate(dim.lower, dims), upper = graph.exprs.evaluate(dim.upper, dims);
  if (!lower || !upper)
    return within(cat("bounds of dim '", dim.name, "'"), (lower ? upper : lower).takeError());
  if (value < 0 && machinery.rehearsal != Rehearsal::No)
    return rehearsedValue(*lower, *upper);
  if (value < *lower || value > *upper)
    return fail(DMX_STATUS_KERNEL, "task '", taskNames[dim.task], "' returned ", value, " for dim '", dim.name,
                "', expected ", *lower, " to ", *upper);
  return value;
}

/// All bound inputs against the dims.
Status Frame::checkInputs() {
  for (uint32_t i = 0; i < graph.inputBuffers.size(); ++i) {
    const Binding &binding = bindings[DMX_INPUT][i];
    uint32_t buffer = graph.inputBuffers[i];
    if (!binding.bound || buffer == kNone)
      continue;
    if (Status status = evaluateShape(graph, buffer, dims, shapeRoom); !status)
      return within(tensorName(DMX_INPUT, i), status.takeError());
    for (size_t axis = 0; axis < shapeRoom.size(); ++axis)
      if (shapeRoom[axis] != binding.dims[axis])
        return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(DMX_INPUT, i), ": axis ", axis, " is ", binding.dims[axis],
                    ", but ", graph.exprs.text(graph.buffers[buffer].shape[axis], graph.dimNames), " is ",
                    shapeRoom[axis], " by the other inputs");
  }
  return {};
}

Status Frame::evaluateInputDims() {
  return evaluateDims(graph, 0, dims, [this](const Dim &dim) {
    return dim.isLength ? lengthDim(dim) : dim.isRoom ? roomDim(dim) : inputDim(dim);
  });
}

Status Frame::evaluateInputs() {
  if (!inputsChanged && !lengthsChanged)
    return {};
  if (Status status = evaluateInputDims(); !status)
    return status;
  if (Status status = checkInputs(); !status)
    return status;
  inputsChanged = lengthsChanged = false;
  return {};
}

void Frame::release(Memory &memory) {
  if (memory.data)
    machinery.sharing->release(memory.data, memory.size);
  memory = {};
}

/// Memory only ever grows, so alternating shapes settle on the largest. What graphs inside of a run have may grow
/// many times, and gets more than it needs.
Status Frame::grow(Memory &memory, uint64_t needed, uint64_t keep) {
  if (needed <= memory.size)
    return {};
  bool again = memory.data && !signature;
  if (!keep)
    release(memory);
  uint64_t size = again ? needed + needed / 2 : needed;
  auto fresh = machinery.sharing->allocate(size);
  if (!fresh && again)
    fresh = machinery.sharing->allocate(size = needed);
  if (!fresh)
    return fresh.takeError();
  if (keep)
    machinery.sharing->copy(*fresh, memory.data, keep);
  release(memory);
  memory = {*fresh, size};
  return {};
}

Status Frame::growArenas(uint32_t stage) {
  for (size_t i = 0; i < arenas.size(); ++i)
    if (graph.arenas[i].stage == stage)
      if (Status status = grow(arenas[i], layout.arenaSizes[i]); !status)
        return within(cat("arena ", i), status.takeError());
  return {};
}

/// Whether a buffer lies in a tensor whose address changes without the shapes.
bool Frame::isMovable(uint32_t buffer) const {
  BufferKind kind = graph.buffers[baseOf(buffer)].kind;
  return kind == BufferKind::Input || kind == BufferKind::Output || kind == BufferKind::Result;
}

/// Where a movable buffer lies now; null before it is known.
std::byte *Frame::dataOf(uint32_t index) const {
  const Buffer &buffer = graph.buffers[index];
  switch (buffer.kind) {
  case BufferKind::Input:
    return bindings[DMX_INPUT][buffer.index].at;
  case BufferKind::Output:
    return outputs[buffer.index].data;
  case BufferKind::Result:
    return controls[buffer.parent]->results[buffer.index].data;
  case BufferKind::Alias:
    if (isMovable(index)) {
      std::byte *base = dataOf(buffer.parent);
      return base ? base + layout.places[index].offset : nullptr;
    }
    return bufferData[index];
  default:
    return bufferData[index];
  }
}

/// Addresses of a stage's buffers but the movable ones.
void Frame::placeBuffers(uint32_t stage) {
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const Buffer &buffer = graph.buffers[i];
    std::byte *base = nullptr;
    if (buffer.stage != stage)
      continue;
    if (buffer.kind == BufferKind::Arena)
      base = static_cast<std::byte *>(arenas[buffer.parent].data);
    else if (buffer.kind == BufferKind::State)
      base = static_cast<std::byte *>(states[i].data);
    else if (buffer.kind == BufferKind::Const)
      // Kernels get void *, but the graph was checked not to write constants.
      base = const_cast<std::byte *>(machinery.bundle->archive().find(buffer.entry)->data.data());
    bufferData[i] = base ? base + layout.places[i].offset : nullptr;
  }
  for (size_t i = 0; i < graph.buffers.size(); ++i)
    if (const Buffer &buffer = graph.buffers[i];
        buffer.stage == stage && buffer.kind == BufferKind::Alias && bufferData[buffer.parent])
      bufferData[i] = bufferData[buffer.parent] + layout.places[i].offset;
}

BufferHome Frame::homeOf(uint32_t index) const {
  uint32_t number = baseOf(index);
  const Buffer &base = graph.buffers[number];
  uint64_t offset = number == index ? 0 : layout.places[index].offset;
  switch (base.kind) {
  case BufferKind::Arena:
    return {BufferHome::Arena, isShared[number], &arenas[base.parent], layout.arenaSizes[base.parent],
            layout.places[number].offset + offset};
  case BufferKind::State:
    return {BufferHome::State, false, &states[number], states[number].size, layout.places[number].offset + offset};
  case BufferKind::Const:
    return {BufferHome::Constant, false, bufferData[number], layout.places[number].size, offset};
  default:
    return {BufferHome::Border, true, static_cast<const void *>(&bufferData[number]), layout.places[number].size,
            offset};
  }
}

DeviceTask Frame::makeTask(uint32_t index) {
  const Task &task = graph.tasks[index];
  const Layout::TaskNumbers &numbers = layout.tasks[index];
  uint32_t position = firstOperand[index];
  DeviceTask out;
  out.kernel = kernels[index];
  out.deps = task.deps;
  if (task.isControl())
    return out;
  out.buffers = operands.data() + position;
  out.bufferBytes = std::span(operandBytes).subspan(position, task.buffers.size());
  if (!operandHomes.empty())
    out.homes = std::span(operandHomes).subspan(position, task.buffers.size());
  out.written = task.outputs;
  out.dims = task.dims.empty() ? nullptr : layout.taskDims.data() + numbers.firstDim;
  out.dimCount = static_cast<uint32_t>(task.dims.size());
  out.results = task.results ? results.data() + firstResult[index] : nullptr;
  out.work = numbers.work;
  out.grain = numbers.grain;
  out.scratch = numbers.scratch;
  out.operations = static_cast<uint64_t>(std::max<int64_t>(numbers.flops, 0));
  out.srcOffset = numbers.srcOffset;
  out.dstOffset = numbers.dstOffset;
  // 20 GFLOP/s and 10 GB/s: the right order of magnitude is all that placing needs.
  out.costNs = 200 + static_cast<double>(std::max<int64_t>(numbers.flops, 0)) / 20 +
               static_cast<double>(std::max(numbers.bytes, task.isCopy() ? 2 * numbers.work : 0)) / 10;
  for (uint32_t buffer : task.buffers) {
    out.updates |= graph.buffers[baseOf(buffer)].kind == BufferKind::State;
    operandBytes[position] = layout.places[buffer].size;
    if (!operandHomes.empty())
      operandHomes[position] = homeOf(buffer);
    operands[position++] = bufferData[buffer];
  }
  return out;
}

/// In a run, what does not fit together came from the run's data.
static Error inRun(Error error) {
  if (error.status == DMX_STATUS_INVALID_ARGUMENT)
    error.status = DMX_STATUS_KERNEL;
  return error;
}

/// A stage's numbers, which fit what its kernels rely on.
Status Frame::layOutStage(uint32_t index) {
  if (Status status = layOut(graph, machinery.bundle->archive(), dims, index, layout); !status)
    return index ? inRun(status.takeError()) : status.takeError();
  return checkContracts(stages[index]);
}

/// Everything of a stage that depends on shapes: layout, memory, plans.
Status Frame::prepare(uint32_t index) {
  for (size_t k = index; k < stages.size(); ++k)
    stages[k].prepared = false;
  Stage &stage = stages[index];
  if (Status status = layOutStage(index); !status)
    return status;
  if (Status status = growArenas(index); !status)
    return status;
  placeBuffers(index);
  for (uint32_t i = stage.begin; i < stage.end; ++i)
    tasks[i] = makeTask(i);
  for (size_t i = 0; i < stage.segments.size(); ++i) {
    if (stage.segments[i].empty())
      continue;
    Device &device = *unitOf(static_cast<uint32_t>(i)).device;
    device.selectProgram(stage.programs[i]);
    if (Status status = device.prepare(tasks, stage.segments[i]); !status)
      return status;
  }
  stage.preparedDims.clear();
  for (uint32_t row : stage.rows)
    stage.preparedDims.push_back(dims[row]);
  stage.prepared = true;
  stage.placed = stage.settled = 0;
  return {};
}

/// Outputs whose shape is known from this stage on: in the caller's memory, or in the session's.
Status Frame::placeOutputs(uint32_t index) {
  for (uint32_t i : stages[index].outputs) {
    TensorPlace &place = outputs[i];
    uint32_t buffer = graph.outputBuffers[i];
    if (Status status = evaluateShape(graph, buffer, dims, place.dims); !status)
      return within(tensorName(DMX_OUTPUT, i), status.takeError());
    place.bytes = layout.places[buffer].size;
    if (Status status = layOutOutput(i); !status)
      return status;
    const Binding &binding = bindings[DMX_OUTPUT][i];
    if (!binding.bound) {
      if (Status status = grow(place.own, place.bytes); !status)
        return within(tensorName(DMX_OUTPUT, i), status.takeError());
      place.data = static_cast<std::byte *>(place.own.data);
      continue;
    }
    for (size_t axis = 0; index == 0 && axis < place.dims.size(); ++axis)
      if (binding.dims[axis] != place.dims[axis])
        return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(DMX_OUTPUT, i), ": axis ", axis, " is ", binding.dims[axis],
                    ", for these inputs it must be ", place.dims[axis],
                    "; ask dmx_session_shape after binding the inputs");
    if (index == 0 && !liesAsWritten(i)) {
      if (Status status = grow(place.own, place.bytes); !status)
        return within(tensorName(DMX_OUTPUT, i), status.takeError());
      place.data = static_cast<std::byte *>(place.own.data);
      continue;
    }
    if (index != 0 && binding.bytes < place.bytes)
      return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(DMX_OUTPUT, i), " is bound to ", binding.bytes,
                  " bytes, but this run's has ", place.bytes, "; bind more, or leave the output to the session");
    release(place.own);
    place.data = binding.data;
  }
  stages[index].placed = version;
  return {};
}

/// What tasks that run other graphs gave must have the shapes that the graph promises.
Status Frame::checkResults(uint32_t index) {
  for (uint32_t i : stages[index].results) {
    const Buffer &buffer = graph.buffers[i];
    const std::vector<int64_t> &given = controls[buffer.parent]->results[buffer.index].dims;
    if (Status status = evaluateShape(graph, i, dims, shapeRoom); !status)
      return within(cat("buffer ", i), status.takeError());
    for (size_t axis = 0; axis < given.size(); ++axis)
      if (given[axis] != shapeRoom[axis] && (given[axis] >= 0 || machinery.rehearsal == Rehearsal::No))
        return fail(DMX_STATUS_KERNEL, "task '", taskNames[buffer.parent], "': axis ", axis, " of output ",
                    buffer.index, " is ", given[axis], ", expected ", shapeRoom[axis], " (",
                    graph.exprs.text(buffer.shape[axis], graph.dimNames), ")");
  }
  return {};
}

void Frame::patchPointers(uint32_t index) {
  Stage &stage = stages[index];
  for (uint32_t i = stage.firstSlot; i < stage.endSlot; ++i)
    operands[boundSlots[i].position] = dataOf(boundSlots[i].buffer);
  stage.settled = version;
}

bool Frame::fits(const Stage &stage) const {
  bool same = stage.prepared;
  for (size_t i = 0; same && i < stage.rows.size(); ++i)
    same = stage.preparedDims[i] == dims[stage.rows[i]];
  return same;
}

/// Layout and outputs of a stage whose dims are evaluated.
Status Frame::bringUp(uint32_t index) {
  if (!fits(stages[index]))
    if (Status status = prepare(index); !status)
      return status;
  return stages[index].placed == version ? Status() : placeOutputs(index);
}

Status Frame::prepareFirst() {
  if (Status status = evaluateInputs(); !status)
    return status;
  return fits(stages[0]) ? Status() : prepare(0);
}

Status Frame::arrange() {
  if (Status status = prepareFirst(); !status)
    return status;
  if (Status status = placeInputs(); !status)
    return status;
  return bringUp(0);
}

Status Frame::call() {
  if (Status status = evaluateInputs(); !status)
    return inRun(status.takeError());
  if (Status status = placeInputs(); !status)
    return status;
  if (Status status = bringUp(0); !status)
    return status;
  settle();
  return execute();
}

/// A later stage, inside of a run.
Status Frame::enterStage(uint32_t index) {
  if (Status status = evaluateDims(graph, index, dims, [this](const Dim &dim) { return returnedDim(dim); }); !status)
    return inRun(status.takeError());
  if (Status status = checkResults(index); !status)
    return status;
  if (Status status = bringUp(index); !status)
    return status;
  patchPointers(index);
  return {};
}

void Frame::exchangeOutput(uint32_t index, TensorPlace &place) {
  std::swap(outputs[index], place);
  ++version;
}

} // namespace dmxrt
