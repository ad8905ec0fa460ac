//===- Image.cpp - building of images -------------------------------------===//

#include "Image.h"

#include <algorithm>

namespace dmx::corsair {
namespace {

struct HostTypeInfo {
  std::string_view name;
  int bytes;
};
constexpr HostTypeInfo kHostTypeInfos[] = {{"bool", 1}, {"i8", 1},  {"u8", 1},   {"i16", 2}, {"i32", 4},
                                           {"i64", 8},  {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};
static_assert(std::size(kHostTypeInfos) == kHostTypes);
constexpr std::string_view kRoleNames[] = {"input", "output", "state", "const", "scalar"};
static_assert(std::size(kRoleNames) == kRoles);

/// A sum or product that left 63 bits.
constexpr int64_t kTooBig = -1;
int64_t add(int64_t a, int64_t b) { return a < 0 || b < 0 || __builtin_add_overflow(a, b, &a) ? kTooBig : a; }
int64_t mul(int64_t a, int64_t b) { return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &a) ? kTooBig : a; }

} // namespace

std::string_view nameOf(HostType type) { return kHostTypeInfos[static_cast<int>(type)].name; }
int bytesOf(HostType type) { return kHostTypeInfos[static_cast<int>(type)].bytes; }

std::optional<HostType> hostTypeFromName(std::string_view name) {
  for (int i = 0; i < kHostTypes; ++i)
    if (kHostTypeInfos[i].name == name)
      return static_cast<HostType>(i);
  return std::nullopt;
}

std::string_view nameOf(Role role) { return kRoleNames[static_cast<int>(role)]; }

std::optional<Role> roleFromName(std::string_view name) {
  for (int i = 0; i < kRoles; ++i)
    if (kRoleNames[i] == name)
      return static_cast<Role>(i);
  return std::nullopt;
}

int64_t Argument::hostBytes() const {
  int64_t bytes = bytesOf(type);
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return -1;
  return bytes;
}

int64_t spanOf(const Argument &argument, const Piece &piece) {
  if (std::find(piece.extent.begin(), piece.extent.end(), 0) != piece.extent.end())
    return 0;
  if (argument.role == Role::Const)
    return piece.extent[0];
  std::optional<TileShape> tile = tileOf(argument.form);
  if (!tile) {
    int64_t span = elementBytes(argument.form);
    for (size_t i = 0; i < piece.extent.size(); ++i)
      span = add(span, mul(piece.extent[i] - 1, piece.strides[i]));
    return span;
  }
  bool columns = static_cast<int>(argument.form) & 1;
  size_t rank = piece.extent.size();
  int64_t runs = piece.extent[rank - 1], length = piece.extent[rank - 2];
  if (!columns) {
    length = piece.extent[rank - 1];
    runs = 1;
    for (size_t i = 0; i + 1 < rank; ++i)
      runs = mul(runs, piece.extent[i]);
  }
  if (runs < 0)
    return kTooBig;
  int64_t span = add(mul((runs - 1) / kTileRuns, piece.strides[0]), mul((length - 1) / tile->depth, piece.strides[1]));
  return add(span, tile->bytes());
}

uint32_t Image::addStream(Code code) {
  streams.push_back(std::move(code));
  return static_cast<uint32_t>(streams.size() - 1);
}

uint32_t Image::addFunction(Code code) {
  functions.push_back(std::move(code));
  return static_cast<uint32_t>(functions.size() - 1);
}

uint32_t Image::addMark(std::string text) {
  for (size_t i = 0; i < marks.size(); ++i)
    if (marks[i] == text)
      return static_cast<uint32_t>(i);
  marks.push_back(std::move(text));
  return static_cast<uint32_t>(marks.size() - 1);
}

const Kernel *Image::findKernel(std::string_view name) const {
  for (const Kernel &kernel : kernels)
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

} // namespace dmx::corsair
