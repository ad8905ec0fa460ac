//===- Buffers.cpp - kernels of buffers -----------------------------------===//
//
// Each quad of the team has buffers of its own; an op is computed by all of them before the next one, so that what one
// gathers the others have made. A loop over quads gives each quad its trip.
//
//===----------------------------------------------------------------------===//
#include "Interpreter.h"
#include "Quad.h"

#include "targets/corsair/decide/Constants.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using namespace dmxc::corsair::stages;
using namespace dmxc::lldmir;

namespace {

class Team {
public:
  Team(func::FuncOp function, int64_t size) : function(function), size(size) {
    for (int64_t number = 0; number < size; ++number)
      quads.emplace_back(number, size);
  }

  Result<SmallVector<View>> run(ArrayRef<Tensor> operands) {
    for (auto [argument, tensor] : llvm::zip(function.getArguments(), operands))
      if (Status set = setArgument(argument, tensor); !set)
        return set.takeError();
    if (Status done = runBlock(function.getBody().front()); !done)
      return done.takeError();
    SmallVector<View> results;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      Result<View> result = resultOf(i);
      if (!result)
        return result.takeError();
      results.push_back(*result);
    }
    return results;
  }

private:
  //===--- the host's tensors ---------------------------------------------------------===//

  /// Of a value that is dealt each quad's part: of folded ones a half from either end.
  View shareOf(const View &whole, lldmir::DealAttr deal, Split split, int64_t quad) const {
    if (!split)
      return whole;
    if (!deal.getFolded())
      return whole.slice(split.dim, quad * split.part, split.part);
    View share = View::zeros(whole.kind, shareShape(whole, split));
    const int64_t half = split.part / 2;
    copyInto(whole.slice(split.dim, quad * half, half), share.slice(split.dim, 0, half));
    copyInto(whole.slice(split.dim, (2 * size - 1 - quad) * half, half), share.slice(split.dim, half, half));
    return share;
  }
  static Dims shareShape(const View &whole, Split split) {
    Dims shape(whole.shape);
    shape[split.dim] = split.part;
    return shape;
  }

  Status setArgument(BlockArgument argument, const Tensor &tensor) {
    const unsigned number = argument.getArgNumber();
    auto type = dyn_cast<MemRefType>(argument.getType());
    std::optional<hw::ElemKind> kind = type ? kindOf(type.getElementType()) : std::nullopt;
    if (!kind)
      return notEvaluated(function, "takes an argument " + std::to_string(number) + " that is no buffer of numbers");
    const View whole = fromHost(tensor, *kind);
    auto form = function.getArgAttrOfType<DictionaryAttr>(number, kFormAttr);
    if (form)
      return setConstant(argument, type, form, whole);
    auto deal = function.getArgAttrOfType<lldmir::DealAttr>(number, lldmir::kDealAttr);
    const Split split = splitOf(deal, whole.shape, size);
    if (deal && deal.getDim() >= 0 && !split)
      return errorAt(function, "has argument " + std::to_string(number) + " dealt in no equal shares");
    for (Quad &quad : quads) {
      const View share = shareOf(whole, deal, split, &quad - quads.data());
      Result<View> made = function.getArgAttr(number, kTilesAttr) ? tilesOfRows(argument, type, share)
                                                                  : bufferOf(argument, type, share);
      if (!made)
        return made.takeError();
      quad.set(argument, *made);
    }
    return Status::ok();
  }

  Result<View> bufferOf(BlockArgument argument, MemRefType type, const View &values) const {
    auto [strides, offset] = type.getStridesAndOffset();
    if (type.getShape() != ArrayRef(values.shape) || offset != 0)
      return errorAt(function, "has a host's tensor of argument " + std::to_string(argument.getArgNumber()) +
                                   " that is not its buffer's shape");
    if (values.elements() == 0)
      strides.assign(strides.size(), 0);
    View made = View::strided(values.kind, values.shape, strides);
    copyInto(values, made);
    return made;
  }

