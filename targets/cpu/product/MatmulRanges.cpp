//===- MatmulRanges.cpp - what of a product is known to be zero, or not asked for ===//

#include "MatmulRanges.h"

#include "targets/common/element/ElementMask.h"
#include "targets/common/roots/ConstantMatrix.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

/// Whether a kernel of the block knows what a rule's symbols are.
static bool isUsable(const dmir::Rule &rule, Block *block) {
  dmir::SymbolSet symbols = dmir::symbolsOf(block);
  bool known = rule.values.empty();
  for (Dim dim : rule.dims)
    dim.forEachSymbol([&](std::string_view name) {
      known &= symbols.contains(StringAttr::get(block->getParentOp()->getContext(), StringRef(name)));
    });
  return known;
}

static std::optional<dmir::Rule> zeroRule(Value operand, Block *block) {
  std::optional<dmir::Known> known = dmir::knownOf(operand);
  return known && known->value == 0 && isUsable(known->keep, block) ? std::optional(known->keep) : std::nullopt;
}

ProductRanges ProductRanges::of(const MatmulProduct &product, const kernels::PlanRequest &request) {
  ProductRanges ranges;
  // A row of joined batch items is in one of several matrices.
  const bool isOneMatrix = llvm::all_of(product.batchDims, [](Dim dim) { return dim.is(1); });
  auto matmul = dyn_cast<dmir::MatMulOp>(product.op);
  if (!matmul || product.blocks || product.fours() || product.pairs() || (product.joined && !isOneMatrix))
    return ranges;
  Block *block = product.op->getBlock();
  if (request.usesRanges(block, /*exact=*/true))
    if (std::optional<dmir::Demand> demand = dmir::demandOf(matmul.getResult());
        demand && isUsable(demand->keep, block))
      ranges.result = demand->keep;
  if (request.usesRanges(block, /*exact=*/false)) {
    ranges.left = zeroRule(matmul.getLhs(), block);
    if (!product.packedRhs)
      if (std::optional<dmir::Rule> right = zeroRule(matmul.getRhs(), block))
        ranges.right = dmir::transposed(*right);
  }
  constexpr double most = 0.9; // of all multiply-adds, for which ranges pay
  if (std::optional<double> part = ranges.part(product); !request.strategy && part && *part > most)
    return {};
  return ranges;
}

std::string dmxc::cpu::whyNoRanges(dmir::RegionOp region, const kernels::KernelPlan &plan) {
  const StringRef algorithm = plan.algorithm;
  auto products = region.getBlock()->getOps<dmir::MatMulOp>();
  if (products.empty() || !algorithm.starts_with("matmul"))
    return "";
  if (kernels::unusedFact(*products.begin(), plan.skips).empty())
    return "";
  if (algorithm == "matmul-generic")
    return "operands that are no views are multiplied element by element";
  if (algorithm.contains("quads") || algorithm.contains("pairs") || algorithm.contains("blocks"))
    return "bytes in fours, pairs of bf16 and blocks of few bits are multiplied whole";
  if (algorithm.ends_with("-bf16") || algorithm.ends_with("-s8"))
    return "rounded weights are kept whole";
  return "less than a tenth of the multiply-adds would be left out, or nothing that tiles see";
}

//===----------------------------------------------------------------------===//
// In a kernel
//===----------------------------------------------------------------------===//

namespace {

/// The columns that some rows of a matrix keep, whatever item of its batch it is.
std::pair<Value, Value> columnsOf(CpuBuilder &b, const dmir::Rule &rule, ArrayRef<Dim> batch, Value first, Value count,
                                  Value columns) {
  if (rule.cases.empty())
    return {b.idx(0), b.idx(0)};
  SmallVector<std::pair<Value, Value>> bounds;
  for (Dim dim : batch)
    bounds.emplace_back(b.idx(0), b.addC(b.idx(dim), -1));
  bounds.emplace_back(first, b.addC(b.add(first, count), -1));
  SmallVector<Value> symbols;
  for (Dim dim : rule.dims)
    symbols.push_back(b.idx(dim));
  dmir::ColumnRange<Value> kept = kernels::keptColumns(b, rule, bounds, dmir::pointsOf<Value>(symbols), columns);
  Value low = b.minS(b.maxS(kept.first, b.idx(0)), columns);
  return {low, b.maxS(low, b.minS(kept.last, columns))};
}

SmallVector<Dim> batchOf(Value operand) {
  SmallVector<Dim> dims = dmir::dimsOf(operand);
  dims.truncate(dims.size() - 2);
  return dims;
}

} // namespace

