//===- JsonTest.cpp - reading JSON, against nlohmann/json -----------------===//

#include "runtime/bundle/JsonText.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <random>

using namespace dmxrt;
using nlohmann::json;

namespace {

/// What JsonText does not tell apart becomes null.
json plain(const json &value) {
  if (value.is_string() ||
      (value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX)))
    return value;
  if (!value.is_structured())
    return nullptr;
  json result = value;
  for (json &child : result)
    child = plain(child);
  return result;
}

json plain(const JsonText &text, const JsonValue &value) {
  switch (value.kind) {
  case JsonValue::Kind::Integer:
    return value.integer;
  case JsonValue::Kind::String:
    return std::string(value.text());
  case JsonValue::Kind::Array: {
    json result = json::array();
    for (const JsonValue &child : text.childrenOf(value))
      result.push_back(plain(text, child));
    return result;
  }
  case JsonValue::Kind::Object: {
    json result = json::object();
    for (const JsonValue &child : text.childrenOf(value))
      result[std::string(child.key())] = plain(text, child);
    return result;
  }
  default:
    return nullptr;
  }
}

/// Whether a text is valid; null when nlohmann/json refuses a valid one, as reals beyond a double are.
std::optional<bool> agrees(const std::string &text) {
  JsonText read(text);
  bool valid = read.problem == JsonText::Problem::None;
  try {
    json expected = plain(json::parse(text));
    EXPECT_TRUE(valid) << text;
    if (valid) {
      EXPECT_EQ(plain(read, read.root()), expected) << text;
    }
    return true;
  } catch (const json::out_of_range &) {
    return std::nullopt;
  } catch (const json::parse_error &) {
    EXPECT_FALSE(valid) << text;
    return false;
  }
}

TEST(JsonText, ReadsValues) {
  for (const char *text : {"0",
                           "-0",
                           " 12 ",
                           "-9223372036854775808",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709551616",
                           "-9223372036854775809",
                           "1.5",
                           "-1e5",
                           "2E-3",
                           "0.25e+10",
                           "true",
                           "false",
                           "null",
                           "\"\"",
                           "[]",
                           "{}",
                           "[[]]",
                           "[1, 2,3 ]",
                           "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":\"e\"}",
                           "\t\r\n[ ]\n",
                           "{\"a\":1,\"a\":2}",
                           "{\"\":0}",
                           R"("\"\\\/\b\f\n\r\t")",
                           R"("\u0041\u00e9\u20ac\ud83d\ude00 and more")",
                           R"("plain \u0000 zero")",
                           "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"",
                           "\"\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF\"",
                           "[\"a\\n\",\"b\",{\"k\\t\":\"v\"}]"})
    EXPECT_EQ(agrees(text), true) << text;
}

TEST(JsonText, RefusesTextsBeyondItsCounts) {
  char space = ' '; // the length is looked at first
  EXPECT_EQ(JsonText({&space, JsonText::kMaxLength + 1}).problem, JsonText::Problem::TooLong);
}

TEST(JsonText, RefusesWhatIsNotJson) {
  for (const char *text : {"",
                           " ",
                           "01",
                           "-",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "1e+",
                           "0x1",
                           "tru",
                           "nul",
                           "True",
                           "nan",
                           "[",
                           "]",
                           "[1",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "{",
                           "{}}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{1:1}",
                           "1 2",
                           "[1]x",
                           "\"",
                           "\"a",
                           "\"\\",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\u-123\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"\n\"",
                           "\"\x01\"",
                           "\"\x80\"",
                           "\"\xC0\xAF\"",
                           "\"\xC3\"",
                           "\"\xE0\x80\x80\"",
                           "\"\xED\xA0\x80\"",
                           "\"\xF4\x90\x80\x80\"",
                           "\"\xF5\x80\x80\x80\"",
                           "\"\xE2\x82\"",
                           "'a'",
                           "/**/1",
                           "[1}"})
    EXPECT_EQ(agrees(text), false) << text;
}

TEST(JsonText, BoundsTheDepth) {
  auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(agrees(nested(JsonText::kMaxDepth)), true);
  EXPECT_EQ(JsonText(nested(JsonText::kMaxDepth + 1)).problem, JsonText::Problem::TooDeep);
  EXPECT_EQ(JsonText(std::string(10'000'000, '[')).problem, JsonText::Problem::TooDeep);
}

TEST(JsonText, AgreesOnChangedTexts) {
  const std::string base =
      R"({"graphs":[{"name":"m\u00e9\n","dims":[{"name":"n","min":0,"max":-12}],"buffers":[{"kind":"arena",)"
      "\"offset\":[\"mul\",\"n\",4],\"shape\":[1,2.5e1]},{}],\"x\":true,\"y\":[null,false,\"\xE2\x82\xAC\"]}]}";
  const std::string alphabet = "{}[]:,\"\\ue0159-+. \ntfn\x80\xE2\x9F";
  std::mt19937 random(7);
  auto below = [&](size_t bound) { return random() % bound; };
  int valid = 0, invalid = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = base;
    for (size_t changes = 1 + below(3); changes; --changes) {
      size_t at = below(text.size());
      char letter = alphabet[below(alphabet.size())];
      switch (below(3)) {
      case 0:
        text[at] = letter;
        break;
      case 1:
        text.insert(at, 1, letter);
        break;
      default:
        text.erase(at, 1 + below(4));
      }
    }
    std::optional<bool> agreed = agrees(text);
    valid += agreed == true;
    invalid += agreed == false;
    if (testing::Test::HasFailure())
      return;
  }
  EXPECT_GT(valid, 1000);
  EXPECT_GT(invalid, 1000);
}

} // namespace
