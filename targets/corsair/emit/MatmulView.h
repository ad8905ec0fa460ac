//===- MatmulView.h - operands of a product as strided matrices -*- C++ -*-===//
#pragma once

#include "DeviceTensor.h"
#include "Window.h"

namespace dmxc::corsair {

/// What the slices of a quad share of a product.
enum class Sharing : uint8_t {
  Columns, ///< each slice has columns of its own and all rows
  Rows,    ///< each slice has 64 rows of its own and all columns
  Batch,   ///< each slice has a product of its own
};

/// How a product is spread over the slices of a quad and over the cores of a slice, and in which order its terms are
/// added: all that decides its bits and its time.
struct MatmulPlan {
  int64_t m = 0, n = 0, k = 0; ///< of one product
  int64_t kChunks = 0;         ///< blocks of 64 along k
  Sharing sharing = Sharing::Columns;
  int slices = 1;                   ///< that take part
  int imc = 1, ppr = 0, groups = 1; ///< num_imc, ppr_mode; tiles of 64 columns side by side
  int64_t pitch = kTileBytes;       ///< bytes of a chunk of rows in IB
  int64_t segment = kSegment;       ///< chunks that half of IB holds; of a convolution: all

  static constexpr int64_t kTileBytes = 4160, kSegment = 8;
  int columnSlices() const { return sharing == Sharing::Columns ? slices : 1; }
  int rowSlices() const { return sharing == Sharing::Rows ? slices : 1; }
  int mask() const { return (1 << slices) - 1; }
  int64_t tilesN() const { return (n + 63) / 64; }
  /// Tiles of 64 columns that all slices compute at once.
  int64_t tilesARound() const { return static_cast<int64_t>(groups) * columnSlices(); }
  /// Rounds over the columns until all slices have seen all of theirs.
  int64_t rounds() const { return (tilesN() + tilesARound() - 1) / tilesARound(); }
  /// Times that an array is given 64 rows, one slice after another of a batch of products.
  double steps(int64_t batch) const;
  /// Whether a round's tiles stay in WB while several bands of rows pass: one tile a core.
  bool isStationary() const { return imc == kChunks && m > 64 * rowSlices(); }
  int64_t segments() const { return (kChunks + segment - 1) / segment; }
  /// Bytes of B's tiles in one slice: [round][group][chunk].
  int64_t bytesPerSlice() const { return rounds() * groups * kChunks * kTileBytes; }
  /// Rows of sums for which half of OB has room.
  int64_t rowsAtOnce() const { return groups > 2 ? 32 : 64; }
};
MatmulPlan planMatmul(const hw::Machine &machine, int64_t m, int64_t n, int64_t k, int64_t batch = 1);
/// The plan of a convolution: rows are output pixels, K is kernel positions times blocks of 64 channels.
MatmulPlan planConv(const hw::Machine &machine, int64_t pixels, int64_t channelsOut, int64_t kChunks);

/// The image of a convolution, in tiles of 64 pixels by 64 channels.
struct ConvSource {
  Window window;
  int64_t blocks; ///< of 64 channels
  int64_t pixels; ///< of the output
};

/// Where one product reads and writes; strides in bytes.
struct MatmulOperands {
  Address a, b, out, st;            ///< `st`: B's tiles
  int64_t aRow = 0, aColumn = 0;    ///< along M and along K
  int64_t bRow = 0, bColumn = 0;    ///< along K and along N
  int64_t outRow = 0, outBytes = 2; ///< of an element: f16, or f32 for sums that go on
  /// Batch sharing: from one slice's product to the next.
  int64_t aSlice = 0, bSlice = 0, outSlice = 0;
  Address bias; ///< BFP32_1 of each column, added to the sums; no buffer: none
  /// A convolution: `a` is its image and `pixel` the first output pixel.
  const ConvSource *conv = nullptr;
  Address pixel;
};

struct BatchDim {
  int64_t extent, a, b, out;
};

/// M, N, K and the batch dims of a product; batch dims that walk on through the rows are part of M.
struct MatmulShape {
  MatmulShape(const DeviceTensor &a, const DeviceTensor &b, const DeviceTensor &out);
  /// With a B that is packed.
  MatmulShape(const DeviceTensor &a, const DeviceTensor &out);

  int64_t m, n, k;
  MatmulOperands operands;
  llvm::SmallVector<BatchDim> batch;

private:
  void joinBatch();
};

/// The arrays' memories as buffers.
struct ArrayUnits {
  int ib, wb, ob;
};

/// Which of the arrays' memories is too small for any product: a clause with its key in the description, its size and
/// what is needed; nullopt where none is.
std::optional<std::string> lacksForProducts(const hw::Machine &machine);
/// Writes one product (or one for each slice). B's tiles are in ST.
void emitProduct(Program &program, const ArrayUnits &units, const MatmulPlan &plan, const MatmulOperands &operands);
/// Quantises B, which lies in GM, to tiles in ST.
void emitPack(Program &program, const MatmulPlan &plan, const MatmulOperands &operands);

/// The rows a constant product is planned for: all leading dims of the result.
int64_t packedRows(llvm::ArrayRef<int64_t> resultShape);
/// The most rows (a convolution's pixels) that a quad multiplies by these packed weights in one of their uses.
int64_t plannedRows(mlir::Value weights, const Distribution &deal);

} // namespace dmxc::corsair
