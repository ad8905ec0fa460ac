//===- GuardedTask.cpp - a task whose operands are guarded ----------------===//

#include "GuardedTask.h"

#include "runtime/devices/common/guard/GuardedCall.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace dmxrt {

GuardedTask::GuardedTask(const DeviceTask &task, GuardSide side, uint64_t alignment)
    : task(task), side(side), dims(task.dimCount * sizeof(int64_t), sizeof(int64_t), side, GuardPattern::Input),
      pointers(task.bufferBytes.size() * sizeof(void *), sizeof(void *), side, GuardPattern::Input) {
  std::vector<uint32_t> owner = joinOperands();
  for (uint32_t i = 0; i < owner.size(); ++i)
    if (owner[i] == i)
      addBlock(owner, i, alignment);
  if (dims.size())
    std::memcpy(dims.data(), task.dims, dims.size());
  dims.makeReadOnly();
  pointers.makeReadOnly();
}

bool GuardedTask::overlap(uint32_t a, uint32_t b) const {
  return origin(a) < origin(b) + task.bufferBytes[b] && origin(b) < origin(a) + task.bufferBytes[a];
}

/// For each operand the first of those that must lie together with it.
std::vector<uint32_t> GuardedTask::joinOperands() const {
  std::vector<uint32_t> owner(task.bufferBytes.size());
  for (uint32_t i = 0; i < owner.size(); ++i)
    owner[i] = i;
  for (uint32_t result = 0; result < owner.size(); ++result)
    for (uint32_t i = 0; isWritten(result) && i < owner.size(); ++i)
      if (owner[i] != owner[result] && overlap(i, result))
        std::replace(owner.begin(), owner.end(), std::max(owner[i], owner[result]), std::min(owner[i], owner[result]));
  return owner;
}

void GuardedTask::addBlock(std::span<const uint32_t> owner, uint32_t root, uint64_t alignment) {
  const std::byte *begin = origin(root), *end = begin;
  uint32_t largest = root;
  bool written = false;
  for (uint32_t i = root; i < owner.size(); ++i) {
    if (owner[i] != root)
      continue;
    begin = std::min(begin, origin(i));
    end = std::max(end, origin(i) + task.bufferBytes[i]);
    largest = task.bufferBytes[i] > task.bufferBytes[largest] ? i : largest;
    written |= isWritten(i);
  }
  blocks.push_back({GuardedBytes(static_cast<uint64_t>(end - begin), alignment, side,
                                 written ? GuardPattern::Result : GuardPattern::Input),
                    largest, written});
  GuardedBytes &memory = blocks.back().memory;
  for (uint32_t i = root; i < owner.size(); ++i) {
    if (owner[i] != root)
      continue;
    std::byte *copy = memory.data() + (origin(i) - begin);
    reinterpret_cast<void **>(pointers.data())[i] = copy;
    if (task.bufferBytes[i] && (!isWritten(i) || task.updates))
      std::memcpy(copy, origin(i), task.bufferBytes[i]);
  }
  if (!written)
    memory.makeReadOnly();
}

int32_t GuardedTask::call(Thread &thread, int64_t begin, int64_t end) {
  dmx_kernel_args args{reinterpret_cast<void *const *>(pointers.data()),
                       task.dims ? reinterpret_cast<const int64_t *>(dims.data()) : nullptr,
                       begin,
                       end,
                       task.scratch ? thread.scratch.data() : nullptr,
                       task.results,
                       &thread.kept};
  GuardFault fault;
  auto kernel = reinterpret_cast<dmx_kernel_fn>(const_cast<void *>(task.kernel));
  std::optional<int32_t> code = callGuarded(kernel, args, fault);
  return code ? *code : reportFault(thread, fault.address, fault.write);
}

/// "it writes byte 64 of operand 2, a result of 64 bytes"
int32_t GuardedTask::report(const char *verb, int64_t offset, const GuardedBytes &memory, const char *name) {
  auto at = static_cast<long long>(offset), size = static_cast<long long>(memory.size());
  for (const Block &block : blocks)
    if (&block.memory == &memory)
      std::snprintf(text, sizeof text, "guard memory: it %s byte %lld of operand %u, %s %lld bytes", verb, at,
                    block.operand, block.written ? "a result of" : "which it may only read, of", size);
  if (name)
    std::snprintf(text, sizeof text, "guard memory: it %s byte %lld of its %s of %lld bytes", verb, at, name, size);
  return kDeviceFault;
}

int32_t GuardedTask::reportFault(const Thread &thread, uintptr_t address, bool write) {
  const char *verb = write ? "writes" : "reads";
  auto covered = [&](const GuardedBytes &memory, const char *name) {
    if (!memory.covers(address))
      return false;
    report(verb, static_cast<int64_t>(address - reinterpret_cast<uintptr_t>(memory.data())), memory, name);
    return true;
  };
  for (const Block &block : blocks)
    if (covered(block.memory, nullptr))
      return kDeviceFault;
  if (covered(thread.scratch, "scratch") || covered(dims, "dims") || covered(pointers, "operands' addresses"))
    return kDeviceFault;
  misaligned = address == 0;
  std::snprintf(text, sizeof text, "guard memory: it %s address %#zx, far from its operands", verb, size_t(address));
  return kDeviceFault;
}

int32_t GuardedTask::check(const Thread &thread) {
  for (const Block &block : blocks)
    if (std::optional<int64_t> offset = block.memory.strayWrite())
      return report("wrote", *offset, block.memory, nullptr);
  if (std::optional<int64_t> offset = thread.scratch.strayWrite())
    return report("wrote", *offset, thread.scratch, "scratch");
  return 0;
}

void GuardedTask::copyOut() {
  for (uint32_t i = 0; i < task.bufferBytes.size(); ++i)
    if (isWritten(i) && task.bufferBytes[i])
      std::memcpy(task.buffers[i], reinterpret_cast<void **>(pointers.data())[i], task.bufferBytes[i]);
}

} // namespace dmxrt
