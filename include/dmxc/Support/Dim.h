//===- Dim.h - a size that is a number or an expression over symbols -*- C++ -*-===//
//
// Shapes that are not known until run time have dims over named symbols ("batch", "seq"). A Dim is a
// polynomial of them with integer coefficients in one canonical form, so that equal sizes compare
// equal whatever way they were computed: `4*(batch*seq)/batch` is `4*seq`. What is no polynomial
// (a division with rest, min, max) is a factor of its own.
//
// Symbols stand for sizes and are never negative; that is all that is assumed of them. Values are
// 64-bit; what leaves them saturates.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dmxc {

struct DimFactor;
struct DimSum;
struct DimTerm;

/// A value type of two words. Expressions are interned for the life of the process, so that copies and
/// comparisons cost nothing; safe to use from many threads.
class Dim {
public:
  /// What a factor of an expression may be besides a symbol. FloorDiv rounds towards minus infinity. Broadcast is
  /// numpy's: the dim that is not 1, of two dims that are equal or one of which is 1.
  enum class Call { FloorDiv, Min, Max, Broadcast };

  Dim(int64_t value = 0) : number(value) {}
  static Dim symbol(std::string_view name);

  bool isStatic() const { return !sum; }
  /// The number, where it is one.
  std::optional<int64_t> known() const { return sum ? std::nullopt : std::optional<int64_t>(number); }
  /// The number, or `otherwise` where it is none.
  int64_t valueOr(int64_t otherwise) const { return sum ? otherwise : number; }
  bool is(int64_t value) const { return !sum && number == value; }
  /// The name of a lone symbol, else nothing.
  std::optional<std::string> symbolName() const;

  /// Same expression. Different ones may still have equal values.
  friend bool operator==(Dim a, Dim b) { return a.number == b.number && a.sum == b.sum; }

  friend Dim operator+(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);
  Dim &operator+=(Dim other) { return *this = *this + other; }
  Dim &operator-=(Dim other) { return *this = *this - other; }
  Dim &operator*=(Dim other) { return *this = *this * other; }

  static Dim floorDiv(Dim a, Dim b);
  static Dim ceilDiv(Dim a, Dim b) { return floorDiv(a + b - 1, b); }
  /// a - floorDiv(a, b) * b.
  static Dim mod(Dim a, Dim b) { return a - floorDiv(a, b) * b; }
  static Dim min(Dim a, Dim b);
  static Dim max(Dim a, Dim b);
  static Dim broadcast(Dim a, Dim b);
  /// a / b where the division leaves no rest for any value of the symbols.
  static std::optional<Dim> divideExactly(Dim a, Dim b);

  /// Whether no value of the symbols makes it negative; false also where that is not seen.
  bool neverNegative() const;
  /// The greatest number that divides every coefficient, and the rest: content * primitive == this. Of 0: {0, 1}.
  std::pair<int64_t, Dim> contentAndPrimitive() const;

  using Values = std::function<std::optional<int64_t>(std::string_view symbol)>;
  /// The value; nothing where a symbol has none, a divisor is 0, dims do not broadcast, or 64 bits are left.
  std::optional<int64_t> evaluate(const Values &values) const;
  /// With a Dim in the place of each symbol.
  Dim substitute(const std::function<Dim(std::string_view symbol)> &values) const;
  /// Inclusive bounds of the value, from those of the symbols.
  struct Bounds {
    int64_t min, max;
  };
  Bounds bounds(const std::function<Bounds(std::string_view symbol)> &symbols) const;
  /// Calls `visit` with each symbol, some of them more than once.
  void forEachSymbol(const std::function<void(std::string_view)> &visit) const;

  /// How a Dim is rebuilt in another form: sums and products of numbers, symbols and calls.
  template <typename T> struct Builder {
    std::function<T(int64_t)> number;
    std::function<T(std::string_view)> symbol;
    std::function<T(T, T)> add, mul;
    std::function<T(Call, T, T)> call;
  };
  template <typename T> T build(const Builder<T> &builder) const;

  /// "4*batch*seq + floordiv(seq, 2)"; names that are no identifiers stand in single quotes.
  std::string str() const;
  static Result<Dim> parse(std::string_view text);

  /// Identity, for hashing.
  std::pair<int64_t, const void *> key() const { return {number, sum}; }

private:
  /// The terms; of a number itself as one, of 0 none.
  std::vector<DimTerm> terms() const;
  /// In any order, equal factors more than once.
  static Dim fromTerms(std::vector<DimTerm> terms);
  static Dim fromCall(Call call, Dim a, Dim b);
  static Dim apply(Call call, Dim a, Dim b);
  static Dim divideCalls(Dim a, int64_t by);

  int64_t number = 0;
  const DimSum *sum = nullptr; ///< null: a number
};

Dim operator+(Dim a, Dim b);
Dim operator-(Dim a, Dim b);
Dim operator*(Dim a, Dim b);

/// A symbol, or a call on two dims. Interned: equal factors are one object.
struct DimFactor {
  std::string name; ///< of a symbol
  std::optional<Dim::Call> call;
  Dim lhs, rhs; ///< of the call
  std::string text;
};

/// coefficient * factors; the factors are in the order of their text.
struct DimTerm {
  int64_t coefficient = 0;
  std::vector<const DimFactor *> factors;
};

/// Terms of falling degree and then in the order of their factors' text; the number, if any, comes last.
struct DimSum {
  std::vector<DimTerm> terms;
  std::string text;
};

/// The name that a call has in texts.
std::string_view dimCallName(Dim::Call call);

template <typename T> T Dim::build(const Builder<T> &builder) const {
  if (!sum)
    return builder.number(number);
  std::optional<T> total;
  for (const DimTerm &term : sum->terms) {
    std::optional<T> product;
    if (term.coefficient != 1 || term.factors.empty())
      product = builder.number(term.coefficient);
    for (const DimFactor *factor : term.factors) {
      T value = factor->call ? builder.call(*factor->call, factor->lhs.build(builder), factor->rhs.build(builder))
                             : builder.symbol(factor->name);
      product = product ? builder.mul(*product, value) : value;
    }
    total = total ? builder.add(*total, *product) : *product;
  }
  return *total;
}

} // namespace dmxc
