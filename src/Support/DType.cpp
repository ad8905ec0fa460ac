//===- DType.cpp - element types of tensors -------------------------------===//
#include "dmxc/Support/DType.h"
#include "dmxc/Support/Result.h"

#include <algorithm>
#include <iterator>

namespace dmxc {

namespace {
enum class Class : uint8_t { Bool, Signed, Unsigned, Float };
struct Row {
  std::string_view name;
  uint8_t bits;
  Class kind;
};
// Indexed by DType.
constexpr Row rows[] = {
    {"bool", 8, Class::Bool},        {"i4", 4, Class::Signed},        {"i8", 8, Class::Signed},
    {"i16", 16, Class::Signed},      {"i32", 32, Class::Signed},      {"i64", 64, Class::Signed},
    {"u4", 4, Class::Unsigned},      {"u8", 8, Class::Unsigned},      {"u16", 16, Class::Unsigned},
    {"u32", 32, Class::Unsigned},    {"u64", 64, Class::Unsigned},    {"f16", 16, Class::Float},
    {"bf16", 16, Class::Float},      {"f32", 32, Class::Float},       {"f64", 64, Class::Float},
    {"f8e4m3fn", 8, Class::Float},   {"f8e4m3fnuz", 8, Class::Float}, {"f8e5m2", 8, Class::Float},
    {"f8e5m2fnuz", 8, Class::Float}, {"f4e2m1", 4, Class::Float},     {"f8e8m0", 8, Class::Float},
    {"i2", 2, Class::Signed},        {"u2", 2, Class::Unsigned},
};
static_assert(std::size(rows) == kDTypeCount);
const Row &row(DType type) { return rows[static_cast<unsigned>(type)]; }
} // namespace

std::string_view dtypeName(DType type) { return row(type).name; }

std::optional<DType> dtypeFromName(std::string_view name) {
  for (unsigned i = 0; i < std::size(rows); ++i)
    if (rows[i].name == name)
      return static_cast<DType>(i);
  return std::nullopt;
}

unsigned dtypeBits(DType type) { return row(type).bits; }
uint64_t dtypeBytes(DType type, uint64_t count) {
  unsigned bits = row(type).bits, perByte = 8 / std::min(bits, 8u);
  uint64_t bytes = 0;
  if (bits < 8)
    return count / perByte + (count % perByte != 0);
  return __builtin_mul_overflow(count, bits / 8, &bytes) ? UINT64_MAX : bytes;
}
bool isFloat(DType type) { return row(type).kind == Class::Float; }
bool isSignedInt(DType type) { return row(type).kind == Class::Signed; }
bool isUnsignedInt(DType type) { return row(type).kind == Class::Unsigned; }

int exitCodeOf(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::Model:
    return 1;
  case ErrorKind::Usage:
    return 2;
  case ErrorKind::IO:
    return 3;
  case ErrorKind::Constraint:
    return 4;
  case ErrorKind::Mismatch:
    return 5;
  case ErrorKind::Internal:
    break;
  }
  return 70;
}

} // namespace dmxc
