//===- Val.h - tensors, sequences and optionals during import ---*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Support/Tensor.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dmxc::frontend {

/// Thrown by the import of one node and caught where nodes are walked.
/// Exceptions stay inside this frontend: over a hundred import functions read
/// as straight code. A failed one leaves dead ops behind in a module that is
/// thrown away.
struct NodeFailure {
  std::string id;   ///< "op-dtype", ...
  std::string text; ///< the clause that failed
  std::vector<std::string> helps = {};
  std::vector<std::string> open = {}; ///< dims that would have to be numbers; what fixes them, the emitter knows
};
inline constexpr const char *kBranchesDiffer = "op-branches";
[[noreturn]] void fail(std::string id, std::string text, std::vector<std::string> helps = {});
/// Fails the node for dims that would have to be numbers.
[[noreturn]] void failOpen(std::string id, std::string text, llvm::ArrayRef<Dim> dims);

/// Dims of a shape, made of numbers or Dims.
class Dims : public llvm::SmallVector<Dim, 6> {
public:
  Dims() = default;
  explicit Dims(size_t rank, Dim dim = 0) : SmallVector(rank, dim) {}
  Dims(std::initializer_list<Dim> dims) : SmallVector(dims) {}
  Dims(llvm::ArrayRef<Dim> dims) : SmallVector(dims) {}
  Dims(const llvm::SmallVectorImpl<Dim> &dims) : SmallVector(dims.begin(), dims.end()) {}
  Dims(llvm::ArrayRef<int64_t> dims) : SmallVector(dims.begin(), dims.end()) {}
  Dims(const std::vector<int64_t> &dims) : SmallVector(dims.begin(), dims.end()) {}
  Dims(const llvm::SmallVectorImpl<int64_t> &dims) : SmallVector(dims.begin(), dims.end()) {}
};
/// Whether shapes may be equal: no two numbers differ.
bool mayEqual(llvm::ArrayRef<Dim> a, llvm::ArrayRef<Dim> b);
inline bool mayEqual(Dim a, Dim b) { return mayEqual(llvm::ArrayRef<Dim>(a), llvm::ArrayRef<Dim>(b)); }
/// "2x3xseq".
std::string dimsString(llvm::ArrayRef<Dim> dims);

/// No dim is larger: keeps all later size computations far from overflow.
constexpr int64_t kMaxDim = int64_t(1) << 46;

/// A tensor during import: an SSA value, a host constant that becomes one only
/// when an op that is not folded uses it, or both. Also a sequence of tensors
/// whose length is known, a complex tensor, or an optional that has no value. Copies share the state.
///
/// `dim`, `shape` and `numElements` are for what needs numbers: they fail the
/// node where a dim is symbolic. What takes symbols too asks for `extent`,
/// `dims` and `elements`.
class Val {
public:
  Val() = default;
  explicit operator bool() const { return state != nullptr; }

  mlir::RankedTensorType type() const { return state->type; }
  mlir::Type elementType() const { return type().getElementType(); }
  DType dtype() const;
  llvm::ArrayRef<int64_t> shape() const;
  int64_t rank() const { return type().getRank(); }
  /// Dim of an axis; a negative axis counts from the end.
  int64_t dim(int64_t axis) const;
  int64_t numElements() const { return elementCount({shape().data(), shape().size()}); }
  Dims dims() const { return Dims(dmir::dimsOf(type())); }
  Dim extent(int64_t axis) const { return dmir::dimOf(type(), axis < 0 ? axis + rank() : axis); }
  Dim elements() const { return dmir::elementsOf(type()); }
  bool hasStaticShape() const { return type().hasStaticShape(); }
  /// "f32[2x3]".
  std::string describe() const;

  bool isConstant() const { return state->isConstant; }
  const Tensor &constant() const { return state->tensor; }
  /// Integers that are known now but for the values of symbols: a constant, or what is computed from dims.
  bool hasSizes() const { return state->sizes || (isConstant() && mlir::isa<mlir::IntegerType>(elementType())); }
  /// Those, in row-major order.
  Dims sizes() const;
  /// Why constant folding stopped here; "" when nothing was tried.
  const std::string &foldNote() const { return state->foldNote; }

  /// The result of a node that failed; nothing that reads it is reported again.
  bool isPoison() const { return state->poison; }
  static Val poison();
  static bool anyPoison(llvm::ArrayRef<Val> values) {
    return llvm::any_of(values, [](const Val &value) { return value.isPoison(); });
  }
  bool isSequence() const { return state->sequence; }
  /// The tensors of a sequence whose length is known.
  const std::vector<Val> &items() const { return state->items; }
  static Val sequenceOf(std::vector<Val> items);
  /// The pieces that make up a sequence whose length a run decides; null for any other value.
  struct Pieces;
  const Pieces *pieces() const { return state->pieces.get(); }
  static Val sequenceOf(Pieces pieces);
  /// An optional without a value. One with a value is that value.
  static Val none();
  bool isNone() const { return state->none; }
  /// A complex tensor is its parts, real tensors of one type and shape, which are its own.
  bool isComplex() const { return state->complex; }
  const Val &real() const { return state->items[0]; }
  const Val &imaginary() const { return state->items[1]; }
  static Val complexOf(const Val &real, const Val &imaginary);
  bool isTensor() const { return !state->sequence && !state->none && !state->complex; }

private:
  friend class Emitter;
  struct State {
    mlir::RankedTensorType type;
    mlir::Value ssa;
    bool isConstant = false, poison = false, sequence = false, none = false, complex = false;
    Tensor tensor;
    std::string path; ///< the file that holds the constant's bytes at `offset`
    uint64_t offset = 0;
    std::string name; ///< of a model tensor, for the constant's location
    std::string foldNote;
    std::vector<Val> items;
    std::shared_ptr<const Pieces> pieces;
    std::optional<Dims> sizes; ///< of integers that are no constant
  };
  std::shared_ptr<State> state;
};

/// What a tensor was split into along an axis.
struct Val::Pieces {
  Val whole;
  int64_t axis = 0;
  bool squeezed = false; ///< each is one element long and lacks the axis
  Val length;            ///< i64[]: how many there are
  Val starts, sizes;     ///< i64[length]: where each begins and how long it is; null where each has one element
};

} // namespace dmxc::frontend
