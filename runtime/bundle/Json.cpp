//===- Json.cpp - checked reading of JSON ---------------------------------===//

#include "Json.h"

#include <algorithm>

namespace dmxrt {

using Kind = JsonValue::Kind;

JsonDocument::JsonDocument(std::span<const std::byte> text, std::string name)
    : json({reinterpret_cast<const char *>(text.data()), text.size()}), name(std::move(name)) {
  if (json.problem == JsonText::Problem::TooDeep)
    fail(nullptr, "JSON nests deeper than a bundle's may");
  else if (json.problem == JsonText::Problem::TooLong)
    fail(nullptr, "JSON is longer than 4 GiB");
  else if (json.problem != JsonText::Problem::None)
    fail(nullptr, "it is not valid JSON");
}

JsonCursor JsonDocument::root() { return {this, &json.root()}; }

/// Appends the path from `node` to the value at address `target`.
bool JsonDocument::findPath(const JsonValue &node, const JsonValue *target, std::string &path) const {
  if (&node == target)
    return true;
  if (node.kind != Kind::Object && node.kind != Kind::Array)
    return false;
  size_t length = path.size(), index = 0;
  for (const JsonValue &child : json.childrenOf(node)) {
    path += node.kind == Kind::Object ? cat(path.empty() ? "" : ".", child.key()) : cat("[", index, "]");
    if (findPath(child, target, path))
      return true;
    path.resize(length);
    ++index;
  }
  return false;
}

void JsonDocument::fail(const JsonValue *value, std::string_view sentence) {
  if (bad)
    return;
  bad = true;
  std::string path;
  if (value && findPath(json.root(), value, path) && !path.empty())
    error = badBundle("entry '", name, "': ", path, ": ", sentence);
  else
    error = badBundle("entry '", name, "': ", sentence);
}

JsonCursor JsonCursor::operator[](std::string_view key) const {
  JsonCursor member = optional(key);
  if (!member.present() && present())
    fail(cat("member '", key, "' is missing"));
  return member;
}

bool JsonCursor::isObject() const {
  bool is = value && value->kind == Kind::Object;
  if (!is)
    fail("an object was expected");
  return is;
}

JsonCursor JsonCursor::optional(std::string_view key) const {
  if (!isObject())
    return {document, nullptr};
  std::span<const JsonValue> members = document->json.childrenOf(*value);
  // Most of a graph's members have as many letters as others; the first tells most of those apart without a call.
  auto found = std::find_if(members.rbegin(), members.rend(), [&](const JsonValue &m) {
    return m.keyLength == key.size() && (key.empty() || m.keyCharacters[0] == key[0]) && m.key() == key;
  });
  return {document, found == members.rend() ? nullptr : &*found};
}

size_t JsonCursor::size() const {
  if (!value || document->failed())
    return 0;
  if (value->kind != Kind::Array) {
    fail("an array was expected");
    return 0;
  }
  return value->count;
}

JsonCursor JsonCursor::at(size_t index) const {
  if (!value || value->kind != Kind::Array || index >= value->count)
    return {document, nullptr};
  return {document, &document->json.childrenOf(*value)[index]};
}

int64_t JsonCursor::integer(int64_t min, int64_t max, int64_t fallback) const {
  if (!value)
    return fallback;
  if (value->kind != Kind::Integer) {
    fail("an integer was expected");
    return fallback;
  }
  if (value->integer < min || value->integer > max) {
    fail(cat("value ", value->integer, " is not within ", min, "..", max));
    return fallback;
  }
  return value->integer;
}

std::string_view JsonCursor::text() const {
  if (!value)
    return {};
  std::string_view text = isString() ? value->text() : std::string_view();
  if (!isString() || text.find('\0') != std::string_view::npos) {
    fail("a string was expected");
    return {};
  }
  return text;
}

} // namespace dmxrt
