//===- SessionRun.cpp - runs, async runs and profiling --------------------===//

#include "Session.h"

#include "dmx/dmx_kernel.h"

#include <algorithm>
#include <csignal>

namespace dmxrt {
namespace {

std::string_view kernelErrorText(int32_t code) {
  switch (code) {
  case DMX_KERNEL_INDEX_OUT_OF_RANGE:
    return "an index lies outside of its axis; check the index tensors among the inputs";
  case DMX_KERNEL_DIVISION_BY_ZERO:
    return "an integer is divided by zero; check the inputs";
  case DMX_KERNEL_INVALID_ARGUMENT:
    return "an operand has a value its operation does not allow; check the inputs";
  default:
    return "unknown kernel error";
  }
}

} // namespace

/// Outputs must overlap nothing: tasks read inputs and write outputs in an order
/// that the caller does not know.
Status Session::checkOverlaps() {
  ranges.clear();
  for (dmx_io io : {DMX_INPUT, DMX_OUTPUT})
    for (uint32_t i = 0; i < bindings[io].size(); ++i)
      if (const Binding &binding = bindings[io][i]; binding.bytes)
        ranges.push_back({binding.data, binding.data + binding.bytes, io, i});
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return a.begin < b.begin; });
  const Range *reach = nullptr, *outputReach = nullptr; // those that end last so far
  for (const Range &range : ranges) {
    const Range *other = range.io == DMX_OUTPUT ? reach : outputReach;
    if (other && range.begin < other->end)
      return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(range.io, range.index), " overlaps ",
                  tensorName(other->io, other->index), " in memory; bind outputs to memory of their own");
    if (!reach || range.end > reach->end)
      reach = &range;
    if (range.io == DMX_OUTPUT && (!outputReach || range.end > outputReach->end))
      outputReach = &range;
  }
  return {};
}

void Session::patchPointers() {
  for (dmx_io io : {DMX_INPUT, DMX_OUTPUT}) {
    const auto &buffers = io == DMX_INPUT ? graph.inputBuffers : graph.outputBuffers;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i] != kNone)
        bufferData[buffers[i]] = bindings[io][i].data;
  }
  for (const Slot &slot : boundSlots) {
    const Buffer &buffer = graph.buffers[slot.buffer];
    std::byte *data = bufferData[slot.buffer];
    if (buffer.kind == BufferKind::Alias) {
      data = bufferData[buffer.parent];
      data = data ? data + layout.places[slot.buffer].offset : nullptr;
    }
    operands[slot.position] = data;
  }
}

/// Brings everything up to date with the bindings; nothing to do when neither shapes nor
/// pointers changed.
Status Session::makeReady() {
  if (!inputsChanged && !pointersChanged && prepared)
    return {};
  for (dmx_io io : {DMX_INPUT, DMX_OUTPUT})
    for (uint32_t i = 0; i < bindings[io].size(); ++i)
      if (!bindings[io][i].bound)
        return fail(DMX_STATUS_NOT_READY, tensorName(io, i), " is not bound; call dmx_session_bind first");
  if (Status status = evaluateInputs(); !status)
    return status;
  if (!prepared)
    if (Status status = prepare(); !status)
      return status;
  std::vector<int64_t> &shape = shapeRoom;
  for (uint32_t i = 0; i < signature.outputs.size(); ++i) {
    if (Status status = evaluateShape(graph, graph.outputBuffers[i], dims, shape); !status)
      return within(tensorName(DMX_OUTPUT, i), status.takeError());
    const std::vector<int64_t> &bound = bindings[DMX_OUTPUT][i].dims;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (bound[axis] != shape[axis])
        return fail(DMX_STATUS_INVALID_ARGUMENT, tensorName(DMX_OUTPUT, i), ": axis ", axis, " is ", bound[axis],
                    ", for these inputs it must be ", shape[axis], "; ask dmx_session_shape after binding the inputs");
  }
  if (Status status = checkOverlaps(); !status)
    return status;
  patchPointers();
  pointersChanged = false;
  return {};
}

Error Session::taskError(const RunOutcome &outcome) const {
  const Task &task = graph.tasks[outcome.task];
  constexpr size_t most = 4; // the rest of the message is worth more than the names of a whole graph
  std::string nodes;
  for (size_t i = 0; i < std::min(task.nodes.size(), most); ++i)
    nodes += cat(nodes.empty() ? " (node '" : ", '", task.nodes[i], "'");
  if (!nodes.empty())
    nodes += task.nodes.size() > most ? cat(" and ", task.nodes.size() - most, " more)") : ")";
  return fail(DMX_STATUS_KERNEL, "task '", task.name, "'", nodes,
              " failed: ", outcome.detail.empty() ? kernelErrorText(outcome.code) : outcome.detail, " (kernel '",
              task.kernel, "', code ", outcome.code, ")");
}

