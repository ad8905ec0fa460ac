//===- FrameControl.cpp - tasks that run other graphs ---------------------===//

#include "Frame.h"
#include "runtime/bundle/DType.h"

#include <algorithm>
#include <cstring>

namespace dmxrt {
namespace {

/// The loop's body gets these before the carried values.
constexpr uint32_t kIteration = 0, kCondition = 1, kFirstCarried = 2;

template <typename T> T read(const std::byte *data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

} // namespace

/// Binds a buffer of this frame to an input of another.
Status Frame::bindBuffer(Frame &frame, uint32_t input, uint32_t buffer) {
  if (frame.graph.inputBuffers[input] == kNone)
    return {};
  if (Status status = evaluateShape(graph, buffer, dims, shapeRoom); !status)
    return status;
  const Buffer &own = graph.buffers[buffer];
  int64_t bytes = dmx_tensor_bytes(own.dtype, static_cast<uint32_t>(shapeRoom.size()), shapeRoom.data());
  frame.bind(DMX_INPUT, input, shapeRoom, dataOf(buffer), static_cast<uint64_t>(bytes));
  return {};
}

/// Binds what the body gets before the carried values; tells how many inputs that are.
uint32_t Frame::bindIteration(Control &control) {
  Frame &body = *control.frames[0];
  body.bind(DMX_INPUT, kIteration, {}, reinterpret_cast<std::byte *>(&control.iteration), sizeof control.iteration);
  body.bind(DMX_INPUT, kCondition, {}, reinterpret_cast<std::byte *>(&control.condition), sizeof control.condition);
  return kFirstCarried;
}

Status Frame::runControl(uint32_t index) {
  const Task &task = graph.tasks[index];
  Status status = task.kind == TaskKind::If ? runIf(task, *controls[index]) : runLoop(task, *controls[index]);
  return status ? Status() : Status(within(cat("task '", task.name, "'"), status.takeError()));
}

Status Frame::runIf(const Task &task, Control &control) {
  bool chosen = read<uint8_t>(dataOf(task.condition)) != 0;
  Frame &frame = *control.frames[chosen ? 0 : 1];
  for (uint32_t i = 0; i < task.buffers.size(); ++i)
    if (Status status = bindBuffer(frame, i, task.buffers[i]); !status)
      return status;
  if (Status status = frame.call(); !status)
    return within(chosen ? "then" : "else", status.takeError());
  // The branch's outputs stay where they are until the task runs again.
  for (uint32_t i = 0; i < task.outputs; ++i) {
    const TensorPlace &given = frame.output(i);
    control.results[i].dims = given.dims;
    control.results[i].data = given.data;
    control.results[i].bytes = given.bytes;
  }
  return {};
}

Status Frame::runLoop(const Task &task, Control &control) {
  int64_t limit = task.tripCount == kNone ? INT64_MAX : read<int64_t>(dataOf(task.tripCount));
  control.condition = task.condition == kNone || read<uint8_t>(dataOf(task.condition)) != 0;
  uint32_t first = bindIteration(control);
  for (uint32_t i = 0; i < task.buffers.size(); ++i)
    if (Status status = bindBuffer(*control.frames[0], first + i, task.buffers[i]); !status)
      return status;
  for (TensorPlace &place : control.results)
    place.bytes = 0;
  for (control.iterations = 0; control.condition && control.iterations < limit; ++control.iterations)
    if (Status status = iterate(task, control); !status)
      return within(cat("iteration ", control.iterations), status.takeError());
  return endLoop(task, control);
}

/// Runs the body once; what it gave becomes what the next iteration gets.
Status Frame::iterate(const Task &task, Control &control) {
  Frame &body = *control.frames[0];
  control.iteration = control.iterations;
  if (Status status = body.call(); !status)
    return status;
  control.condition = read<uint8_t>(body.output(0).data) != 0;
  for (uint32_t i = 0; i < task.carried; ++i) {
    TensorPlace &place = control.results[i];
    body.exchangeOutput(1 + i, place);
    if (body.graph.inputBuffers[kFirstCarried + i] != kNone)
      body.bind(DMX_INPUT, kFirstCarried + i, place.dims, place.data, place.bytes);
  }
  return task.scans ? stack(task, control) : Status();
}

/// Appends the iteration's scan outputs.
Status Frame::stack(const Task &task, Control &control) {
  Frame &body = *control.frames[0];
  for (uint32_t i = task.carried; i < task.outputs; ++i) {
    TensorPlace &place = control.results[i];
    const TensorPlace &given = body.output(1 + i);
    auto wrong = [&](dmx_status status, const auto &...parts) {
      return fail(status, "scan output ", i, ": ", parts...);
    };
    if (control.iterations == 0) {
      place.dims.assign(1, 0);
      place.dims.insert(place.dims.end(), given.dims.begin(), given.dims.end());
    } else if (!std::equal(given.dims.begin(), given.dims.end(), place.dims.begin() + 1)) {
      return wrong(DMX_STATUS_KERNEL, "its shape differs from that of the iterations before");
    }
    dmx_dtype dtype = body.graph.buffers[body.graph.outputBuffers[1 + i]].dtype;
    if (given.bytes && dmx_dtype_bits(dtype) *
                           dmx_tensor_bytes(DMX_DTYPE_I8, static_cast<uint32_t>(given.dims.size()), given.dims.data()) %
                           8)
      return wrong(DMX_STATUS_UNSUPPORTED, "elements of 4 or 2 bits that do not fill whole bytes cannot be stacked");
    uint64_t needed = place.bytes + given.bytes;
    if (needed > place.own.size)
      if (Status status = grow(place.own, std::max(needed, 2 * place.bytes), place.bytes); !status)
        return wrong(status.error().status, status.error().message);
    place.data = static_cast<std::byte *>(place.own.data);
    if (given.bytes)
      machinery.sharing->copy(place.data + place.bytes, given.data, given.bytes);
    place.bytes = needed;
    ++place.dims[0];
  }
  return {};
}

/// Without an iteration, the carried values are the initial ones, and nothing is stacked.
Status Frame::endLoop(const Task &task, Control &control) {
  Frame &body = *control.frames[0];
  for (uint32_t i = 0; control.iterations == 0 && i < task.outputs; ++i) {
    TensorPlace &place = control.results[i];
    if (i >= task.carried) {
      emptyScan(body, 1 + i, place);
      continue;
    }
    uint32_t buffer = task.buffers[i];
    if (Status status = evaluateShape(graph, buffer, dims, place.dims); !status)
      return status;
    place.bytes = static_cast<uint64_t>(
        dmx_tensor_bytes(graph.buffers[buffer].dtype, static_cast<uint32_t>(place.dims.size()), place.dims.data()));
    if (Status status = grow(place.own, place.bytes); !status)
      return status;
    place.data = static_cast<std::byte *>(place.own.data);
    if (place.bytes)
      machinery.sharing->copy(place.data, dataOf(buffer), place.bytes);
  }
  return {};
}

/// Its shape as far as the initial values say; what only a run of the body would say is 0.
void Frame::emptyScan(Frame &body, uint32_t output, TensorPlace &place) {
  const Buffer &buffer = body.graph.buffers[body.graph.outputBuffers[output]];
  place.dims.assign(1 + buffer.shape.size(), 0);
  bool known = static_cast<bool>(body.evaluateInputs());
  for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
    bool later = false;
    body.graph.exprs.forEachDim(buffer.shape[axis], [&](uint32_t dim) { later |= body.graph.dims[dim].stage != 0; });
    if (auto extent = body.graph.exprs.evaluate(buffer.shape[axis], body.dims); known && !later && extent)
      place.dims[1 + axis] = std::max<int64_t>(*extent, 0);
  }
}

} // namespace dmxrt
