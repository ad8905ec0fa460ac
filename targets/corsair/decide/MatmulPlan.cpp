//===- MatmulPlan.cpp - how a product is computed -------------------------===//

#include "MatmulPlan.h"
#include "Constants.h"
#include "ViewLayout.h"
#include "scores/Bands.h"

#include <numeric>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static int64_t productOf(ArrayRef<int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t(1), std::multiplies<>());
}

static int64_t bandsOf(int64_t rows) { return (rows + 63) / 64; }

double MatmulPlan::steps(int64_t batch) const {
  int64_t bands = (bandsOf(m) + rowSlices() - 1) / rowSlices();
  int64_t products = sharing == Sharing::Batch ? (batch + slices - 1) / slices : batch;
  int64_t steps = 0;
  for (int64_t chunk = 0; chunk < kChunks; chunk += segment)
    steps += (std::min(segment, kChunks - chunk) + imc - 1) / imc;
  return static_cast<double>(bands * rounds() * products * steps);
}

//===----------------------------------------------------------------------===//
// In the text
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kShares[] = {"columns", "rows", "batch"}; // as Sharing

lldmir::PlanAttr MatmulPlan::write(MLIRContext *context) const {
  return lldmir::PlanAttr::get(context, imc, ppr, groups, slices, kShares[static_cast<int>(sharing)], segment);
}

MatmulPlan MatmulPlan::read(lldmir::PlanAttr attribute, const ProductDims &dims) {
  MatmulPlan plan;
  plan.m = dims.m, plan.n = dims.n, plan.k = dims.k, plan.kChunks = dims.kChunks;
  plan.imc = static_cast<int>(attribute.getNumImc());
  plan.ppr = static_cast<int>(attribute.getPprMode());
  plan.groups = static_cast<int>(attribute.getGroups());
  plan.slices = static_cast<int>(attribute.getSlices());
  plan.sharing = static_cast<Sharing>(llvm::find(kShares, attribute.getShare()) - std::begin(kShares));
  plan.segment = attribute.getSegment();
  plan.sharesBand = dims.ofBand;
  plan.pitch = dims.conv ? kTileBytes : pitchOf(std::min(dims.m, plan.sliceRows()));
  return plan;
}

MatmulPlan dmxc::corsair::planOf(Operation *product, const Distribution &deal) {
  return MatmulPlan::read(product->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr), dimsOf(product, deal));
}

