//===- Distribution.h - what each quad computes -----------------*- C++ -*-===//
//
// The quads of a team run the same program. A value is either whole in every quad's GM, or each quad has a share of it
// along one dim, and room for that alone: a value is made whole, in a buffer of its own, by sending all shares to all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../dialect/LLDMIR/LLDMIR.h"

#include "schemas/corsair/Machine.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Result.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <optional>
#include <string>

namespace dmxc::corsair {

namespace hw = dmx::corsair;

class KeptColumns;

/// Quad q has elements q * part .. (q + 1) * part - 1 of dim `dim`; dim -1: all of them.
struct Split {
  int dim = -1;
  int64_t part = 0;
  bool folded = false; ///< at the host's boundary: elements q * part / 2 on, and as many from the other end
  explicit operator bool() const { return dim >= 0; }
  bool operator==(const Split &) const = default;
};

/// The sizes of teams to choose from, the preferred one first: `most` quads, and fewer, for shares are equal and dims
/// may divide by fewer only; 0: all sizes, up to all quads of the machine.
llvm::SmallVector<int> teamSizes(const hw::Machine &machine, int most);

struct Distribution {
  int quads = 1;
  /// Of each value when it is defined, of an argument when it has been fetched.
  llvm::DenseMap<mlir::Value, Split> of;
  /// Operands that are made whole before an op.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> gathers;
  /// Products whose constant right operand is dealt out by columns: the columns of a quad.
  llvm::DenseMap<mlir::Operation *, int64_t> columns;
  /// Products by a constant that are dealt out along K: the rows of it that a quad has.
  llvm::DenseMap<mlir::Operation *, int64_t> depth;
  /// Products whose only reader adds a constant vector of the columns to them, and that reader: the vector is in OB
  /// before the sums are.
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> biases;
  /// Softmaxes of scores that are computed band by band (Bands.h).
  llvm::DenseSet<mlir::Operation *> bands;
  /// Values whose shares are folded: inputs, results, and what is computed of the one for the other (Bands.h).
  llvm::DenseSet<mlir::Value> folded;
  /// Constant arguments that are packed as tiles.
  llvm::DenseSet<mlir::Value> packed;
  /// Of those that have zeros enough, while a deal is decided: where other numbers are.
  llvm::DenseMap<mlir::Value, std::shared_ptr<const KeptColumns>> zeros;
  /// Estimate for one run; once a team is decided, with what its quads fetch and give back.
  double clocks = 0;

  Split at(mlir::Value value) const { return of.lookup(value); }
  /// As an attribute, of what is dealt.
  lldmir::DealAttr dealOf(mlir::Value value) const {
    return lldmir::DealAttr::get(value.getContext(), at(value).dim, quads, folded.contains(value));
  }

  /// As attributes of the ops: lldmir.deal, lldmir.gather, lldmir.bias, lldmir.bands.
  void write(mlir::Block *body) const;
  /// The deals of arguments that the host brings: argument number -> lldmir.deal.
  mlir::DictionaryAttr inputDeals(mlir::Block *body, llvm::function_ref<bool(mlir::BlockArgument)> isInput) const;
  /// From the attributes, which are those that partition decided. `inputs`: what inputDeals gave; may be null.
  /// `isPacked`: the argument is a constant.
  static Result<Distribution> read(mlir::Block *body, int quads, mlir::DictionaryAttr inputs,
                                   llvm::function_ref<bool(mlir::BlockArgument)> isPacked);
};

/// What a deal gives each of so many quads of a value of this shape; nothing where it is null, or gives no equal
/// shares.
Split splitOf(lldmir::DealAttr deal, llvm::ArrayRef<int64_t> shape, int64_t quads);
/// The shape of a share; of what is not split the shape itself.
llvm::SmallVector<int64_t> shareOf(llvm::ArrayRef<int64_t> shape, Split split);

/// How many elements a value of a static shape has.
inline int64_t elementsOf(mlir::Value value) { return mlir::ShapedType::getNumElements(shapeOf(value)); }
/// Whether an op's results have no elements: there is nothing to compute.
bool makesNothing(mlir::Operation *op);
/// A convolution of each channel on its own, which the vector device computes.
bool isDepthwise(dmir::ConvOp conv);
/// Whether a constant is a right operand of products or the weights of convolutions in all of its uses, and the same
/// tiles serve all of them.
bool servesAsTiles(mlir::Value constant);

/// Whether an argument crosses from the host as tiles, quantised from the host's numbers: a matrix that the host brings
/// and one product by packed weights reads.
bool crossesAsTiles(mlir::BlockArgument argument, const llvm::DenseSet<mlir::Value> &packed);

/// The operand of an addition that is a constant vector of the columns of its other operand, a product or convolution
/// that nothing else reads; null if there is none.
mlir::OpOperand *biasOf(mlir::Operation *add, llvm::function_ref<bool(mlir::Value)> isConstant);

/// Whether each quad can compute a part of that dim of an op's result, of whatever its operands are.
bool mayDeal(mlir::Operation *op, int64_t dim, const Distribution &deal);
/// A view moves nothing: it has what its operand has.
bool isView(mlir::Operation *op);
/// What a view has of an operand that is dealt so; nullopt where it needs all of it.
std::optional<Split> viewedSplit(mlir::Operation *view, Split split, int quads);
/// Why no op of this kind and shape can be dealt so: a clause; nullopt if it can.
std::optional<std::string> unfit(mlir::Operation *op, lldmir::DealAttr attribute, const Distribution &deal);
/// Whether a product by a constant that is dealt so has columns of its own in each quad.
bool dealsColumns(mlir::Operation *op, Split split, const llvm::DenseSet<mlir::Value> &packed);

} // namespace dmxc::corsair
