//===- BlockFormat.h - the block floating point family ----------*- C++ -*-===//
//
// Names, frozen type ids and sizes of the number formats, and the parser of
// their shorthands. Section numbers here and in the files beside it are those
// of NUMERICS.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dmx::blockfp {

/// Section 2, step 4.
enum class Rounding : uint8_t {
  Nearest,   ///< `N`: ties to even
  Down,      ///< `D`: toward minus infinity
  Up,        ///< `U`: toward plus infinity
  Stochastic ///< `S`: floor(t + u), u from the stream of section 7
};

/// Where the blocks of a 2-D tensor run (section 1, Orientation).
enum class Orientation : uint8_t {
  Row,   ///< `R`: along the last dimension
  Column ///< `C`: along the second-last dimension
};

enum class FormatKind : uint8_t {
  Bfp,    ///< integers with a shared power-of-two scale
  Sbfp,   ///< SBFP12_16: 4-bit integers with an unsigned 4e4m scale (section 3)
  MxFloat ///< OCP MX with float elements (section 9); storage only
};

/// One member of the family of section 1.
struct BlockFormat {
  FormatKind kind = FormatKind::Bfp;
  uint8_t precision = 8;    ///< p: bits of an element, the sign among them
  uint16_t block = 64;      ///< B: elements that share a scale
  bool asymmetric = false;  ///< suffix A: -2^(p-1) is a mantissa too
  uint8_t scaleBias = 0;    ///< Sbfp: b of the scale, 4..18
  uint8_t exponentBits = 0; ///< MxFloat: exponent bits of an element

  bool operator==(const BlockFormat &) const = default;

  /// BFP32_1 has no shared exponent: it is f32 with a 22-bit fraction.
  bool isBfp32() const { return kind == FormatKind::Bfp && block == 1; }
  /// Storage bits of one block, its scale byte included.
  int64_t bitsPerBlock() const;
};

/// Every format that has a type id, in the order of the ids.
std::span<const BlockFormat> allBlockFormats();

/// The serialised number of a format: 10001..10055 are frozen; those of
/// 20001.. are ours (16A and the MX float kinds have none). 0 when the format
/// is not of the family. MXINT names denote BFP formats and share their ids.
int typeId(const BlockFormat &format);
std::optional<BlockFormat> blockFormatFromId(int id);

/// Canonical name: BFP16_64, BFP16_64A, BFP32_1, SBFP12_16_7, MXFP8_E4M3K32.
std::string nameOf(const BlockFormat &format);
/// Reads a canonical name or an alias: A may stand before the underscore
/// (BFP16A_64), BFP32 is BFP32_1, SBFP12_16 has bias 7, MXINT8_K32 is BFP16_32.
std::optional<BlockFormat> blockFormatFromName(std::string_view name);

/// A float format `FP[s|e|m,b]`; codes of all ones are ordinary numbers.
struct FloatFormat {
  bool isSigned = true;
  uint8_t exponentBits = 8;
  uint8_t fractionBits = 23;
  int16_t bias = 127;
  bool flushSubnormals = false; ///< `F`

  bool operator==(const FloatFormat &) const = default;
};

/// A fixed point format `XP[n,f]`.
struct FixedFormat {
  uint8_t bits = 8;
  int16_t fractionBits = 0;
  bool clamp = true;     ///< `C`; `U` or `_` wraps
  bool symmetric = true; ///< `S`; `A` or `_` has -2^(n-1) too

  bool operator==(const FixedFormat &) const = default;
};

/// What a format shorthand or alias says.
struct NumberFormat {
  enum class Kind : uint8_t { Same, Float, Fixed, Block };
  Kind kind = Kind::Same;
  FloatFormat floating; ///< Kind::Float
  FixedFormat fixed;    ///< Kind::Fixed
  BlockFormat block;    ///< Kind::Block
  Rounding rounding = Rounding::Nearest;
  /// The suffix R or C of a block format's name (BFP16_64R), where given.
  std::optional<Orientation> orientation;

  bool operator==(const NumberFormat &) const = default;
};

struct ParsedFormat {
  NumberFormat format;
  std::string warning; ///< empty, or what was ignored
};

/// Reads an alias (BFP16_64, BFP16_64R, FLOAT16, INT8 ...) or a shorthand:
///   SAME  FP[s|e|m,b](F|_ N|S)  XP[n,f](C|U S|A N|S)
///   BFP[p|8]{B}(S|_ N|S|U|D)  SBFP<XP[4,0](CSN)><FP[0|4|4,b](FN)>{16}
///   MXINTp{B}  MXFPn[EeMm]{B}
/// On failure returns nothing and sets `error` to a sentence without a full
/// stop. A dimension in the braces (`{64,-1}`) is ignored with a warning.
std::optional<ParsedFormat> parseFormat(std::string_view text, std::string &error);

/// The shorthand of a format; parseFormat reads it back to the same format.
/// The orientation has no place in a shorthand and is left out.
std::string shorthandOf(const NumberFormat &format);

} // namespace dmx::blockfp
