//===- SessionRun.cpp - runs, async runs and profiling --------------------===//

#include "Session.h"

#include <algorithm>
#include <csignal>

namespace dmxrt {

/// Whether an input is the first rows of an output where that lies, so that the output's range has it.
bool Session::isOldCache(dmx_io io, uint32_t index) const {
  for (uint32_t i = 0; io == DMX_INPUT && i < signature.outputs.size(); ++i)
    if (graph.buffers[graph.outputBuffers[i]].past == index && frame->isInPlace(i))
      return true;
  return false;
}

/// Outputs must overlap nothing: tasks read inputs and write outputs in an order
/// that the caller does not know.
Status Session::checkOverlaps() {
  ranges.clear();
  for (dmx_io io : {DMX_INPUT, DMX_OUTPUT})
    for (uint32_t i = 0; i < tensorCount(io); ++i)
      if (const Frame::Binding &binding = frame->binding(io, i); binding.bytes && !isOldCache(io, i))
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

/// Brings everything up to date with the bindings; nothing to do when neither shapes nor
/// pointers changed.
Status Session::makeReady() {
  if (frame->isReady())
    return {};
  for (uint32_t i = 0; i < signature.inputs.size(); ++i)
    if (!frame->binding(DMX_INPUT, i).bound)
      return fail(DMX_STATUS_NOT_READY, tensorName(DMX_INPUT, i), " is not bound; call dmx_session_bind first");
  if (Status status = frame->arrange(); !status)
    return status;
  if (Status status = checkOverlaps(); !status)
    return status;
  frame->settle();
  return {};
}

Status Session::execute() {
  for (const Unit &unit : machinery.units)
    unit.device->startRun();
  frame->gather();
  Status status = frame->execute();
  for (size_t i = 0; i < machinery.units.size() && status; ++i)
    status = machinery.units[i].device->endRun();
  remarksText.clear();
  for (const Unit &unit : machinery.units)
    if (const char *remarks = unit.device->remarks(); *remarks)
      remarksText += cat(remarksText.empty() ? "" : "; ", remarks);
  outputsValid = static_cast<bool>(status);
  if (status) {
    frame->scatter();
    frame->advanceLengths();
  }
  if (machinery.profile.on())
    machinery.profile.endRun();
  return status;
}

Status Session::run() {
  outputsValid = false;
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
    // Out of memory must not end the process; so short a text is not allocated.
    try {
      session.asyncStatus = session.execute();
    } catch (...) {
      session.asyncStatus = Error{DMX_STATUS_OUT_OF_MEMORY, "out of memory"};
    }
    session.asyncDone.raise();
  }
}

Status Session::startAsync() {
  outputsValid = false;
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

Status Session::profile(uint32_t capacity) {
  machinery.profile.start(capacity);
  for (Frame *each : frames)
    each->setProfiling(capacity != 0);
  for (Unit &unit : machinery.units)
    unit.device->setProfiling(capacity != 0);
  return {};
}

} // namespace dmxrt
