//===- Schema.h - operator signatures and their arguments -------*- C++ -*-===//
#pragma once

#include "../Shared.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc::torchfe {

/// What a parameter of an operator gets, or a name of a graph stands for. Numbers that a run computes are tensors of
/// rank 0 in `tensors`.
struct Arg {
  enum class Kind { None, Tensor, Int, Float, Bool, String, Type, Ignored, Graph };
  Kind kind = Kind::None;
  bool list = false;
  std::vector<Val> tensors;    ///< of Tensor, a null one for None; of Float and Bool where `numbers` is empty
  Dims ints;                   ///< of Int
  std::vector<double> numbers; ///< of Float, and of Bool as 0 and 1
  std::string text;            ///< of String
  DType type = DType::F32;     ///< of Type
  bool isComplex = false;      ///< of Type: `type` is that of the parts
  /// Of each tensor the hidden axes in front of its own, by the levels of torch.vmap (Batching.cpp); none is empty.
  std::vector<std::vector<int64_t>> levels;
  const void *graph = nullptr; ///< of Graph: what the importer knows

  static Arg none() { return {}; }
  static Arg tensor(Val value);
  static Arg tensorList(std::vector<Val> values);
  static Arg integer(Dim value);
  static Arg intList(Dims values);
  static Arg number(double value);
  static Arg computed(Kind kind, Val value);
  static Arg flag(bool value);
  static Arg string(std::string value);
  static Arg dtype(DType value, bool isComplex = false);
  static Arg ignored();

  bool isNone() const { return kind == Kind::None; }
  /// "a list of integers": for messages.
  std::string describe() const;
};

/// One parameter of an operator's signature.
struct Parameter {
  enum class Type { Tensor, Int, Float, Bool, String, Scalar, ScalarType, Ignored };
  std::string name;
  Type type = Type::Tensor;
  bool optional = false; ///< may be None
  bool list = false;
  bool optionalElements = false; ///< Tensor?[]
  bool written = false;          ///< Tensor(a!)
  std::optional<Arg> otherwise;  ///< the default
};

/// "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" taken apart.
struct Schema {
  std::string name; ///< "add.Tensor"; "relu.default" where there is no overload
  std::vector<Parameter> parameters;

  explicit Schema(std::string_view text);
};

/// The argument as the parameter's type wants it: a number alone becomes a list, an integer a float. Fails the node
/// where it does not fit.
Arg coerce(const Parameter &parameter, Arg argument);

} // namespace dmxc::torchfe
