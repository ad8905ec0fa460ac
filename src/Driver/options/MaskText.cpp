//===- MaskText.cpp - rules of masks as users write them ------------------===//
#include "dmxc/Driver/MaskText.h"

#include "OptionValues.h"

#include "dmxc/Support/Visible.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;

namespace dmxc::driver {

namespace {

constexpr unsigned kMostDepth = 64;               ///< of brackets
constexpr int64_t kMostNumber = int64_t(1) << 40; ///< that rules count with

/// Recursive descent. The first fault stays; what is parsed behind it does not count.
class Parser {
public:
  explicit Parser(const std::string &text) : text(text) { next(); }

  Result<MaskText> parse() {
    MaskText result;
    expect("(", "a rule begins with the axes of the input: (i, j): j <= i");
    do {
      if (!isName() || llvm::is_contained(result.axes, token))
        failAt(start, isName() ? "this axis is there twice" : "expected the name of an axis");
      result.axes.push_back(token.str());
      next();
    } while (take(","));
    expect(")", "expected ',' or ')'");
    expect(":", "expected ':' and the rule");
    axes = result.axes;
    result.rule = either(0);
    if (!token.empty())
      failAt(start, "expected 'and', 'or', or the end");
    if (isSum(result.rule))
      failAt(text.size(), "expected a comparison");
    if (fault.empty())
      return result;
    return usageError(fault + "\n  " + visible(text) + "\n  " + std::string(place, ' ') + "^");
  }

private:
  MaskTerm either(unsigned depth) {
    MaskTerm left = both(depth);
    while (take("or"))
      left = join(MaskTerm::Or, left, both(depth));
    return left;
  }

  MaskTerm both(unsigned depth) {
    MaskTerm left = negated(depth);
    while (take("and"))
      left = join(MaskTerm::And, left, negated(depth));
    return left;
  }

  MaskTerm negated(unsigned depth) {
    if (!take("not"))
      return comparison(depth);
    MaskTerm inner = depth < kMostDepth ? negated(depth + 1) : tooDeep();
    wantTruth(inner);
    return {MaskTerm::Not, 0, {inner}};
  }

  /// One, or several in a chain: 0 <= i - j < 512.
  MaskTerm comparison(unsigned depth) {
    MaskTerm left = sum(depth), all;
    bool isFirst = true;
    for (std::optional<StringRef> sign; (sign = relation()); isFirst = false) {
      wantNumber(left);
      MaskTerm right = sum(depth);
      wantNumber(right);
      MaskTerm one = related(*sign, left, right);
      all = isFirst ? one : join(MaskTerm::And, all, one);
      left = right;
    }
    return isFirst ? left : all;
  }

  static MaskTerm related(StringRef sign, const MaskTerm &left, const MaskTerm &right) {
    if (sign == "==" || sign == "!=")
      return {sign == "==" ? MaskTerm::Equal : MaskTerm::NotEqual, 0, {left, right}};
    MaskTerm::Kind kind = sign.size() == 2 ? MaskTerm::LessEqual : MaskTerm::Less;
    if (sign[0] == '<')
      return {kind, 0, {left, right}};
    return {kind, 0, {right, left}};
  }

  std::optional<StringRef> relation() {
    for (StringRef sign : {"<=", "<", ">=", ">", "==", "!="})
      if (take(sign))
        return sign;
    return std::nullopt;
  }

  MaskTerm sum(unsigned depth) {
    MaskTerm left = take("-") ? minus(product(depth)) : product(depth);
    while (token == "+" || token == "-") {
      bool adds = token == "+";
      next();
      wantNumber(left);
      MaskTerm right = product(depth);
      wantNumber(right);
      left = {adds ? MaskTerm::Add : MaskTerm::Sub, 0, {left, right}};
    }
    return left;
  }

  MaskTerm minus(const MaskTerm &term) {
    wantNumber(term);
    return {MaskTerm::Sub, 0, {MaskTerm(), term}};
  }

  MaskTerm product(unsigned depth) {
    MaskTerm left = atom(depth);
    while (token == "*" || token == "//" || token == "%") {
      StringRef sign = token;
      size_t at = start;
      next();
      wantNumber(left);
      size_t behind = start;
      MaskTerm right = atom(depth);
      bool isNumber = right.kind == MaskTerm::Number;
      if (sign == "*" ? !isNumber && left.kind != MaskTerm::Number : !isNumber || right.number <= 0)
        failAt(behind, sign == "*" ? "one side of '*' is a number"
                                   : "what is behind '" + sign.str() + "' is a number from 1 on");
      if (sign == "//" && mayBeNegative(left))
        failAt(at, "what is divided may be negative; '%' takes that, and sums of axes and numbers are not");
      left = {sign == "*" ? MaskTerm::Mul : sign == "%" ? MaskTerm::Mod : MaskTerm::FloorDiv, 0, {left, right}};
    }
    return left;
  }

