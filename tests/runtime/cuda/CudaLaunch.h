//===- CudaLaunch.h - kernels by hand on the simulator ----------*- C++ -*-===//
#pragma once

#include "runtime/devices/cuda/sim/Launch.h"
#include "runtime/devices/cuda/sim/SharedMemory.h"
#include "runtime/devices/cuda/sim/clock/Estimate.h"

#include <gtest/gtest.h>

namespace dmxtest {

using dmx::cuda::MapType;
using dmx::cuda::TensorMap;

/// Sanitizers take several times as long: what ends in seconds without them is not measured with them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool timesCount = false;
#else
inline constexpr bool timesCount = true;
#endif

/// A launch of a kernel `k` whose parameters are the addresses of what it reads and writes, then its tensor maps.
struct BlockTrial {
  std::vector<uint32_t> to = std::vector<uint32_t>(256); ///< the first parameter: what it writes
  std::vector<std::vector<uint32_t>> from;               ///< the next ones: what it reads
  std::vector<TensorMap> maps;                           ///< base: 0 for `to`, i + 1 for from[i]
  uint32_t threads = 128, blocks = 1;
  uint64_t seed = 0, shared = 0, mostSteps = 1000000;
  bool checks = true, filled = false;
  bool timed = false;                                       ///< leaves what it takes in `figures`
  uint32_t mostBlocks = 0;                                  ///< that are run; 0: all
  uint64_t mostEvents = dmxrt::cuda::Recorder::kMostEvents; ///< of a block that is played
  dmx::cuda::Machine gpu = dmx::cuda::builtinMachine();     ///< whose clock it is
  dmxrt::cuda::LaunchFigures figures;

  dmxrt::cuda::LaunchOutcome operator()(const std::string &text) {
    using namespace dmxrt::cuda;
    auto module = loadPtx(text);
    if (!module)
      return {module.error().message, 0, 0, 0};
    Memory memory;
    memory.races = checks;
    Launch launch;
    auto region = [&](MemoryRegion::Kind kind, std::vector<uint32_t> &words, size_t number) -> MemoryRegion & {
      MemoryRegion &made = memory.regions.emplace_back();
      made.kind = kind;
      made.number = static_cast<uint32_t>(number);
      made.begin = reinterpret_cast<uintptr_t>(words.data());
      made.bytes = 4 * words.size();
      launch.parameters.push_back(made.begin);
      return made;
    };
    MemoryRegion &result = region(MemoryRegion::Result, to, 0);
    if (checks) {
      result.writers.assign(result.bytes, 0);
      result.readers.assign(result.bytes, 0);
    }
    result.filled = filled;
    for (size_t i = 0; i < from.size(); ++i)
      region(MemoryRegion::Operand, from[i], i);
    for (const TensorMap &map : maps) {
      launch.maps.push_back(map);
      launch.maps.back().base = launch.parameters[map.base];
    }
    for (size_t i = 0; i < maps.size(); ++i)
      launch.parameters.push_back(kMapWindow + dmx::cuda::kMapBytes * i);
    launch.program = (*module)->kernels.data();
    launch.module = module->get();
    launch.blocks = blocks;
    launch.threads = threads;
    launch.seed = seed;
    launch.mostSteps = mostSteps;
    launch.memory = &memory;
    launch.shared = shared;
    launch.checks = checks;
    launch.byBlock = true;
    launch.mostBlocks = mostBlocks;
    if (!timed)
      return runLaunch(launch);
    Recorder recorder(launch, mostEvents);
    launch.recorder = &recorder;
    LaunchOutcome outcome = runLaunch(launch);
    if (outcome.fault.empty())
      figures = estimate(launch, recorder, gpu, /*keepWaits=*/false);
    return outcome;
  }
};

/// A matrix of `rows` lines of `columns` elements that lie side by side.
inline TensorMap matrixMap(uint64_t buffer, MapType type, uint64_t columns, uint64_t rows, uint32_t boxColumns,
                           uint32_t boxRows, uint32_t swizzle) {
  TensorMap map;
  map.type = type;
  map.rank = 2;
  map.base = buffer;
  map.sizes[0] = columns;
  map.sizes[1] = rows;
  map.strides[1] = columns * bytesOf(type);
  map.box[0] = boxColumns;
  map.box[1] = boxRows;
  map.steps[0] = map.steps[1] = 1;
  map.swizzle = swizzle;
  return map;
}

/// A kernel with %d0 the address of what it writes, %d1 and so on of what it reads, map0 and so on its tensor maps, and
/// %r0 the thread's number; %d30 is where the thread's word of what it writes is. Shared memory: `room`, of the launch.
inline std::string blockKernel(const std::string &body, int operands = 0, int maps = 0, int threads = 128) {
  std::string parameters = ".param .u64 to", loads = "\tld.param.b64 %d0, [to];\n";
  for (int i = 0; i < operands; ++i) {
    std::string name = "from" + std::to_string(i);
    parameters += ", .param .u64 " + name;
    loads += "\tld.param.b64 %d" + std::to_string(i + 1) + ", [" + name + "];\n";
  }
  for (int i = 0; i < maps; ++i)
    parameters += ", .param .align 64 .b8 map" + std::to_string(i) + "[128]";
  return ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 room[];\n"
         ".visible .entry k(" +
         parameters + ")\n.reqntid " + std::to_string(threads) + R"(, 1, 1
.minnctapersm 1
{
	.reg .pred %p<16>;
	.reg .b16 %h<16>;
	.reg .b32 %r<200>;
	.reg .b64 %d<40>;
)" + loads +
         R"(
	mov.u32 %r0, %tid.x;
	mul.wide.u32 %d30, %r0, 4;
	add.s64 %d30, %d0, %d30;
)" + body +
         "\n\tret;\n}\n";
}

/// Seeds of plain test runs.
constexpr uint64_t kSeeds[] = {0, 1, 2, 3, 4, 5};

} // namespace dmxtest
