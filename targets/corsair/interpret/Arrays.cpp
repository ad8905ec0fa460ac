//===- Arrays.cpp - what the arrays compute -------------------------------===//
//
// By schemas/blockfp: the product of tiles there is the definition of what an array gives, to the bit.
//
//===----------------------------------------------------------------------===//
#include "Arrays.h"

#include "schemas/blockfp/DotProduct.h"
#include "schemas/corsair/simd/SimdJob.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;
using namespace dmx::blockfp;

namespace {

/// A matrix as tiles.
struct Tiles {
  TensorLayout layout;
  std::vector<std::byte> bytes;

  const std::byte *at(int64_t run, int64_t k) const { return bytes.data() + layout.tileOffset(run, k); }
};

Result<Tiles> quantised(const View &matrix, Orientation orientation) {
  const View numbers =
      matrix.kind == hw::ElemKind::F32 && matrix.isRowMajor() ? matrix : matrix.copy(hw::ElemKind::F32);
  Tiles tiles;
  std::string error;
  std::optional<TensorLayout> layout =
      makeLayout(*blockFormatFromName("BFP16_64"), orientation, numbers.shape[0], numbers.shape[1], error);
  if (!layout)
    return modelError(error);
  tiles.layout = *layout;
  tiles.bytes.resize(layout->bytes());
  const MatrixView values{reinterpret_cast<const float *>(numbers.data()), numbers.shape[1]};
  if (MaybeError wrong = quantizeTensor(*layout, values, {}, tiles.bytes.data()))
    return modelError(*wrong);
  return tiles;
}

/// Adds the tiles of one part to 64 columns of up to 64 rows of sums.
MaybeError addPart(TileMatmul &engine, const Tiles &left, const Tiles &right, int64_t atOnce, int64_t i, int64_t j,
                   int rows, bool &begun, float *sums) {
  const int64_t count = left.layout.tilesAlongRun();
  for (int64_t first = 0; first < count; first += atOnce) {
    std::vector<const std::byte *> a, b;
    for (int64_t k = first; k < std::min(first + atOnce, count); ++k) {
      a.push_back(left.at(i, k));
      b.push_back(right.at(j, k));
    }
    const TileProduct product{left.layout.tile, right.layout.tile, rows, begun};
    if (MaybeError wrong = engine.run(product, a, b, sums))
      return wrong;
    begun = true;
  }
  return std::nullopt;
}

} // namespace

static std::optional<std::string> unfit(const Sums &sums) {
  if (sums.parts.empty())
    return "a product over nothing";
  const Sums::Part &first = sums.parts.front();
  for (const auto &[left, right, atOnce] : sums.parts)
    if (left.rank() != 2 || right.rank() != 2 || left.shape[1] != right.shape[0] || left.shape[1] == 0 ||
        left.shape[0] != first.left.shape[0] || right.shape[1] != first.right.shape[1] || atOnce < 1)
      return "matrices that do not fit each other";
  if (sums.bias && (sums.bias->rank() != 1 || sums.bias->shape[0] < first.right.shape[1]))
    return "a bias of other than the product's columns";
  return std::nullopt;
}

View dmxc::corsair::stages::blocksOf(const View &matrix, size_t axis, ArrayRef<int64_t> blocks) {
  Dims shape = matrix.shape;
  shape[axis] = static_cast<int64_t>(blocks.size()) * kTileRuns;
  View made = View::zeros(hw::ElemKind::F32, shape);
  for (auto [i, block] : llvm::enumerate(blocks)) {
    const int64_t from = block * kTileRuns, count = std::min<int64_t>(kTileRuns, matrix.shape[axis] - from);
    copyInto(matrix.slice(axis, from, count), made.slice(axis, static_cast<int64_t>(i) * kTileRuns, count));
  }
  return made;
}

Result<View> dmxc::corsair::stages::addedUp(const Sums &sums) {
  if (std::optional<std::string> why = unfit(sums))
    return modelError("multiplies " + *why);
  std::vector<std::pair<Tiles, Tiles>> parts;
  for (const Sums::Part &part : sums.parts) {
    Result<Tiles> left = quantised(part.left, Orientation::Row), right = quantised(part.right, Orientation::Column);
    if (!left || !right)
      return (left ? right : left).takeError();
    parts.emplace_back(std::move(*left), std::move(*right));
  }
  const int64_t m = sums.parts.front().left.shape[0], n = sums.parts.front().right.shape[1];
  const View bias = sums.bias ? sums.bias->copy(hw::ElemKind::Bfp32) : View();
  const auto *columns = sums.bias ? reinterpret_cast<const float *>(bias.data()) : nullptr;
  View result = View::zeros(hw::ElemKind::Bfp32, {m, n});
  TileMatmul engine;
  float tile[kTileRuns * kTileRuns];
  for (int64_t i = 0; i < m; i += kTileRuns)
    for (int64_t j = 0; j < n; j += kTileRuns) {
      const int64_t rows = std::min<int64_t>(m - i, kTileRuns), width = std::min<int64_t>(n - j, kTileRuns);
      bool begun = columns != nullptr;
      std::fill(std::begin(tile), std::end(tile), 0.0F);
      for (int64_t row = 0; begun && row < rows; ++row)
        std::copy_n(columns + j, width, tile + row * kTileRuns);
      for (auto [part, tiles] : llvm::zip(sums.parts, parts))
        if (MaybeError wrong = addPart(engine, tiles.first, tiles.second, part.atOnce, i / kTileRuns, j / kTileRuns,
                                       static_cast<int>(rows), begun, tile))
          return modelError(*wrong);
      for (int64_t row = 0; row < rows; ++row)
        std::copy_n(tile + row * kTileRuns, width, reinterpret_cast<float *>(result.data()) + (i + row) * n + j);
    }
  return result;
}

