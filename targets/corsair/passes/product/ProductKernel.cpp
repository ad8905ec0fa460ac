//===- ProductKernel.cpp - a product's kernel over quads, read ------------===//
#include "ProductKernel.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace dmxc;
using affine_ext::VecExtType;

namespace {

/// An index of a load or store: a constant, or one of the kernel's indices.
struct Index {
  int64_t constant = 0;
  Value value;
};

std::optional<Index> indexOf(AffineMap map, ValueRange operands, unsigned position) {
  AffineExpr expr = map.getResult(position);
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return Index{constant.getValue(), {}};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return Index{0, operands[dim.getPosition()]};
  return std::nullopt;
}

std::optional<hw::ElemKind> kindOf(Type element) {
  if (element.isF16())
    return hw::ElemKind::F16;
  if (element.isF32())
    return hw::ElemKind::F32;
  if (dmir::isBfp32(element))
    return hw::ElemKind::Bfp32;
  auto block = dyn_cast<dmir::BlockFpType>(element);
  if (!block)
    return std::nullopt;
  for (int kind = 0; kind < hw::kElemKinds; ++kind) {
    auto candidate = static_cast<hw::ElemKind>(kind);
    std::optional<hw::TileShape> tile = hw::tileOf(candidate);
    if (tile && tile->format == block.getFormat() && (kind & 1) == static_cast<int>(block.getColumns()))
      return candidate;
  }
  return std::nullopt;
}

/// The kind of an operand's tiles, if the array takes it and the tiles are as deep as the device's.
std::optional<hw::ElemKind> kindOfTile(Value value) {
  auto tile = cast<VecExtType>(value.getType());
  std::optional<hw::ElemKind> kind = kindOf(tile.getElementType());
  if (!kind || !hw::isTiled(*kind))
    return std::nullopt;
  int64_t depth = tile.getShape()[static_cast<int>(*kind) & 1 ? 0 : 1];
  return depth == hw::tileOf(*kind)->depth ? kind : std::nullopt;
}

class Reader {
public:
  explicit Reader(gpu::LaunchFuncOp launch) { kernel.launch = launch; }

  FailureOr<ProductKernel> run() {
    function = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(kernel.launch, kernel.launch.getKernel());
    if (!function || !function.getBody().hasOneBlock())
      return kernel.launch.emitError("launches no kernel of one block");
    kernel.name = function.getName().str();
    if (failed(readLoops(function.getBody().front())) || failed(readStore()) || failed(readProducts()) ||
        failed(readOperands()))
      return failure();
    return kernel;
  }

private:
  LogicalResult refuse(Operation *op, const Twine &why) {
    return op->emitError("no schedule for this kernel: ") << why;
  }

  /// The nest down to the block that has the store.
  LogicalResult readLoops(Block &block) {
    for (Operation &op : block) {
      if (auto thread = dyn_cast<gpu::ThreadIdOp>(op)) {
        if (thread.getDimension() != gpu::Dimension::x)
          return refuse(&op, "threads lie along x only");
        threadId = thread;
      } else if (auto loop = dyn_cast<affine::AffineForOp>(op)) {
        if (innermost)
          return refuse(&op, "has a loop beside its tiles");
        if (!loop.hasConstantUpperBound() || loop.getNumResults())
          return refuse(&op, "a loop has no constant bound");
        trips[loop.getInductionVar()] = loop.getConstantUpperBound();
        bool wrapped = !loop.hasConstantLowerBound();
        if (wrapped)
          split = loop.getInductionVar();
        else if (loop.getConstantLowerBound() != 0 || loop.getStepAsInt() != 1)
          return refuse(&op, "a loop does not run from 0 by 1");
        if (failed(readLoops(*loop.getBody())))
          return failure();
      } else if (isa<affine::AffineStoreOp>(op)) {
        innermost = &block;
        store = cast<affine::AffineStoreOp>(op);
      } else if (!isa<affine::AffineLoadOp, lldmir::MatMulOp, lldmir::SimdOp, affine::AffineYieldOp, gpu::ReturnOp,
                      arith::ConstantOp>(op)) {
        return refuse(&op, "'" + op.getName().getStringRef() + "' is not known");
      }
    }
    return success();
  }