  /// A matrix of which each so many rows begin at tiles of their own.
  Result<View> tilesOfRows(BlockArgument argument, MemRefType type, const View &matrix) {
    auto rows = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kTilesAttr);
    const int64_t part = rows ? rows.getInt() : 0;
    if (matrix.rank() != 2 || type.getRank() != 2 || part < 1 || matrix.shape[0] % part)
      return errorAt(function, "has no tiles of rows in argument " + std::to_string(argument.getArgNumber()));
    View grid = View::zeros(hw::ElemKind::F32, {type.getDimSize(0) * 64, type.getDimSize(1) * 64});
    const int64_t parts = matrix.shape[0] / part, pitch = (part + 63) / 64 * 64;
    if (parts * pitch > grid.shape[0] || matrix.shape[1] > grid.shape[1])
      return errorAt(function,
                     "has more tiles in argument " + std::to_string(argument.getArgNumber()) + " than its grid");
    for (int64_t i = 0; i < parts; ++i)
      copyInto(matrix.slice(0, i * part, part), grid.slice(0, i * pitch, part).slice(1, 0, matrix.shape[1]));
    return grid;
  }

  Status setConstant(BlockArgument argument, MemRefType type, DictionaryAttr form, const View &whole) {
    auto name = form.getAs<StringAttr>("form");
    View made = whole;
    if (name && name.getValue() == forms::kTiles && whole.rank() == 2) {
      Result<View> grid = gridOf(type, form, whole);
      if (!grid)
        return grid.takeError();
      made = *grid;
    } else if (name && name.getValue() == forms::kBias) { // zeros go on behind it
      made = View::zeros(whole.kind, type.getShape());
      if (made.rank() != 1 || made.elements() < whole.elements())
        return errorAt(function, "has a vector that is longer than its buffer");
      copyInto(whole.reshaped({whole.elements()}), made.slice(0, 0, whole.elements()));
    } else if (!(name && name.getValue() == forms::kTiles)) {
      Result<View> buffer = bufferOf(argument, type, whole);
      if (!buffer)
        return buffer.takeError();
      made = *buffer;
    } // else the weights of a convolution, by their own dims
    for (Quad &quad : quads)
      quad.set(argument, made);
    return Status::ok();
  }

  /// Weights as the tiles of all quads: each has columns of its own, or rows, in tiles of their own.
  Result<View> gridOf(MemRefType type, DictionaryAttr attribute, const View &weights) const {
    const std::optional<TileForm> parsed = TileForm::parse(attribute, machineOf(attribute.getContext()));
    if (!parsed || type.getRank() != 2)
      return errorAt(function, "has weights in no form of tiles");
    const TileForm &form = *parsed;
    const int64_t k = weights.shape[0], n = weights.shape[1], columns = form.alongK ? n : n / form.quads,
                  depth = form.alongK ? k / form.quads : k;
    View grid = View::zeros(hw::ElemKind::F32, {type.getDimSize(0) * 64, type.getDimSize(1) * 64});
    const int64_t down = (depth + 63) / 64 * 64, right = (columns + 63) / 64 * 64;
    if (form.alongK ? down * form.quads > grid.shape[0] || right > grid.shape[1]
                    : down > grid.shape[0] || right * form.quads > grid.shape[1])
      return errorAt(function, "has weights that are more than their grid of tiles");
    for (int64_t quad = 0; quad < form.quads; ++quad) {
      const int64_t row = form.alongK ? quad : 0, column = form.alongK ? 0 : quad;
      copyInto(weights.slice(0, row * depth, depth).slice(1, column * columns, columns),
               grid.slice(0, row * down, depth).slice(1, column * right, columns));
    }
    return grid;
  }

  Result<View> resultOf(unsigned number) {
    Operation *terminator = function.getBody().front().getTerminator();
    auto type = function.getResultAttrOfType<TypeAttr>(number, kTypeAttr);
    auto host = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
    if (!host)
      return errorAt(function, "has no host's type of result " + std::to_string(number));
    auto deal = function.getResultAttrOfType<lldmir::DealAttr>(number, lldmir::kDealAttr);
    const Split split = splitOf(deal, host.getShape(), size);
    View whole;
    for (Quad &quad : quads) {
      const int64_t at = &quad - quads.data();
      Result<View> share = quad.viewOf(terminator, terminator->getOperand(number));
      if (!share)
        return share;
      if (ArrayRef(share->shape) != ArrayRef(corsair::shareOf(host.getShape(), split)))
        return errorAt(function, "returns another shape than that of result " + std::to_string(number));
      if (at == 0)
        whole = View::zeros(share->kind, host.getShape());
      if (!split && at > 0 && *share->copy().memory != *whole.memory)
        return errorAt(function, "has quads with different values of result " + std::to_string(number) +
                                     ", which all of them have whole");
      const View to = split ? whole.slice(split.dim, at * split.part, split.part) : whole;
      if (!split || !deal.getFolded()) {
        copyInto(*share, to);
        continue;
      }
      const int64_t half = split.part / 2;
      copyInto(share->slice(split.dim, 0, half), whole.slice(split.dim, at * half, half));
      copyInto(share->slice(split.dim, half, half), whole.slice(split.dim, (2 * size - 1 - at) * half, half));
    }
    return whole;
  }

  //===--- the quads ------------------------------------------------------------------===//

  Status runBlock(Block &block) {
    for (Operation &op : block.without_terminator())
      if (Status done = run(&op); !done)
        return done;
    return Status::ok();
  }

  Status run(Operation *op) {
    if (auto gather = dyn_cast<lldmir::GatherOp>(op))
      return exchange(gather);
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
      return runKernel(launch);
    auto loop = dyn_cast<affine::AffineForOp>(op);
    const bool overQuads = loop && loop->hasAttr(kQuadsAttr);
    if (overQuads && (!loop.hasConstantBounds() || loop.getConstantLowerBound() != 0 || loop.getStepAsInt() != 1 ||
                      loop.getConstantUpperBound() != size))
      return errorAt(op, "runs over other quads than the " + std::to_string(size) + " of its team");
    for (Quad &quad : quads) {
      if (overQuads)
        quad.setIndex(loop.getInductionVar(), &quad - quads.data());
      if (Status done = overQuads ? quad.evaluateBody(*loop.getBody()) : quad.evaluate(op); !done)
        return done;
    }
    return Status::ok();
  }

  /// Each quad's part to its place in everybody's whole.
  Status exchange(lldmir::GatherOp op) {
    if (op.getOuts().size() != op.getParts().size())
      return errorAt(op, "fills not as many buffers as it gathers");
    for (auto [part, out, attribute] : llvm::zip(op.getParts(), op.getOuts(), op.getDeals())) {
      auto deal = dyn_cast<lldmir::DealAttr>(attribute);
      for (Quad &from : quads)
        for (Quad &to : quads) {
          Result<View> share = from.viewOf(op, part), whole = to.viewOf(op, out);
          if (!share || !whole)
            return (share ? whole : share).takeError();
          const Split split = splitOf(deal, whole->shape, size);
          if (!split || ArrayRef(share->shape) != ArrayRef(shareShape(*whole, split)))
            return errorAt(op, "gathers a buffer that is not dealt so");
          copyInto(*share, whole->slice(split.dim, (&from - quads.data()) * split.part, split.part));
        }
    }
    return Status::ok();
  }

  Status runKernel(gpu::LaunchFuncOp launch) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(launch, launch.getKernel());
    if (!kernel || !kernel.getBody().hasOneBlock() || kernel.getNumArguments() != launch.getKernelOperands().size())
      return errorAt(launch, "launches no kernel of one block and its arguments");
    auto threads = kernel.getKnownBlockSize();
    if (!threads || threads->empty() || threads->front() != size)
      return errorAt(launch, "launches other threads than the " + std::to_string(size) + " quads of the team");
    for (Quad &quad : quads)
      for (auto [argument, operand] : llvm::zip(kernel.getArguments(), launch.getKernelOperands())) {
        Result<View> view = quad.viewOf(launch, operand);
        if (!view)
          return view.takeError();
        quad.set(argument, *view);
      }
    return runBlock(kernel.getBody().front());
  }

  func::FuncOp function;
  const int64_t size;
  std::vector<Quad> quads;
};

} // namespace

Result<SmallVector<View>> dmxc::corsair::stages::evaluateBuffers(func::FuncOp function, ArrayRef<Tensor> operands) {
  auto size = function->getAttrOfType<IntegerAttr>(kQuadsAttr);
  if (!size || size.getInt() < 1 || size.getInt() > lldmir::machineOf(function.getContext()).quadCount())
    return notEvaluated(function, "has no team of quads");
  return Team(function, size.getInt()).run(operands);
}