Status Session::execute() {
  if (profiling)
    slices.clear();
  for (const Turn &turn : turns) {
    turn.device->enqueue(turn.segment);
    RunOutcome outcome = turn.device->fence();
    if (profiling)
      turn.device->takeSlices(slices);
    if (outcome.code == 0)
      continue;
    if (profiling)
      recordSlices();
    return taskError(outcome);
  }
  if (profiling)
    recordSlices();
  return {};
}

Status Session::run() {
  if (Status status = makeReady(); !status)
    return status;
  return execute();
}

void *Session::asyncMain(void *argument) {
  Session &session = *static_cast<Session *>(argument);
  for (uint32_t run = 1;; ++run) {
    session.asyncGo.waitFor(run, 0);
    if (session.asyncStop)
      return nullptr;
    // Only a failing task makes a message; out of memory there must not end the process.
    try {
      session.asyncStatus = session.execute();
    } catch (...) {
      session.asyncStatus = Error{DMX_STATUS_OUT_OF_MEMORY, {}};
    }
    session.asyncDone.raise();
  }
}

Status Session::startAsync() {
  if (Status status = makeReady(); !status)
    return status;
  if (!asyncStarted) {
    sigset_t all, previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    int code = pthread_create(&asyncThread, nullptr, asyncMain, this);
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    if (code != 0)
      return fail(DMX_STATUS_OUT_OF_MEMORY, "cannot start the thread for async runs");
    asyncStarted = true;
  }
  ++asyncRuns;
  asyncGo.raise();
  return {};
}

Status Session::finishAsync() {
  asyncDone.waitFor(asyncRuns, 0);
  return std::exchange(asyncStatus, Status());
}

void Session::recordSlices() {
  for (const TaskSlice &slice : slices) {
    auto &[start, end] = spans[slice.task];
    start = start ? std::min(start, slice.startNs) : slice.startNs;
    end = std::max(end, slice.endNs);
    figures[slice.task].busyNs += slice.endNs - slice.startNs;
    if (events.size() < eventCapacity)
      events.push_back(
          {slice.task, slice.thread, profiledRuns, slice.startNs, slice.endNs, graph.tasks[slice.task].name.c_str()});
    else
      ++droppedEvents;
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    auto &[start, end] = spans[i];
    if (end) {
      ++figures[i].calls;
      figures[i].totalNs += end - start;
    }
    start = end = 0;
  }
  ++profiledRuns;
}

Status Session::profile(uint32_t capacity) {
  std::vector<dmx_profile_event> room;
  room.reserve(capacity);
  events.swap(room);
  eventCapacity = capacity;
  std::fill(figures.begin(), figures.end(), TaskFigures());
  profiledRuns = droppedEvents = 0;
  profiling = capacity != 0;
  for (Unit &unit : units)
    unit.device->setProfiling(profiling);
  return {};
}

void Session::takeEvents(dmx_profile_event *out, uint32_t capacity, uint32_t &count, uint64_t &dropped) {
  if (!out) {
    count = static_cast<uint32_t>(events.size());
    dropped = droppedEvents;
    return;
  }
  std::sort(events.begin(), events.end(), [](const dmx_profile_event &a, const dmx_profile_event &b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.thread < b.thread;
  });
  count = static_cast<uint32_t>(std::min<size_t>(capacity, events.size()));
  std::copy_n(events.begin(), count, out);
  events.erase(events.begin(), events.begin() + count);
  dropped = std::exchange(droppedEvents, 0);
}

void Session::info(dmx_session_info &out) const {
  for (const Unit &unit : units) {
    out.threads = std::max(out.threads, unit.device->threads());
    out.scratch_bytes += unit.device->scratchBytes();
  }
  out.task_count = static_cast<uint32_t>(graph.tasks.size());
  out.target = targetText.c_str();
  out.isa = isaText.c_str();
  for (const Memory &memory : arenas)
    out.arena_bytes += memory.size;
  for (const Memory &memory : states)
    out.state_bytes += memory.size;
  out.arena_lower_bound = layout.arenaLowerBound;
  out.constant_bytes = constantBytes;
}

Status Session::taskInfo(uint32_t index, dmx_task_info &out) const {
  if (index >= graph.tasks.size())
    return fail(DMX_STATUS_INVALID_ARGUMENT, "task ", index, " does not exist; there are ", graph.tasks.size());
  const Task &task = graph.tasks[index];
  out.name = task.name.c_str();
  out.kernel = task.isCopy ? nullptr : task.kernel.c_str();
  out.nodes = task.nodeNames.data();
  out.node_count = static_cast<uint32_t>(task.nodeNames.size());
  out.work = out.flops = out.bytes = -1;
  if (prepared) {
    out.slices = deviceOf(task).sliceCount(index);
    out.work = layout.tasks[index].work;
    out.flops = layout.tasks[index].flops;
    out.bytes = layout.tasks[index].bytes;
  }
  out.calls = figures[index].calls;
  out.total_ns = figures[index].totalNs;
  out.busy_ns = figures[index].busyNs;
  return {};
}

} // namespace dmxrt
