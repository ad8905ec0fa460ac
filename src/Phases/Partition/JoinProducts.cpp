//===- JoinProducts.cpp - products that wait for their matrices -----------===//
//
// Products of few rows take the time in which their matrices come from memory, if there are few kernels of them: what
// is projected into heads is one product.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// A product with a constant matrix whose columns are those of some heads, each of as many, and nothing else.
struct Projection {
  dmir::MatMulOp product;
  dmir::ConstantOp matrix;
  dmir::ReshapeOp split; ///< [.., heads, 1, .., columns of one]
  SmallVector<Dim> dims; ///< of the split
  size_t axis = 0;       ///< of the heads

  static std::optional<Projection> of(dmir::MatMulOp product) {
    Projection found{product, product.getRhs().getDefiningOp<dmir::ConstantOp>(), {}, {}};
    if (!found.matrix || !found.matrix->hasOneUse() || dmir::dimsOf(product.getRhs()).size() != 2 ||
        !product.getResult().hasOneUse())
      return std::nullopt;
    found.split = dyn_cast<dmir::ReshapeOp>(*product.getResult().user_begin());
    found.dims = found.split ? dmir::dimsOf(found.split.getResult()) : SmallVector<Dim>();
    Dim all = dmir::dimsOf(product.getResult()).back();
    if (found.dims.size() < 2)
      return std::nullopt;
    for (found.axis = found.dims.size() - 2; found.axis > 0 && found.dims[found.axis].is(1);)
      --found.axis;
    bool splits = found.columns().known() && found.heads().known() && found.heads() * found.columns() == all;
    return splits ? std::optional(found) : std::nullopt;
  }
  Dim columns() const { return dims.back(); }
  Dim heads() const { return dims[axis]; }
  bool joins(const Projection &other) const {
    SmallVector<Dim> own(dims);
    own[axis] = other.dims.size() == dims.size() ? other.dims[axis] : Dim(0);
    return axis == other.axis && own == other.dims && product->getOperand(0) == other.product->getOperand(0) &&
           elementOf(matrix->getResult(0)) == elementOf(other.matrix->getResult(0));
  }
};

/// One product of all columns, of which each has its heads.
void join(ArrayRef<Projection> all) {
  dmir::MatMulOp first = all.front().product;
  OpBuilder b(first);
  SmallVector<Value> matrices;
  SmallVector<Location> locations;
  Dim count = 0;
  for (const Projection &each : all) {
    each.matrix->moveBefore(first); // a constant rests on nothing
    matrices.push_back(each.matrix->getResult(0));
    locations.push_back(each.product->getLoc());
    count += each.heads();
  }
  Location loc = b.getFusedLoc(locations);
  SmallVector<Dim> rows = dmir::dimsOf(matrices.front()), dims = dmir::dimsOf(first.getResult()),
                   split = all.front().dims;
  rows.back() = dims.back() = count * all.front().columns();
  split[all.front().axis] = count;
  Value matrix = dmir::ConcatOp::create(b, loc, dmir::tensorOf(rows, elementOf(matrices.front())), matrices,
                                        b.getI64IntegerAttr(1));
  Type element = elementOf(first.getResult());
  Value product = dmir::MatMulOp::create(b, loc, dmir::tensorOf(dims, element), first.getLhs(), matrix);
  Value heads = dmir::ReshapeOp::create(b, loc, dmir::tensorOf(split, element), product);
  Dim start = 0;
  for (Projection each : all) {
    SmallVector<Dim> starts(split.size(), Dim(0)), dynamic;
    starts[each.axis] = start;
    SmallVector<int64_t> from = dmir::splitDims(starts, dynamic), sized = dmir::splitDims(each.dims, dynamic),
                         steps(split.size(), 1);
    b.setInsertionPoint(each.split);
    Value own = dmir::SliceOp::create(b, each.split.getLoc(), each.split.getType(), heads, from, sized, steps,
                                      dmir::dimsAttr(b.getContext(), dynamic));
    start += each.heads();
    each.split.getResult().replaceAllUsesWith(own);
    each.split.erase();
    each.product.erase();
  }
}

struct JoinProducts : dmxc::impl::JoinProductsBase<JoinProducts> {
  explicit JoinProducts(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    std::vector<SmallVector<Projection>> groups;
    for (auto product : getOperation().getOps<dmir::MatMulOp>()) {
      const TargetBackend *target = context.responsible(product);
      std::optional<Projection> found =
          target && target->waitsForMatrix(product) ? Projection::of(product) : std::nullopt;
      if (!found)
        continue;
      auto group = llvm::find_if(groups, [&](const auto &known) { return known.front().joins(*found); });
      (group == groups.end() ? groups.emplace_back() : *group).push_back(*found);
    }
    for (ArrayRef<Projection> group : groups)
      if (group.size() > 1)
        join(group);
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createJoinProductsPass(const PhaseContext &context) {
  return std::make_unique<JoinProducts>(context);
}
} // namespace dmxc
