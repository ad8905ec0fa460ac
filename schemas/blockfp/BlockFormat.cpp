//===- BlockFormat.cpp - the block floating point family ------------------===//

#include "BlockFormat.h"

#include <array>
#include <cstddef>

namespace dmx::blockfp {
namespace {

constexpr BlockFormat bfp(int precision, int block, bool asymmetric = false) {
  return {FormatKind::Bfp, static_cast<uint8_t>(precision), static_cast<uint16_t>(block), asymmetric};
}
constexpr BlockFormat sbfp(int bias) { return {FormatKind::Sbfp, 4, 16, false, static_cast<uint8_t>(bias)}; }
constexpr BlockFormat mxFloat(int bits, int exponentBits, int block) {
  return {FormatKind::MxFloat,
          static_cast<uint8_t>(bits),
          static_cast<uint16_t>(block),
          false,
          0,
          static_cast<uint8_t>(exponentBits)};
}

constexpr size_t kSignedFrozen = 24, kBiases = 15, kOurs = 19;
constexpr size_t kFormats = kSignedFrozen + kBiases + kOurs;
constexpr int kFirstId = 10001, kFirstUnsignedId = 10025;
constexpr int kFirstSbfpId = 10041, kFirstOurId = 20001;
constexpr int kMinBias = 4;

/// The order is that of the ids; idOfIndex knows the gaps between them.
constexpr std::array<BlockFormat, kFormats> makeFormats() {
  std::array<BlockFormat, kFormats> all{};
  size_t count = 0;
  all[count++] = bfp(24, 1);
  for (int block : {64, 32, 16})
    all[count++] = bfp(16, block);
  for (int precision : {8, 6, 4})
    for (int block : {128, 64, 32, 16})
      all[count++] = bfp(precision, block);
  for (int precision : {6, 4})
    for (int block : {128, 64, 32, 16})
      all[count++] = bfp(precision, block, true);
  for (size_t bias = 0; bias < kBiases; ++bias)
    all[count++] = sbfp(kMinBias + static_cast<int>(bias));
  // Ours from here on: appended to, never reordered.
  for (int block : {128, 64, 32, 16})
    all[count++] = bfp(8, block, true);
  constexpr int kElements[][2] = {{8, 4}, {8, 5}, {6, 2}, {6, 3}, {4, 2}};
  for (auto [bits, exponentBits] : kElements)
    for (int block : {128, 64, 32})
      all[count++] = mxFloat(bits, exponentBits, block);
  return all;
}

constexpr std::array<BlockFormat, kFormats> kAll = makeFormats();

constexpr int idOfIndex(size_t index) {
  if (index < kSignedFrozen)
    return kFirstId + static_cast<int>(index);
  index -= kSignedFrozen;
  if (index < kBiases)
    return kFirstSbfpId + static_cast<int>(index);
  return kFirstOurId + static_cast<int>(index - kBiases);
}
static_assert(idOfIndex(kSignedFrozen - 1) == kFirstUnsignedId - 1);
static_assert(idOfIndex(kSignedFrozen + kBiases - 1) == 10055);

/// "BFP16A_64" for "BFP16_64A"; empty when the format has no such alias.
std::string earlySuffixName(const BlockFormat &format) {
  if (!format.asymmetric)
    return {};
  return "BFP" + std::to_string(format.precision + 8) + "A_" + std::to_string(format.block);
}

/// "MXINT8_K32" for BFP16_32; the public tool names p = 8, 6 and 4 so.
std::string mxIntName(const BlockFormat &format) {
  if (format.kind != FormatKind::Bfp || format.asymmetric || format.precision > 8 || format.block < 32)
    return {};
  return "MXINT" + std::to_string(format.precision) + "_K" + std::to_string(format.block);
}

} // namespace

int64_t BlockFormat::bitsPerBlock() const {
  if (isBfp32())
    return 32; // the exponent is in the element
  return 8 + int64_t(precision) * block;
}

std::span<const BlockFormat> allBlockFormats() { return kAll; }

int typeId(const BlockFormat &format) {
  for (size_t index = 0; index < kAll.size(); ++index)
    if (kAll[index] == format)
      return idOfIndex(index);
  return 0;
}

std::optional<BlockFormat> blockFormatFromId(int id) {
  for (size_t index = 0; index < kAll.size(); ++index)
    if (idOfIndex(index) == id)
      return kAll[index];
  return std::nullopt;
}

std::string nameOf(const BlockFormat &format) {
  std::string block = std::to_string(format.block);
  switch (format.kind) {
  case FormatKind::Bfp:
    return "BFP" + std::to_string(format.precision + 8) + "_" + block + (format.asymmetric ? "A" : "");
  case FormatKind::Sbfp:
    return "SBFP" + std::to_string(format.precision + 8) + "_" + block + "_" + std::to_string(format.scaleBias);
  case FormatKind::MxFloat:
    return "MXFP" + std::to_string(format.precision) + "_E" + std::to_string(format.exponentBits) + "M" +
           std::to_string(format.precision - 1 - format.exponentBits) + "K" + block;
  }
  return {};
}

std::optional<BlockFormat> blockFormatFromName(std::string_view name) {
  if (name == "BFP32")
    return bfp(24, 1);
  if (name == "SBFP12_16")
    return sbfp(7);
  if (name.empty())
    return std::nullopt;
  for (const BlockFormat &format : kAll)
    if (name == nameOf(format) || name == earlySuffixName(format) || name == mxIntName(format))
      return format;
  return std::nullopt;
}

} // namespace dmx::blockfp
