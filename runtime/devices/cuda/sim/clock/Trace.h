//===- Trace.h - what the warps of a block did, for the clock ---*- C++ -*-===//
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace dmxrt::cuda {

/// Bytes that memories are read and written by together.
inline constexpr uint64_t kSectorBytes = 32, kLineBytes = 128;

/// A warp's access: in global memory by sectors, in shared memory by how often its banks have to be asked.
struct WarpAccess {
  enum Place : uint8_t { Global, Shared, Cluster, Local } place = Global;
  bool isWrite = false;
  uint16_t wavefronts = 1;         ///< of shared memory; of global memory lines of 128 bytes
  uint32_t first = 0, sectors = 0; ///< in BlockTrace::sectors
};

struct BulkMove {
  bool stores = false;
  uint64_t barrier = 0; ///< in shared memory; of a load
  uint64_t bytes = 0;   ///< of the box, in shared memory
  uint32_t first = 0, sectors = 0;
};

/// What stands for the address of a cluster's barrier.
inline constexpr uint64_t kClusterBarrier = ~uint64_t(0);

/// Who comes to an mbarrier or to a named barrier, or waits for it.
struct BarrierUse {
  uint64_t at = 0;     ///< address, or the name
  uint32_t count = 0;  ///< arrivals; threads of a named barrier; of one that is made its arrivals a phase
  int64_t bytes = 0;   ///< that are to come
  uint32_t phase = 0;  ///< that is waited for, counted from 0
  bool isKnown = true; ///< false: it looked and went on
};

/// An instruction that a warp did; `detail` is a number in a list of the block's, which its effect says.
struct TraceEvent {
  uint32_t op = 0, detail = 0;
};

struct BlockTrace {
  std::vector<std::vector<TraceEvent>> warps;
  std::vector<WarpAccess> accesses;
  std::vector<uint64_t> sectors; ///< numbers: bytes of a region / 32, a region beginning at a multiple of 2^40
  std::vector<BulkMove> bulks;
  std::vector<BarrierUse> barriers;
  std::map<uint32_t, uint32_t> clusterPhases; ///< by warp: how many it waited for
  uint64_t events = 0;
};

/// Of all warps of a launch, or of those of its blocks that were run.
struct LaunchCounts {
  uint64_t blocks = 0;                          ///< that were run
  uint64_t instructions = 0;                    ///< of warps, as the text has them
  uint64_t issues = 0;                          ///< as ptxas is expected to make them
  uint64_t requests = 0;                        ///< instructions that access global memory
  uint64_t sectorsRead = 0, sectorsWritten = 0; ///< of these requests
  uint64_t bytesRead = 0, bytesWritten = 0;     ///< that their lanes asked for
  uint64_t sharedRequests = 0;
  uint64_t wavefronts = 0, leastWavefronts = 0; ///< of shared memory; without conflicts of banks
  uint64_t bulkRead = 0, bulkWritten = 0;       ///< bytes by TMA
  uint64_t bulkSectorsRead = 0, bulkSectorsWritten = 0;
  uint64_t wgmma = 0;                             ///< instructions of warps
  uint64_t macs16 = 0, macsTf32 = 0, macsF32 = 0; ///< by tensor cores of 16-bit and tf32 operands; fma of f32
};

} // namespace dmxrt::cuda