  LogicalResult readStore() {
    auto sizes = function.getKnownBlockSize();
    if (!store || !sizes || sizes->size() != 3 || (*sizes)[1] != 1 || (*sizes)[2] != 1)
      return refuse(function, "it stores no tile, or its block size is not N, 1, 1");
    kernel.quads = (*sizes)[0];
    if (!split && threadId) {
      split = threadId;
      trips[threadId] = kernel.quads;
    }
    MemRefType memref = store.getMemRefType();
    unsigned rank = memref.getRank();
    if (rank < 2)
      return refuse(store, "the result is no matrix of tiles");
    kernel.batch.resize(rank - 2);
    for (unsigned i = 0; i < rank; ++i) {
      std::optional<Index> index = indexOf(store.getAffineMap(), store.getMapOperands(), i);
      if (!index || (!index->value && memref.getDimSize(i) != 1))
        return refuse(store, "a tile's index is no loop's");
      ProductDim &dim = dimAt(i, rank);
      dims.push_back(index->value);
      dim.trips = index->value ? trips.lookup(index->value) : 1;
      dim.split = index->value && index->value == split;
      if (dim.trips != memref.getDimSize(i))
        return refuse(store, "its loops do not run over the whole result");
    }
    std::optional<hw::ElemKind> kind = kindOf(cast<VecExtType>(memref.getElementType()).getElementType());
    if (!kind || hw::isTiled(*kind))
      return refuse(store, "the result is not f16, f32 or BFP32_1");
    kernel.resultKind = *kind;
    kernel.result = operandOf(store.getMemRef());
    int64_t pitch = kernel.column.trips * 64 * kernel.element();
    kernel.column.o = 64 * kernel.element();
    int64_t bytes = kernel.row.o = 64 * pitch;
    bytes *= kernel.row.trips;
    for (ProductDim &dim : llvm::reverse(kernel.batch)) {
      dim.o = bytes;
      bytes *= dim.trips;
    }
    return success();
  }

  ProductDim &dimAt(unsigned i, unsigned rank) {
    return i + 2 == rank ? kernel.row : i + 1 == rank ? kernel.column : kernel.batch[i];
  }

  /// The chain of products behind the store.
  LogicalResult readProducts() {
    Value tile = store.getValueToStore();
    auto unit = tile.getDefiningOp<lldmir::SimdOp>();
    if (unit && unit.getFunction() == "cast" && unit.getInputs().size() == 1) {
      tile = unit.getInputs().front();
      unit = tile.getDefiningOp<lldmir::SimdOp>();
    }
    if (unit && failed(readBias(unit, tile)))
      return failure();
    for (auto product = tile.getDefiningOp<lldmir::MatMulOp>(); product;
         product = product.getInit() ? product.getInit().getDefiningOp<lldmir::MatMulOp>() : lldmir::MatMulOp())
      products.insert(products.begin(), product);
    if (products.empty())
      return refuse(store, "what it stores is no product");
    for (lldmir::MatMulOp product : products) {
      kernel.chunks.push_back(
          {kernel.kTiles, static_cast<int64_t>(product.getNumImc()), static_cast<int64_t>(product.getPprMode())});
      kernel.kTiles += product.getNumImc();
      kernel.rows = product.getRows().value_or(64);
    }
    return success();
  }

  /// A product's tile plus the bias of its columns.
  LogicalResult readBias(lldmir::SimdOp unit, Value &tile) {
    if (unit.getFunction() != "add" || unit.getInputs().size() != 2)
      return refuse(unit, "the vector device's \"" + unit.getFunction() + "\" on tiles");
    bool first = unit.getInputs()[0].getDefiningOp<lldmir::MatMulOp>() != nullptr;
    tile = unit.getInputs()[first ? 0 : 1];
    auto load = unit.getInputs()[first ? 1 : 0].getDefiningOp<affine::AffineLoadOp>();
    auto type = load ? dyn_cast<VecExtType>(load.getType()) : VecExtType();
    if (!type || type.getRank() != 1 || !dmir::isBfp32(type.getElementType()) || load.getMemRefType().getRank() != 1)
      return refuse(unit, "what is added is no bias of BFP32_1");
    std::optional<Index> index = indexOf(load.getAffineMap(), load.getMapOperands(), 0);
    bool single = load.getMemRefType().getDimSize(0) == 1 && index && !index->value;
    if (!single && (!index || index->value != dims.back()))
      return refuse(load, "a tile's index is not that of the result");
    kernel.bias = operandOf(load.getMemRef());
    kernel.column.b = 256;
    return success();
  }

