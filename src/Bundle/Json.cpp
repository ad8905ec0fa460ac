//===- Json.cpp - checked JSON reading and stable writing -----------------===//
#include "Json.h"

#include "dmxc/Support/JsonDepth.h"

namespace dmxc::bundle::json {

namespace {
constexpr size_t lineWidth = 160;

std::string inlineText(const Value &value) {
  // Names may come from a model that is not valid UTF-8; replacing the bad
  // bytes keeps the document readable by every JSON parser.
  return value.dump(-1, ' ', false, Value::error_handler_t::replace);
}

void print(const Value &value, unsigned depth, unsigned breakDepth, size_t column, std::string &out) {
  std::string line = inlineText(value);
  bool broken =
      value.is_structured() && !value.empty() && depth < breakDepth && (depth == 0 || column + line.size() > lineWidth);
  if (!broken) {
    out += line;
    return;
  }
  std::string indent(2 * (depth + 1), ' ');
  out += value.is_object() ? "{\n" : "[\n";
  bool first = true;
  for (auto &item : value.items()) {
    if (!first)
      out += ",\n";
    first = false;
    out += indent;
    size_t start = indent.size();
    if (value.is_object()) {
      std::string key = inlineText(Value(item.key())) + ": ";
      start += key.size();
      out += key;
    }
    print(item.value(), depth + 1, breakDepth, start, out);
  }
  out += "\n" + std::string(2 * depth, ' ');
  out += value.is_object() ? '}' : ']';
}

const char *kindName(const Value &value) {
  switch (value.type()) {
  case Value::value_t::null:
    return "null";
  case Value::value_t::object:
    return "an object";
  case Value::value_t::array:
    return "an array";
  case Value::value_t::string:
    return "a string";
  case Value::value_t::boolean:
    return "a boolean";
  case Value::value_t::number_float:
    return "a fraction";
  default:
    return "an integer";
  }
}
} // namespace

std::string dump(const Value &value, unsigned breakDepth) {
  std::string out;
  print(value, 0, breakDepth, 0, out);
  return out + "\n";
}

Value toValue(const Expr &expr) {
  switch (expr.kind()) {
  case Expr::Kind::Int:
    return expr.value();
  case Expr::Kind::Dim:
    return expr.name();
  case Expr::Kind::Op:
    break;
  }
  return Value::array({std::string(exprOpName(expr.op())), toValue(expr.operands()[0]), toValue(expr.operands()[1])});
}

Value toValue(const std::vector<Expr> &exprs) {
  Value array = Value::array();
  for (const Expr &expr : exprs)
    array.push_back(toValue(expr));
  return array;
}

Value parse(std::string_view text, const std::string &document, Reader::Sink &sink) {
  bool shallow = jsonDepthIsBounded(text);
  Value value = shallow ? Value::parse(text, nullptr, /*allow_exceptions=*/false) : Value();
  if (!shallow || value.is_discarded()) {
    sink.failed = true;
    sink.message =
        document + (shallow ? ": not valid JSON" : ": nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
  }
  return value;
}

void Reader::fail(const std::string &message) const {
  if (sink.failed)
    return;
  sink.failed = true;
  sink.message = place + ": " + message;
}

void Reader::expectObject() const {
  if (!value->is_object())
    fail(std::string("expected an object, got ") + kindName(*value));
}

const Value *Reader::find(const char *key) const {
  if (!value->is_object())
    return nullptr;
  auto it = value->find(key);
  return it == value->end() ? nullptr : &*it;
}

bool Reader::has(const char *key) const {
  expectObject();
  return find(key) != nullptr;
}

Reader Reader::at(const char *key) const {
  static const Value nothing;
  expectObject();
  const Value *field = find(key);
  if (!field)
    fail(std::string("field '") + key + "' is missing");
  const char *separator = place.ends_with(".json") ? ": " : ".";
  return Reader(field ? *field : nothing, place + separator + key, sink);
}

void Reader::forEach(const char *key, bool required, const std::function<void(const Reader &)> &each) const {
  if (!required && !has(key))
    return;
  Reader array = at(key);
  if (!array.value->is_array()) {
    array.fail(std::string("expected an array, got ") + kindName(*array.value));
    return;
  }
  size_t i = 0;
  for (const Value &element : *array.value) {
    if (failed())
      return;
    each(Reader(element, array.place + "[" + std::to_string(i++) + "]", sink));
  }
}

void Reader::forEachField(const char *key, const std::function<void(const std::string &, const Reader &)> &each) const {
  if (!has(key))
    return;
  Reader object = at(key);
  object.expectObject();
  if (failed())
    return;
  for (auto &item : object.value->items())
    each(item.key(), Reader(item.value(), object.place + "." + item.key(), sink));
}

int64_t Reader::asInteger() const {
  if (!value->is_number_integer()) {
    fail(std::string("expected an integer, got ") + kindName(*value));
    return 0;
  }
  if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    fail("the integer does not fit into 64 bits signed");
    return 0;
  }
  return value->get<int64_t>();
}

std::string Reader::asString() const {
  if (!value->is_string()) {
    fail(std::string("expected a string, got ") + kindName(*value));
    return {};
  }
  auto text = value->get<std::string>();
  if (text.find('\0') != std::string::npos) // a name in the C API
    fail("the string holds a byte 0");
  return text;
}

Expr Reader::asExpr(unsigned depth) const {
  if (value->is_string())
    return Expr::dim(value->get<std::string>());
  if (!value->is_array())
    return Expr(asInteger());
  if (depth >= Expr::maxDepth) {
    fail("the expression is nested deeper than " + std::to_string(Expr::maxDepth) + " levels");
    return 0;
  }
  if (value->size() != 3 || !(*value)[0].is_string()) {
    fail("expected an expression: an integer, a dim's name or [op, a, b]");
    return 0;
  }
  std::string name = (*value)[0].get<std::string>();
  std::optional<Expr::Op> op = exprOpFromName(name);
  if (!op) {
    fail("unknown operation '" + name +
         "' in an expression; known are add, sub, mul, floordiv, ceildiv, mod, "
         "min, max, broadcast");
    return 0;
  }
  Expr lhs = Reader((*value)[1], place + "[1]", sink).asExpr(depth + 1);
  Expr rhs = Reader((*value)[2], place + "[2]", sink).asExpr(depth + 1);
  return Expr::binary(*op, std::move(lhs), std::move(rhs));
}

int64_t Reader::integer(const char *key) const {
  Reader field = at(key);
  return failed() ? 0 : field.asInteger();
}
int64_t Reader::integer(const char *key, int64_t otherwise) const { return has(key) ? integer(key) : otherwise; }
std::string Reader::string(const char *key) const {
  Reader field = at(key);
  return failed() ? std::string() : field.asString();
}
std::string Reader::string(const char *key, std::string otherwise) const {
  return has(key) ? string(key) : std::move(otherwise);
}
Expr Reader::expr(const char *key) const {
  Reader field = at(key);
  return failed() ? Expr() : field.asExpr();
}
Expr Reader::expr(const char *key, Expr otherwise) const { return has(key) ? expr(key) : std::move(otherwise); }

std::vector<Expr> Reader::exprs(const char *key, bool required) const {
  std::vector<Expr> all;
  forEach(key, required, [&](const Reader &r) { all.push_back(r.asExpr()); });
  return all;
}
std::vector<std::string> Reader::strings(const char *key, bool required) const {
  std::vector<std::string> all;
  forEach(key, required, [&](const Reader &r) { all.push_back(r.asString()); });
  return all;
}
std::vector<int64_t> Reader::integers(const char *key, bool required) const {
  std::vector<int64_t> all;
  forEach(key, required, [&](const Reader &r) { all.push_back(r.asInteger()); });
  return all;
}

} // namespace dmxc::bundle::json
