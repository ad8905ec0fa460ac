//===- Description.cpp - reads and checks machine descriptions ------------===//

#include "Description.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dmx {

const DescriptionValue *DescriptionValue::find(std::string_view key) const {
  auto at = std::find_if(members.begin(), members.end(), [&](const Member &member) { return member.key == key; });
  return at == members.end() ? nullptr : &at->value;
}

namespace {

using Value = DescriptionValue;

/// Builds values from the events of a text that is read; those in arrays are dropped.
class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  Value root;

  bool null() override { return set(Value::Kind::Other); }
  bool boolean(bool) override { return set(Value::Kind::Other); }
  bool number_integer(int64_t value) override { return set(Value::Kind::Number, static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) override { return set(Value::Kind::Number, static_cast<double>(value)); }
  bool number_float(double value, const std::string &) override { return set(Value::Kind::Number, value); }
  bool string(std::string &value) override {
    set(Value::Kind::Text);
    if (!dropped)
      next->text = std::move(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t &) override { return false; }
  bool key(std::string &value) override {
    if (dropped)
      return true;
    std::vector<Value::Member> &members = open.back()->members;
    next = const_cast<Value *>(open.back()->find(value)); // of members of the same name the last one counts
    if (!next)
      next = &members.emplace_back(Value::Member{std::move(value), {}}).value;
    return true;
  }
  bool start_object(size_t) override {
    set(Value::Kind::Object);
    if (dropped)
      ++dropped;
    else
      open.push_back(next);
    return true;
  }
  bool end_object() override { return end(); }
  bool start_array(size_t) override {
    set(Value::Kind::Other);
    ++dropped;
    return true;
  }
  bool end_array() override { return end(); }
  bool parse_error(size_t, const std::string &, const nlohmann::json::exception &) override { return false; }

private:
  std::vector<Value *> open; ///< objects
  Value *next = &root;       ///< what the next event is about
  int dropped = 0;           ///< containers within an array, and the array

  bool set(Value::Kind kind, double number = 0) {
    if (!dropped) {
      *next = Value();
      next->kind = kind;
      next->number = number;
    }
    return true;
  }
  bool end() {
    if (dropped)
      --dropped;
    else
      open.pop_back();
    return true;
  }
};

std::string text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

/// Nesting beyond any description's would only exhaust the stack.
bool isDeep(std::string_view json) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    i += quoted && c == '\\';
    quoted ^= c == '"';
    depth += quoted ? 0 : (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > 32)
      return true;
  }
  return false;
}

size_t countLeaves(const Value &value) {
  if (value.find("value"))
    return 1;
  size_t count = 0;
  for (const Value::Member &member : value.members)
    count += countLeaves(member.value);
  return count;
}

} // namespace

Description::Description(std::string_view json) {
  ValueBuilder values;
  if (isDeep(json))
    fail("nested too deeply");
  else if (!nlohmann::json::sax_parse(json.begin(), json.end(), &values))
    fail("not valid JSON");
  else if (values.root.kind != Value::Kind::Object)
    fail("not a JSON object");
  else
    root = std::move(values.root);
}

void Description::fail(const std::string &message) {
  if (why.empty())
    why = "machine description: " + message;
}

const Value *Description::find(std::string_view path) const {
  const Value *at = &root;
  for (size_t begin = 0; at && begin <= path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    at = at->find(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return at;
}

std::string Description::name() {
  const Value *name = root.find("name");
  if (name && !name->text.empty())
    return name->text;
  fail("'name' is missing");
  return {};
}

double Description::number(const std::string &path, double min, double max) {
  const Value *leaf = find(path);
  if (!leaf)
    return fail("'" + path + "' is missing"), min;
  const Value *figure = leaf->find("value"), *mark = leaf->find("mark");
  if (!figure || figure->kind != Value::Kind::Number)
    return fail("'" + path + "' is not {\"value\": number, \"mark\": ...}"), min;
  if (!mark || (mark->text != "fact" && mark->text != "derived" && mark->text != "assumption"))
    return fail("'" + path + "' has no mark fact, derived or assumption"), min;
  double value = figure->number;
  if (!(value >= min && value <= max))
    return fail("'" + path + "' is " + text(value) + ", allowed are " + text(min) + " to " + text(max)), min;
  ++leaves;
  return value;
}

int Description::integer(const std::string &path, int min, int max) {
  double value = number(path, min, max);
  if (value != std::floor(value))
    fail("'" + path + "' is " + text(value) + ", not an integer");
  return static_cast<int>(value);
}

void Description::total(const std::string &name, double got, double wanted, const std::string &knobs) {
  if (std::abs(got - wanted) > 1e-3 * wanted)
    fail("'totals." + name + "' is " + text(wanted) + ", but the numbers come to " + text(got) + "; it is made of " +
         knobs);
}

void Description::checkAllKnown() {
  const size_t all = countLeaves(root);
  if (all != leaves)
    fail("it has " + std::to_string(all) + " numbers, but only " + std::to_string(leaves) + " are known");
}

} // namespace dmx
