//===- Gemm.h - matrix multiplication kernels -------------------*- C++ -*-===//
//
// C[batch][m][n] = sum over k of A[batch][m][k] * B[batch][k][n], with whatever
// the caller's store callback does to C on the way to memory. One register-tile
// kernel serves large products, GEMV, and products of two run-time operands; a
// constant B is packed once at compile time ("panel16"), a run-time B is packed
// by the kernel into this thread's scratch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "SparseWeights.h"

#include "targets/common/roots/Contraction.h"
#include "targets/common/tiles/Tiles.h"
#include "targets/cpu/code/CpuBuilder.h"
#include "targets/cpu/user/MicroKernel.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

namespace dmxc::cpu {

/// In the place of a size that only the running kernel knows.
constexpr int64_t kDynamic = -1;
/// A size that only the running kernel knows, which comes with GemmExtents.
inline Dim openSize() { return Dim::symbol("open"); }

/// Whether rows that are so many bytes apart are in one set of a first-level cache.
inline bool sharesSets(int64_t bytes) { return bytes % 4096 == 0; }

/// Panels of packed columns are 16 wide: a tile takes a part of one, or whole ones.
inline bool fitsPanels(int64_t columns) { return columns % 16 == 0 || 16 % columns == 0; }

/// Element types of a product in memory (signless integers) and of its sums: f32 (from f32, f16, bf16, and bytes that
/// are exact in it), f64 (from any float), i32 or i64 (from integers).
struct ProductTypes {
  mlir::Type aType, bType, accType;
  bool aUnsigned = false, bUnsigned = false;

  ProductTypes() = default;
  /// Of tensors' elements.
  ProductTypes(mlir::Type left, mlir::Type right, mlir::Type result);
};

/// How a packed B of few bits is kept: integers of `bits` bits with a scale for each `block` of k and column.
struct GemmBlocks {
  int64_t bits = 4, block = 32;
  bool isSigned = false;
  int64_t zero = 0;     ///< is subtracted from every integer
  mlir::Type scaleType; ///< a float
  mlir::Type zeroType;  ///< of zero points a block: null (there are none), i8 or scaleType

  /// Elements of a column that four bytes hold.
  int64_t perWord() const { return 32 / bits; }
};

/// Tiles cut k in `count` of `steps` fours or pairs each, at most 16, the rows of a panel of B that a tile has; the
/// last of them begins `again` steps early, with such that the one before has had, so that none goes beyond the panel.
struct TileDepth {
  int64_t steps, count, again;

  explicit TileDepth(int64_t rows);
};

struct GemmTiles;

/// A product as register tiles compute it: how its operands lie and meet, beside a Contraction's sizes, some of which
/// may be parts of these.
struct GemmKernel : kernels::ContractionSizes, ProductTypes {
  /// B is a constant in panel16 form; otherwise a strided matrix of this run.
  bool packedB = true;
  /// Elements of a B that is copied, of f32, are rounded to bf16 there.
  bool roundsB = false;
  /// Elements are fours: four u8 of a row of A and four s8 of a column of B that are adjacent along k, each as one i32
  /// (bType and accType; aType is i8). k counts fours and is static. B is packed by packFours16; offsets and strides of
  /// A count bytes, its columns are adjacent.
  bool fours = false;
  /// Bytes of the last four of a row that A has: 1 to 4. The others are neither read nor count.
  int64_t lastFour = 4;
  /// B is a constant in pairs16 form: two bf16 of a column that are adjacent along k, the first in the low half, are
  /// one i32 (bType). aType is bf16, accType f32, k is static and counts elements.
  bool pairs = false;
  /// A are rows of bf16 in scratch, of whole pairs, the second of a row's last pair zero where k is odd, or of f32
  /// where they are multiplied as floats; B is a matrix of this run of bf16 or rounded to it, copied to scratch in
  /// pairs where they are multiplied so.
  bool runPairs = false;
  /// Columns of A, and of a B of this run, are adjacent.
  bool adjacentA = false, adjacentB = false;
  /// Columns of A are adjacent, and its rows so many bytes apart that they share no set of a cache: see sharesSets.
  bool apartA = false;
  /// Elements of A and of a B of this run are adjacent along k.
  bool alongDepth = false;
  /// What levels may multiply pairs and fours with, where they have it.
  Units units{true, true};
  /// How a level multiplies pairs: see `at`. Otherwise as floats, first the low halves, then the high ones.
  enum class Unit { Floats, Dots, Tiles } unit = Unit::Floats;
  /// Of Dots, whose k counts pairs: the last pair of a row of A has one element. It is read alone.
  bool halfLast = false;
  /// B is a constant in blocks16 form (bType is i32, four bytes of a column), the accumulator f32, k and n are static.
  std::optional<GemmBlocks> blocks;
  /// Of such blocks of s8 without zero points: A are floats, which are rounded in blocks of as many to scratch as
  /// integers (dmir.round_blocks); these are multiplied, and the sums of blocks scaled.
  bool bytes = false;
  /// Of `bytes`: a level multiplies i16 in pairs, which A is copied as.
  bool bytePairs = false;
  /// B is a constant in the form "runs"; the accumulator's stretches are those of a B with all of k, which is static.
  std::optional<WeightRuns> runs;
  /// What computes full tiles of f32, at levels that it has a body for.
  std::optional<MicroKernel> micro;
  /// The store callback emits much code (a GELU, say): it is then emitted once
  /// a vector of a row instead of once a vector of the register tile.
  bool heavyEpilogue = false;
  /// The product is part of a work item of another kernel: all of it is computed where it is emitted, and not cut for
  /// threads.
  bool nested = false;

