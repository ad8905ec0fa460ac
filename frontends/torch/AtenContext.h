//===- AtenContext.h - one ATen node being imported -------------*- C++ -*-===//
#pragma once

#include "AtenTable.h"
#include "frontends/common/ops/Fourier.h"
#include "frontends/common/ops/Require.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::torchfe {

/// A tensor operand, or a Python number in the place of one: such a number takes part in type promotion only where it
/// is of a higher kind (bool, integer, float) than all tensors.
struct Operand {
  Val value;
  bool wrapped = false;
};

/// What an import function sees: arguments by the names of the signature, the emitter, results to set. Every accessor
/// fails the node with a clear clause when the program does not have what is asked for.
class AtenContext {
public:
  AtenContext(const AtenOp &op, std::vector<Arg> arguments, std::string name, Emitter &e, std::vector<bool> read = {})
      : e(e), name(std::move(name)), op(op), arguments(std::move(arguments)), read(std::move(read)) {}

  Emitter &e;
  const std::string name; ///< of the node
  /// "add.Tensor".
  const std::string &target() const { return op.schema.name; }

  // --- Arguments --------------------------------------------------------------
  const Arg &arg(std::string_view name) const;
  /// Whether the signature has the parameter and the argument is not None.
  bool given(std::string_view name) const;
  Val tensor(std::string_view name) const;
  /// Of a complex tensor, or a real one without an imaginary part.
  ComplexParts parts(std::string_view name) const;
  /// Null for None.
  Val optional(std::string_view name) const;
  /// None as an element is a null value.
  std::vector<Val> tensors(std::string_view name) const;
  Operand operand(std::string_view name) const;

  Dim dim(std::string_view name) const;
  Dims dims(std::string_view name) const;
  /// A number that is known now.
  int64_t integer(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name) const;
  /// `count` numbers; one counts for all, none is `otherwise`.
  std::vector<int64_t> integers(std::string_view name, size_t count, int64_t otherwise) const;
  double number(std::string_view name) const;
  double number(std::string_view name, double otherwise) const { return given(name) ? number(name) : otherwise; }
  std::vector<double> numbers(std::string_view name) const;
  bool flag(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise) const { return given(name) ? flag(name) : otherwise; }
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, const std::string &otherwise) const {
    return given(name) ? text(name) : otherwise;
  }
  /// The dtype argument, or what it is without.
  DType type(std::string_view name, DType otherwise) const;
  /// An axis that counts from the end where it is negative.
  int64_t axis(std::string_view name, int64_t rank) const;
  /// Sorted and unique; None and an empty list are all axes.
  std::vector<int64_t> axes(std::string_view name, int64_t rank) const;

  // --- Types --------------------------------------------------------------------
  /// The element type that torch computes these with.
  static DType promoted(llvm::ArrayRef<Operand> operands);
  /// A number of an integer or bool type as f32, floats as they are.
  Val asFloat(const Val &value) const;
  /// f16 and bf16 as f32: kernels of several steps compute so and round once.
  Val wide(const Val &value) const;
  Val cast(const Val &value, DType type) const { return e.cast(value, type); }
  /// A float scalar of the value's type.
  Val like(const Val &value, double number) const { return e.scalar(value.dtype(), number); }
  /// value != 0, as bool.
  Val truth(const Val &value) const;

  // --- Checks -------------------------------------------------------------------
  void require(bool condition, const std::string &clause) const {
    if (!condition)
      fail("op-argument", clause);
  }
  void requireShape(bool condition, const std::string &clause) const { frontend::requireShape(condition, clause); }
  static int64_t normalizeAxis(int64_t axis, int64_t rank);

  // --- Results --------------------------------------------------------------------
  /// Whether something may read the result. One that nothing reads may be left out, and should be where it takes a
  /// loop.
  bool wanted(size_t i) const { return i >= read.size() || read[i]; }
  void result(size_t i, Val value) { set(i, Arg::tensor(std::move(value))); }
  void result(Val value) { result(0, std::move(value)); }
  void result(const ComplexParts &x) { result(0, x.im ? Val::complexOf(x.re, x.im) : x.re); }
  void result(std::vector<Val> values) { set(0, Arg::tensorList(std::move(values))); }
  void result(Arg value) { set(0, std::move(value)); }
  const std::vector<Arg> &results() const { return produced; }

private:
  void set(size_t i, Arg value) {
    if (produced.size() <= i)
      produced.resize(i + 1);
    produced[i] = std::move(value);
  }
  const AtenOp &op;
  std::vector<Arg> arguments;
  std::vector<bool> read; ///< empty: all of them
  std::vector<Arg> produced;
};

/// What an operator gives.
std::vector<Arg> callOperator(const AtenOp &op, std::vector<Arg> arguments, const std::string &name, Emitter &e);
/// The same; `read` says of each result whether something reads it.
std::vector<Arg> callForSome(const AtenOp &op, std::vector<Arg> arguments, const std::string &name, Emitter &e,
                             std::vector<bool> read);

/// Whether a tensor among an argument's is complex, or the type that it names.
bool hasComplex(const Arg &arg);
/// A tensor of [.., 2] as complex numbers.
ComplexParts partsOf(Emitter &e, const Val &pairs);
/// What an operator gives, with complex tensors among the arguments (ops/Complex.cpp). Fails the node where the
/// operator has no meaning for them here.
std::vector<Arg> callWithComplex(const AtenOp &op, std::vector<Arg> arguments, const std::string &name, Emitter &e);

} // namespace dmxc::torchfe
