//===- Emitter.h - builds DMIR and folds it on the way ----------*- C++ -*-===//
#pragma once

#include "Val.h"

#include "dmxc/Dialect/DMIR/Import.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace dmxc::frontend {

/// How a number becomes a power of two.
enum class ScaleRounding { Up, Down, Nearest };

/// Appends DMIR ops to a block, and to the graphs of branches and loops. An op whose operands are all constant is
/// evaluated instead, when the caller of the frontend handed in a fold function
/// and the result is at most 1 GiB.
class Emitter {
public:
  Emitter(mlir::Block *block, const FoldFunction &fold);

  mlir::MLIRContext *context() const { return builder.getContext(); }
  /// Location of the ops from here on: the node's name.
  void setNode(const std::string &name);
  /// What helps with a node's failure: its own helps, and for dims that would have to be numbers what gives them one.
  std::vector<std::string> helpsOf(const NodeFailure &failure) const;

  // --- Values ---------------------------------------------------------------
  Val fromSSA(mlir::Value value);
  Val constant(Tensor tensor);
  /// A constant of the model file; with a path, its bytes stay there.
  Val stored(Tensor tensor, std::string path, uint64_t offset, std::string name);
  Val scalar(DType type, double value);
  Val scalarLike(const Val &like, double value) { return scalar(like.dtype(), value); }
  Val intScalar(DType type, int64_t value);
  Val ints(llvm::ArrayRef<int64_t> values);
  /// An i64 vector.
  Val sizes(const Dims &values) { return sizes(values, typeOf(DType::I64, Dims{Dim(values.size())})); }
  /// Integers of a static shape.
  Val sizes(const Dims &values, mlir::RankedTensorType type);
  /// Elements of an i64 vector as dims: what they are known to be, or else new symbols, whose values a run takes from
  /// the vector. The run fails unless each is in [0, max].
  Dims dimsOf(const Val &vector, Dim max = kMaxDim);
  /// A scalar.
  Val size(Dim value, DType type = DType::I64) { return cast(sizes({value}, typeOf(DType::I64, {})), type); }
  /// `values` as a constant of the element type; floats are rounded once.
  Val floats(DType type, Shape shape, llvm::ArrayRef<double> values);
  Val splat(DType type, const Dims &dims, double value) { return broadcast(scalar(type, value), dims); }
  /// The SSA value; materialises a constant at the end of the block.
  mlir::Value ssa(const Val &value);

  /// Symbols that stand for long expressions, in an order in which each mentions earlier ones only.
  mlir::ArrayAttr computedDims();