  /// Rows of A belong to batch items, which have a B each, as GemmCallbacks::rows says; those behind the last item's
  /// are zeros in C. Neither m nor batch * m counts them: no tile rests on m.
  bool grouped = false;

  /// Sizes that are known now, else kDynamic.
  int64_t rows() const { return grouped ? kDynamic : m.valueOr(kDynamic); }
  int64_t columns() const { return n.valueOr(kDynamic); }
  int64_t depth() const { return k.valueOr(kDynamic); }
  /// So few rows, known now, that the product waits for B.
  bool skinny() const { return rows() >= 0 && rows() <= kSkinny; }
  static constexpr int64_t kSkinny = 4;
  bool dots() const { return unit == Unit::Dots; }
  bool tiles() const { return unit == Unit::Tiles; }
  /// Whether the last element of a row of A, a four or a pair, is cut short by the row's end.
  bool partialLast() const { return halfLast || (fours && lastFour != 4); }
  /// Whether operands of a run are multiplied in pairs.
  bool copiesPairs() const { return runPairs && unit != Unit::Floats; }
  /// Rows of B that an average tile multiplies, known now.
  int64_t keptDepth() const {
    return runs ? (runs->rows + runs->groups(columns()) - 1) / runs->groups(columns()) : depth();
  }
  /// Whether tiles of so many columns lie in B as it is packed.
  bool fitsColumns(int64_t columns) const { return runs ? runs->columns % columns == 0 : fitsPanels(columns); }
  /// Elements of A in one of the k.
  int64_t elementsOfStep() const { return fours ? 4 : dots() ? 2 : 1; }
  /// Bits of an element of a packed B.
  int64_t rightBits() const { return pairs ? 16 : bType.getIntOrFloatBitWidth(); }
  /// Rows of a panel of a packed B, of a static k.
  int64_t panelRows() const;
  /// How tiles cut the rows of a panel of B.
  TileDepth tileDepth() const;
  /// Whether tiles read A as fast where it lies as from a copy.
  bool readsRows() const { return apartA && aType == accType && mlir::isa<mlir::FloatType>(accType) && rows() >= 0; }
  /// Those of the units that have a use: A's columns must be adjacent for one. Few rows wait for B, and tiles would
  /// gain nothing.
  Units usedUnits() const;
  /// The same product with the unit that a level multiplies it with.
  GemmKernel at(const IsaLevel &isa) const;
  /// Whether sums of a tile, all of k, come to lie in scratch.
  bool sumsInScratch() const { return heavyEpilogue || tiles() || micro; }
  /// Whether a B of this run is read where it lies: so few rows do not pay for a copy.
  bool readsB() const {
    return !packedB && ((adjacentB && skinny()) || sumsColumns()) && !nested && !grouped && !micro && !roundsB;
  }
  /// Whether lanes run along k, of one row and of columns of floats where they lie: a copy would turn them.
  bool sumsColumns() const {
    constexpr int64_t mostLanes = 16;
    return !packedB && alongDepth && rows() == 1 && depth() > 0 && depth() % mostLanes == 0 && !nested && !grouped &&
           !micro && !roundsB && aType == accType && bType == accType && !mlir::isa<mlir::IntegerType>(accType);
  }
  /// Whether one row meets rows of B as far as a call's columns go, more than the tile has, whose sums wait in scratch;
  /// and the most columns that are met at a time.
  bool streams(const GemmTiles &tiles) const;
  int64_t streamColumns(const GemmTiles &tiles) const;
  /// Whether rows of such a B are asked for ahead: of one row, where B comes from memory; the hardware foresees what
  /// lies in a cache that cores share.
  bool asksAhead() const {
    constexpr int64_t mostShared = 12 << 20;
    const bool isFar = depth() < 0 || columns() < 0 || depth() * columns() * rightBits() / 8 > mostShared;
    return readsB() && !sumsColumns() && (rows() != 1 || isFar);
  }
  /// Whether panels of B are written to scratch as accumulator elements before they are multiplied.
  bool copiesB() const { return packedB ? blocks && !skinny() && !bytes : !readsB(); }
};

/// The blocking chosen for a spec; part of a region's strategy.
struct GemmTiles {
  /// What the strategy keeps; the rest follows from the level.
  static llvm::ArrayRef<TileField<GemmTiles>> fields();

