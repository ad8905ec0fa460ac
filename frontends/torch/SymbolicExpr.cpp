//===- SymbolicExpr.cpp - sizes as sympy writes them ----------------------===//
#include "SymbolicExpr.h"

#include <cctype>
#include <charconv>

namespace dmxc::torchfe {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxText = 10000, kMaxPower = 16;
/// Characters of a value: each step may double them.
constexpr size_t kMaxValue = 2000;

struct Failure {
  std::string text;
};

/// sum := term (('+' | '-') term)*, term := factor (('*' | '//' | '%') factor)*, factor := '-' factor | atom ('**'
/// factor)?, atom := number | name | name '(' arguments ')' | '(' sum ')'.
class Parser {
public:
  explicit Parser(std::string_view text) : text(text) {}

  Dim parse() {
    Dim value = sum(0);
    skip();
    if (at != text.size())
      fail("'" + std::string(text.substr(at, 20)) + "' stands behind it");
    return value;
  }

private:
  [[noreturn]] void fail(const std::string &what) const { throw Failure{what}; }
  void skip() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool take(std::string_view token) {
    skip();
    if (!text.substr(at).starts_with(token))
      return false;
    at += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token))
      fail("'" + std::string(token) + "' is missing");
  }

  Dim sum(int depth) {
    if (depth > kMaxDepth)
      fail("it is nested too deep");
    Dim value = term(depth);
    for (;;) {
      if (take("+"))
        value = bounded(value + term(depth));
      else if (take("-"))
        value = bounded(value - term(depth));
      else
        return value;
    }
  }
  Dim term(int depth) {
    Dim value = factor(depth);
    for (;;) {
      skip();
      if (text.substr(at).starts_with("**"))
        fail("a power of a power");
      if (take("*"))
        value = bounded(value * factor(depth));
      else if (take("//"))
        value = bounded(Dim::floorDiv(value, divisor(factor(depth))));
      else if (take("%"))
        value = bounded(Dim::mod(value, divisor(factor(depth))));
      else
        return value;
    }
  }
  Dim factor(int depth) {
    if (depth > kMaxDepth)
      fail("it is nested too deep");
    if (take("-"))
      return Dim(0) - factor(depth + 1);
    Dim value = atom(depth);
    return take("**") ? power(value, factor(depth + 1)) : value;
  }

  Dim bounded(Dim value) const {
    if (!value.isStatic() && value.str().size() > kMaxValue)
      fail("it becomes too complex");
    return value;
  }
  Dim divisor(Dim value) const {
    if (value.is(0))
      fail("a division by 0");
    return value;
  }
  Dim power(Dim base, Dim exponent) const {
    std::optional<int64_t> count = exponent.known();
    if (!count || *count < 0 || *count > static_cast<int64_t>(kMaxPower))
      fail("a power with the exponent " + exponent.str());
    Dim value = 1;
    for (int64_t i = 0; i < *count; ++i)
      value = bounded(value * base);
    return value;
  }

  std::string_view word() {
    size_t from = at;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_' || text[at] == '.'))
      ++at;
    return text.substr(from, at - from);
  }
  Dim number(std::string_view digits) const {
    int64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
      fail("the number '" + std::string(digits) + "'");
    return value;
  }
  std::string quoted() {
    skip();
    if (at >= text.size() || (text[at] != '\'' && text[at] != '"'))
      fail("a quoted name is missing");
    size_t end = text.find(text[at], at + 1);
    if (end == std::string_view::npos || end == at + 1)
      fail("a quoted name does not end");
    std::string name(text.substr(at + 1, end - at - 1));
    at = end + 1;
    return name;
  }

  Dim atom(int depth) {
    skip();
    if (take("(")) {
      Dim value = sum(depth + 1);
      expect(")");
      return value;
    }
    std::string_view name = word();
    if (name.empty())
      fail("a value is missing");
    if (std::isdigit(static_cast<unsigned char>(name[0])))
      return number(name);
    if (!take("("))
      return Dim::symbol(name);
    if (name == "Symbol")
      return symbol();
    if (name == "Integer") {
      bool negative = take("-");
      skip();
      Dim value = number(word());
      expect(")");
      return negative ? Dim(0) - value : value;
    }
    std::vector<Dim> arguments;
    while (!take(")")) {
      if (!arguments.empty())
        expect(",");
      arguments.push_back(sum(depth + 1));
    }
    return call(name, arguments);
  }

  /// Symbol('s0', positive=True, integer=True): the assumptions are ignored.
  Dim symbol() {
    std::string name = quoted();
    while (take(",")) {
      skip();
      word();
      expect("=");
      skip();
      word();
    }
    expect(")");
    return Dim::symbol(name);
  }

  Dim call(std::string_view name, const std::vector<Dim> &arguments) const {
    auto two = [&] {
      if (arguments.size() != 2)
        fail(std::string(name) + " of " + std::to_string(arguments.size()) + " arguments");
    };
    auto fold = [&](Dim start, Dim (*join)(Dim, Dim)) {
      for (Dim argument : arguments)
        start = bounded(join(start, argument));
      return start;
    };
    if (arguments.empty())
      fail(std::string(name) + " of nothing");
    if (name == "Add")
      return fold(0, [](Dim a, Dim b) { return a + b; });
    if (name == "Mul")
      return fold(1, [](Dim a, Dim b) { return a * b; });
    if (name == "Max")
      return fold(arguments[0], Dim::max);
    if (name == "Min")
      return fold(arguments[0], Dim::min);
    if (name == "Identity" || name == "TruncToInt" || name == "ToFloat")
      return arguments[0];
    if (name == "FloorDiv" || name == "CleanDiv" || name == "CeilDiv" || name == "Mod" || name == "PythonMod" ||
        name == "Pow" || name == "PowByNatural") {
      two();
      if (name.starts_with("Pow"))
        return power(arguments[0], arguments[1]);
      divisor(arguments[1]);
      return bounded(name.ends_with("Mod") ? Dim::mod(arguments[0], arguments[1])
                     : name == "CeilDiv"   ? Dim::ceilDiv(arguments[0], arguments[1])
                                           : Dim::floorDiv(arguments[0], arguments[1]));
    }
    fail("the function '" + std::string(name.substr(0, 60)) + "'");
  }

  std::string_view text;
  size_t at = 0;
};

} // namespace

std::optional<Dim> parseSize(const SymInt &size, std::string &problem) {
  if (size.expression.empty())
    return Dim(size.number);
  problem = "the size '" + size.expression.substr(0, 200) + "' cannot be read: ";
  if (size.expression.size() > kMaxText) {
    problem += "it is too long";
    return std::nullopt;
  }
  try {
    return Parser(size.expression).parse();
  } catch (const Failure &failure) {
    problem += failure.text;
    return std::nullopt;
  }
}

} // namespace dmxc::torchfe
