//===- Mapping.h - a product on an array of cores ---------------*- C++ -*-===//
//
// What of a contraction the array does not have from elsewhere: the tiles of its cores, how many cores there are, what
// whole blocks of them make of its sizes, and how its operands lie in the array's DDR.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ImageWalk.h"

#include "targets/aie/dialect/Aie.h"
#include "targets/common/roots/ConstantMatrix.h"
#include "targets/common/tiles/Tiles.h"

namespace dmxc::aie {

/// What is multiplied: in the array's memory, in tiles of the cores.
struct Numbers {
  llvm::StringRef name;                    ///< "bf16"
  llvm::StringRef matmul;                  ///< kernels of the cores' library
  llvm::StringRef zero, bias, relu, steps; ///< the last one for f32
  llvm::StringRef round;                   ///< of results that have fewer bits than sums: between one op and the next
  int64_t m, k, n;                         ///< of a core's tiles; by default, where no mapping has them
  hw::MatrixStep step;
  int64_t bytes; ///< of an operand's element; results have 4
  bool operator==(const Numbers &) const = default;
};
/// kOwnBf16: results of bf16, each rounded; kUi8: bytes of a without a sign.
extern const Numbers kBf16, kOwnBf16, kI32, kI8, kUi8;
/// Those of a product of these elements; null where the array multiplies no such numbers.
const Numbers *numbersOf(mlir::Type a, mlir::Type b, mlir::Type c);

/// Cores that compute a product together.
struct Herd {
  int64_t rows = 4, columns = 4;
  int64_t panels = 1; ///< of b, that the cores of a column have: each for so many fewer rows of results
  int64_t outs = 1;   ///< channels by which the results of a column leave, each for some rows of cores
  int64_t bands = 1;  ///< of rows of results: one, or one of each column, and b is the same for all of them
  int64_t stays = 0;  ///< whether rows of a stay in memory tiles for the blocks beside each other
  int64_t resultRows() const { return rows * bands / panels; }
  int64_t resultColumns() const { return columns / bands * panels; }
  /// Whether each column has its own rows of a, or a copy, and not those of some rows of cores for all columns.
  bool owns() const { return panels > 1 || bands > 1; }
  /// How many rows' parts of a a memory tile has: as few as the columns allow, the same number in each that has some.
  int64_t parts() const;
  /// Columns whose shims bring rows of a.
  int64_t bringing() const { return owns() ? columns : rows / parts(); }
  bool operator==(const Herd &) const = default;
};

/// What of a mapping is free.
struct Tiling {
  int64_t herdRows = 4, herdColumns = 4;
  int64_t m = 64, k = 32, n = 64;
  int64_t groups = 1; ///< of a convolution, that are one matrix
  int64_t pixels = 1; ///< of a convolution's result, that a row of the product has
  int64_t panels = 1;
  int64_t outs = 1; ///< channels of a column's results
  int64_t bands = 1, stays = 0;

  static llvm::ArrayRef<kernels::TileField<Tiling>> fields();
  bool operator==(const Tiling &) const = default;
};

/// What an operand of the kernel is.
enum class Part : uint8_t { A, B, Bias, Residual, Scales, C };
struct Operand {
  Part part;
  mlir::RankedTensorType tensor;
  bool packed = false;                ///< the bundle has it in its form
  bool negated = false;               ///< a bias that is subtracted: so in its form
  llvm::SmallVector<int64_t, 4> most; ///< of a tensor with open sizes: its shape where all are as large as they may be

  bool isRow() const { return part == Part::Bias || part == Part::Scales; }
  bool operator==(const Operand &) const = default;

  llvm::ArrayRef<int64_t> shape() const { return most.empty() ? tensor.getShape() : llvm::ArrayRef(most); }
  int64_t bytes() const;
};

/// Sizes of a product that a run brings; numbers where they are fixed.
struct OpenSizes {
  Dim matrices = 1, m, k, n, macs;
  Dim images = 1, down = 1, across = 1; ///< of a convolution: and its output pixels
  bool operator==(const OpenSizes &) const = default;
};

/// What sums become behind a product that is narrowed: a kernel of the cores' library, and what it gives.
struct Narrow {
  llvm::StringRef kernel, kind; ///< "" where results are the sums
  int64_t bytes = 4;            ///< of a number
  bool operator==(const Narrow &) const = default;
};
/// Of results of these elements; null of others.
const Narrow *narrowTo(mlir::Type result);

/// Pairs of tiles along k, ascending and apart.
using Runs = kernels::RunList;

/// What of a constant b is not zero, where that is looked for.
class Held {
public:
  Held() = default;
  explicit Held(std::optional<kernels::NonZeros> found) {
    if (found)
      places = std::make_shared<const kernels::NonZeros>(std::move(*found));
  }
  explicit operator bool() const { return places != nullptr; }
  const kernels::NonZeros *operator->() const { return places.get(); }
  bool operator==(const Held &other) const {
    return places == other.places || (places && other.places && *places == *other.places);
  }

private:
  std::shared_ptr<const kernels::NonZeros> places;
};

/// c = steps(relu(a * b + bias + residual) * scales): a is m x k, b is k x n, the residual is as c; or so many of them.
/// Of a convolution a is read out of its images.
struct Mapping {
  Numbers numbers = kBf16;
  Herd herd;
  int64_t m = 0, k = 0, n = 0, matrices = 1; ///< of a convolution by its groups
  int64_t macs = 0;                          ///< multiplications of the model
  bool relu = false;
  std::vector<hw::Step> steps; ///< up to hw::kMostSteps
  bool floats = false;         ///< sums of i32 become f32 before the steps
  Narrow narrow;
  std::optional<ImageWalk> image;
  std::vector<Operand> operands; ///< as a dispatch brings them
  std::optional<OpenSizes> open; ///< where some are open: the others are what they may be at most
  std::vector<Runs> runs;        ///< of b, that each block of columns has; none: all have all of k
  Held held;                     ///< of which the runs are made

