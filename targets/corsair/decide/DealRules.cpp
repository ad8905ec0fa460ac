//===- DealRules.cpp - which deals an op's result can have ----------------===//

#include "Distribution.h"

#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// Whether rows are gathered, and the indices before `dim` of the result are one.
static bool gathersAlong(dmir::GatherOp op, int64_t dim) {
  ArrayRef<int64_t> indices = shapeOf(op.getIndices());
  if (op.getAxis() != 0 || dim >= static_cast<int64_t>(indices.size()))
    return false;
  return llvm::all_of(indices.take_front(dim), [](int64_t extent) { return extent == 1; });
}

static bool mayDealSums(Operation *op, const Distribution &deal) {
  auto matmul = dyn_cast<dmir::MatMulOp>(op);
  return matmul && deal.packed.contains(matmul.getRhs()) && matmul.getRhs().hasOneUse() && deal.quads > 1 &&
         shapeOf(matmul.getLhs()).back() % (int64_t(64) * deal.quads) == 0;
}

bool dmxc::corsair::mayDeal(Operation *op, int64_t dim, const Distribution &deal) {
  const auto rank = static_cast<int64_t>(shapeOf(op->getResult(0)).size());
  auto notAmong = [&](ArrayRef<int64_t> axes) {
    return rank != static_cast<int64_t>(shapeOf(op->getOperand(0)).size()) || !llvm::is_contained(axes, dim);
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](dmir::MatMulOp matmul) {
        return dim + 1 < rank || (deal.packed.contains(matmul.getRhs()) && matmul.getRhs().hasOneUse());
      })
      .Case([&](dmir::ConvOp conv) {
        const bool own = conv.getGroups() == 1 && conv.getWeights().hasOneUse();
        return !isDepthwise(conv) && (dim == 0 || (dim == 2 && rank > 3) || (dim == 1 && own));
      })
      .Case([&](dmir::ConcatOp concat) { return dim != static_cast<int64_t>(concat.getAxis()); })
      .Case([&](dmir::ReduceOp reduce) { return notAmong(reduce.getAxes()); })
      .Case([&](dmir::SoftmaxOp softmax) { return dim != static_cast<int64_t>(softmax.getAxis()); })
      .Case<dmir::ArgReduceOp, dmir::CumSumOp>([&](auto along) { return dim != static_cast<int64_t>(along.getAxis()); })
      .Case([&](dmir::MaskOp) { return dim + 1 != rank; })
      .Case([&](dmir::NormalizeOp normalize) { return notAmong(normalize.getAxes()); })
      .Case([&](dmir::GatherOp gather) { return gathersAlong(gather, dim); })
      .Case<dmir::PoolOp, dmir::PadOp, dmir::ScatterElementsOp, dmir::ExternOp>([](auto) { return false; })
      .Default([](Operation *) { return true; });
}

/// The part must be the same run of elements behind the same outer dims.
static std::optional<Split> reshapedSplit(dmir::ReshapeOp op, Split split, int quads) {
  ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op.getResult());
  const int64_t outer = ShapedType::getNumElements(from.take_front(split.dim)),
                run = split.part * ShapedType::getNumElements(from.drop_front(split.dim + 1));
  int64_t before = 1;
  for (size_t dim = 0; dim < to.size(); before *= to[dim++])
    if (before == outer && to[dim] % quads == 0 &&
        to[dim] / quads * ShapedType::getNumElements(to.drop_front(dim + 1)) == run)
      return Split{static_cast<int>(dim), to[dim] / quads};
  return std::nullopt;
}

std::optional<Split> dmxc::corsair::viewedSplit(Operation *op, Split split, int quads) {
  if (!split)
    return split;
  return llvm::TypeSwitch<Operation *, std::optional<Split>>(op)
      .Case([&](dmir::TransposeOp transpose) {
        ArrayRef<int64_t> permutation = transpose.getPermutation();
        return Split{static_cast<int>(llvm::find(permutation, split.dim) - permutation.begin()), split.part};
      })
      .Case([&](dmir::ReshapeOp reshape) { return reshapedSplit(reshape, split, quads); })
      .Case([&](dmir::SliceOp slice) -> std::optional<Split> {
        // A quad's part of the result is in its part of the operand where the slice leaves that dim as it is: neither
        // shorter nor turned round.
        const bool kept = shapeOf(slice.getResult())[split.dim] == shapeOf(slice.getInput())[split.dim];
        return kept && slice.getSteps()[split.dim] == 1 ? std::optional(split) : std::nullopt;
      })
      .Case([&](dmir::BroadcastOp broadcast) {
        const size_t missing = shapeOf(broadcast.getResult()).size() - shapeOf(broadcast.getInput()).size();
        return Split{split.dim + static_cast<int>(missing), split.part};
      })
      .Default([](Operation *) { return std::nullopt; });
}

bool dmxc::corsair::isView(Operation *op) {
  return isa<dmir::TransposeOp, dmir::ReshapeOp, dmir::SliceOp, dmir::BroadcastOp>(op);
}

std::optional<std::string> dmxc::corsair::unfit(Operation *op, lldmir::DealAttr attribute, const Distribution &deal) {
  using Answer = std::optional<std::string>;
  if (attribute.isWhole())
    return std::nullopt;
  if (isa<dmir::ConstantOp>(op) || makesNothing(op))
    return "every quad has all of it";
  if (attribute.isSums())
    return mayDealSums(op, deal) ? std::nullopt
                                 : Answer("sums are those of a product by a constant of its own whose blocks along K "
                                          "are dealt to all quads");
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  const int64_t dim = attribute.getDim();
  if (dim >= static_cast<int64_t>(shape.size()))
    return "the value has " + std::to_string(shape.size()) + " dims";
  if (deal.quads < 2 || shape[dim] % deal.quads)
    return "dim " + std::to_string(dim) + " has " + std::to_string(shape[dim]) + " elements";
  return mayDeal(op, dim, deal) ? std::nullopt : Answer("each quad needs all of that dim");
}
