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

uint64_t Argument::hostBytes() const {
  // Steps from element to element are products of the extents as well, of whichever come last.
  Size bytes = bytesOf(type);
  bool isEmpty = false;
  for (int64_t extent : shape) {
    isEmpty |= extent == 0;
    bytes *= extent ? extent : 1;
  }
  return isEmpty && bytes.isKnown() ? 0 : bytes.value();
}

uint64_t spanOf(const Argument &argument, const Piece &piece) {
  if (std::find(piece.extent.begin(), piece.extent.end(), 0) != piece.extent.end())
    return 0;
  if (argument.role == Role::Const)
    return Size(piece.extent[0]).value();
  std::optional<TileShape> tile = tileOf(argument.form);
  if (!tile) {
    Size span = elementBytes(argument.form);
    for (size_t i = 0; i < piece.extent.size(); ++i)
      span += Size(piece.extent[i] - 1) * piece.strides[i];
    return span.value();
  }
  bool columns = static_cast<int>(argument.form) & 1;
  size_t rank = piece.extent.size();
  Size runs = piece.extent[rank - 1];
  int64_t length = piece.extent[rank - 2];
  if (!columns) {
    length = piece.extent[rank - 1];
    runs = 1;
    for (size_t i = 0; i + 1 < rank; ++i)
      runs *= piece.extent[i];
  }
  if (!runs.isKnown())
    return Size::kTooLarge;
  Size bands = (runs.value() - 1) / kTileRuns, tiles = (length - 1) / tile->depth;
  return (bands * piece.strides[0] + tiles * piece.strides[1] + tile->bytes()).value();
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
