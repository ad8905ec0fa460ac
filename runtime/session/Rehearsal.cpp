//===- Rehearsal.cpp - runs laid out without computing anything -----------===//
//
// Devices are stand-ins (devices/RehearsalDevice.h), so that only addresses are given out.
// Whatever a real run checks before a kernel starts is checked by the same code: this file
// has what a run would have got from kernels.
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include <algorithm>

namespace dmxrt {
namespace {

/// How many code objects the target has that has most of them.
size_t countVariants(const Graph &graph, const Manifest &manifest) {
  size_t most = 1;
  for (const std::string &target : graph.targets)
    most = std::max<size_t>(
        most, static_cast<size_t>(std::count_if(manifest.targets.begin(), manifest.targets.end(),
                                                [&](const TargetCode &code) { return code.target == target; })));
  return most;
}

/// Whether a failure says that values do not go together, or that no machine has the memory, and not that the bundle is
/// wrong. Values that only a run tells, and those of a branch that is never taken, may be such.
bool isAboutValues(const Status &status) {
  dmx_status code = status.error().status;
  return code == DMX_STATUS_INVALID_ARGUMENT || code == DMX_STATUS_KERNEL || code == DMX_STATUS_OUT_OF_MEMORY;
}

} // namespace

Status Session::rehearse(const std::shared_ptr<const Bundle> &bundle, const Signature &signature,
                         std::span<const dmx_tensor_view> inputs) {
  if (inputs.size() != signature.inputs.size())
    return fail(DMX_STATUS_INVALID_ARGUMENT, inputs.size(), " inputs were given, the entry point has ",
                signature.inputs.size());
  size_t variants = countVariants(bundle->graph(signature.graph), bundle->manifest());
  for (size_t variant = 0; variant < variants; ++variant) {
    Session session(bundle, signature);
    session.machinery.rehearsal = Rehearsal::Most;
    if (Status status = session.rehearse(inputs, variant); !status)
      return status;
  }
  return {};
}

Status Session::rehearse(std::span<const dmx_tensor_view> inputs, size_t variant) {
  auto devices = createRehearsalDevices(graph.targets, variant);
  if (!devices)
    return devices.takeError();
  if (Status status = load(std::move(*devices), ""); !status)
    return status;
  // Never read: a place that is there.
  alignas(64) static std::byte place;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    dmx_tensor_view view = inputs[i];
    view.data = &place;
    if (Status status = bind(DMX_INPUT, i, view); !status)
      return status;
  }
  for (Rehearsal kind : {Rehearsal::Most, Rehearsal::Least}) {
    machinery.rehearsal = kind;
    if (Status status = frame->arrange(); !status)
      return status;
    bool reached = false;
    if (Status status = frame->rehearse(reached); !status)
      return status;
  }
  return {};
}

/// What only a run tells, at one end of its bounds.
int64_t Frame::rehearsedValue(int64_t lower, int64_t upper) const {
  constexpr int64_t kMany = 4096; // bounds may be far beyond any memory
  return machinery.rehearsal == Rehearsal::Least ? lower : std::min(upper, std::max(lower, kMany));
}

/// Lays out the stages behind the first, and the graphs below. `reached` tells whether all stages were.
Status Frame::rehearse(bool &reached) {
  std::fill(results.begin(), results.end(), kUnknownExtent);
  for (uint32_t k = 0; k < stages.size(); ++k) {
    if (k) {
      reached = static_cast<bool>(evaluateDims(graph, k, dims, [this](const Dim &dim) { return returnedDim(dim); }));
      if (!reached)
        return {};
      if (Status status = checkResults(k); !status)
        return badBundle(status.takeError().message);
      if (Status status = bringUp(k); !status) {
        reached = false;
        return isAboutValues(status) ? Status() : status;
      }
    }
    for (uint32_t i = stages[k].begin; i < stages[k].end; ++i)
      if (controls[i])
        if (Status status = rehearseControl(i); !status)
          return within(cat("task '", taskNames[i], "'"), status.takeError());
  }
  reached = true;
  return {};
}

/// Both branches, or the body once. The results are those of one branch, the other's in the other kind of rehearsal.
Status Frame::rehearseControl(uint32_t index) {
  const Task &task = graph.tasks[index];
  Control &control = *controls[index];
  bool loop = task.kind == TaskKind::Loop;
  control.iterations = kUnknownExtent;
  for (uint32_t k = 0; k < 2; ++k) {
    if (!control.frames[k])
      continue;
    Frame &frame = *control.frames[k];
    bool reached = false;
    if (Status status = rehearsePart(task, control, frame, reached); !status)
      return status;
    if (!loop && (k == 0) != (machinery.rehearsal == Rehearsal::Most))
      continue;
    for (uint32_t i = 0; i < task.outputs; ++i)
      takeRehearsed(frame, loop ? 1 + i : i, reached, control.results[i].dims);
    for (uint32_t i = task.carried; loop && i < task.outputs; ++i)
      control.results[i].dims.insert(control.results[i].dims.begin(), kUnknownExtent);
  }
  return {};
}

Status Frame::rehearsePart(const Task &task, Control &control, Frame &frame, bool &reached) {
  uint32_t first = task.kind == TaskKind::Loop ? bindIteration(control) : 0;
  for (uint32_t i = 0; i < task.buffers.size(); ++i)
    if (Status status = bindBuffer(frame, first + i, task.buffers[i]); !status)
      return status;
  // A branch that these shapes never take may have constraints that they break, but it expects what it is given.
  reached = static_cast<bool>(frame.evaluateInputDims());
  if (!reached)
    return {};
  if (Status status = frame.checkInputs(); !status)
    return badBundle(status.takeError().message);
  if (Status status = frame.bringUp(0); !status) {
    reached = false;
    return isAboutValues(status) ? Status() : status;
  }
  return frame.rehearse(reached);
}

/// The shape of an output as far as it follows from that of the inputs.
void Frame::takeRehearsed(const Frame &frame, uint32_t output, bool reached, std::vector<int64_t> &shape) {
  const Buffer &buffer = frame.graph.buffers[frame.graph.outputBuffers[output]];
  if (reached && buffer.stage == 0)
    shape = frame.outputs[output].dims;
  else
    shape.assign(buffer.shape.size(), kUnknownExtent);
}

} // namespace dmxrt
