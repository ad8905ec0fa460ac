//===- BandTransfers.cpp - rows that cross while others are computed ------===//
#include "../KernelFunctions.h"
#include "../Passes.h"
#include "../Views.h"
#include "../writer/TileLoops.h"

#include "targets/corsair/decide/Constants.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <map>

namespace dmxc {
#define GEN_PASS_DEF_BANDTRANSFERS
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using affine::AffineForOp;

namespace {

/// The loops of the kernel that alone use a buffer, by their tiles; null where there are none or others do too.
AffineForOp onlyUser(Value buffer, AffineForOp found = {}) {
  for (Operation *user : buffer.getUsers()) {
    if (isa<affine_ext::TilesOp>(user)) {
      found = onlyUser(user->getResult(0), found);
      if (!found)
        return {};
      continue;
    }
    Operation *top = user;
    while (top && !isa<gpu::GPUFuncOp>(top->getParentOp()))
      top = top->getParentOp();
    auto loop = dyn_cast_or_null<AffineForOp>(top);
    if (!loop || (found && loop != found))
      return {};
    found = loop;
  }
  return found;
}

/// In which order loops store the tiles of their result.
enum class Order { Rows, Columns, Other };

Order orderOf(const TileLoops &loops) {
  const auto grid = cast<MemRefType>(loops.out.getType());
  const int64_t rows = grid.getDimSize(0), columns = grid.getDimSize(1);
  if (static_cast<int64_t>(loops.tiles.size()) != rows * columns || rows < 2)
    return Order::Other;
  bool byRows = true, byColumns = true;
  for (auto [number, tile] : llvm::enumerate(loops.tiles)) {
    const auto at = static_cast<int64_t>(number);
    const bool isOwn = tile.at.activations == tile.at.row && tile.at.weights == tile.at.column;
    byRows &= isOwn && tile.at.row == at / columns && tile.at.column == at % columns &&
              tile.terms == loops.tiles[tile.at.column].terms;
    byColumns &= isOwn && tile.at.row == at % rows && tile.at.column == at / rows && tile.terms == 0;
  }
  return byRows ? Order::Rows : byColumns ? Order::Columns : Order::Other;
}

/// Whether all columns of a band of rows are stored before the next band is begun.
bool storesBands(TileLoops &loops) {
  const Order order = orderOf(loops);
  lldmir::SpreadAttr spread = loops.products.front().getSpreadAttr();
  const int64_t columns = cast<MemRefType>(loops.out.getType()).getDimSize(1),
                atOnce = !spread                          ? 1
                         : spread.getShare() != "columns" ? spread.getGroups()
                                                          : spread.getGroups() * spread.getSlices();
  return order == Order::Rows || (order == Order::Columns && columns <= atOnce);
}

struct BandTransfers : dmxc::impl::BandTransfersBase<BandTransfers> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(kQuadsAttr) && !function.isExternal())
        mark(function);
  }

  void mark(func::FuncOp function) {
    auto launches = function.getOps<gpu::LaunchFuncOp>();
    if (!llvm::hasSingleElement(launches))
      return;
    launch = *launches.begin();
    forms.clear();
    kernel = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(launch, launch.getKernel());
    if (!kernel || !kernel.getBody().hasOneBlock())
      return;
    quads = function->getAttrOfType<IntegerAttr>(kQuadsAttr).getInt();
    auto unit = UnitAttr::get(function.getContext());
    for (BlockArgument argument : function.getArguments()) {
      const unsigned number = argument.getArgNumber();
      auto has = [&](StringRef name) { return static_cast<bool>(function.getArgAttr(number, name)); };
      if (!argument.hasOneUse() || !has(kTypeAttr) || has(kFormAttr) || has(kStateAttr) || has(kOrderAttr) ||
          !hasRows(argument, function.getArgAttrOfType<lldmir::DealAttr>(number, lldmir::kDealAttr)))
        continue;
      TileLoops loops;
      if (follow(argument, loops) && isLeftAlone(given(argument), loops) && orderOf(loops) != Order::Other)
        function.setArgAttr(number, lldmir::kBandsAttr, unit);
    }
    Operation *end = function.getBody().front().getTerminator();
    for (auto [number, value] : llvm::enumerate(end->getOperands())) {
      auto alloc = value.getDefiningOp<memref::AllocOp>();
      if (!alloc || !llvm::hasNItems(alloc->getUses(), 2) || isState(function, number) ||
          !hasRows(value, function.getResultAttrOfType<lldmir::DealAttr>(number, lldmir::kDealAttr)))
        continue;
      TileLoops loops;
      if (follow(value, loops) && rootOf(loops.out) == given(value) && storesBands(loops) &&
          !comesInPieces(loops.right))
        function.setResultAttr(number, lldmir::kBandsAttr, unit);
    }
  }

  static bool isState(func::FuncOp function, int64_t result) {
    return llvm::any_of(llvm::seq(function.getNumArguments()), [&](unsigned number) {
      auto next = function.getArgAttrOfType<IntegerAttr>(number, kStateAttr);
      return next && next.getInt() == result;
    });
  }

  /// Whether a quad has rows of its own of a matrix, one after the other.
  bool hasRows(Value buffer, lldmir::DealAttr deal) const {
    auto type = cast<MemRefType>(buffer.getType());
    const bool isShare = quads == 1 || (deal && deal.getDim() == 0 && !deal.getFolded());
    return isShare && type.getRank() == 2 && type.getLayout().isIdentity() && type.getNumElements() > 0 &&
           (isa<affine_ext::VecExtType>(type.getElementType()) || type.getElementType().isF16());
  }

  /// The packed form of weights by their grid, null of others.
  const corsair::TileForm *formOf(Value grid) {
    auto argument = dyn_cast<BlockArgument>(rootOf(grid));
    auto outer = argument && argument.getOwner()->getParentOp() == kernel
                     ? dyn_cast<BlockArgument>(launch.getKernelOperand(argument.getArgNumber()))
                     : BlockArgument();
    if (!outer)
      return nullptr;
    auto [found, isNew] = forms.try_emplace(outer.getArgNumber());
    auto function = cast<func::FuncOp>(outer.getOwner()->getParentOp());
    if (auto form = function.getArgAttrOfType<DictionaryAttr>(outer.getArgNumber(), kFormAttr);
        isNew && corsair::isTiles(form))
      found->second = corsair::TileForm::parse(form, machine());
    return found->second ? &*found->second : nullptr;
  }
  const corsair::hw::Machine &machine() { return lldmir::machineOf(kernel.getContext()); }

  /// Whether weights are more than ST holds: then columns are computed of all rows before others come.
  bool comesInPieces(Value grid) {
    const corsair::TileForm *tiles = formOf(grid);
    return tiles && tiles->sliceBytes() > static_cast<int64_t>(machine().memory(corsair::hw::Memory::ST).size);
  }

  /// Whether loops read a matrix as the rows of their product and as nothing else.
  static bool isLeftAlone(Value buffer, const TileLoops &loops) {
    SmallVector<Value> others(loops.beside.begin(), loops.beside.end());
    others.push_back(loops.right);
    return rootOf(loops.left) == buffer && llvm::none_of(others, [&](Value grid) { return rootOf(grid) == buffer; });
  }

  /// As what the kernel has a value of the function; null: it is not given.
  Value given(Value value) {
    for (auto [number, operand] : llvm::enumerate(launch.getKernelOperands()))
      if (operand == value)
        return kernel.getArgument(number);
    return {};
  }

  /// The loops that alone use a buffer, of one product of matrices.
  bool follow(Value value, TileLoops &loops) {
    Value buffer = given(value);
    AffineForOp loop = buffer ? onlyUser(buffer) : AffineForOp();
    if (!loop || loop->hasAttr(kBatchAttr))
      return false;
    const bool hasBands =
        loop->walk([](AffineForOp inner) {
              return inner->hasAttr(lldmir::kBandsAttr) ? WalkResult::interrupt() : WalkResult::advance();
            })
            .wasInterrupted();
    loops.formOf = [this](Value grid) { return formOf(grid); };
    return !hasBands && loops.follow(loop);
  }

  gpu::LaunchFuncOp launch;
  gpu::GPUFuncOp kernel;
  int64_t quads = 1;
  std::map<unsigned, std::optional<corsair::TileForm>> forms; ///< by the function's argument
};

} // namespace
