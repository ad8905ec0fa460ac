//===- FrameRun.cpp - a frame's execution ---------------------------------===//

#include "Frame.h"

#include "dmx/dmx_kernel.h"

#include <algorithm>

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
    return "the kernel returned a code of its own, which its author knows";
  }
}

} // namespace

Error Frame::taskError(const RunOutcome &outcome) const {
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

Status Frame::runTurn(const Turn &turn) {
  bool profiling = machinery.profile.on();
  if (turn.control != kNone) {
    uint64_t start = profiling ? nowNs() : 0;
    Status status = runControl(turn.control);
    if (profiling)
      slices.push_back({turn.control, 0, start, nowNs()});
    return status;
  }
  turn.device->selectProgram(turn.program);
  turn.device->enqueue(turn.segment);
  RunOutcome outcome = turn.device->fence();
  if (profiling)
    turn.device->takeSlices(slices);
  return outcome.code == 0 ? Status() : taskError(outcome);
}

Status Frame::execute() {
  Status status;
  slices.clear();
  // A kernel that forgets to return a value must not return that of the run before.
  std::fill(results.begin(), results.end(), INT64_MIN);
  for (uint32_t i = 0; i < stages.size() && status; ++i) {
    if (i)
      status = enterStage(i);
    for (const Turn &turn : stages[i].turns) {
      if (!status)
        break;
      status = runTurn(turn);
    }
  }
  if (machinery.profile.on())
    machinery.profile.record(taskBase, slices, taskNames);
  return status;
}

} // namespace dmxrt