std::optional<std::string> dmxc::corsair::unfit(lldmir::PlanAttr plan, const ProductDims &dims,
                                                const hw::Machine &machine) {
  const int64_t imc = plan.getNumImc(), ppr = plan.getPprMode(), groups = plan.getGroups(), cores = machine.cores;
  auto text = [](int64_t number) { return std::to_string(number); };
  if (ppr > machine.maxPprMode || (int64_t(1) << ppr) > cores || imc > int64_t(1) << ppr)
    return "num_imc " + text(imc) + " <= 2^ppr_mode " + text(ppr) + " <= " + text(cores) +
           " cores of a slice does not hold";
  if (imc > dims.kChunks)
    return "num_imc is " + text(imc) + ", and the product has " + text(dims.kChunks) + " blocks of 64 along K";
  if (groups > 4 || groups * imc > cores)
    return "groups is " + text(groups) + ": OB has room for four, and a slice has " + text(cores) + " cores";
  if (plan.getSlices() > machine.slices)
    return "slices is " + text(plan.getSlices()) + ", a quad has " + text(machine.slices);
  if (plan.getShare() == "batch" && !dims.batch && plan.getSlices() > 1)
    return "it has no products that slices could share: it is one";
  const int64_t rows = std::min(dims.m, MatmulPlan::read(plan, dims).sliceRows());
  const int64_t segment = plan.getSegment(), longest = dims.conv ? dims.kChunks : MatmulPlan::longestSegment(rows);
  // What is longer than K is all of it.
  if (dims.conv ? segment != longest : segment > longest && dims.kChunks > longest)
    return "segment is " + text(segment) + ", and must be " + text(longest) + (dims.conv ? "" : " at most");
  if (dims.kChunks > segment && segment % imc)
    return "segment is " + text(segment) + ", which is no multiple of num_imc " + text(imc);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

bool dmxc::corsair::isProduct(Operation *op) {
  auto conv = dyn_cast<dmir::ConvOp>(op);
  return !makesNothing(op) && (isa<dmir::MatMulOp>(op) || (conv && !isDepthwise(conv)));
}

int64_t dmxc::corsair::rowsOfTiles(BlockArgument argument, const Distribution &deal) {
  const Split split = deal.at((*argument.user_begin())->getResult(0));
  return split && split.dim == 0 ? split.part : shapeOf(argument).front();
}

int64_t dmxc::corsair::packedRows(ArrayRef<int64_t> resultShape) { return productOf(resultShape.drop_back()); }

/// The part of a result that a quad computes.
static SmallVector<int64_t> partOf(Value result, const Distribution &deal) {
  SmallVector<int64_t> shape(shapeOf(result));
  if (Split split = deal.at(result))
    shape[split.dim] = split.part;
  return shape;
}

/// The most rows (a convolution's pixels) that a quad multiplies by these packed weights in one of their uses.
static int64_t plannedRows(Value weights, const Distribution &deal) {
  int64_t most = 0;
  for (Operation *user : weights.getUsers()) {
    if (makesNothing(user))
      continue;
    SmallVector<int64_t> shape = partOf(user->getResult(0), deal);
    most = std::max(most, isa<dmir::ConvOp>(user) ? productOf(ArrayRef(shape).drop_front(2)) : packedRows(shape));
  }
  return most;
}

static ProductDims convDims(dmir::ConvOp conv, const Distribution &deal) {
  ArrayRef<int64_t> weights = shapeOf(conv.getWeights());
  ProductDims dims;
  dims.conv = true;
  dims.m = plannedRows(conv.getWeights(), deal);
  const int64_t columns = deal.columns.lookup(conv);
  dims.n = columns ? columns : weights[0] / static_cast<int64_t>(conv.getGroups());
  dims.kChunks = productOf(weights.drop_front(2)) * ((weights[1] + 63) / 64);
  dims.k = dims.kChunks * 64;
  return dims;
}

void ProductRows::join(SmallVectorImpl<BatchDim> &batch) {
  while (!batch.empty()) {
    const BatchDim last = batch.back();
    const bool one = count == 1;
    if (last.b != 0 || (!one && (last.a != count * a || last.out != count * out)))
      return;
    if (one)
      a = last.a, out = last.out;
    count *= last.extent;
    batch.pop_back();
  }
}

void dmxc::corsair::setRows(ProductDims &dims, const ProductRows &rows, ArrayRef<BatchDim> batch) {
  dims.m = rows.count;
  dims.batch = 0;
  for (const BatchDim &dim : batch)
    dims.batch = std::max(dims.batch, dim.extent);
}

/// The stride of an operand along a dim of the result, counted from the end.
static int64_t strideOf(const DeviceTensor &operand, size_t fromEnd) {
  const size_t dim = operand.rank() - fromEnd;
  return fromEnd > operand.rank() || operand.shape[dim] == 1 ? 0 : operand.strides[dim];
}

ProductDims dmxc::corsair::dimsOf(Operation *product, const Distribution &deal) {
  if (auto conv = dyn_cast<dmir::ConvOp>(product))
    return convDims(conv, deal);
  auto matmul = cast<dmir::MatMulOp>(product);
  const SmallVector<int64_t> shape = partOf(matmul.getResult(), deal);
  ProductDims dims;
  dims.n = shape.back();
  dims.k = shapeOf(matmul.getLhs()).back();
  if (const int64_t depth = deal.depth.lookup(matmul))
    dims.k = depth;
  dims.kChunks = (dims.k + 63) / 64;
  if (deal.packed.contains(matmul.getRhs())) {
    dims.m = plannedRows(matmul.getRhs(), deal);
    return dims;
  }
  if (isInBands(matmul, deal)) {
    dims.m = kBandRows;
    dims.ofBand = deal.bands.contains(matmul.getLhs().getDefiningOp());
    return dims;
  }
  const DeviceTensor a = operandLayout(matmul.getLhs(), 1), b = operandLayout(matmul.getRhs(), 2);
  const SmallVector<int64_t> out = denseStrides(shapeOf(matmul.getResult()), rowMajor(shape.size()), 1);
  ProductRows rows{shape[shape.size() - 2], a.strides[a.rank() - 2], out[shape.size() - 2]};
  SmallVector<BatchDim> batch;
  for (size_t dim = 0; dim + 2 < shape.size(); ++dim)
    if (const size_t fromEnd = shape.size() - dim; shape[dim] != 1)
      batch.push_back({shape[dim], strideOf(a, fromEnd), strideOf(b, fromEnd), out[dim]});
  rows.join(batch);
  setRows(dims, rows, batch);
  return dims;
}
