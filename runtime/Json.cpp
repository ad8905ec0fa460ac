//===- Json.cpp - checked reading of JSON ---------------------------------===//

#include "Json.h"

namespace dmxrt {
namespace {

using nlohmann::json;

/// Deeper than any valid document; keeps recursion over the tree bounded.
constexpr int kMaxDepth = 64;

/// Whether brackets outside strings nest too deeply.
bool tooDeep(std::string_view text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth)
        return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

/// Appends the path from `node` to the value at address `target`.
bool findPath(const json &node, const json *target, std::string &path) {
  if (&node == target)
    return true;
  size_t length = path.size();
  if (node.is_object()) {
    for (auto it = node.begin(); it != node.end(); ++it) {
      path += cat(path.empty() ? "" : ".", it.key());
      if (findPath(it.value(), target, path))
        return true;
      path.resize(length);
    }
  } else if (node.is_array()) {
    for (size_t i = 0; i < node.size(); ++i) {
      path += cat("[", i, "]");
      if (findPath(node[i], target, path))
        return true;
      path.resize(length);
    }
  }
  return false;
}

} // namespace

JsonDocument::JsonDocument(std::span<const std::byte> text, std::string name) : name(std::move(name)) {
  std::string_view chars(reinterpret_cast<const char *>(text.data()), text.size());
  if (tooDeep(chars)) {
    fail(nullptr, "JSON nests deeper than a bundle's may");
    return;
  }
  tree = json::parse(chars, nullptr, /*allow_exceptions=*/false);
  if (tree.is_discarded()) {
    tree = nullptr;
    fail(nullptr, "it is not valid JSON");
  }
}

JsonCursor JsonDocument::root() { return {this, &tree}; }

void JsonDocument::fail(const json *value, std::string_view sentence) {
  if (bad)
    return;
  bad = true;
  std::string path;
  if (value && findPath(tree, value, path) && !path.empty())
    error = badBundle("entry '", name, "': ", path, ": ", sentence);
  else
    error = badBundle("entry '", name, "': ", sentence);
}

JsonCursor JsonCursor::operator[](const char *key) const {
  JsonCursor member = optional(key);
  if (!member.present() && present())
    fail(cat("member '", key, "' is missing"));
  return member;
}

JsonCursor JsonCursor::optional(const char *key) const {
  if (!value)
    return {document, nullptr};
  if (!value->is_object()) {
    fail("an object was expected");
    return {document, nullptr};
  }
  auto it = value->find(key);
  return {document, it == value->end() ? nullptr : &*it};
}

size_t JsonCursor::size() const {
  if (!value || document->failed())
    return 0;
  if (!value->is_array()) {
    fail("an array was expected");
    return 0;
  }
  return value->size();
}

JsonCursor JsonCursor::at(size_t index) const {
  if (!value || !value->is_array() || index >= value->size())
    return {document, nullptr};
  return {document, &(*value)[index]};
}

int64_t JsonCursor::integer(int64_t min, int64_t max, int64_t fallback) const {
  if (!value)
    return fallback;
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
    fail("an integer was expected");
    return fallback;
  }
  int64_t number = value->get<int64_t>();
  if (number < min || number > max) {
    fail(cat("value ", number, " is not within ", min, "..", max));
    return fallback;
  }
  return number;
}

std::string JsonCursor::string() const {
  if (!value)
    return {};
  const auto *text = value->get_ptr<const std::string *>();
  if (!text || text->find('\0') != std::string::npos) {
    fail("a string was expected");
    return {};
  }
  return *text;
}

} // namespace dmxrt
