//===- RoundWeights.cpp - constant weights as integers in blocks ----------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

namespace dmxc {
#define GEN_PASS_DEF_ROUNDWEIGHTS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// A constant that an op multiplies by, or gathers rows of, and its axis that has blocks.
struct Weights {
  Value constant; ///< of a dmir.constant
  int64_t axis = 0;
  bool turned = false; ///< the op reads the last two axes the other way round
};

struct Reader {
  Operation *op;
  Weights weights;
  BlockRounding rounding;
};

std::string errorText(double error) { return llvm::formatv("{0:e2}", error).str(); }

bool swapsLastTwo(ArrayRef<int64_t> permutation) {
  const auto rank = static_cast<int64_t>(permutation.size());
  for (int64_t i = 0; i < rank; ++i)
    if (permutation[i] != (i < rank - 2 ? i : 2 * rank - 3 - i))
      return false;
  return rank >= 2;
}

std::optional<Weights> weightsOf(Operation *op) {
  auto gather = dyn_cast<dmir::GatherOp>(op);
  Value value = op->getOperand(gather ? 0 : 1);
  Weights found;
  if (auto transpose = value.getDefiningOp<dmir::TransposeOp>();
      transpose && !gather && swapsLastTwo(transpose.getPermutation()))
    value = transpose.getInput(), found.turned = true;
  found.constant = value;
  const auto type = cast<RankedTensorType>(value.getType());
  const int64_t rank = type.getRank();
  const bool isGrouped = isa<dmir::GroupedMatMulOp>(op);
  Type element = type.getElementType();
  if (!dmir::isConstant(value) || rank != (isGrouped ? 3 : 2) || type.getEncoding() ||
      !(element.isF32() || element.isF16() || element.isBF16()))
    return std::nullopt;
  found.axis = gather || found.turned ? rank - 1 : rank - 2;
  return found;
}

/// A weight as it was rounded, with the constants that it is made of.
struct Rounded {
  RoundedBlocks blocks;
  Value codes, scales, zeros;
  dmir::DequantizeOp make(OpBuilder &b, Location loc, RankedTensorType type, ValueRange operands,
                          const BlockRounding &rounding, int64_t axis) const {
    return dmir::DequantizeOp::create(b, loc, type, operands[0], operands[1], zeros ? operands[2] : Value(),
                                      rounding.bits, axis, rounding.block, rounding.zero());
  }
};

struct RoundWeights : dmxc::impl::RoundWeightsBase<RoundWeights> {
  explicit RoundWeights(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    std::vector<Reader> readers = findReaders();
    SmallVector<std::pair<Operation *, double>> beyond;
    size_t met = 0;
    for (const Reader &reader : readers) {
      Rounded *rounded = roundedOf(reader);
      if (!rounded)
        continue;
      if (context.maxError && rounded->blocks.error > *context.maxError) {
        beyond.emplace_back(reader.op, rounded->blocks.error);
        continue;
      }
      ++met;
      replace(reader, *rounded);
    }
    for (auto constant : llvm::make_early_inc_range(getOperation().getOps<dmir::ConstantOp>()))
      if (constant.use_empty())
        constant.erase();
    report(beyond, met);
  }

private:
  std::vector<Reader> findReaders() {
    std::vector<Reader> readers;
    getOperation().walk([&](Operation *op) {
      if (!isa<dmir::MatMulOp, dmir::GroupedMatMulOp, dmir::GatherOp>(op))
        return;
      const TargetBackend *target = context.responsible(op);
      std::optional<BlockRounding> rounding = target ? target->roundsWeights(op) : std::nullopt;
      std::optional<Weights> weights = rounding ? weightsOf(op) : std::nullopt;
      if (weights && !context.keepsPrecision(op))
        readers.push_back({op, *weights, *rounding});
    });
    return readers;
  }

  /// Null where the weights cannot be kept so. What several ops read is rounded once.
  Rounded *roundedOf(const Reader &reader) {
    auto key = std::make_tuple(reader.weights.constant.getAsOpaquePointer(), reader.weights.axis);
    auto [known, isNew] = rounded.try_emplace(key);
    if (!isNew)
      return known->second ? &*known->second : nullptr;
    std::optional<Tensor> numbers = dmir::constantTensor(reader.weights.constant);
    std::optional<RoundedBlocks> blocks =
        numbers ? roundInBlocks(*numbers, reader.weights.axis, reader.rounding) : std::nullopt;
    // Rows that are gathered are lines.
    if (!blocks || (isa<dmir::GatherOp>(reader.op) && blocks->turned))
      return nullptr;
    known->second = Rounded{std::move(*blocks), {}, {}, {}};
    return &*known->second;
  }