  int64_t rows = 1;          ///< most rows of a register tile (accumulators: rows * vectors)
  int64_t vectors = 1;       ///< vectors of a register tile; vectors*lanes divides 16
                             ///< or is a multiple
  int64_t lanes = 1;         ///< accumulator elements in a vector register
  int64_t kBlock = 0;        ///< depth of a pass; at least k means one pass
  int64_t unroll = 4;        ///< steps of k in one iteration
  int64_t tilesPerBlock = 1; ///< register tiles of rows in one work item
  bool prefetch = false;     ///< prefetch the next panels of a packed B while computing
  bool prefetchRest = false; ///< also where m is dynamic, by its rest of rows, which may be all
  /// Copy a block of A to scratch as [tile][k][row] of accumulator elements,
  /// once for all the groups of columns of a call. Avoids rows that share a
  /// cache set. Needs a static k.
  bool packA = false;

  int64_t columns() const { return vectors * lanes; }
  /// Of tiles in registers (GemmKernel::Unit::Tiles), one or two of which lie beneath each other.
  int64_t tilesDown() const { return rows > 16 ? 2 : 1; }
  int64_t tileRows() const { return rows / tilesDown(); }
  /// Most rows of a work item.
  int64_t rowsPerBlock() const { return rows * tilesPerBlock; }
};

/// A matrix in memory: element (row, col) of a batch item is at base +
/// offset(batch) + row*rowStride + col*colStride, all in elements. Strides are
/// i64 values, best constants.
struct GemmMatrix {
  mlir::Value base;
  mlir::Value rowStride, colStride;                     ///< unused for a packed B
  std::function<mlir::Value(mlir::Value batch)> offset; ///< null: 0
  mlir::Value scales, zeros;                            ///< of blocks, in panel16 form; zeros may be null
};

/// Run-time values of sizes that are open; those that are null follow from the size.
struct GemmExtents {
  mlir::Value m = {}, n = {}, k = {};
};

/// Elements of C: `rows` rows and `columns` columns from (row, column) on; some may lie beyond C.
struct GemmBox {
  mlir::Value batch, row, rows, column, columns;
};

struct GemmCallbacks {
  /// Takes `value` = vector<lanes x accType> (a scalar for lanes == 1) of
  /// C[batch][m][n..n+lanes). `mask` is null when all lanes lie inside; n is a
  /// multiple of lanes.
  std::function<void(mlir::Value batch, mlir::Value m, mlir::Value n, mlir::Value value, mlir::Value mask)> store;
  /// Optional change of elements of A (a scalar or a vector of accType), e.g.
  /// minus a zero point.
  std::function<mlir::Value(mlir::Value elements)> mapA;
  /// Optional change of elements of B (a vector of accType) that start at
  /// column n.
  std::function<mlir::Value(mlir::Value vector, mlir::Value n)> mapB;
  /// Optional: the first of the depths, a multiple of four, that some elements need, and the one behind the last: what
  /// is outside is zero. None where they are needed by nobody, whatever they are.
  std::function<std::pair<mlir::Value, mlir::Value>(const GemmBox &)> depths;
  /// Of a grouped product: the first row of a batch item, and the one behind its last.
  std::function<std::pair<mlir::Value, mlir::Value>(mlir::Value batch)> rows;
};

/// The blocking for a spec on a level, with what is decided, which is not checked.
GemmTiles chooseGemmTiles(const GemmKernel &spec, const IsaLevel &isa, const DecidedFields<GemmTiles> &decided = {});

/// Work items: batch x blocks of rows x groups of columns, columns fastest. Static rows are in balanced tiles, others
/// in whole blocks. Of a grouped product: batch x groups of columns.
Dim gemmWorkItems(const GemmKernel &spec, const GemmTiles &tiles);
/// Fewest work items worth a call of their own.
int64_t gemmGrain(const GemmKernel &spec, const GemmTiles &tiles);
/// Scratch of one thread; does not depend on dynamic sizes.
int64_t gemmScratchBytes(const GemmKernel &spec, const GemmTiles &tiles);

/// Why a micro-kernel does not compute full tiles of a product, whatever the level; a clause.
std::optional<std::string> whyNoMicroKernel(const GemmKernel &spec, const MicroKernel &micro);

/// Emits the work items [begin, end) of the builder's kernel, of a nested product all. Scratch starts at
/// `scratchOffset` bytes (a multiple of 64).
void emitGemm(CpuBuilder &b, const GemmKernel &spec, const GemmTiles &tiles, const GemmMatrix &a,
              const GemmMatrix &bMatrix, const GemmCallbacks &callbacks, const GemmExtents &extents = {},
              int64_t scratchOffset = 0);

/// From a row to the next of a tile of A in scratch.
constexpr int64_t kTileRowBytes = 64;
/// Scratch taken by the copy of A, at its start (a multiple of 64).
int64_t packedABytes(const GemmKernel &spec, const GemmTiles &tiles);

/// How a row of A that is rounded in blocks lies in scratch: its integers, zeros up to whole blocks, then a scale, f32,
/// and what a block's sum begins with, i32, for each block.
struct ByteRows {
  int64_t blocks, scales, starts; ///< how many, and where the others begin
  int64_t bytes;                  ///< from a row to the next

