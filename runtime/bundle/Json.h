//===- Json.h - checked reading of JSON -------------------------*- C++ -*-===//
//
// A bundle's JSON is input like any other: every member is read through a
// cursor that checks its type and range. The first failure is kept with the
// path of the offending value; after it all reads return empty values, so
// parsers need no check at every line.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "JsonText.h"
#include "runtime/Error.h"

#include <span>
#include <string>
#include <string_view>

namespace dmxrt {

class JsonCursor;

/// Owns a parsed document and the first error found while reading it.
class JsonDocument {
public:
  /// `name` is the entry's name, for errors. `text` must outlive the document.
  JsonDocument(std::span<const std::byte> text, std::string name);

  JsonCursor root();
  bool failed() const { return bad; }
  Error takeError() { return std::move(error); }
  /// Records a failure at `value` unless there is one already.
  void fail(const JsonValue *value, std::string_view sentence);

private:
  friend class JsonCursor;
  bool findPath(const JsonValue &node, const JsonValue *target, std::string &path) const;

  JsonText json;
  std::string name;
  bool bad = false;
  Error error;
};

/// A value inside a document; cheap to copy.
class JsonCursor {
public:
  JsonCursor(JsonDocument *document, const JsonValue *value) : document(document), value(value) {}

  /// A member of an object; missing is an error. Of members of the same name the last one counts.
  JsonCursor operator[](std::string_view key) const;
  /// A member that may be missing: then `present()` is false and all reads give defaults.
  JsonCursor optional(std::string_view key) const;
  bool present() const { return value != nullptr; }
  bool isInteger() const { return value && value->kind == JsonValue::Kind::Integer; }
  /// Whether anything failed in the whole document.
  bool failed() const { return document->failed(); }
  bool isArray() const { return value && value->kind == JsonValue::Kind::Array; }
  bool isString() const { return value && value->kind == JsonValue::Kind::String; }

  /// Elements of an array; 0 when it is not one (an error) or is absent.
  size_t size() const;
  JsonCursor at(size_t index) const;

  /// Calls each(key, cursor) for each member of an object, in the text's order; for none when it is absent.
  template <typename Each> void forEachMember(Each each) const {
    if (!isObject())
      return;
    for (const JsonValue &member : document->json.childrenOf(*value))
      each(member.key(), JsonCursor(document, &member));
  }

  int64_t integer(int64_t min, int64_t max, int64_t fallback = 0) const;
  std::string string() const { return std::string(text()); }
  /// The same while the document lives.
  std::string_view text() const;

  void fail(std::string_view sentence) const {
    if (present())
      document->fail(value, sentence);
  }

private:
  /// Anything else that is there is an error.
  bool isObject() const;
  JsonDocument *document;
  const JsonValue *value; // null: absent
};

} // namespace dmxrt
