//===- TensorMap.cpp - what a tensor map says ---------------------------------===//
#include "TensorMap.h"

#include "schemas/Size.h"

namespace dmx::cuda {
namespace {

struct Named {
  std::string_view name;
  MapType type;
  uint32_t bytes;
};
constexpr Named kTypes[] = {{"u8", MapType::U8, 1},     {"u16", MapType::U16, 2},  {"u32", MapType::U32, 4},
                            {"s32", MapType::S32, 4},   {"u64", MapType::U64, 8},  {"s64", MapType::S64, 8},
                            {"f16", MapType::F16, 2},   {"f32", MapType::F32, 4},  {"f64", MapType::F64, 8},
                            {"bf16", MapType::Bf16, 2}, {"tf32", MapType::Tf32, 4}};

constexpr uint64_t kMostSize = uint64_t(1) << 32, kMostStride = uint64_t(1) << 40;
constexpr uint32_t kMostBox = 256, kMostStep = 8, kUnit = 16;

std::string number(uint64_t value) { return std::to_string(value); }

std::string problemOfBox(const TensorMap &map, uint32_t axis) {
  if (map.box[axis] == 0 || map.box[axis] > kMostBox)
    return "its box has " + number(map.box[axis]) + " elements along axis " + number(axis) + ", not 1 to 256";
  if (map.steps[axis] == 0 || map.steps[axis] > kMostStep)
    return "it takes each " + number(map.steps[axis]) + "th element along axis " + number(axis) + ", not 1 to 8";
  if (axis == 0 && map.steps[0] != 1)
    return "it leaves elements of the innermost axis out, and those lie side by side";
  return {};
}

} // namespace

uint32_t bytesOf(MapType type) {
  for (const Named &each : kTypes)
    if (each.type == type)
      return each.bytes;
  return 1;
}

bool findMapType(std::string_view name, MapType &out) {
  for (const Named &each : kTypes)
    if (each.name == name) {
      out = each.type;
      return true;
    }
  return false;
}

uint64_t TensorMap::boxBytes() const {
  Size bytes = bytesOf(type);
  for (uint32_t i = 0; i < rank; ++i)
    bytes *= boxSize(i);
  return bytes.value();
}

uint64_t TensorMap::span() const {
  Size bytes = Size(sizes[0]) * bytesOf(type);
  for (uint32_t i = 1; i < rank; ++i)
    bytes += Size(sizes[i] - 1) * strides[i];
  return bytes.value();
}

std::string problemOfForm(const TensorMap &map) {
  if (map.rank == 0 || map.rank > kMostMapAxes)
    return "it has " + number(map.rank) + " axes, not 1 to 5";
  for (uint32_t i = 0; i < map.rank; ++i)
    if (std::string problem = problemOfBox(map, i); !problem.empty())
      return problem;
  if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128)
    return "it swizzles " + number(map.swizzle) + " bytes, not 0, 32, 64 or 128";
  uint64_t inner = uint64_t(map.box[0]) * bytesOf(map.type);
  if (inner % kUnit)
    return "its box has " + number(inner) + " bytes along axis 0, no multiple of 16";
  if (map.swizzle && inner > map.swizzle)
    return "its box has " + number(inner) + " bytes along axis 0, more than the " + number(map.swizzle) +
           " that it swizzles";
  return {};
}

std::string problemOfSize(uint32_t axis, int64_t size) {
  if (size < 1 || static_cast<uint64_t>(size) > kMostSize)
    return "it has " + std::to_string(size) + " elements along axis " + number(axis) + ", not 1 to 2^32";
  return {};
}

std::string problemOfStride(uint32_t axis, int64_t stride) {
  if (stride < 0 || static_cast<uint64_t>(stride) >= kMostStride || static_cast<uint64_t>(stride) % kUnit)
    return "its stride along axis " + number(axis) + " is " + std::to_string(stride) +
           " bytes, no multiple of 16 below 2^40";
  return {};
}

std::string problemOf(const TensorMap &map) {
  std::string problem = problemOfForm(map);
  for (uint32_t i = 0; i < map.rank && problem.empty(); ++i)
    problem = problemOfSize(i, static_cast<int64_t>(map.sizes[i]));
  for (uint32_t i = 1; i < map.rank && problem.empty(); ++i)
    problem = problemOfStride(i, static_cast<int64_t>(map.strides[i]));
  if (problem.empty() && map.span() == Size::kTooLarge)
    problem = "its elements reach over more than 2^63 bytes";
  if (problem.empty() && map.base % kUnit)
    problem = "it begins at an address that is no multiple of 16";
  return problem;
}

} // namespace dmx::cuda
