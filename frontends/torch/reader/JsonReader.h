//===- JsonReader.h - JSON that may be hostile ------------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/JsonDepth.h"
#include "dmxc/Support/Result.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace dmxc::torchfe {

using Json = nlohmann::json;

/// Thrown by a Cursor and caught in readJson.
struct JsonFailure {
  std::string text;
};

/// A value and the way to it, for messages. False where the value is missing or null.
class Cursor {
public:
  Cursor(const Json *value, std::string path) : value(value), path(std::move(path)) {}
  explicit operator bool() const { return value && !value->is_null(); }

  [[noreturn]] void fail(const std::string &what) const {
    throw JsonFailure{(path.empty() ? std::string("the program ") : path + " ") + what};
  }

  bool isObject() const { return value && value->is_object(); }
  bool isArray() const { return value && value->is_array(); }
  bool isText() const { return value && value->is_string(); }

  Cursor operator[](const char *key) const {
    if (!isObject())
      fail(value ? "is no object" : "is missing");
    auto found = value->find(key);
    return {found == value->end() ? nullptr : &*found, path.empty() ? key : path + "." + key};
  }
  std::vector<Cursor> items() const {
    if (!isArray())
      fail(value ? "is no list" : "is missing");
    std::vector<Cursor> list;
    list.reserve(value->size());
    for (size_t i = 0; i < value->size(); ++i)
      list.push_back({&(*value)[i], path + "[" + std::to_string(i) + "]"});
    return list;
  }
  std::vector<std::pair<std::string, Cursor>> members() const {
    if (!isObject())
      fail(value ? "is no object" : "is missing");
    std::vector<std::pair<std::string, Cursor>> list;
    for (auto item = value->begin(); item != value->end(); ++item)
      list.push_back({item.key(), Cursor(&item.value(), path + "." + item.key().substr(0, 100))});
    return list;
  }
  /// The only member of a union.
  std::pair<std::string, Cursor> unionValue() const {
    if (!isObject() || value->size() != 1)
      fail(!isObject() ? "is no union" : "is a union with " + std::to_string(value->size()) + " tags instead of one");
    return {value->begin().key(), Cursor(&value->begin().value(), path)};
  }
  int64_t integer() const {
    if (!value || !value->is_number_integer() ||
        (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX)))
      fail(value ? "is no 64-bit integer" : "is missing");
    return value->get<int64_t>();
  }
  /// Infinity and NaN are strings.
  double number() const {
    if (value && value->is_number())
      return value->get<double>();
    std::string name = isText() ? value->get<std::string>() : "";
    if (name == "Infinity")
      return std::numeric_limits<double>::infinity();
    if (name == "-Infinity")
      return -std::numeric_limits<double>::infinity();
    if (name != "NaN")
      fail(value ? "is no number" : "is missing");
    return std::numeric_limits<double>::quiet_NaN();
  }
  bool boolean() const {
    if (!value || !value->is_boolean())
      fail(value ? "is no bool" : "is missing");
    return value->get<bool>();
  }
  std::string text() const {
    if (!isText())
      fail(value ? "is no string" : "is missing");
    return value->get<std::string>();
  }

private:
  const Json *value;
  std::string path;
};

/// Parses `text` and hands the top value to `read`; every failure becomes an error that names `where`.
template <typename T, typename Read> Result<T> readJson(std::string_view text, const std::string &where, Read read) {
  auto error = [&](const std::string &what) { return modelError("record '" + where + "': " + what); };
  if (!jsonDepthIsBounded(text))
    return error("its JSON is nested too deep");
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::exception &exception) {
    return error(std::string("it is no valid JSON: ") + exception.what());
  }
  try {
    return read(Cursor(&root, ""));
  } catch (const JsonFailure &failure) {
    return error(failure.text);
  }
}

} // namespace dmxc::torchfe
