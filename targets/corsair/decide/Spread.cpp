//===- Spread.cpp - a quad's product over slices and cores ----------------===//

#include "Spread.h"
#include "Constants.h"
#include "Ops.h"
#include "ViewLayout.h"
#include "scores/Bands.h"

#include "targets/common/roots/Contraction.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

Spread Spread::ofSizes(int64_t m, int64_t n, int64_t k) {
  Spread product;
  product.m = m, product.n = n, product.k = k;
  product.kChunks = (k + 63) / 64;
  return product;
}

Spread Spread::ofWindow(int64_t m, int64_t n, const hw::Window &window, int64_t channels) {
  const int64_t places = window.kh * window.kw, blocks = (channels + 63) / 64;
  Spread product = ofSizes(m, n, places * blocks * 64);
  product.conv = true;
  product.segment = product.kChunks; // nothing passes through IB
  product.rows.image = window.h * window.w * channels;
  product.rows.tiles = window.h * window.w * blocks;
  product.rows.perPixel = window.sh * window.kw * channels;
  if (window.kh == 1 || window.dh == 1) // the rows of a window are neighbours
    product.rows.chunks = (places * channels + 63) / 64;
  return product;
}

Spread Spread::byWindows() const {
  Spread made = *this;
  made.windows = true;
  made.kChunks = made.segment = rows.chunks;
  made.k = 64 * rows.chunks;
  return made;
}

double Spread::steps() const {
  const int64_t bands = (tilesM() + rowSlices() - 1) / rowSlices(), all = std::max<int64_t>(batch, 1);
  const int64_t products = sharing == Sharing::Batch ? (all + slices - 1) / slices : all;
  auto stepsOf = [&](int64_t blocks) {
    int64_t steps = 0;
    for (int64_t block = 0; block < blocks; block += segment)
      steps += (std::min(segment, blocks - block) + imc - 1) / imc;
    return steps;
  };
  int64_t steps = kept.empty() ? rounds() * stepsOf(kChunks) : 0;
  for (const auto &round : kept)
    steps += stepsOf(static_cast<int64_t>(round.size()));
  return static_cast<double>(bands * products * steps);
}

bool Spread::leavesNoMore(int64_t products, int64_t quadSlices) const {
  // Tiles of columns that one slice after the other has: those that have as many compute at once. What is left of a
  // last round is behind whole ones, with which it may be hidden.
  int64_t tiles = std::min<int64_t>(groups, tilesN());
  if (sharing == Sharing::Columns && rounds() == 1 && tilesN() > groups)
    tiles += n % 64 ? (tilesN() - 1) % groups + 1 : tilesN() % groups;
  return 4 * std::min(m, rowsAtOnce()) * tiles <= 5 * llvm::divideCeil(products * m * tilesN(), quadSlices);
}

//===----------------------------------------------------------------------===//
// In the text
//===----------------------------------------------------------------------===//

lldmir::PlanAttr Spread::plan(MLIRContext *context) const {
  return lldmir::PlanAttr::get(
      context, imc, ppr, lldmir::SpreadAttr::get(context, groups, slices, kShares[static_cast<int>(sharing)], segment),
      windows);
}

Spread Spread::by(lldmir::PlanAttr plan) const {
  Spread made = plan.getWindows() ? byWindows() : *this;
  lldmir::SpreadAttr spread = plan.getSpread();
  made.imc = static_cast<int>(plan.getNumImc()), made.ppr = static_cast<int>(plan.getPprMode());
  made.groups = static_cast<int>(spread.getGroups());
  made.slices = static_cast<int>(spread.getSlices());
  made.sharing = static_cast<Sharing>(llvm::find(kShares, spread.getShare()) - std::begin(kShares));
  made.segment = spread.getSegment();
  made.pitch = conv ? kTileBytes : pitchOf(std::min(m, made.sliceRows()));
  return made;
}

Spread dmxc::corsair::planOf(Operation *product, const Distribution &deal) {
  return productOf(product, deal).by(product->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr));
}

