//===- Schema.cpp - operator signatures and their arguments ---------------===//
#include "Schema.h"
#include "../Program.h"

#include <cassert>
#include <cstdlib>

namespace dmxc::torchfe {

//===--- Arguments -----------------------------------------------------------------===//

static Arg make(Arg::Kind kind) {
  Arg arg;
  arg.kind = kind;
  return arg;
}

Arg Arg::tensor(Val value) {
  Arg arg = make(Kind::Tensor);
  arg.tensors.push_back(std::move(value));
  return arg;
}
Arg Arg::tensorList(std::vector<Val> values) {
  Arg arg = make(Kind::Tensor);
  arg.list = true;
  arg.tensors = std::move(values);
  return arg;
}
Arg Arg::integer(Dim value) {
  Arg arg = make(Kind::Int);
  arg.ints.push_back(value);
  return arg;
}
Arg Arg::intList(Dims values) {
  Arg arg = make(Kind::Int);
  arg.list = true;
  arg.ints = std::move(values);
  return arg;
}
Arg Arg::number(double value) {
  Arg arg = make(Kind::Float);
  arg.numbers.push_back(value);
  return arg;
}
Arg Arg::computed(Kind kind, Val value) {
  Arg arg = make(kind);
  arg.tensors.push_back(std::move(value));
  return arg;
}
Arg Arg::flag(bool value) {
  Arg arg = make(Kind::Bool);
  arg.numbers.push_back(value);
  return arg;
}
Arg Arg::string(std::string value) {
  Arg arg = make(Kind::String);
  arg.text = std::move(value);
  return arg;
}
Arg Arg::dtype(DType value, bool isComplex) {
  Arg arg = make(Kind::Type);
  arg.type = value;
  arg.isComplex = isComplex;
  return arg;
}
Arg Arg::ignored() { return make(Kind::Ignored); }

std::string Arg::describe() const {
  static const char *const one[] = {"None",     "a tensor", "an integer", "a float", "a bool",
                                    "a string", "a dtype",  "a layout",   "a graph"};
  static const char *const many[] = {"None",    "tensors", "integers", "floats", "bools",
                                     "strings", "dtypes",  "layouts",  "graphs"};
  size_t i = static_cast<size_t>(kind);
  return list ? std::string("a list of ") + many[i] : one[i];
}

//===--- Signatures ----------------------------------------------------------------===//

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

/// Parts between commas outside of brackets and quotes.
std::vector<std::string_view> splitList(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t from = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    quoted ^= c == '"' || c == '\'';
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c == ',' && depth == 0 && !quoted) {
      parts.push_back(trim(text.substr(from, i - from)));
      from = i + 1;
    }
  }
  if (!trim(text.substr(from)).empty())
    parts.push_back(trim(text.substr(from)));
  return parts;
}

double numberOf(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }

/// The default as written in a schema.
Arg defaultOf(const Parameter &parameter, std::string_view text) {
  if (text == "None" || parameter.type == Parameter::Type::Ignored)
    return Arg::none();
  if (parameter.type == Parameter::Type::ScalarType)
    return Arg::dtype(DType::I64); // "long" is the only one that any signature has
  if (text.front() == '[') {
    Dims ints;
    for (std::string_view part : splitList(text.substr(1, text.size() - 2)))
      ints.push_back(static_cast<int64_t>(numberOf(part)));
    return Arg::intList(ints);
  }
  if (text == "True" || text == "False")
    return Arg::flag(text == "True");
  if (text == "Mean") // an enum of losses
    return Arg::integer(1);
  if (text.front() == '"' || text.front() == '\'')
    return Arg::string(std::string(text.substr(1, text.size() - 2)));
  bool isFloat = parameter.type == Parameter::Type::Float || text.find_first_of(".e") != std::string_view::npos;
  return isFloat ? Arg::number(numberOf(text)) : Arg::integer(static_cast<int64_t>(numberOf(text)));
}

Parameter::Type typeNamed(std::string_view name) {
  using Type = Parameter::Type;
  static const std::pair<const char *, Type> table[] = {
      {"Tensor", Type::Tensor}, {"int", Type::Int},      {"SymInt", Type::Int},
      {"float", Type::Float},   {"bool", Type::Bool},    {"str", Type::String},
      {"Scalar", Type::Scalar}, {"SymBool", Type::Bool}, {"ScalarType", Type::ScalarType}};
  for (const auto &[known, type] : table)
    if (name == known)
      return type;
  return Type::Ignored; // Layout, Device, MemoryFormat, Generator
}