Status dmxc::corsair::stages::sumsInto(const Sums &sums, const View &out) {
  Result<View> made = addedUp(sums);
  if (made)
    copyInto(*made, out);
  return made ? Status::ok() : Status(made.takeError());
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// An axis of rows where there is none.
static View withRows(View view) {
  if (view.rank() == 3) {
    view.shape.insert(view.shape.begin() + 2, 1);
    view.steps.insert(view.steps.begin() + 2, 0);
  }
  return view;
}

static Dims withRows(const Dims &dims, int64_t row) { return dims.size() == 1 ? Dims{row, dims[0]} : dims; }

/// The pixels that each output pixel of one image sees, [oh * ow, kh * kw * depth]: zeros outside of the image, and
/// behind the channels.
static View windowsOf(const View &image, int64_t depth, const Dims &kernel, const Dims &strides, const Dims &dilations,
                      const Dims &low, ArrayRef<int64_t> size) {
  const int64_t channels = image.shape[0];
  View rows = View::zeros(hw::ElemKind::F32, {size[0], size[1], kernel[0], kernel[1], depth});
  for (int64_t oh = 0; oh < size[0]; ++oh)
    for (int64_t ow = 0; ow < size[1]; ++ow)
      for (int64_t kh = 0; kh < kernel[0]; ++kh)
        for (int64_t kw = 0; kw < kernel[1]; ++kw) {
          const int64_t h = oh * strides[0] - low[0] + kh * dilations[0],
                        w = ow * strides[1] - low[1] + kw * dilations[1];
          if (h < 0 || h >= image.shape[1] || w < 0 || w >= image.shape[2])
            continue;
          const View pixel = image.part({0, h, w}, {channels, 1, 1}, {1, 1, 1}).transposed({1, 2, 0}),
                     to = rows.part({oh, ow, kh, kw, 0}, {1, 1, 1, 1, channels}, {1, 1, 1, 1, 1});
          View flat = to;
          flat.shape = {1, 1, channels}, flat.steps = {0, 0, to.steps[4]};
          copyInto(pixel, flat);
        }
  return rows.reshaped({size[0] * size[1], kernel[0] * kernel[1] * depth});
}

/// Weights [o, c, kh, kw] as [kh * kw * depth, o].
static View columnsOf(const View &weights, int64_t depth) {
  const int64_t o = weights.shape[0], c = weights.shape[1], kh = weights.shape[2], kw = weights.shape[3];
  View columns = View::zeros(hw::ElemKind::F32, {kh, kw, depth, o});
  copyInto(weights.transposed({2, 3, 1, 0}), columns.slice(2, 0, c));
  return columns.reshaped({kh * kw * depth, o});
}

Status dmxc::corsair::stages::convolve(const Convolution &conv, const View &image, const View &weights,
                                       const std::optional<View> &bias, const View &out) {
  const View from = withRows(image), kernel = withRows(weights), to = withRows(out);
  const int64_t groups = conv.groups, columns = kernel.shape[0] / groups, channels = kernel.shape[1];
  if (from.rank() != 4 || kernel.rank() != 4 || to.rank() != 4 || groups < 1 || kernel.shape[0] % groups ||
      from.shape[1] != channels * groups || to.shape[1] != kernel.shape[0] || to.shape[0] != from.shape[0])
    return modelError("has an image, weights and a result that do not fit each other");
  const Dims size = withRows(conv.kernel, 1), strides = withRows(conv.strides, 1), low = withRows(conv.low, 0),
             dilations = withRows(conv.dilations, 1);
  const int64_t depth = conv.windows ? channels : (channels + 63) / 64 * 64; // of a place along K
  for (int64_t group = 0; group < groups; ++group) {
    const View tiles = columnsOf(kernel.slice(0, group * columns, columns), depth);
    for (int64_t number = 0; number < from.shape[0]; ++number) {
      View one = from.slice(0, number, 1).slice(1, group * channels, channels);
      one.shape.erase(one.shape.begin()), one.steps.erase(one.steps.begin());
      Sums sums;
      sums.parts.push_back(
          {windowsOf(one, depth, size, strides, dilations, low, ArrayRef(to.shape).drop_front(2)), tiles, conv.atOnce});
      if (bias)
        sums.bias = bias->slice(0, group * columns, columns);
      Result<View> made = addedUp(sums);
      if (!made)
        return made.takeError();
      View pixels = made->reshaped({1, to.shape[2], to.shape[3], columns}).transposed({0, 3, 1, 2});
      copyInto(pixels, to.slice(0, number, 1).slice(1, group * columns, columns));
    }
  }
  return Status::ok();
}