  explicit ByteRows(const GemmKernel &spec);
};

/// Bytes of a K x N matrix in panel16 form: [ceil(N/16)][K][16] elements, zero
/// padded.
int64_t panel16Bytes(int64_t k, int64_t n, int64_t elementBytes);
/// Packs element (row, col) at src + (row*strideK + col*strideN)*elementBytes.
/// `dst` has panel16Bytes bytes. Strides count elements and may be negative;
/// elementBytes is 1, 2, 4 or 8.
void packPanel16(const std::byte *src, int64_t k, int64_t n, int64_t strideK, int64_t strideN, int64_t elementBytes,
                 std::span<std::byte> dst);

/// Fours of k elements.
inline int64_t foursOf(int64_t k) { return (k + 3) / 4; }
/// Packs a K x N matrix of bytes as the panel16 form of foursOf(k) x N fours, those beyond k zero. `dst` has
/// panel16Bytes(foursOf(k), n, 4) bytes; strides count bytes.
void packFours16(const std::byte *src, int64_t k, int64_t n, int64_t strideK, int64_t strideN,
                 std::span<std::byte> dst);

/// Pairs of k elements as the pairs16 form has them: as many in every tile.
int64_t pairsOf(int64_t k);
/// Packs a K x N matrix of 16-bit elements as the panel16 form of pairsOf(k) x N pairs, those beyond k zero. `dst` has
/// panel16Bytes(pairsOf(k), n, 4) bytes; strides count elements.
void packPairs16(const std::byte *src, int64_t k, int64_t n, int64_t strideK, int64_t strideN,
                 std::span<std::byte> dst);

/// Bytes of a K x N matrix in blocks16 form: [ceil(N/16)][ceil(K/perWord)][16] words, each with perWord elements of a
/// column, the first in its lowest bits; zero padded.
int64_t blocks16Bytes(const GemmBlocks &format, int64_t k, int64_t n);

} // namespace dmxc::cpu