  /// Constants are made once somebody reads them: what stays as it is costs no memory.
  static void makeConstants(Rounded &weights, Value at) {
    if (weights.codes)
      return;
    OpBuilder b(at.getContext());
    b.setInsertionPointAfterValue(at);
    auto constant = [&](const Tensor &tensor) -> Value {
      return dmir::ConstantOp::create(b, at.getLoc(), dmir::constantAttr(tensor, at.getContext()));
    };
    auto type = cast<RankedTensorType>(at.getType());
    weights.codes = constant(weights.blocks.codes);
    weights.codes.getDefiningOp()->setAttr(dmir::kRoundedAttr,
                                           dmir::roundedFact(at.getContext(),
                                                             type.getNumElements() * type.getElementTypeBitWidth() / 8,
                                                             weights.blocks.bytes(), weights.blocks.error));
    weights.scales = constant(weights.blocks.scales);
    if (!weights.blocks.zeros.empty())
      weights.zeros = constant(weights.blocks.zeros);
  }

  static void replace(const Reader &reader, Rounded &weights) {
    makeConstants(weights, reader.weights.constant);
    SmallVector<Value> operands{weights.codes, weights.scales};
    if (weights.zeros)
      operands.push_back(weights.zeros);
    if (auto gather = dyn_cast<dmir::GatherOp>(reader.op))
      replaceRows(gather, reader, weights, operands);
    else
      replaceProduct(reader, weights, operands);
  }

  /// Only the rows that a run asks for become floats.
  static void replaceRows(dmir::GatherOp gather, const Reader &reader, const Rounded &weights,
                          MutableArrayRef<Value> operands) {
    OpBuilder b(gather);
    for (Value &operand : operands) {
      Operation *rows = b.clone(*gather);
      rows->setOperand(0, operand);
      SmallVector<Dim> dims = dmir::dimsOf(gather.getResult());
      auto type = cast<RankedTensorType>(operand.getType());
      dims.back() = type.getDimSize(1);
      rows->getResult(0).setType(dmir::tensorOf(dims, type.getElementType()));
      operand = rows->getResult(0);
    }
    auto type = cast<RankedTensorType>(gather.getResult().getType());
    auto whole = weights.make(b, gather.getLoc(), type, operands, reader.rounding, type.getRank() - 1);
    gather.getResult().replaceAllUsesWith(whole.getResult());
    gather.erase();
  }

  static Value asType(OpBuilder &b, Location loc, Value value, Type element) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getElementType() == element)
      return value;
    return dmir::CastOp::create(b, loc, RankedTensorType::get(type.getShape(), element, type.getEncoding()), value);
  }

  /// Computed in f32 whatever the types are.
  static void replaceProduct(const Reader &reader, const Rounded &weights, ValueRange operands) {
    Operation *op = reader.op;
    OpBuilder b(op);
    auto constant = cast<RankedTensorType>(reader.weights.constant.getType());
    SmallVector<int64_t> shape(constant.getShape());
    if (weights.blocks.turned)
      std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    Value right = weights.make(b, op->getLoc(), RankedTensorType::get(shape, b.getF32Type()), operands, reader.rounding,
                               weights.blocks.axis);
    if (weights.blocks.turned != reader.weights.turned) {
      SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, constant.getRank()));
      std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
      right = dmir::TransposeOp::create(
          b, op->getLoc(),
          RankedTensorType::get(cast<RankedTensorType>(op->getOperand(1).getType()).getShape(), b.getF32Type()), right,
          permutation);
    }
    Operation *product = b.clone(*op);
    product->setOperand(0, asType(b, op->getLoc(), op->getOperand(0), b.getF32Type()));
    product->setOperand(1, right);
    product->moveBefore(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    product->getResult(0).setType(RankedTensorType::get(type.getShape(), b.getF32Type(), type.getEncoding()));
    op->getResult(0).replaceAllUsesWith(asType(b, op->getLoc(), product->getResult(0), type.getElementType()));
    op->erase();
  }

  /// Says which weights --max-error left as they are, and fails where it left all.
  void report(ArrayRef<std::pair<Operation *, double>> beyond, size_t met) {
    if (beyond.empty())
      return;
    auto least = llvm::min_element(beyond, [](const auto &x, const auto &y) { return x.second < y.second; });
    if (!met) {
      std::string text = "--max-error " + errorText(*context.maxError) +
                         " is met by no weights: the least rounding error is " + errorText(least->second) +
                         ", of node '" + dmir::nodeName(least->first) + "'; smaller blocks and more bits have less";
      if (context.report)
        context.report(*context.responsible(least->first), Error{ErrorKind::Constraint, text});
      else
        least->first->emitError() << text << " [max-error]";
      return signalPassFailure();
    }
    SmallVector<std::string> nodes;
    for (auto [op, error] : beyond)
      nodes.push_back("'" + dmir::nodeName(op) + "' (" + errorText(error) + ")");
    getOperation().emitRemark() << "--max-error leaves the weights of " << nodes.size()
                                << (nodes.size() == 1 ? " node" : " nodes")
                                << " as they are: " << llvm::join(nodes, ", ") << " [max-error]";
  }

  const PhaseContext &context;
  std::map<std::tuple<const void *, int64_t>, std::optional<Rounded>> rounded;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createRoundWeightsPass(const PhaseContext &context) {
  return std::make_unique<RoundWeights>(context);
}
} // namespace dmxc