std::optional<std::string> dmxc::corsair::unfit(const Spread &unspread, lldmir::PlanAttr plan,
                                                const hw::Machine &machine) {
  if (std::optional<std::string> why = lldmir::unfit(machine, plan.getNumImc(), plan.getPprMode(), plan.getSpread()))
    return why;
  if (plan.getWindows() && !unspread.rows.chunks)
    return "it has no windows whose rows are neighbours, and which nothing else multiplies by its weights";
  const Spread product = unspread.by(plan);
  auto text = [](int64_t number) { return std::to_string(number); };
  if (product.imc > product.kChunks)
    return "num_imc is " + text(product.imc) + ", and the product has " + text(product.kChunks) +
           " blocks of 64 along K";
  if (product.sharing == Sharing::Batch && !product.batch && product.slices > 1)
    return "it has no products that slices could share: it is one";
  const int64_t segment = product.segment, longest = product.longestSegment();
  // What is longer than K is all of it.
  if (product.conv ? segment != longest : segment > longest && product.kChunks > longest)
    return "segment is " + text(segment) + ", and must be " + text(longest) + (product.conv ? "" : " at most");
  if (product.kChunks > segment && segment % product.imc)
    return "segment is " + text(segment) + ", which is no multiple of num_imc " + text(product.imc);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

bool dmxc::corsair::isProduct(Operation *op) {
  auto conv = dyn_cast<dmir::ConvOp>(op);
  return !makesNothing(op) && kernels::Contraction::is(op) && !(conv && isDepthwise(conv));
}

int64_t dmxc::corsair::rowsOfTiles(BlockArgument argument, const Distribution &deal) {
  const Split split = deal.at((*argument.user_begin())->getResult(0));
  return split && split.dim == 0 ? split.part : shapeOf(argument).front();
}

int64_t dmxc::corsair::packedRows(ArrayRef<int64_t> resultShape) {
  return ShapedType::getNumElements(resultShape.drop_back());
}

/// The most rows (a convolution's pixels) that a quad multiplies by these packed weights in one of their uses.
static int64_t plannedRows(Value weights, const Distribution &deal) {
  int64_t most = 0;
  for (Operation *user : weights.getUsers()) {
    if (makesNothing(user))
      continue;
    const SmallVector<int64_t> shape = shareOf(shapeOf(user->getResult(0)), deal.at(user->getResult(0)));
    most = std::max(most, isa<dmir::ConvOp>(user) ? ShapedType::getNumElements(ArrayRef(shape).drop_front(2))
                                                  : packedRows(shape));
  }
  return most;
}

void dmxc::corsair::joinRows(ProductRows &rows, SmallVectorImpl<BatchDim> &batch, Spread &product) {
  while (!batch.empty()) {
    const BatchDim last = batch.back();
    const bool one = rows.count == 1;
    const bool goOn = last.a == rows.count * rows.a && last.out == rows.count * rows.out &&
                      llvm::all_of(llvm::zip(last.beside, rows.beside),
                                   [&](auto steps) { return std::get<0>(steps) == rows.count * std::get<1>(steps); });
    if (last.b != 0 || (!one && !goOn))
      break;
    if (one)
      rows.a = last.a, rows.out = last.out, rows.beside = last.beside;
    rows.count *= last.extent;
    batch.pop_back();
  }
  product.m = rows.count;
  product.batch = 0;
  for (const BatchDim &dim : batch)
    product.batch = std::max(product.batch, dim.extent);
}

static int64_t numberOf(Dim dim) { return dim.valueOr(0); }

static Spread convolutionOf(dmir::ConvOp conv, const Distribution &deal) {
  const ArrayRef<int64_t> kernel = shapeOf(conv.getWeights());
  const int64_t columns = deal.columns.lookup(conv);
  const hw::Window window = windowOf(shapeOf(conv.getInput()), shapeOf(conv.getResult()), kernel.drop_front(2),
                                     conv.getStrides(), conv.getDilations(), conv.getLow());
  Spread product =
      Spread::ofWindow(plannedRows(conv.getWeights(), deal),
                       columns ? columns : kernel[0] / static_cast<int64_t>(conv.getGroups()), window, kernel[1]);
  if (!conv.getWeights().hasOneUse()) // its uses would have to agree
    product.rows.chunks = 0;
  return product;
}

/// Where an operand lies: views of what the kernel has in GM.
static kernels::StridedView viewOf(Value operand, unsigned fromEnd) {
  kernels::StridedView view{0, 0, {}};
  llvm::append_range(view.strides, operandLayout(operand, fromEnd).strides);
  return view;
}

Spread dmxc::corsair::productOf(Operation *op, const Distribution &deal) {
  if (auto conv = dyn_cast<dmir::ConvOp>(op))
    return convolutionOf(conv, deal);
  auto matmul = cast<dmir::MatMulOp>(op);
  const kernels::Contraction whole(matmul, viewOf(matmul.getLhs(), 1), viewOf(matmul.getRhs(), 2));
  const SmallVector<int64_t> shape = shareOf(shapeOf(matmul.getResult()), deal.at(matmul.getResult()));
  const int64_t depth = deal.depth.lookup(matmul);
  Spread product = Spread::ofSizes(shape[shape.size() - 2], shape.back(), depth ? depth : numberOf(whole.k));
  if (deal.packed.contains(matmul.getRhs())) {
    product.m = plannedRows(matmul.getRhs(), deal);
    if (auto columns = deal.zeros.lookup(matmul.getRhs()); columns && !depth)
      product.columns = deal.columns.contains(matmul) ? columns->folded(product.n) : columns;
    return product;
  }
  if (isInBands(matmul, deal)) {
    product.m = kBandRows;
    product.sharesBand = deal.bands.contains(matmul.getLhs().getDefiningOp());
    return product;
  }
  const SmallVector<int64_t> out = denseStrides(shapeOf(matmul.getResult()), rowMajor(shape.size()), 1);
  ProductRows rows{product.m, numberOf(whole.lhsRow), out[shape.size() - 2]};
  SmallVector<BatchDim> batch;
  for (size_t dim = 0; dim + 2 < shape.size(); ++dim)
    if (shape[dim] != 1)
      batch.push_back({shape[dim], numberOf(whole.lhsBatch[dim]), numberOf(whole.rhsBatch[dim]), out[dim]});
  joinRows(rows, batch, product);
  return product;
}
