//===- FormatParser.cpp - shorthands of number formats --------------------===//

#include "BlockFormat.h"

namespace dmx::blockfp {
namespace {

using Kind = NumberFormat::Kind;

constexpr std::string_view kRoundingLetters = "NDUS"; // order of Rounding

/// Reads a text from the left; the first failure is kept and ends all reading.
class Cursor {
public:
  Cursor(std::string_view text, std::string &error) : rest(text), whole(text), error(error) {}

  bool fail(std::string_view expected) {
    if (error.empty())
      error = "format '" + printable(whole) + "': expected " + std::string(expected) + " at '" + printable(rest) + "'";
    return false;
  }
  /// A refusal of the whole text, for a reason that no place in it shows.
  bool refuse(std::string_view reason) {
    if (error.empty())
      error = "format '" + printable(whole) + "': " + std::string(reason);
    return false;
  }
  bool tryLiteral(std::string_view literal) {
    if (!rest.starts_with(literal))
      return false;
    rest.remove_prefix(literal.size());
    return true;
  }
  bool literal(std::string_view literal) { return tryLiteral(literal) || fail("'" + std::string(literal) + "'"); }
  /// A decimal number of at most four digits within [low, high].
  bool number(int low, int high, int &value, bool mayHaveSign = false) {
    std::string_view start = rest;
    bool negative = mayHaveSign && tryLiteral("-");
    if (mayHaveSign && !negative)
      tryLiteral("+");
    int read = 0, digits = 0;
    for (; digits < 5 && !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; ++digits, rest.remove_prefix(1))
      read = read * 10 + (rest[0] - '0');
    value = negative ? -read : read;
    if (digits > 0 && digits < 5 && value >= low && value <= high)
      return true;
    rest = start;
    return fail("a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  /// One of `letters`; `index` is its place there.
  bool letter(std::string_view letters, size_t &index) {
    index = rest.empty() ? letters.npos : letters.find(rest[0]);
    if (index == letters.npos)
      return fail("one of the letters '" + std::string(letters) + "'");
    rest.remove_prefix(1);
    return true;
  }
  bool end() { return rest.empty() || fail("the end"); }

private:
  /// The text as far as an error message can show it.
  static std::string printable(std::string_view text) {
    std::string out;
    for (char c : text.substr(0, 60))
      out += c >= ' ' && c <= '~' ? c : '?';
    return out + (text.size() > 60 ? "..." : "");
  }

  std::string_view rest, whole;
  std::string &error;
};

/// `N|S` of the float and fixed point formats.
bool parseNearestOrStochastic(Cursor &text, Rounding &rounding) {
  size_t index = 0;
  if (!text.letter("NS", index))
    return false;
  rounding = index == 0 ? Rounding::Nearest : Rounding::Stochastic;
  return true;
}

/// `[s|e|m,b](F|_ N|S)` after "FP".
bool parseFloat(Cursor &text, FloatFormat &format, Rounding &rounding) {
  int sign = 0, exponent = 0, fraction = 0, bias = 0;
  size_t flush = 0;
  if (!text.literal("[") || !text.number(0, 1, sign) || !text.literal("|") || !text.number(1, 8, exponent) ||
      !text.literal("|") || !text.number(0, 23, fraction) || !text.literal(","))
    return false;
  // The range of the bias keeps every value within f32's exponents.
  if (!text.number(exponent == 8 ? 127 : (1 << exponent) - 128, 127, bias, true))
    return false;
  if (!text.literal("](") || !text.letter("F_", flush) || !parseNearestOrStochastic(text, rounding) ||
      !text.literal(")"))
    return false;
  format = {sign == 1, static_cast<uint8_t>(exponent), static_cast<uint8_t>(fraction), static_cast<int16_t>(bias),
            flush == 0};
  return true;
}

/// `[n,f](C|U S|A N|S)` after "XP"; `_` stands for U and for A.
bool parseFixed(Cursor &text, FixedFormat &format, Rounding &rounding) {
  int bits = 0, fraction = 0;
  size_t clamp = 0, symmetric = 0;
  if (!text.literal("[") || !text.number(1, 24, bits) || !text.literal(",") ||
      !text.number(-127, 127, fraction, true) || !text.literal("](") || !text.letter("CU_", clamp) ||
      !text.letter("SA_", symmetric) || !parseNearestOrStochastic(text, rounding) || !text.literal(")"))
    return false;
  format = {static_cast<uint8_t>(bits), static_cast<int16_t>(fraction), clamp == 0, symmetric == 0};
  return true;
}

/// `{B}`, or `{B,dim}` of old documents.
bool parseBraces(Cursor &text, int &block, std::string &warning) {
  int dimension = 0;
  if (!text.literal("{") || !text.number(1, 9999, block))
    return false;
  if (text.tryLiteral(",")) {
    if (!text.number(-99, 99, dimension, true))
      return false;
    warning = "the dimension " + std::to_string(dimension) +
              " in the braces is ignored; blocks run along the dimension that "
              "the operation names";
  }
  return text.literal("}");
}

/// Accepts the format when the family has it.
bool checkFamily(Cursor &text, const BlockFormat &format) {
  if (typeId(format) != 0)
    return true;
  return text.refuse("no format of the family has this precision and block "
                     "size; there are BFP32_1, BFP24_16/32/64, "
                     "BFP16/14/12_16/32/64/128 and MXFP with blocks of "
                     "32/64/128");
}

/// `[p|8]{B}(S|_ N|S|U|D)` after "BFP".
bool parseBfp(Cursor &text, NumberFormat &format, std::string &warning) {
  int precision = 0, block = 0;
  size_t symmetric = 0, rounding = 0;
  if (!text.literal("[") || !text.number(2, 25, precision) || !text.literal("|8]") ||
      !parseBraces(text, block, warning) || !text.literal("(") || !text.letter("S_", symmetric) ||
      !text.letter(kRoundingLetters, rounding) || !text.literal(")"))
    return false;
  format.block = {FormatKind::Bfp, static_cast<uint8_t>(precision), static_cast<uint16_t>(block), symmetric == 1};
  format.rounding = static_cast<Rounding>(rounding);
  return checkFamily(text, format.block);
}

/// `<XP[4,0](CSN)><FP[0|4|4,b](FN)>{16}` after "SBFP".
bool parseSbfp(Cursor &text, NumberFormat &format, std::string &warning) {
  FixedFormat element;
  FloatFormat scale;
  Rounding elementRounding = Rounding::Nearest;
  Rounding scaleRounding = Rounding::Nearest;
  int block = 0;
  if (!text.literal("<XP") || !parseFixed(text, element, elementRounding) || !text.literal("><FP") ||
      !parseFloat(text, scale, scaleRounding) || !text.literal(">") || !parseBraces(text, block, warning))
    return false;
  format.block = {FormatKind::Sbfp, 4, 16, false, static_cast<uint8_t>(scale.bias)};
  bool known = element == FixedFormat{4, 0, true, true} && scale == FloatFormat{false, 4, 4, scale.bias, true} &&
               elementRounding == Rounding::Nearest && scaleRounding == Rounding::Nearest && block == 16 &&
               scale.bias > 0 && typeId(format.block) != 0;
  return known || text.refuse("the one scaled format is "
                              "SBFP<XP[4,0](CSN)><FP[0|4|4,b](FN)>{16} with b "
                              "from 4 to 18");
}

/// `p{B}` after "MXINT": the grid of BFP with the same p and B (section 9).
bool parseMxInt(Cursor &text, NumberFormat &format, std::string &warning) {
  int precision = 0, block = 0;
  if (!text.number(2, 16, precision) || !parseBraces(text, block, warning))
    return false;
  format.block = {FormatKind::Bfp, static_cast<uint8_t>(precision), static_cast<uint16_t>(block)};
  return checkFamily(text, format.block);
}

/// `n[EeMm]{B}` after "MXFP".
bool parseMxFloat(Cursor &text, NumberFormat &format, std::string &warning) {
  int bits = 0, exponent = 0, fraction = 0, block = 0;
  if (!text.number(3, 16, bits) || !text.literal("[E") || !text.number(1, 8, exponent) || !text.literal("M") ||
      !text.number(0, 10, fraction) || !text.literal("]") || !parseBraces(text, block, warning))
    return false;
  if (bits != 1 + exponent + fraction)
    return text.refuse("sign, exponent and fraction bits do not add up to " + std::to_string(bits));
  format.block = {FormatKind::MxFloat,           static_cast<uint8_t>(bits), static_cast<uint16_t>(block), false, 0,
                  static_cast<uint8_t>(exponent)};
  return checkFamily(text, format.block);
}

struct PlainAlias {
  std::string_view name, shorthand;
};
constexpr PlainAlias kPlainAliases[] = {
    {"FLOAT32", "FP[1|8|23,127](_N)"}, {"FLOAT16", "FP[1|5|10,15](FN)"}, {"BFLOAT16", "FP[1|8|7,127](FN)"},
    {"AFLOAT8", "FP[1|4|3,7](_N)"},    {"BFLOAT8", "FP[1|5|2,15](_N)"},  {"INT8", "XP[8,0](CSN)"},
    {"INT4", "XP[4,0](CSN)"},
};

/// A name of the family, with the orientation R or C after it or without.
std::optional<NumberFormat> blockAlias(std::string_view text) {
  NumberFormat format;
  format.kind = Kind::Block;
  std::optional<BlockFormat> block = blockFormatFromName(text);
  if (!block && !text.empty() && (text.back() == 'R' || text.back() == 'C')) {
    format.orientation = text.back() == 'R' ? Orientation::Row : Orientation::Column;
    block = blockFormatFromName(text.substr(0, text.size() - 1));
  }
  if (!block)
    return std::nullopt;
  format.block = *block;
  return format;
}

bool parseShorthand(Cursor &text, NumberFormat &format, std::string &warning) {
  format.kind = Kind::Block;
  if (text.tryLiteral("UBFP"))
    return text.refuse("unsigned block formats are not implemented");
  if (text.tryLiteral("SBFP"))
    return parseSbfp(text, format, warning);
  if (text.tryLiteral("BFP"))
    return parseBfp(text, format, warning);
  if (text.tryLiteral("MXINT"))
    return parseMxInt(text, format, warning);
  if (text.tryLiteral("MXFP"))
    return parseMxFloat(text, format, warning);
  if (text.tryLiteral("FP")) {
    format.kind = Kind::Float;
    return parseFloat(text, format.floating, format.rounding);
  }
  if (text.tryLiteral("XP")) {
    format.kind = Kind::Fixed;
    return parseFixed(text, format.fixed, format.rounding);
  }
  format.kind = Kind::Same;
  return text.tryLiteral("SAME") || text.fail("a format name (BFP16_64, FLOAT16 ...) or a shorthand "
                                              "(SAME, FP, XP, BFP, SBFP, MXINT, MXFP)");
}

} // namespace

std::optional<ParsedFormat> parseFormat(std::string_view text, std::string &error) {
  error.clear();
  ParsedFormat parsed;
  if (std::optional<NumberFormat> alias = blockAlias(text)) {
    parsed.format = *alias;
    return parsed;
  }
  for (const PlainAlias &alias : kPlainAliases)
    if (alias.name == text)
      text = alias.shorthand;
  Cursor cursor(text, error);
  if (!parseShorthand(cursor, parsed.format, parsed.warning) || !cursor.end())
    return std::nullopt;
  return parsed;
}

std::string shorthandOf(const NumberFormat &format) {
  auto text = [](int number) { return std::to_string(number); };
  std::string letter(1, kRoundingLetters[static_cast<size_t>(format.rounding)]);
  const BlockFormat &block = format.block;
  std::string braces = "{" + text(block.block) + "}";
  switch (format.kind) {
  case Kind::Same:
    return "SAME";
  case Kind::Float: {
    const FloatFormat &f = format.floating;
    return "FP[" + text(f.isSigned) + "|" + text(f.exponentBits) + "|" + text(f.fractionBits) + "," + text(f.bias) +
           "](" + (f.flushSubnormals ? "F" : "_") + letter + ")";
  }
  case Kind::Fixed: {
    const FixedFormat &f = format.fixed;
    return "XP[" + text(f.bits) + "," + (f.fractionBits > 0 ? "+" : "") + text(f.fractionBits) + "](" +
           (f.clamp ? "C" : "U") + (f.symmetric ? "S" : "A") + letter + ")";
  }
  case Kind::Block:
    break;
  }
  if (block.kind == FormatKind::Sbfp)
    return "SBFP<XP[4,0](CSN)><FP[0|4|4," + text(block.scaleBias) + "](FN)>" + braces;
  if (block.kind == FormatKind::MxFloat)
    return "MXFP" + text(block.precision) + "[E" + text(block.exponentBits) + "M" +
           text(block.precision - 1 - block.exponentBits) + "]" + braces;
  return "BFP[" + text(block.precision) + "|8]" + braces + "(" + (block.asymmetric ? "_" : "S") + letter + ")";
}

} // namespace dmx::blockfp
