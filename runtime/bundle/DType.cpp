//===- DType.cpp - element types ------------------------------------------===//

#include "DType.h"

#include "schemas/Size.h"

#include <iterator>

namespace {

struct Row {
  const char *name;
  uint32_t bits;
};
/// Indexed by dmx_dtype.
constexpr Row kTypes[] = {{nullptr, 0},  {"bool", 8},     {"i4", 4},         {"i8", 8},     {"i16", 16},
                          {"i32", 32},   {"i64", 64},     {"u4", 4},         {"u8", 8},     {"u16", 16},
                          {"u32", 32},   {"u64", 64},     {"f16", 16},       {"bf16", 16},  {"f32", 32},
                          {"f64", 64},   {"f8e4m3fn", 8}, {"f8e4m3fnuz", 8}, {"f8e5m2", 8}, {"f8e5m2fnuz", 8},
                          {"f4e2m1", 4}, {"f8e8m0", 8},   {"i2", 2},         {"u2", 2}};
constexpr dmx_dtype kCount = static_cast<dmx_dtype>(std::size(kTypes));
static_assert(kCount == DMX_DTYPE_U2 + 1);

} // namespace

dmx_dtype dmxrt::dtypeFromName(std::string_view name) {
  for (dmx_dtype i = 1; i < kCount; ++i)
    if (name == kTypes[i].name)
      return i;
  return 0;
}

uint64_t dmxrt::dtypeAlignment(dmx_dtype dtype) {
  uint32_t bits = dmx_dtype_bits(dtype);
  return bits < 8 ? 1 : bits / 8;
}

const char *dmx_dtype_name(dmx_dtype dtype) { return dtype > 0 && dtype < kCount ? kTypes[dtype].name : nullptr; }

uint32_t dmx_dtype_bits(dmx_dtype dtype) { return dtype > 0 && dtype < kCount ? kTypes[dtype].bits : 0; }

int64_t dmx_tensor_bytes(dmx_dtype dtype, uint32_t rank, const int64_t *dims) {
  dmx::Size bits = dmx_dtype_bits(dtype);
  if (bits == 0 || (rank && !dims))
    return -1;
  // A zero dim makes the tensor empty whatever the others are.
  bool empty = false;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return -1;
    empty |= dims[i] == 0;
    bits *= dims[i];
  }
  if (empty)
    return 0;
  return bits.isKnown() ? static_cast<int64_t>((bits.value() + 7) / 8) : -1;
}