Parameter parameterOf(std::string_view text) {
  Parameter parameter;
  size_t equals = text.find('=');
  std::string_view head = trim(text.substr(0, equals));
  size_t space = head.rfind(' ');
  parameter.name = std::string(head.substr(space + 1));
  std::string_view type = trim(head.substr(0, space));
  parameter.written = type.find('!') != std::string_view::npos;
  if (type.ends_with("?")) {
    parameter.optional = true;
    type.remove_suffix(1);
  }
  if (type.ends_with("]")) {
    parameter.list = true;
    type = type.substr(0, type.rfind('['));
    if (type.ends_with("?")) {
      parameter.optionalElements = true;
      type.remove_suffix(1);
    }
  }
  parameter.type = typeNamed(type.substr(0, type.find('(')));
  if (equals != std::string_view::npos)
    parameter.otherwise = defaultOf(parameter, trim(text.substr(equals + 1)));
  return parameter;
}

} // namespace

Schema::Schema(std::string_view text) {
  size_t open = text.find('('), close = text.rfind(") ->");
  assert(open != std::string_view::npos && close != std::string_view::npos);
  size_t library = text.find("::");
  size_t from = library < open ? library + 2 : 0;
  name = std::string(text.substr(from, open - from));
  if (name.find('.') == std::string::npos)
    name += ".default";
  if (from)
    name = std::string(text.substr(0, library)) + "." + name;
  for (std::string_view part : splitList(text.substr(open + 1, close - open - 1)))
    if (part != "*" && part != "...") // of those that are refused by name
      parameters.push_back(parameterOf(part));
}

//===--- Fitting -------------------------------------------------------------------===//

namespace {

std::string typeText(const Parameter &parameter) {
  static const char *const names[] = {"a tensor", "an integer", "a float", "a bool",
                                      "a string", "a number",   "a dtype", "a layout"};
  std::string text = names[static_cast<size_t>(parameter.type)];
  return parameter.list ? "a list, each item " + text : text;
}

/// Floats of integers; symbolic ones stay as they are.
bool toFloats(Arg &arg) {
  for (Dim value : arg.ints)
    if (!value.isStatic())
      return false;
  for (Dim value : arg.ints)
    arg.numbers.push_back(static_cast<double>(*value.known()));
  arg.ints.clear();
  arg.kind = Arg::Kind::Float;
  return true;
}

bool fits(const Parameter &parameter, Arg &arg) {
  using Kind = Arg::Kind;
  switch (parameter.type) {
  case Parameter::Type::Tensor: // a Python number in the place of a tensor counts as one
    return arg.kind == Kind::Tensor ||
           (!arg.list && (arg.kind == Kind::Int || arg.kind == Kind::Float || arg.kind == Kind::Bool));
  case Parameter::Type::Int:
    return arg.kind == Kind::Int;
  case Parameter::Type::Float:
    return arg.kind == Kind::Float || (arg.kind == Kind::Int && toFloats(arg));
  case Parameter::Type::Bool:
    return arg.kind == Kind::Bool;
  case Parameter::Type::String:
    return arg.kind == Kind::String;
  case Parameter::Type::Scalar:
    return arg.kind == Kind::Int || arg.kind == Kind::Float || arg.kind == Kind::Bool;
  case Parameter::Type::ScalarType:
    if (arg.kind == Kind::Int && !arg.list && arg.ints.size() == 1) // c10's number
      if (std::optional<DType> type = dtypeOfC10(arg.ints[0].valueOr(-1)))
        arg = Arg::dtype(*type);
    return arg.kind == Kind::Type;
  case Parameter::Type::Ignored:
    return true;
  }
  return false;
}

} // namespace

Arg coerce(const Parameter &parameter, Arg arg) {
  auto refuse = [&] {
    fail("op-argument",
         "the argument '" + parameter.name + "' must be " + typeText(parameter) + ", not " + arg.describe());
  };
  if (arg.isNone()) {
    bool mayBe = parameter.optional || parameter.type == Parameter::Type::Ignored ||
                 (parameter.type == Parameter::Type::Tensor && !parameter.list && parameter.optionalElements);
    if (!mayBe)
      refuse();
    return arg;
  }
  bool empty = arg.list && arg.tensors.empty() && arg.ints.empty() && arg.numbers.empty();
  if (parameter.list && empty) { // an empty list may come as one of any type
    Arg none;
    none.list = true;
    none.kind = parameter.type == Parameter::Type::Tensor  ? Arg::Kind::Tensor
                : parameter.type == Parameter::Type::Float ? Arg::Kind::Float
                                                           : Arg::Kind::Int;
    return none;
  }
  if (parameter.list && !arg.list)
    arg.list = true;
  if (!parameter.list && arg.list && arg.kind != Arg::Kind::Ignored)
    refuse();
  if (!fits(parameter, arg))
    refuse();
  if (parameter.type == Parameter::Type::Tensor && parameter.list && !parameter.optionalElements)
    for (const Val &item : arg.tensors)
      if (!item)
        fail("op-argument", "an item of the argument '" + parameter.name + "' is None");
  return arg;
}

} // namespace dmxc::torchfe
