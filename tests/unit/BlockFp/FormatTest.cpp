//===- FormatTest.cpp - names, ids and shorthands of number formats -------===//
#include "schemas/blockfp/BlockFormat.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace dmx::blockfp {
namespace {

NumberFormat parsed(std::string_view text, std::string *warning = nullptr) {
  std::string error;
  auto result = parseFormat(text, error);
  EXPECT_TRUE(result) << error;
  if (!result)
    return {};
  if (warning)
    *warning = result->warning;
  else
    EXPECT_EQ(result->warning, "") << text;
  return result->format;
}

std::string errorOf(std::string_view text) {
  std::string error;
  EXPECT_FALSE(parseFormat(text, error)) << text;
  EXPECT_NE(error, "") << text;
  return error;
}

TEST(Format, FrozenIds) {
  const std::pair<int, const char *> kIds[] = {
      {10001, "BFP32_1"},       {10002, "BFP24_64"},      {10003, "BFP24_32"},     {10004, "BFP24_16"},
      {10005, "BFP16_128"},     {10006, "BFP16_64"},      {10007, "BFP16_32"},     {10008, "BFP16_16"},
      {10009, "BFP14_128"},     {10010, "BFP14_64"},      {10011, "BFP14_32"},     {10012, "BFP14_16"},
      {10013, "BFP12_128"},     {10014, "BFP12_64"},      {10015, "BFP12_32"},     {10016, "BFP12_16"},
      {10017, "BFP14_128A"},    {10018, "BFP14_64A"},     {10019, "BFP14_32A"},    {10020, "BFP14_16A"},
      {10021, "BFP12_128A"},    {10022, "BFP12_64A"},     {10023, "BFP12_32A"},    {10024, "BFP12_16A"},
      {10041, "SBFP12_16_4"},   {10044, "SBFP12_16_7"},   {10055, "SBFP12_16_18"}, {20001, "BFP16_128A"},
      {20002, "BFP16_64A"},     {20003, "BFP16_32A"},     {20004, "BFP16_16A"},    {20005, "MXFP8_E4M3K128"},
      {20010, "MXFP8_E5M2K32"}, {20019, "MXFP4_E2M1K32"},
  };
  for (auto [id, name] : kIds) {
    auto format = blockFormatFromId(id);
    ASSERT_TRUE(format) << id;
    EXPECT_EQ(nameOf(*format), name);
    EXPECT_EQ(typeId(*format), id);
    EXPECT_EQ(blockFormatFromName(name), format);
  }
  for (int id = 10025; id <= 10040; ++id) // unsigned kinds
    EXPECT_FALSE(blockFormatFromId(id)) << id;
  for (int id : {-1, 0, 10000, 10056, 20000, 20020})
    EXPECT_FALSE(blockFormatFromId(id)) << id;
  EXPECT_EQ(allBlockFormats().size(), 24u + 15 + 19);
}

TEST(Format, EveryFormatReadsBack) {
  for (const BlockFormat &format : allBlockFormats()) {
    EXPECT_EQ(blockFormatFromId(typeId(format)), format);
    EXPECT_EQ(blockFormatFromName(nameOf(format)), format);
    NumberFormat number = parsed(nameOf(format));
    EXPECT_EQ(number.block, format);
    EXPECT_EQ(parsed(shorthandOf(number)), number) << shorthandOf(number);
    number = parsed(nameOf(format) + "R");
    EXPECT_EQ(number.orientation, Orientation::Row);
    EXPECT_EQ(parsed(nameOf(format) + "C").orientation, Orientation::Column);
  }
}

TEST(Format, Sizes) {
  // Bytes of 64 elements, as section 1 lists them.
  const std::pair<const char *, double> kSizes[] = {
      {"BFP32_1", 256},    {"BFP24_64", 129}, {"BFP16_64", 65}, {"BFP14_64", 49},      {"BFP12_64", 33},
      {"BFP12_128", 32.5}, {"SBFP12_16", 36}, {"BFP16_16", 68}, {"MXFP8_E4M3K32", 66},
  };
  for (auto [name, bytes] : kSizes) {
    BlockFormat format = parsed(name).block;
    EXPECT_EQ(format.bitsPerBlock() * 64.0 / format.block / 8, bytes) << name;
  }
}

TEST(Format, Aliases) {
  EXPECT_EQ(parsed("BFP16A_64").block, parsed("BFP16_64A").block);
  // The public table builds this one with p = 6.
  EXPECT_EQ(parsed("BFP16A_16").block.precision, 8);
  EXPECT_EQ(parsed("BFP32").block, parsed("BFP32_1").block);
  EXPECT_EQ(parsed("SBFP12_16").block.scaleBias, 7);
  EXPECT_EQ(parsed("MXINT8_K32").block, parsed("BFP16_32").block);
  EXPECT_EQ(parsed("MXINT4{32}").block, parsed("BFP12_32").block);
  EXPECT_EQ(parsed("FLOAT16").floating, (FloatFormat{true, 5, 10, 15, true}));
  EXPECT_EQ(parsed("AFLOAT8").floating, (FloatFormat{true, 4, 3, 7, false}));
  EXPECT_EQ(parsed("INT4").fixed, (FixedFormat{4, 0, true, true}));
  EXPECT_EQ(shorthandOf(parsed("BFLOAT8")), "FP[1|5|2,15](_N)");
}

TEST(Format, Shorthands) {
  EXPECT_EQ(parsed("SAME").kind, NumberFormat::Kind::Same);
  NumberFormat bfp = parsed("BFP[8|8]{64}(SN)");
  EXPECT_EQ(bfp, parsed("BFP16_64"));
  EXPECT_EQ(parsed("BFP[8|8]{64}(_S)").rounding, Rounding::Stochastic);
  EXPECT_EQ(parsed("BFP[4|8]{128}(_U)").rounding, Rounding::Up);
  EXPECT_EQ(parsed("BFP[4|8]{128}(SD)").rounding, Rounding::Down);
  EXPECT_EQ(parsed("BFP[4|8]{128}(_D)").block, parsed("BFP12_128A").block);
  EXPECT_EQ(parsed("BFP[24|8]{1}(SN)").block, parsed("BFP32_1").block);
  EXPECT_EQ(parsed("SBFP<XP[4,0](CSN)><FP[0|4|4,13](FN)>{16}").block.scaleBias, 13);
  EXPECT_EQ(parsed("MXFP6[E3M2]{32}").block, parsed("MXFP6_E3M2K32").block);
  NumberFormat fixed = parsed("XP[8,+4](UAS)");
  EXPECT_EQ(fixed.fixed, (FixedFormat{8, 4, false, false}));
  EXPECT_EQ(fixed.rounding, Rounding::Stochastic);
  EXPECT_EQ(shorthandOf(parsed("XP[8,-3](C_N)")), "XP[8,-3](CAN)");
  EXPECT_EQ(parsed("FP[0|4|4,18](FN)").floating, (FloatFormat{false, 4, 4, 18, true}));

  std::string warning;
  EXPECT_EQ(parsed("BFP[8|8]{64,-1}(SN)", &warning), bfp);
  EXPECT_NE(warning.find("-1"), std::string::npos);
}

TEST(Format, Refusals) {
  for (const char *text : {"",
                           "BFP",
                           "bfp16_64",
                           "BFP16_63",
                           "BFP16_64X",
                           "BFP16_64RC",
                           "BFP24_128",
                           "BFP24_64A",
                           "R",
                           "SBFP12_16_3",
                           "SBFP12_16_19",
                           "BFP[8|8]{64}(SN",
                           "BFP[8|8]{64}(SN) ",
                           "BFP[8|7]{64}(SN)",
                           "BFP[5|8]{64}(SN)",
                           "BFP[8|8]{0}(SN)",
                           "BFP[8|8]{64}(NS)",
                           "BFP[8|8]{64,}(SN)",
                           "BFP[8|8]{99999}(SN)",
                           "FP[1|5|10,15](FU)",
                           "FP[2|5|10,15](FN)",
                           "FP[1|9|10,15](FN)",
                           "FP[1|5|24,15](FN)",
                           "FP[1|8|23,126](FN)",
                           "XP[0,0](CSN)",
                           "XP[25,0](CSN)",
                           "XP[8,0](CSD)",
                           "MXFP8[E4M2]{32}",
                           "MXFP8[E4M3]{16}",
                           "MXINT5{32}",
                           "SAME ",
                           "SAMEX",
                           "SBFP<XP[4,0](CSN)><FP[0|4|4,3](FN)>{16}",
                           "SBFP<XP[5,0](CSN)><FP[0|4|4,7](FN)>{16}",
                           "SBFP<XP[4,0](CSN)><FP[0|4|4,7](FN)>{32}",
                           "SBFP<XP[4,0](CSN)><FP[1|4|4,7](FN)>{16}"})
    errorOf(text);
  EXPECT_NE(errorOf("UBFP16_64").find("not implemented"), std::string::npos);
  EXPECT_EQ(errorOf("BFP[8|8]{64}(XN)"), "format 'BFP[8|8]{64}(XN)': expected one of the letters 'S_' at 'XN)'");
  // What an error shows of a hostile text is short and printable.
  std::string hostile = errorOf(std::string(10000, '\x01'));
  EXPECT_LT(hostile.size(), 300u);
  EXPECT_EQ(hostile.find('\x01'), std::string::npos);
}

/// Mutants of valid texts: whatever is accepted is a format that prints to an
/// equal one, and nothing is read out of bounds (run under the sanitizers).
TEST(Format, Mutants) {
  std::vector<std::string> seeds{"SAME",
                                 "FP[1|5|10,15](FN)",
                                 "XP[8,-4](CSN)",
                                 "BFP[8|8]{64,-1}(SN)",
                                 "SBFP<XP[4,0](CSN)><FP[0|4|4,7](FN)>{16}",
                                 "MXINT8{32}",
                                 "MXFP8[E4M3]{32}"};
  for (const BlockFormat &format : allBlockFormats())
    seeds.push_back(nameOf(format) + "R");
  constexpr std::string_view kLetters = "0123456789+-,|[]{}()<>_SNDUFCARBEPXMIT \x80";
  std::mt19937 random(1);
  auto pick = [&](size_t size) { return random() % size; };
  int accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    std::string text = seeds[pick(seeds.size())];
    for (size_t edits = 1 + pick(3); edits > 0; --edits) {
      size_t at = pick(text.size() + 1);
      switch (pick(4)) {
      case 0:
        text.insert(at, 1, kLetters[pick(kLetters.size())]);
        break;
      case 1:
        text.erase(at, 1 + pick(3));
        break;
      case 2:
        if (at < text.size())
          text[at] = kLetters[pick(kLetters.size())];
        break;
      default:
        text.insert(at, seeds[pick(seeds.size())].substr(0, pick(12)));
      }
    }
    // An exact-size copy on the heap lets the address sanitizer see overruns.
    std::vector<char> copy(text.begin(), text.end());
    std::string error;
    auto result = parseFormat({copy.data(), copy.size()}, error);
    ASSERT_EQ(result.has_value(), error.empty()) << text;
    if (!result)
      continue;
    ++accepted;
    NumberFormat format = result->format;
    format.orientation.reset(); // has no place in a shorthand
    ASSERT_EQ(parsed(shorthandOf(format)), format) << text;
  }
  EXPECT_GT(accepted, 2000);
}

} // namespace
} // namespace dmx::blockfp