std::pair<Value, Value> ProductRanges::depths(CpuBuilder &b, const MatmulProduct &product, const GemmBox &box) const {
  Value k = b.idx(product.k), low = b.idx(0), high = k;
  auto narrow = [&](const dmir::Rule &rule, Value operand, Value first, Value count) {
    auto [from, to] = columnsOf(b, rule, batchOf(operand), first, count, k);
    low = b.maxS(low, from), high = b.minS(high, to);
  };
  if (left)
    narrow(*left, product.op->getOperand(0), box.row, box.rows);
  if (right)
    narrow(*right, product.op->getOperand(1), box.column, box.columns);
  constexpr int64_t unit = 4; // so that chains have the depths that they always have
  low = b.mulC(b.floorDiv(low, b.idx(unit)), unit);
  high = b.minS(b.mulC(b.ceilDiv(b.maxS(high, low), b.idx(unit)), unit), k);
  if (!result)
    return {low, high};
  auto [from, to] = columnsOf(b, *result, batchOf(product.result()), box.row, box.rows, b.idx(product.n));
  Value begins = b.cmp(arith::CmpIPredicate::slt, from, b.add(box.column, box.columns)),
        ends = b.cmp(arith::CmpIPredicate::slt, box.column, to), some = b.cmp(arith::CmpIPredicate::slt, from, to),
        asked = arith::AndIOp::create(b, begins, ends);
  return {low, arith::SelectOp::create(b, arith::AndIOp::create(b, asked, some), high, low)};
}

//===----------------------------------------------------------------------===//
// For known sizes
//===----------------------------------------------------------------------===//

namespace {

/// The columns that some rows keep, as columnsOf.
dmir::Run keptOf(const dmir::Rule &rule, ArrayRef<Dim> batch, int64_t first, int64_t count, int64_t columns) {
  SmallVector<dmir::Interval> rows;
  for (Dim dim : batch)
    rows.push_back({0, *dim.known() - 1});
  rows.push_back({first, first + count - 1});
  return dmir::keptColumns(rule, rows, columns, *dmir::symbolsOf(rule));
}

} // namespace

std::optional<double> ProductRanges::part(const MatmulProduct &product) const {
  constexpr int64_t rows = 12, columns = 32; // of a tile, about
  auto isKnown = [](Value value) { return cast<RankedTensorType>(value.getType()).hasStaticShape(); };
  if (!llvm::all_of(product.op->getOperands(), isKnown) || !isKnown(product.result()))
    return std::nullopt;
  const int64_t m = *product.m.known(), n = *product.n.known(), k = *product.k.known();
  if (m * n * k == 0)
    return std::nullopt;
  Value lhs = product.op->getOperand(0), rhs = product.op->getOperand(1);
  SmallVector<dmir::Run> ofColumns;
  for (int64_t column = 0; column < n; column += columns)
    ofColumns.push_back(right ? keptOf(*right, batchOf(rhs), column, std::min(columns, n - column), k)
                              : dmir::Run{0, k});
  double done = 0;
  for (int64_t row = 0; row < m; row += rows) {
    const int64_t count = std::min(rows, m - row);
    dmir::Run own = left ? keptOf(*left, batchOf(lhs), row, count, k) : dmir::Run{0, k};
    dmir::Run asked = result ? keptOf(*result, batchOf(product.result()), row, count, n) : dmir::Run{0, n};
    for (auto [i, other] : llvm::enumerate(ofColumns)) {
      const int64_t column = static_cast<int64_t>(i) * columns, width = std::min(columns, n - column);
      int64_t depth = std::min(own.second, other.second) - std::max(own.first, other.first);
      if (asked.first < column + width && column < asked.second && depth > 0)
        done += static_cast<double>(count) * width * depth;
    }
  }
  return done / (static_cast<double>(m) * n * k);
}
