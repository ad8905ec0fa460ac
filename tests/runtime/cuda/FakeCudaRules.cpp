//===- FakeCudaRules.cpp - what NVIDIA's driver refuses -----------------------===//

#include "FakeCudaRules.h"

#include <algorithm>
#include <array>

namespace dmxtest {

using dmxrt::cat;
using namespace dmxrt::cuda;

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

uint64_t mapElementBytes(int type) {
  // u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32 without subnormals, tf32, tf32 without subnormals
  constexpr std::array<uint64_t, 13> bytes{1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type < 0 || type >= static_cast<int>(bytes.size()) ? 0 : bytes[static_cast<size_t>(type)];
}

static std::string problemOfAxis(const MapArguments &map, uint32_t axis) {
  uint64_t unit = map.interleave == 2 ? 32 : 16;
  if (map.sizes[axis] == 0 || map.sizes[axis] > uint64_t(1) << 32)
    return cat("size ", map.sizes[axis], " of axis ", axis, " is not 1 to 2^32");
  if (map.box[axis] == 0 || map.box[axis] > 256)
    return cat("a box of ", map.box[axis], " elements along axis ", axis, ", not 1 to 256");
  if (map.steps[axis] == 0 || map.steps[axis] > 8)
    return cat("an element stride of ", map.steps[axis], " along axis ", axis, ", not 1 to 8");
  if (axis == 0)
    return {};
  uint64_t stride = map.strides[axis - 1];
  if (stride % unit || stride >= uint64_t(1) << 40)
    return cat("stride ", stride, " of axis ", axis, " is no multiple of ", unit, " below 2^40");
  return {};
}

std::string problemOfMap(const MapArguments &map) {
  if (reinterpret_cast<uintptr_t>(map.out) % 64)
    return "the map is to be at a multiple of 64";
  if (!mapElementBytes(map.type))
    return cat("there is no type ", map.type);
  if (map.rank == 0 || map.rank > 5)
    return cat("rank ", map.rank, " is not 1 to 5");
  if (map.interleave < 0 || map.interleave > 2 || (map.interleave && map.rank < 3))
    return cat("interleave ", map.interleave, " is none, or takes 3 axes");
  if (uint64_t unit = map.interleave == 2 ? 32 : 16; map.base % unit)
    return cat("the tensor's address is no multiple of ", unit);
  for (uint32_t axis = 0; axis < map.rank; ++axis)
    if (std::string problem = problemOfAxis(map, axis); !problem.empty())
      return problem;
  if (map.swizzle < 0 || map.swizzle > 3 || map.promotion < 0 || map.promotion > 3 || map.fill < 0 || map.fill > 1)
    return cat("swizzle ", map.swizzle, ", promotion ", map.promotion, " or fill ", map.fill, " is none");
  if (map.interleave == 2 && map.swizzle != 1)
    return "interleaving by 32 bytes takes a swizzle of 32 bytes";
  uint64_t inner = map.box[0] * mapElementBytes(map.type);
  if (!map.interleave && inner % 16)
    return cat("rows of a box of ", inner, " bytes are no multiple of 16");
  if (uint64_t span = map.swizzle ? uint64_t(16) << map.swizzle : 0; span && !map.interleave && inner > span)
    return cat("rows of a box of ", inner, " bytes are longer than a swizzle of ", span);
  bool isFloat = map.type >= 6;
  if (map.fill && !isFloat)
    return "only numbers of floating point are filled with NaN";
  return {};
}

uint64_t mapSpan(const MapArguments &map) {
  unsigned __int128 bytes = static_cast<unsigned __int128>(map.sizes[0]) * mapElementBytes(map.type);
  for (uint32_t axis = 1; axis < map.rank; ++axis)
    bytes += static_cast<unsigned __int128>(map.sizes[axis] - 1) * map.strides[axis - 1];
  return bytes > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(bytes);
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

static bool mentions(const std::vector<PtxOperand> &operands, std::string_view name) {
  return std::ranges::any_of(operands, [&](const PtxOperand &each) {
    return (each.kind == PtxOperand::Symbol && each.name == name) || mentions(each.parts, name);
  });
}

uint64_t sharedOf(const PtxModule &module, const PtxKernel &kernel) {
  uint64_t bytes = 0;
  for (const auto *list : {&module.shared, &kernel.shared})
    for (const PtxVariable &each : *list)
      if (std::ranges::any_of(kernel.code, [&](const auto &line) { return mentions(line.operands, each.name); }))
        bytes = (bytes + each.align - 1) / each.align * each.align + each.bytes;
  return bytes;
}

uint64_t registersOf(const PtxKernel &kernel, uint64_t threads) {
  uint64_t warps = (threads + 31) / 32, each = (uint64_t(kernel.mostRegisters) + 7) / 8 * 8; // by 256 a warp
  return warps * 32 * each;
}

/// The first CUDA whose driver takes a version of PTX.
static int driverOf(uint32_t ptx) {
  // 7.8 came with 11.8, 8.0 with 12.0, and from there on one with each.
  return ptx <= 78  ? 11080
         : ptx < 90 ? 12000 + static_cast<int>(ptx - 80) * 10
                    : 13000 + static_cast<int>(ptx - 90) * 10;
}

static std::string problemOfParameters(const PtxModule &module, const PtxKernel &kernel) {
  uint64_t bytes = 0, most = module.version >= 81 ? 32764 : 4352;
  for (const PtxParameter &each : kernel.parameters) {
    uint64_t align = std::max(each.align, each.type.bytes());
    bytes = (bytes + align - 1) / align * align + each.bytes;
  }
  if (bytes <= most)
    return {};
  return cat("its parameters have ", bytes, " bytes, and PTX ", module.version / 10, ".", module.version % 10,
             " has at most ", most);
}

static std::string problemOfKernel(const PtxModule &module, const PtxKernel &kernel) {
  if (std::string problem = problemOfParameters(module, kernel); !problem.empty())
    return problem;
  // The compilers of CUDA 12; that of 13 takes more.
  if (uint64_t bytes = sharedOf(module, kernel); bytes > kPlainShared)
    return cat("its variables have ", bytes, " bytes of shared memory, and more than ", kPlainShared,
               " only a launch gives");
  if (kernel.blockThreads && kernel.mostThreads)
    return ".reqntid and .maxntid exclude each other";
  bool moves = std::ranges::any_of(kernel.code, [](const auto &line) { return line.root == "setmaxnreg"; });
  bool isBounded = kernel.mostRegisters || (kernel.leastBlocks && (kernel.blockThreads || kernel.mostThreads));
  if (moves && !isBounded)
    return "setmaxnreg takes a bound of registers: .maxnreg, or .minnctapersm and .reqntid";
  return {};
}

std::string problemOfModule(const PtxModule &module, int version) {
  if (driverOf(module.version) > version)
    return cat("a driver of CUDA ", version / 1000, ".", version % 1000 / 10, " knows no PTX ", module.version / 10,
               ".", module.version % 10);
  if (module.target != "sm_90a" && module.target != "sm_90")
    return cat("target '", module.target, "' is not for compute capability 9.0");
  for (const PtxKernel &kernel : module.kernels)
    if (std::string problem = problemOfKernel(module, kernel); !problem.empty())
      return cat("kernel '", kernel.name, "': ", problem);
  return {};
}

} // namespace dmxtest