  MaskTerm atom(unsigned depth) {
    if (depth >= kMostDepth)
      return tooDeep();
    if (take("(")) {
      MaskTerm inner = either(depth + 1);
      expect(")", "expected ')'");
      return inner;
    }
    if (take("|")) {
      MaskTerm inner = sum(depth + 1);
      wantNumber(inner);
      expect("|", "expected '|'");
      return {MaskTerm::Abs, 0, {inner}};
    }
    MaskTerm term;
    if (auto axis = llvm::find(axes, token); axis != axes.end()) {
      term = {MaskTerm::Axis, axis - axes.begin(), {}};
    } else if (token.empty() || !llvm::isDigit(token[0])) {
      failAt(start, isName() ? "'" + token.str() + "' is no axis" : "expected an axis or a number");
      return term;
    } else if (token.getAsInteger(10, term.number) || term.number > kMostNumber) {
      failAt(start, "numbers are at most 2^40");
    }
    next();
    return term;
  }

  static bool isSum(const MaskTerm &term) { return term.kind < MaskTerm::Less; }

  static bool mayBeNegative(const MaskTerm &term) {
    return term.kind == MaskTerm::Sub ||
           (term.kind != MaskTerm::Mod && term.kind != MaskTerm::Abs && llvm::any_of(term.operands, mayBeNegative));
  }

  MaskTerm join(MaskTerm::Kind kind, const MaskTerm &left, const MaskTerm &right) {
    wantTruth(left), wantTruth(right);
    return {kind, 0, {left, right}};
  }

  void wantTruth(const MaskTerm &term) {
    if (isSum(term))
      failAt(start, "expected a comparison before this");
  }
  void wantNumber(const MaskTerm &term) {
    if (!isSum(term))
      failAt(start, "what is before this is no number");
  }
  MaskTerm tooDeep() {
    failAt(start, "more than 64 brackets lie in one another");
    token = "";
    return {};
  }

  bool isName() const {
    return !token.empty() && (llvm::isAlpha(token[0]) || token[0] == '_') && token != "and" && token != "or" &&
           token != "not";
  }

  bool take(StringRef wanted) {
    if (token != wanted)
      return false;
    next();
    return true;
  }

  void expect(StringRef wanted, const std::string &otherwise) {
    if (!take(wanted))
      failAt(start, otherwise);
  }

  void failAt(size_t at, const std::string &why) {
    if (fault.empty())
      fault = why, place = at;
  }

  /// Names and numbers, signs of two characters and of one; "" at the end.
  void next() {
    while (end < text.size() && text[end] == ' ')
      ++end;
    start = end;
    auto isWord = [&](size_t at) { return at < text.size() && (llvm::isAlnum(text[at]) || text[at] == '_'); };
    while (isWord(end))
      ++end;
    if (end == start && end < text.size()) {
      StringRef two = StringRef(text).substr(start, 2);
      end += llvm::is_contained({"<=", ">=", "==", "!=", "//"}, two) ? 2 : 1;
    }
    token = fault.empty() ? StringRef(text).slice(start, end) : StringRef();
  }

  const std::string &text;
  size_t start = 0, end = 0, place = 0; ///< of the token; of the fault
  StringRef token;
  std::vector<std::string> axes;
  std::string fault;
};

} // namespace

Result<MaskText> parseMaskText(const std::string &text) { return Parser(text).parse(); }

Result<std::pair<std::string, std::string>> parsePromise(const std::string &text) {
  size_t equals = text.find("=(");
  if (equals == std::string::npos || equals == 0)
    return usageError("--mask " + text + ": expected INPUT=RULE, for example 'mask=(b, h, i, j): j <= i'");
  std::pair<std::string, std::string> promise(text.substr(0, equals), text.substr(equals + 1));
  if (Result<MaskText> rule = parseMaskText(promise.second); !rule)
    return usageError("--mask " + visible(promise.first) + ": " + rule.error().message);
  return promise;
}

} // namespace dmxc::driver