  LogicalResult readOperands() {
    std::optional<hw::ElemKind> a = kindOfTile(products.front().getActivations().front()),
                                w = kindOfTile(products.front().getWeights().front());
    if (!a || !w)
      return refuse(products.front(), "the device has no tiles of these formats");
    kernel.activationKind = *a;
    kernel.weightKind = *w;
    SmallVector<affine::AffineLoadOp> left, right;
    for (lldmir::MatMulOp product : products)
      for (auto [list, tiles] : {std::pair(&left, product.getActivations()), std::pair(&right, product.getWeights())})
        for (Value tile : tiles) {
          auto load = tile.getDefiningOp<affine::AffineLoadOp>();
          if (!load)
            return refuse(product, "a tile is not loaded from memory");
          list->push_back(load);
        }
    return success(succeeded(readOperand(left, true)) && succeeded(readOperand(right, false)));
  }

  /// Loads of all tiles along k of one operand, in order.
  LogicalResult readOperand(ArrayRef<affine::AffineLoadOp> loads, bool isLeft) {
    affine::AffineLoadOp first = loads.front();
    MemRefType memref = first.getMemRefType();
    unsigned rank = memref.getRank(), resultRank = kernel.batch.size() + 2;
    unsigned along = isLeft ? rank - 1 : rank - 2, across = isLeft ? rank - 2 : rank - 1;
    if (rank < 2 || rank > resultRank || memref.getDimSize(along) != kernel.kTiles)
      return refuse(first, "an operand has other tiles along k than the product");
    (isLeft ? kernel.activations : kernel.weights) = operandOf(first.getMemRef());
    for (auto [k, load] : llvm::enumerate(loads)) {
      affine::AffineLoadOp at = load;
      std::optional<Index> index = indexOf(at.getAffineMap(), at.getMapOperands(), along);
      if (at.getMemRef() != first.getMemRef() || !index || index->value || index->constant != static_cast<int64_t>(k))
        return refuse(at, "tiles along k are not taken in order");
    }
    ProductDim &own = isLeft ? kernel.row : kernel.column;
    int64_t bytes = kernel.kTiles * (isLeft ? kernel.activationTile() : kernel.weightTile());
    if (failed(readStride(first, across, isLeft ? resultRank - 2 : resultRank - 1, own, isLeft, bytes)))
      return failure();
    bytes *= memref.getDimSize(across);
    for (unsigned i = rank - 2; i-- > 0;) {
      unsigned dim = resultRank - rank + i;
      if (failed(readStride(first, i, dim, kernel.batch[dim], isLeft, bytes)))
        return failure();
      bytes *= memref.getDimSize(i);
    }
    return success();
  }

  LogicalResult readStride(affine::AffineLoadOp load, unsigned position, unsigned dim, ProductDim &target, bool isLeft,
                           int64_t bytes) {
    std::optional<Index> index = indexOf(load.getAffineMap(), load.getMapOperands(), position);
    bool single = load.getMemRefType().getDimSize(position) == 1;
    if (!index || (index->value ? index->value != dims[dim] : !single || index->constant != 0))
      return refuse(load, "a tile's index is not that of the result");
    if (!single)
      (isLeft ? target.a : target.w) = bytes;
    return success();
  }

  Value operandOf(Value argument) {
    auto block = dyn_cast<BlockArgument>(argument);
    return block ? kernel.launch.getKernelOperand(block.getArgNumber()) : Value();
  }

  ProductKernel kernel;
  gpu::GPUFuncOp function;
  Value threadId, split;
  llvm::DenseMap<Value, int64_t> trips;
  SmallVector<Value> dims; ///< the index of each dim of the result
  Block *innermost = nullptr;
  affine::AffineStoreOp store;
  SmallVector<lldmir::MatMulOp> products;
};

} // namespace

FailureOr<ProductKernel> dmxc::readProductKernel(gpu::LaunchFuncOp launch) { return Reader(launch).run(); }
