//===- GpuDeviceRun.cpp - what runs do on a GPU -------------------------------===//
//
// All that a segment does is put on one stream; the first code that is no success ends it. The fence waits.
//
//===----------------------------------------------------------------------===//

#include "GpuDevice.h"

#include <algorithm>
#include <cstring>

namespace dmxrt::cuda {

DriverCode GpuDevice::clearStates() {
  for (auto &[block, twin] : twins) {
    if (!twin.host || !twin.isZero)
      continue;
    if (DriverCode code = gpu->api().fill(twin.memory->address, 0, twin.memory->bytes, stream))
      return code;
    twin.isZero = false;
  }
  return driver::Success;
}

DriverCode GpuDevice::copyToGpu(const BorderCopy &copy) {
  const DeviceTask &task = programs[selected].tasks[copy.task];
  return gpu->api().copyToGpu(addressOf(task, copy.buffer) + copy.offset,
                              static_cast<const std::byte *>(task.buffers[copy.buffer]) + copy.offset, copy.bytes,
                              stream);
}

DriverCode GpuDevice::copyToHost(const BorderCopy &copy) {
  const DeviceTask &task = programs[selected].tasks[copy.task];
  return gpu->api().copyToHost(static_cast<std::byte *>(task.buffers[copy.buffer]) + copy.offset,
                               addressOf(task, copy.buffer) + copy.offset, copy.bytes, stream);
}

/// What stands in the report before: a kernel that forgets to return a value must not return that of the run before.
DriverCode GpuDevice::begin() {
  size_t results = part().plan.results, words = results + (part().steps.size() + 1) / 2;
  std::fill_n(reportWords.begin(), results, static_cast<uint64_t>(INT64_MIN));
  std::fill_n(reportWords.begin() + static_cast<std::ptrdiff_t>(results), words - results, 0);
  DriverCode code = clearStates();
  if (!code)
    code = gpu->api().copyToGpu(report->address, reportWords.data(), 8 * words, stream);
  for (size_t i = 0; i < part().plan.toGpu.size() && !code; ++i)
    code = copyToGpu(part().plan.toGpu[i]);
  return code;
}

DriverCode GpuDevice::launch(const Step &step, size_t number) {
  uint64_t tail[TailParameters] = {};
  tail[Scratch] = scratch ? scratch->address : report->address;
  tail[ScratchBytes] = step.share;
  tail[Results] = step.returns ? report->address + 8 * uint64_t(step.firstResult) : 0;
  tail[StatusWord] = statusAddress(part(), number);
  parameters.clear();
  for (const uint64_t &word : step.words)
    parameters.push_back(const_cast<uint64_t *>(&word)); // the driver reads them
  for (uint64_t &word : tail)
    parameters.push_back(&word);
  for (const EncodedMap &map : step.maps)
    parameters.push_back(const_cast<EncodedMap *>(&map));
  return gpu->api().launch(step.function, step.blocks, 1, 1, step.threads, 1, 1, step.shared, stream, parameters.data(),
                           nullptr);
}

DriverCode GpuDevice::move(const Step &step) {
  uint64_t from = step.words[0], to = step.words[1];
  if (step.overlaps) {
    if (DriverCode code = gpu->api().copyOnGpu(scratch->address, from, step.bytes, stream))
      return code;
    from = scratch->address;
  }
  return gpu->api().copyOnGpu(to, from, step.bytes, stream);
}

DriverCode GpuDevice::start(size_t number) {
  const Step &step = part().steps[number];
  DriverCode code = driver::Success;
  if (step.function && step.blocks)
    code = launch(step, number);
  else if (!step.function && step.bytes)
    code = move(step);
  return code || !blocking ? code : gpu->api().streamSynchronize(stream);
}

DriverCode GpuDevice::finish() {
  DriverCode code = driver::Success;
  for (size_t i = 0; i < part().plan.toHost.size() && !code; ++i)
    code = copyToHost(part().plan.toHost[i]);
  size_t words = part().plan.results + (part().steps.size() + 1) / 2;
  return code ? code : gpu->api().copyToHost(reportWords.data(), report->address, 8 * words, stream);
}

/// Notes the time between steps while profiling is on.
DriverCode GpuDevice::mark(size_t event) {
  if (!profiling)
    return driver::Success;
  while (events.size() <= event) {
    EventHandle made = nullptr;
    if (DriverCode code = gpu->api().eventCreate(&made, 0))
      return code;
    events.push_back(made);
  }
  return gpu->api().eventRecord(events[event], stream);
}

void GpuDevice::enqueue(uint32_t segment) {
  current = segment;
  Gpu::Current context(*gpu);
  size_t steps = part().steps.size();
  failedStep = steps;
  failed = context.code ? context.code : begin();
  if (!failed)
    failed = mark(0);
  for (size_t i = 0; i < steps && !failed; ++i) {
    failed = start(i);
    if (failed)
      failedStep = i;
    else
      failed = mark(i + 1);
  }
  if (!failed)
    failed = finish();
}

RunOutcome GpuDevice::fence() {
  slices.clear();
  Gpu::Current context(*gpu);
  // Whatever failed: what was started may still write into the host's memory.
  DriverCode code = context.code ? context.code : gpu->api().streamSynchronize(stream);
  if (!failed)
    failed = code;
  if (failed)
    return fault();
  if (profiling)
    measure();
  return readReport();
}

RunOutcome GpuDevice::readReport() const {
  const auto *words = reinterpret_cast<const std::byte *>(reportWords.data() + part().plan.results);
  RunOutcome outcome;
  for (size_t i = 0; i < part().steps.size(); ++i) {
    const Step &step = part().steps[i];
    const DeviceTask &task = programs[selected].tasks[step.task];
    if (step.returns)
      std::memcpy(task.results, reportWords.data() + step.firstResult,
                  8 * uint64_t(static_cast<const KernelLaunch *>(task.kernel)->results));
    int32_t status = 0;
    std::memcpy(&status, words + 4 * i, sizeof status);
    if (status && !outcome.code)
      outcome = {status, step.task, {}};
  }
  return outcome;
}

RunOutcome GpuDevice::fault() const {
  const std::vector<Step> &steps = part().steps;
  std::string text = cat("GPU '", gpu->name(), "': ", gpu->driver().explain(failed));
  bool isKnown = failedStep < steps.size();
  if (!isKnown && steps.size() > 1)
    text +=
        cat("; it is one of ", steps.size(), " tasks from this one on: the device option cuda.blocking=1 tells which");
  return {kDeviceFault, steps[isKnown ? failedStep : 0].task, std::move(text)};
}

/// The GPU's clock tells how long, the host's when.
void GpuDevice::measure() {
  const std::vector<Step> &steps = part().steps;
  auto nanoseconds = [&](size_t event) {
    float milliseconds = 0;
    (void)gpu->api().eventElapsed(&milliseconds, events[0], events[event]);
    return static_cast<uint64_t>(std::max(0.0f, milliseconds) * 1e6);
  };
  uint64_t total = nanoseconds(steps.size()), now = nowNs(), start = now - std::min(now, total), before = start;
  for (size_t i = 0; i < steps.size(); ++i) {
    uint64_t end = start + nanoseconds(i + 1);
    if (programs[selected].tasks[steps[i].task].work)
      slices.push_back({steps[i].task, 0, before, end});
    before = end;
  }
}

void GpuDevice::takeSlices(std::vector<TaskSlice> &out) const { out.insert(out.end(), slices.begin(), slices.end()); }

} // namespace dmxrt::cuda
