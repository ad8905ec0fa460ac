//===- GpuPlan.cpp - what a GPU does for segments of tasks --------------------===//

#include "GpuPlan.h"
#include "ByteRanges.h"

namespace dmxrt::cuda {
namespace {

/// Whether the host's bytes are those that count.
bool isOnHost(const BufferHome &home) {
  return home.kind == BufferHome::Border || (home.kind == BufferHome::Arena && home.isShared);
}

class Planner {
public:
  Planner(std::span<const DeviceTask> tasks, Segment segment, BlockNeeds &needs) : tasks(tasks), needs(needs) {
    plan.tasks = segment;
  }

  SegmentPlan make() {
    for (uint32_t i = plan.tasks.begin; i < plan.tasks.end; ++i) {
      const DeviceTask &task = tasks[i];
      auto count = static_cast<uint32_t>(task.bufferBytes.size());
      for (uint32_t buffer = 0; buffer < count; ++buffer)
        need(task, buffer);
      if (task.kernel)
        dispatch(i, count - task.written, count);
      else
        copy(i);
    }
    return std::move(plan);
  }

private:
  void dispatch(uint32_t index, uint32_t operands, uint32_t count) {
    const DeviceTask &task = tasks[index];
    plan.firstResult.push_back(plan.results);
    if (task.results)
      plan.results += static_cast<const KernelLaunch *>(task.kernel)->results;
    for (uint32_t i = 0; i < (task.updates ? count : operands); ++i)
      read(index, i, 0, task.bufferBytes[i]);
    for (uint32_t i = operands; i < count; ++i)
      write(index, i, 0, task.bufferBytes[i]);
  }

  void copy(uint32_t index) {
    const DeviceTask &task = tasks[index];
    plan.firstResult.push_back(plan.results);
    read(index, 0, task.srcOffset, static_cast<uint64_t>(task.work));
    write(index, 1, task.dstOffset, static_cast<uint64_t>(task.work));
  }

  void need(const DeviceTask &task, uint32_t buffer) {
    const BufferHome &home = task.homes[buffer];
    BlockNeed &block = needs[home.block];
    block.kind = home.kind;
    block.bytes = std::max(block.bytes, home.blockBytes);
    if (home.kind == BufferHome::Constant || home.kind == BufferHome::State)
      block.host = static_cast<const std::byte *>(task.buffers[buffer]) - home.offset;
  }

  void read(uint32_t index, uint32_t buffer, uint64_t offset, uint64_t bytes) {
    const BufferHome &home = tasks[index].homes[buffer];
    if (isOnHost(home))
      add(plan.toGpu, present[home.block], index, buffer, offset, bytes);
  }
  void write(uint32_t index, uint32_t buffer, uint64_t offset, uint64_t bytes) {
    const BufferHome &home = tasks[index].homes[buffer];
    if (!isOnHost(home))
      return;
    present[home.block].add(home.offset + offset, home.offset + offset + bytes);
    add(plan.toHost, written[home.block], index, buffer, offset, bytes);
  }
  void add(std::vector<BorderCopy> &copies, ByteRanges &known, uint32_t index, uint32_t buffer, uint64_t offset,
           uint64_t bytes) {
    uint64_t base = tasks[index].homes[buffer].offset;
    for (auto [begin, end] : known.add(base + offset, base + offset + bytes))
      copies.push_back({index, buffer, begin - base, end - begin});
  }

  std::span<const DeviceTask> tasks;
  BlockNeeds &needs;
  SegmentPlan plan;
  std::map<const void *, ByteRanges> present, written; ///< by block: bytes that the GPU has by now; that it wrote
};

} // namespace

SegmentPlan planSegment(std::span<const DeviceTask> tasks, Segment segment, BlockNeeds &needs) {
  return Planner(tasks, segment, needs).make();
}

} // namespace dmxrt::cuda
