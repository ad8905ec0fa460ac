//===- GuardedTask.h - a task whose operands are guarded --------*- C++ -*-===//
#pragma once

#include "runtime/devices/Device.h"
#include "runtime/devices/common/guard/GuardMemory.h"

#include "dmx/dmx_kernel.h"

#include <string_view>
#include <vector>

namespace dmxrt {

/// A kernel's task, done with copies of its operands that lie beside inaccessible pages. Results, and the operands that
/// share bytes with them, lie together as they did and start as they were or, what is only written, as NaNs; all other
/// operands and the arguments' own arrays can only be read. Scratch starts as NaNs, too.
class GuardedTask {
public:
  /// Copies operands in. `alignment` is 1, so that nothing lies between an operand and its guard, which gives kernels
  /// the alignment of elements, or kAbiAlignment for those that need what the ABI promises.
  /// This and the other functions throw std::bad_alloc.
  GuardedTask(const DeviceTask &task, GuardSide side, uint64_t alignment);
  static constexpr uint64_t kAbiAlignment = 64;

  /// What one thread keeps from call to call of the task.
  struct Thread {
    GuardedBytes scratch;
    int64_t kept = -1;
  };
  Thread makeThread() const { return {GuardedBytes(task.scratch, kAbiAlignment, side, GuardPattern::Result)}; }

  /// Calls the kernel for items begin..end: what it returns, or kDeviceFault when it met a guard.
  int32_t call(Thread &thread, int64_t begin, int64_t end);
  /// kDeviceFault when it wrote between operands, or the thread's scratch, and their guards; else 0.
  int32_t check(const Thread &thread);
  void copyOut();

  /// How the kernel left its operands, after a kDeviceFault.
  std::string_view problem() const { return text; }
  /// Whether it may have been the alignment.
  bool misaligned = false;

private:
  /// Bytes that lie together.
  struct Block {
    GuardedBytes memory;
    uint32_t operand; // the largest one
    bool written;
  };
  const std::byte *origin(uint32_t operand) const { return static_cast<const std::byte *>(task.buffers[operand]); }
  bool isWritten(uint32_t operand) const { return operand + task.written >= task.bufferBytes.size(); }
  bool overlap(uint32_t a, uint32_t b) const;
  std::vector<uint32_t> joinOperands() const;
  void addBlock(std::span<const uint32_t> owner, uint32_t root, uint64_t alignment);
  int32_t report(const char *verb, int64_t offset, const GuardedBytes &memory, const char *name);
  int32_t reportFault(const Thread &thread, uintptr_t address, bool write);

  const DeviceTask &task;
  GuardSide side;
  std::vector<Block> blocks;
  GuardedBytes dims, pointers; // the arguments' own arrays
  char text[160] = "";         // of `problem`
};

} // namespace dmxrt
