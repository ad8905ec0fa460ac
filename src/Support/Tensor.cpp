//===- Tensor.cpp - a dense host tensor -----------------------------------===//
#include "dmxc/Support/Tensor.h"
#include "dmxc/Support/ElementAt.h"
#include "dmxc/Support/Half.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace dmxc {

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool isTooLarge = false;
  for (int64_t dim : shape) {
    if (dim == 0)
      return 0;
    isTooLarge |= __builtin_mul_overflow(count, dim, &count);
  }
  return isTooLarge ? INT64_MAX : count;
}

std::string shapeString(std::span<const int64_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "x" : "") + std::to_string(shape[i]);
  return text;
}

/// A new block's pages are made when they are first written, each of 4 KiB at the price of writing it; of 2 MiB they
/// are few. A system without such pages leaves the block as it is. Smaller blocks may be old ones.
static void takeLargePages(std::byte *block, size_t size) {
  constexpr size_t page = 2 << 20, isNew = 32 << 20; // the most that malloc keeps
  if (size < isNew)
    return;
  auto begin = reinterpret_cast<uintptr_t>(block), end = (begin + size) / page * page;
  begin = (begin + page - 1) / page * page;
  if (end > begin)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);
}

Tensor::Tensor(DType type, Shape shape) : type(type), dims(std::move(shape)) {
  uint64_t size = byteSize();
  bool isTooLarge = size > PTRDIFF_MAX - 128;
  constexpr size_t alignment = 64;
  size = (size + alignment - 1) / alignment * alignment + alignment;
  void *memory = isTooLarge ? nullptr : std::calloc(size, 1); // which knows what the system has zeroed
  if (!memory)
    throw std::bad_alloc();
  keepAlive = std::shared_ptr<const void>(memory, [](const void *p) { std::free(const_cast<void *>(p)); });
  bytes = static_cast<const std::byte *>(std::align(alignment, size - alignment, memory, size));
  takeLargePages(mutableData(), size);
}

Tensor::Tensor(DType type, Shape shape, const std::byte *bytes, std::shared_ptr<const void> owner)
    : type(type), dims(std::move(shape)), bytes(bytes), keepAlive(std::move(owner)) {}

namespace {
template <typename T, typename V> void store(std::byte *base, int64_t i, V value) {
  T narrow = static_cast<T>(value);
  std::memcpy(base + i * sizeof(T), &narrow, sizeof(T));
}
} // namespace

uint8_t packedBits(DType type, const std::byte *data, int64_t i) {
  unsigned bits = dtypeBits(type), perByte = 8 / bits;
  return static_cast<uint8_t>(data[i / perByte]) >> (i % perByte * bits) & ((1u << bits) - 1);
}

void setPackedBits(DType type, std::byte *data, int64_t i, uint8_t value) {
  unsigned bits = dtypeBits(type), perByte = 8 / bits, shift = i % perByte * bits, ones = (1u << bits) - 1;
  std::byte &byte = data[i / perByte];
  byte = static_cast<std::byte>((static_cast<uint8_t>(byte) & ~(ones << shift)) | (value & ones) << shift);
}

int8_t signExtended(DType type, uint8_t bits) {
  unsigned unused = 8 - dtypeBits(type);
  return static_cast<int8_t>(static_cast<int8_t>(bits << unused) >> unused);
}

int64_t Tensor::asInt(int64_t i) const {
  switch (type) {
  case DType::Bool:
    return elementAt<uint8_t>(bytes, i) != 0;
  case DType::I2:
  case DType::I4:
    return signExtended(type, packedBits(type, bytes, i));
  case DType::U2:
  case DType::U4:
    return packedBits(type, bytes, i);
  case DType::I8:
    return elementAt<int8_t>(bytes, i);
  case DType::I16:
    return elementAt<int16_t>(bytes, i);
  case DType::I32:
    return elementAt<int32_t>(bytes, i);
  case DType::I64:
    return elementAt<int64_t>(bytes, i);
  case DType::U8:
    return elementAt<uint8_t>(bytes, i);
  case DType::U16:
    return elementAt<uint16_t>(bytes, i);
  case DType::U32:
    return elementAt<uint32_t>(bytes, i);
  case DType::U64:
    return static_cast<int64_t>(elementAt<uint64_t>(bytes, i));
  default:
    return static_cast<int64_t>(asDouble(i));
  }
}

double Tensor::asDouble(int64_t i) const {
  switch (type) {
  case DType::F16:
    return halfToFloat(elementAt<uint16_t>(bytes, i));
  case DType::BF16:
    return bfloatToFloat(elementAt<uint16_t>(bytes, i));
  case DType::F32:
    return elementAt<float>(bytes, i);
  case DType::F64:
    return elementAt<double>(bytes, i);
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
  case DType::F8E8M0:
    return narrowToFloat(type, elementAt<uint8_t>(bytes, i));
  case DType::F4E2M1:
    return narrowToFloat(type, packedBits(type, bytes, i));
  case DType::U64:
    return static_cast<double>(elementAt<uint64_t>(bytes, i));
  default:
    return static_cast<double>(asInt(i));
  }
}

void Tensor::setInt(int64_t i, int64_t value) {
  std::byte *base = mutableData();
  switch (type) {
  case DType::Bool:
    return store<uint8_t>(base, i, value != 0);
  case DType::I2:
  case DType::U2:
  case DType::I4:
  case DType::U4:
    return setPackedBits(type, base, i, static_cast<uint8_t>(value));
  case DType::I8:
  case DType::U8:
    return store<uint8_t>(base, i, value);
  case DType::I16:
  case DType::U16:
    return store<uint16_t>(base, i, value);
  case DType::I32:
  case DType::U32:
    return store<uint32_t>(base, i, value);
  case DType::I64:
  case DType::U64:
    return store<int64_t>(base, i, value);
  default:
    return setDouble(i, static_cast<double>(value));
  }
}

void Tensor::setDouble(int64_t i, double value) {
  std::byte *base = mutableData();
  switch (type) {
  case DType::F16:
    return store<uint16_t>(base, i, doubleToHalf(value));
  case DType::BF16:
    return store<uint16_t>(base, i, doubleToBfloat(value));
  case DType::F32:
    return store<float>(base, i, value);
  case DType::F64:
    return store<double>(base, i, value);
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
  case DType::F8E8M0:
    return store<uint8_t>(base, i, doubleToNarrow(type, value, true));
  case DType::F4E2M1:
    return setPackedBits(type, base, i, doubleToNarrow(type, value, true));
  default:
    return setInt(i, static_cast<int64_t>(value));
  }
}

Tensor Tensor::reshaped(Shape shape) const { return Tensor(type, std::move(shape), bytes, keepAlive); }

} // namespace dmxc
