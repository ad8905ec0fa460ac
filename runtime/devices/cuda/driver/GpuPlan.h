//===- GpuPlan.h - what a GPU does for segments of tasks --------*- C++ -*-===//
//
// The host's memory is what devices share, so a segment begins with copies of what it reads of it, and ends with copies
// of what it wrote there. What no one else touches stays on the GPU: arenas have twins with the same offsets.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/devices/Device.h"
#include "runtime/devices/cuda/CudaImage.h"

#include <map>
#include <vector>

namespace dmxrt::cuda {

/// Bytes of a task's buffer that are copied between host and GPU.
struct BorderCopy {
  uint32_t task = 0, buffer = 0;
  uint64_t offset = 0; ///< in the buffer
  uint64_t bytes = 0;
  bool operator==(const BorderCopy &) const = default;
};

struct SegmentPlan {
  Segment tasks;
  std::vector<BorderCopy> toGpu, toHost;
  /// Where the values that kernels return lie among the segment's: of each task its first, and how many they are.
  std::vector<uint32_t> firstResult;
  uint32_t results = 0;
};

/// What must have room on the GPU, by BufferHome::block.
struct BlockNeed {
  BufferHome::Kind kind = BufferHome::Border;
  uint64_t bytes = 0;
  const std::byte *host = nullptr; ///< of a Constant or a State: where it begins
};
using BlockNeeds = std::map<const void *, BlockNeed>;

/// The plan of one segment; what its buffers lie in is added to `needs`.
SegmentPlan planSegment(std::span<const DeviceTask> tasks, Segment segment, BlockNeeds &needs);

} // namespace dmxrt::cuda
