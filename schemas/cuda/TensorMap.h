//===- TensorMap.h - what a tensor map says ---------------------*- C++ -*-===//
//
// A tensor map tells the GPU's copy engine (TMA) how a tensor lies in global memory and which box of it an instruction
// copies. The rules are those of cuTensorMapEncodeTiled, as the comments of CUDA 13.0's cuda.h have them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dmx::cuda {

/// Types of elements, with the driver's numbers (CUtensorMapDataType).
enum class MapType : uint8_t { U8 = 0, U16, U32, S32, U64, S64, F16, F32, F64, Bf16, Tf32 = 11 };
constexpr uint32_t kMapTypes = 12;

uint32_t bytesOf(MapType type);
/// "bf16"; false where it is none.
bool findMapType(std::string_view name, MapType &out);

constexpr uint32_t kMostMapAxes = 5;
/// Bytes of an encoded map.
constexpr uint32_t kMapBytes = 128;

/// A map in tiled mode; what a box has outside of the tensor is zero. Axis 0 is the innermost one.
struct TensorMap {
  MapType type = MapType::U8;
  uint32_t rank = 0;
  uint32_t swizzle = 0; ///< bytes of its span: 0 (none), 32, 64 or 128
  uint64_t base = 0;    ///< address of the first element
  uint64_t sizes[kMostMapAxes] = {};
  uint64_t strides[kMostMapAxes] = {}; ///< bytes; of axis 0 not used: its elements lie side by side
  uint32_t box[kMostMapAxes] = {};     ///< elements of the tensor that a box reaches over
  uint32_t steps[kMostMapAxes] = {};   ///< it takes each such element of them: 1 takes all

  /// Elements that a box has along an axis.
  uint32_t boxSize(uint32_t axis) const { return (box[axis] + steps[axis] - 1) / steps[axis]; }
  /// Bytes of a box in shared memory.
  uint64_t boxBytes() const;
  /// Bytes from the base to the end of the last element; Size::kTooLarge where they do not fit 63 bits.
  uint64_t span() const;
};

// What is wrong with it, for people, without a subject; "" where nothing is.
/// With the rank, the box, its steps and its swizzle, which no run changes.
std::string problemOfForm(const TensorMap &map);
std::string problemOfSize(uint32_t axis, int64_t size);
std::string problemOfStride(uint32_t axis, int64_t stride);
/// All of it.
std::string problemOf(const TensorMap &map);

} // namespace dmx::cuda
