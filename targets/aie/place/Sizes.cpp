//===- Sizes.cpp - sizes that a dispatch brings ---------------------------===//
//
// A program is made for the most of each. Loops of shims that run as often as a size says are unrolled for that, and
// the control stream has their trips where the size is large enough; cores' registers and lengths of BDs are words that
// follow a size.
//
//===----------------------------------------------------------------------===//
#include "Placement.h"

#include "dmxc/Dialect/DLIR/Sum.h"
#include "dmxc/Dialect/DLIR/TaskDims.h"
#include "dmxc/Dialect/DMIR/Dims.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

bool Placement::isOfController(dlir::RegisterOp reg) {
  auto ofShim = [](Operation *user) {
    auto queue = user->getParentOfType<dlir::DispatchQueueOp>();
    return queue && queue.getUnit() == StringRef(hw::nameOf(hw::TileKind::Shim));
  };
  return !reg->use_empty() && llvm::all_of(reg->getUsers(), ofShim);
}

std::optional<size_t> Placement::sizeIn(dlir::RegisterOp reg) {
  ArrayRef<int64_t> registers = program.getDimRegisters().value_or(ArrayRef<int64_t>());
  const auto *found = llvm::find(registers, static_cast<int64_t>(reg.getNumber()));
  return found == registers.end() ? std::nullopt : std::optional<size_t>(found - registers.begin());
}

std::optional<std::pair<size_t, int64_t>> Placement::sizeOf(AffineMap map, ValueRange indices) {
  std::optional<dlir::Sum> sum = map.getNumResults() == 1 ? dlir::sumOf(map, indices) : std::nullopt;
  auto reg = sum && sum->base == 0 && sum->terms.size() == 1 ? sum->terms[0].first.getDefiningOp<dlir::RegisterOp>()
                                                             : dlir::RegisterOp();
  std::optional<size_t> size = reg && sum->terms[0].second > 0 ? sizeIn(reg) : std::nullopt;
  return size ? std::optional(std::pair(*size, sum->terms[0].second)) : std::nullopt;
}

/// Each size of a dispatch has a most, as its register says, or the extents that it is of.
LogicalResult Placement::checkSizes() {
  ArrayRef<int64_t> registers = program.getDimRegisters().value_or(ArrayRef<int64_t>());
  if (registers.size() != dlir::taskDims(program).size())
    return program.emitOpError("has ") << registers.size() << " 'dim_registers' for " << dlir::taskDims(program).size()
                                       << " sizes in 'dlir.dims'";
  most.assign(registers.size(), -1);
  for (auto reg : graph.getBody().getOps<dlir::RegisterOp>()) {
    std::optional<size_t> size = sizeIn(reg);
    if (!size)
      continue;
    if (reg.getValues().size() != 1 || reg.getValues()[0] < 0 || reg.getValues()[0] > INT32_MAX)
      return reg.emitOpError("has a size of a dispatch, of which its one value is the most");
    most[*size] = reg.getValues()[0];
  }
  for (auto piece : program.getBody().getOps<dlir::PieceOp>())
    if (auto border = piece->getAttrOfType<DictionaryAttr>(kPieceBorder); border && failed(noteExtents(piece, border)))
      return failure();
  if (llvm::is_contained(most, -1))
    return program.emitOpError("has a size in 'dlir.dims' that is no register's and no extent of a piece");
  return success();
}

/// The most of sizes that extents of a piece are.
LogicalResult Placement::noteExtents(dlir::PieceOp piece, DictionaryAttr border) {
  auto sizes = border.getAs<dmir::DimsAttr>(kSizes);
  auto extents = border.getAs<DenseI64ArrayAttr>(kExtents);
  if (!sizes)
    return success();
  if (!extents || static_cast<size_t>(extents.size()) != sizes.getDims().size())
    return piece.emitOpError("has 'sizes' in its border, and not as many 'extents'");
  ArrayRef<Dim> all = dlir::taskDims(program);
  for (auto [size, extent] : llvm::zip(sizes.getDims(), extents.asArrayRef())) {
    const auto *found = llvm::find(all, size);
    if (found != all.end())
      most[static_cast<size_t>(found - all.begin())] = extent;
    else if (!size.is(extent))
      return piece.emitOpError("has an extent of ") << size.str() << ", which is no size of the program's 'dlir.dims'";
  }
  return success();
}

/// Writes what a group has, for dispatches that have the group. The tokens of a group are waited for before another one
/// takes its BDs, or at the end, so that groups which a dispatch does not have are not waited for.
LogicalResult Placement::whereDone(int64_t group, function_ref<LogicalResult()> writeOps) {
  ArrayRef<std::pair<int64_t, int64_t>> conditions = shims[0].groups[static_cast<size_t>(group)].conditions;
  if (conditions.empty())
    return writeOps();
  OpBuilder::InsertionGuard guard(b);
  auto [dims, above] = std::pair<SmallVector<int64_t>, SmallVector<int64_t>>();
  for (auto [dim, number] : conditions) {
    dims.push_back(dim);
    above.push_back(number);
  }
  auto when = aiex::WhenOp::create(b, where, dims, above);
  b.setInsertionPointToStart(&when.getBody().emplaceBlock());
  return writeOps();
}