  // --- Ops
  // --------------------------------------------------------------------
  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attr(llvm::StringRef name, bool value);
  mlir::NamedAttribute attr(llvm::StringRef name, double value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<int64_t> value);
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Attribute value);
  /// The numbers of `value`, kDynamic where they have none: those go to the end of `dynamic`, for dimsAttr.
  mlir::NamedAttribute attr(llvm::StringRef name, const Dims &value, Dims &dynamic);
  /// Appends the attribute `dims` where there are any.
  void addDims(llvm::SmallVectorImpl<mlir::NamedAttribute> &attributes, const Dims &dynamic);

  /// An op whose result types are inferred. Fails the node with the verifier's
  /// words when the op is not valid.
  template <typename OpTy>
  std::vector<Val> emitAll(llvm::ArrayRef<Val> operands, llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return build({OpTy::getOperationName(), &inferTypes<OpTy>}, operands, attributes, {});
  }
  template <typename OpTy>
  Val emit(llvm::ArrayRef<Val> operands, llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return emitAll<OpTy>(operands, attributes).front();
  }
  /// An op whose result type is given.
  template <typename OpTy>
  Val emitAs(mlir::RankedTensorType type, llvm::ArrayRef<Val> operands,
             llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return build({OpTy::getOperationName(), nullptr}, operands, attributes, type).front();
  }

  // --- Shorthands
  // -------------------------------------------------------------
  mlir::RankedTensorType typeOf(DType type, const Dims &dims) const;

  Val add(const Val &a, const Val &b) { return emit<dmir::AddOp>({a, b}); }
  Val sub(const Val &a, const Val &b) { return emit<dmir::SubOp>({a, b}); }
  Val mul(const Val &a, const Val &b) { return emit<dmir::MulOp>({a, b}); }
  Val div(const Val &a, const Val &b) { return emit<dmir::DivOp>({a, b}); }
  Val max(const Val &a, const Val &b) { return emit<dmir::MaxOp>({a, b}); }
  Val min(const Val &a, const Val &b) { return emit<dmir::MinOp>({a, b}); }
  /// The same with a number converted to a's type.
  Val add(const Val &a, double b) { return add(a, scalarLike(a, b)); }
  Val mul(const Val &a, double b) { return mul(a, scalarLike(a, b)); }
  Val compare(dmir::Compare kind, const Val &a, const Val &b);
  Val select(const Val &condition, const Val &onTrue, const Val &onFalse) {
    return emit<dmir::SelectOp>({condition, onTrue, onFalse});
  }
  Val cast(const Val &value, DType type, bool saturate = true);
  /// Between f8e8m0 and other types.
  Val castFromScale(const Val &scale, DType type, bool saturate);
  Val castToScale(const Val &value, bool saturate, ScaleRounding rounding);
  Val reshape(const Val &value, const Dims &dims);
  Val broadcast(const Val &value, const Dims &dims);
  Val transpose(const Val &value, llvm::ArrayRef<int64_t> permutation);
  /// The same value where its dims are known to be these, else as a broadcast to them, which a run checks.
  Val expectDims(const Val &value, const Dims &dims) { return broadcast(value, dims); }
  /// Swaps the last two axes.
  Val transposeLast(const Val &value);
  Val slice(const Val &value, const Dims &starts, const Dims &sizes, llvm::ArrayRef<int64_t> steps);
  /// [start, start + size) of one axis.
  Val sliceAxis(const Val &value, int64_t axis, Dim start, Dim size, int64_t step = 1);
  Val concat(llvm::ArrayRef<Val> values, int64_t axis);
  Val gather(const Val &data, const Val &indices, int64_t axis);
  Val pad(const Val &value, const Val &fill, const Dims &low, const Dims &high, llvm::ArrayRef<int64_t> interior = {},
          dmir::PadMode mode = dmir::PadMode::constant);
  Val reduce(dmir::Reduction kind, const Val &value, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Val softmax(const Val &value, int64_t axis, bool log = false);
  Val iota(DType type, const Dims &dims, int64_t axis);
  Val matmul(const Val &a, const Val &b) { return emit<dmir::MatMulOp>({a, b}); }

  // --- Control flow that a run decides (ControlGraphs.cpp)
  // -------------------------------------------------------------
  // What the functions below emit goes into graphs of their own (private functions). Values from around a graph may be
  // used in it: they become its captures. Results whose dims differ from run to run have new symbols there. Poison
  // among the results makes all results poison.

  using Branch = std::function<std::vector<Val>()>;
  /// One of two graphs, by a bool of one element. Fails with the id kBranchesDiffer where an output has another type
  /// or rank in one than in the other.
  std::vector<Val> branch(const Val &condition, const Branch &onTrue, const Branch &onFalse);

  /// The iteration's number (i64), the condition (bool) and the carried values give the next condition, the next
  /// carried values and the scanned values.
  using LoopBody =
      std::function<std::vector<Val>(const Val &iteration, const Val &condition, llvm::ArrayRef<Val> carried)>;
  /// Runs the body while its number is less than `trips` (null: no limit) and the condition (null: true) holds. Gives
  /// the carried values, then the scanned ones with a new first axis. May call `body` several times, until the dims
  /// that change from one iteration to the next are known to.
  std::vector<Val> loop(const Val &trips, const Val &condition, const std::vector<Val> &carried, const LoopBody &body);

  /// Where emission stands, to go back to.
  class Checkpoint;
  Checkpoint checkpoint();
  /// Erases what was emitted since, but for constants. No value made since may be used any more.
  void rollBack(const Checkpoint &checkpoint);

private:
  class OwnedGraph;
  struct Frame;
  struct Kind {
    llvm::StringRef name;
    mlir::LogicalResult (*infer)(mlir::MLIRContext *, mlir::Location, mlir::ValueRange, mlir::DictionaryAttr,
                                 llvm::SmallVectorImpl<mlir::Type> &);
  };
  template <typename OpTy>
  static mlir::LogicalResult inferTypes(mlir::MLIRContext *context, mlir::Location loc, mlir::ValueRange operands,
                                        mlir::DictionaryAttr attributes, llvm::SmallVectorImpl<mlir::Type> &types) {
    if constexpr (OpTy::hasProperties()) {
      typename OpTy::Properties properties;
      if (mlir::failed(OpTy::setPropertiesFromAttr(properties, attributes, [&] { return mlir::emitError(loc); })))
        return mlir::failure();
      return OpTy::inferReturnTypes(context, loc, operands, attributes, mlir::OpaqueProperties(&properties), {}, types);
    } else {
      return OpTy::inferReturnTypes(context, loc, operands, attributes, mlir::OpaqueProperties(nullptr), {}, types);
    }
  }
  std::vector<Val> build(Kind kind, llvm::ArrayRef<Val> operands, llvm::ArrayRef<mlir::NamedAttribute> attributes,
                         mlir::RankedTensorType given);
  mlir::Operation *create(Kind kind, mlir::ValueRange operands, mlir::DictionaryAttr attributes,
                          mlir::RankedTensorType given);
  /// Whether an op moves elements of a type that targets move as bytes; see NarrowElements.cpp.
  bool movesAsBytes(llvm::StringRef op, llvm::ArrayRef<Val> operands) const;
  static bool turnsTable(llvm::StringRef op, llvm::ArrayRef<Val> operands);
  std::vector<Val> moveBytes(Kind kind, llvm::ArrayRef<Val> operands, llvm::ArrayRef<mlir::NamedAttribute> attributes,
                             mlir::RankedTensorType given);
  /// Folds an op over sizes, if that is how far its result is known; see SizeFolding.cpp.
  std::optional<Val> foldSizes(const Kind &kind, llvm::ArrayRef<Val> operands,
                               llvm::ArrayRef<mlir::NamedAttribute> attributes, mlir::RankedTensorType given);
  std::optional<Val> moveSizes(const Kind &kind, llvm::ArrayRef<Val> operands,
                               llvm::ArrayRef<mlir::NamedAttribute> attributes, mlir::RankedTensorType given);
  std::string freshSymbol();
  /// The type with a symbol in the place of each long expression.
  mlir::RankedTensorType withShortDims(mlir::RankedTensorType type);
  std::vector<Val> resultsOf(mlir::Operation *op);
  std::vector<Val> tryFold(mlir::Operation *op, llvm::ArrayRef<Val> operands, std::string &why);

  /// The value of a graph further out, or a constant, in the innermost graph.
  mlir::Value capture(const Val &value);
  /// Makes a constant or sizes into ops of the innermost graph.
  mlir::Value materialise(const Val &value);
  /// A tensor of no elements whose first dim is the symbol: it brings the symbol into a graph.
  Val symbolCarrier(const std::string &symbol);
  /// A new symbol for a dim of a result that only a run knows.
  Dim resultDim();
  std::vector<Val> makeLoop(OwnedGraph &graph, const Val &trips, const Val &condition, const std::vector<Val> &carried,
                            const std::vector<Dims> &dims, const std::vector<Val> &outputs);
  static bool goesOn(const OwnedGraph &graph, const Val &condition);
  /// Erases a graph and those it owns.
  static void eraseGraph(mlir::ModuleOp module, mlir::StringRef name);
  static void eraseGraphsOf(mlir::Operation *op);

  mlir::Block *block;
  mlir::OpBuilder builder;
  mlir::Location loc;
  const FoldFunction &fold;
  std::string node; ///< its name
  std::vector<std::pair<std::string, Dim>> computed;
  llvm::DenseMap<std::pair<int64_t, const void *>, Dim> computedOf; ///< by Dim::key
  std::set<std::string> taken;                                      ///< names of symbols that were made
  std::set<std::string> resultSymbols;                              ///< those that results of branches and loops define
  std::set<std::string> graphNames;
  std::vector<Frame *> frames; ///< graphs being emitted, innermost last
  mlir::Block scratch;         ///< its arguments stand for constants while an op is
                               ///< built to be folded
};

} // namespace dmxc::frontend