  Mapping() = default;
  bool operator==(const Mapping &) const = default;
  /// Of a contraction that the array computes, with the default tiling; without its operands.
  Mapping(const kernels::Contraction &contraction, const Numbers &numbers);
  /// Of sizes that a run brings: blocks of rows and columns, pairs of tiles along k.
  Dim rowBlocks() const;
  Dim columnBlocks() const;
  Dim pairs() const;
  Dim openMatrices() const { return open && !image ? open->matrices : Dim(matrices); }

  Tiling tiling() const {
    return {herd.rows,
            herd.columns,
            numbers.m,
            numbers.k,
            numbers.n,
            image ? image->together : 1,
            image ? image->pixels : 1,
            herd.panels,
            herd.outs,
            herd.bands,
            herd.stays};
  }
  void setTiling(const Tiling &tiling);
  /// Takes the default tiling of products with a residual, whose tiles are those of b.
  void expectResidual();

  int64_t blockM() const { return herd.resultRows() * numbers.m; }
  int64_t blockN() const { return herd.resultColumns() * numbers.n; }
  int64_t paddedM() const { return (m + blockM() - 1) / blockM() * blockM(); }
  /// A core has two buffers for operands and takes tiles along k in pairs.
  int64_t paddedK() const { return (k + 2 * numbers.k - 1) / (2 * numbers.k) * (2 * numbers.k); }
  int64_t paddedN() const { return (n + blockN() - 1) / blockN() * blockN(); }
  /// Pairs of tiles along k that a block of columns has, and terms of all blocks before.
  int64_t pairsOf(int64_t columnBlock) const;
  int64_t depthBefore(int64_t columnBlock) const;
  int64_t blocks() const { return matrices * (paddedM() / blockM()) * (paddedN() / blockN()); }
  bool narrows() const { return !narrow.kernel.empty(); }
  /// Of a result's number in DDR, and what it is.
  int64_t resultBytes() const { return narrow.bytes; }
  llvm::StringRef sums() const { return numbers.bytes == 2 ? "f32" : "i32"; }
  /// Slots for results that leave the core, where sums have one of their own: narrow ones take little.
  int64_t resultSlots() const { return !narrows() ? 0 : resultBytes() < 4 ? 2 : 1; }
  llvm::StringRef results() const { return narrows() ? narrow.kind : sums(); }
  bool has(Part part) const;
  bool packs(Part part) const;
  /// Of all buffers of a core for tiles of these sizes.
  int64_t tileBytes(int64_t m, int64_t k, int64_t n) const;
  /// Words of the pair of tiles of b as which a row comes, a bias or scales, and those that lie together in DDR where
  /// it is not packed.
  int64_t biasWords() const { return 2 * numbers.k * numbers.n * numbers.bytes / 4; }
  int64_t biasRun() const { return numbers.step.n * numbers.bytes / 4; }
  /// Whether all of them that a run does not bring are packed, as rows of several pixels ask for.
  bool hasPackedWeights() const;
  /// Multiplications of the cores for one of the model.
  double work() const;
  const Operand *operand(Part part) const;
  /// Rows of b that come for a block, with those as which a bias and scales come.
  int64_t rowsOfB() const { return paddedK() + 2 * numbers.k * (has(Part::Bias) + has(Part::Scales)); }
  /// Cores of a column that have the same panel, and the tiles of all of them, which come in pairs as those of b do.
  int64_t residualRows() const { return herd.rows / herd.panels; }
  int64_t residualTiles() const { return residualRows() + residualRows() % 2; }
  /// Tiles of a panel of b that come for a block, with those of what is added.
  int64_t tilesOfB() const { return rowsOfB() / numbers.k + (has(Part::Residual) ? residualTiles() : 0); }
  /// Bytes of what is added behind the steps, in tiles of b.
  bool addsBytes() const { return has(Part::Residual) && numbers.bytes == 1; }
  /// Of a first operand or a result that stays in the array's form.
  std::optional<Kept> kept(Part part) const;
  /// Rows and pitch of an operand's form in DDR. b lies panel after panel, the columns of a core, and so does a row
  /// that is packed: what a shim reads of them is one run.
  std::pair<int64_t, int64_t> formOf(Part part) const;
  bool hasTileOfZeros() const { return image && k / numbers.k % 2; }
  int64_t zerosOfA() const { return herd.parts() * numbers.m * numbers.k; }
  int64_t imageRows() const; ///< of a, of one matrix
  /// Elements of a plane from where a window begins to its end, and planes.
  int64_t reachOfWindows() const;
  int64_t planesOfWindows() const;
  /// Elements of a, from a matrix to the next.
  int64_t matrixOfA() const;
  /// Where the numbers of an operand lie in their form: of convolutions dim by dim, of products by matrix, row and
  /// column, or by row and column where there is one matrix. Where a run brings sizes, the most; and these.
  std::vector<hw::Axis> axesOf(const Operand &operand) const;
  llvm::SmallVector<Dim> sizesOf(const Operand &operand) const;
};
/// Of columns that have something for themselves, and channels: those of results are a shim's, and a memory tile's
/// beside those of a and b.
std::optional<std::string> refusesChannels(const hw::Machine &machine, const Herd &herd);
/// nullopt where the array holds the product, else a clause that says why not.
std::optional<std::string> refuses(const hw::Machine &machine, const Mapping &mapping);

} // namespace dmxc::aie
