//===- DType.h - element types of tensors -----------------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dmxc {

/// Element types a tensor may have; the names are those of the manifest and of
/// DMIR. Signed integers are two's complement; bool is one byte, 0 or 1.
enum class DType : uint8_t {
  Bool,
  I4,
  I8,
  I16,
  I32,
  I64,
  U4,
  U8,
  U16,
  U32,
  U64,
  F16,
  BF16,
  F32,
  F64,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F4E2M1,
  F8E8M0, ///< a power of two, the scale of microscaling formats: no sign, no zero
  I2,
  U2,
};
inline constexpr unsigned kDTypeCount = static_cast<unsigned>(DType::U2) + 1;

/// Manifest name, e.g. "f32".
std::string_view dtypeName(DType type);
/// Inverse of dtypeName; nullopt for an unknown name.
std::optional<DType> dtypeFromName(std::string_view name);

/// Bits of one element (bool counts 8; packed types count 4 or 2).
unsigned dtypeBits(DType type);
/// Bytes of `count` densely packed elements (4-bit types two to a byte, 2-bit types four); UINT64_MAX where they exceed
/// it.
uint64_t dtypeBytes(DType type, uint64_t count);
/// Whether a byte holds several elements, the first in its lowest bits.
inline bool isPacked(DType type) { return dtypeBits(type) < 8; }

bool isFloat(DType type);
bool isSignedInt(DType type);
bool isUnsignedInt(DType type);
inline bool isInt(DType type) { return isSignedInt(type) || isUnsignedInt(type); }

} // namespace dmxc
