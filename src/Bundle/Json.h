//===- Json.h - checked JSON reading and stable writing ---------*- C++ -*-===//
//
// Private to the Bundle room. Reading never throws and every failure names the
// place in the document; writing keeps key order and breaks lines so that a
// task, a buffer or an entry is one line.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Expr.h"

#include <functional>
#include <nlohmann/json.hpp>

namespace dmxc::bundle::json {

using Value = nlohmann::ordered_json;

/// Text with two-space indentation; containers deeper than `breakDepth`, and
/// those that fit into about 160 columns, stay on one line. Ends with a
/// newline.
std::string dump(const Value &value, unsigned breakDepth);

Value toValue(const Expr &expr);
Value toValue(const std::vector<Expr> &exprs);

/// A cursor over a parsed document. The first failure is kept in a shared sink;
/// later reads return defaults, so that readers need no check at every field.
class Reader {
public:
  struct Sink {
    bool failed = false;
    std::string message;
  };

  Reader(const Value &value, std::string place, Sink &sink) : value(&value), place(std::move(place)), sink(sink) {}

  bool failed() const { return sink.failed; }
  void fail(const std::string &message) const;
  bool has(const char *key) const;
  const std::string &where() const { return place; }

  /// The field as an object or array cursor; a missing one is a failure.
  Reader at(const char *key) const;
  /// Calls `each` for every element of an array field. A missing optional
  /// array has no elements.
  void forEach(const char *key, bool required, const std::function<void(const Reader &)> &each) const;
  /// Calls `each(name, value)` for every field of an object.
  void forEachField(const char *key, const std::function<void(const std::string &, const Reader &)> &each) const;

  int64_t integer(const char *key) const;
  int64_t integer(const char *key, int64_t otherwise) const;
  std::string string(const char *key) const;
  std::string string(const char *key, std::string otherwise) const;
  Expr expr(const char *key) const;
  Expr expr(const char *key, Expr otherwise) const;
  std::vector<Expr> exprs(const char *key, bool required) const;
  std::vector<std::string> strings(const char *key, bool required) const;
  std::vector<int64_t> integers(const char *key, bool required) const;

  int64_t asInteger() const;
  std::string asString() const;
  Expr asExpr(unsigned depth = 0) const;
  const Value &raw() const { return *value; }

private:
  const Value *find(const char *key) const;
  void expectObject() const;
  const Value *value;
  std::string place;
  Sink &sink;
};

/// Parses text; on failure returns a discarded value and fills `sink`.
Value parse(std::string_view text, const std::string &document, Reader::Sink &sink);

} // namespace dmxc::bundle::json
