//===- Tiles.h - what a rule keeps, row by row and tile by tile -*- C++ -*-===//
//
// Exact, and in time that grows with rows, not with elements: nothing as large as the matrix is looked at.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/Where.h"

#include <array>
#include <optional>
#include <vector>

namespace dmxc::dmir {

/// The runs of columns [first, last) that rows keep, for given symbols.
class RowRuns {
public:
  using Run = std::pair<int64_t, int64_t>;
  RowRuns(const Rule &rule, llvm::ArrayRef<int64_t> symbols, int64_t columns);

  /// Those of a row, ascending and apart; `row` has all indices but the last. Valid until the next call.
  llvm::ArrayRef<Run> of(llvm::ArrayRef<int64_t> row);
  /// Whether columns have to be looked at one by one, as those of strides.
  bool byColumn() const;

private:
  /// factor * (column floordiv divisor) + what a row gives, >= 0 or == 0.
  struct Line {
    int64_t constant = 0, factor = 0, divisor = 1;
    llvm::SmallVector<std::pair<unsigned, int64_t>, 2> dims; ///< position and factor
    llvm::SmallVector<AffineTerm, 1> others;
    bool isEq = false;
    mlir::AffineExpr whole; ///< set where the column is in it in another way
  };

  void addCase(mlir::IntegerSet set);
  void cutByTiles(llvm::ArrayRef<int64_t> tilesOfRow);
  void addRuns(llvm::ArrayRef<Line> lines, llvm::ArrayRef<int64_t> row);
  int64_t valueOf(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> index) const;

  unsigned rank;
  llvm::SmallVector<int64_t> symbols, index;
  int64_t columns;
  TileLists tiles;
  std::vector<llvm::SmallVector<Line>> cases;
  llvm::SmallVector<Run> runs;
};

/// Rows and columns of a tile, and what the first column that a block of rows visits is a multiple of.
struct TileSize {
  int64_t rows, columns, pass;
};

/// Of one matrix, or the sum over several.
struct TileCounts {
  int64_t elements = 0, kept = 0;
  int64_t empty = 0, full = 0, mixed = 0; ///< tiles, by what they hold
  int64_t visited = 0;                    ///< elements between the first and the last tile of each block of rows, or
                                          ///< of tiles that hold kept ones where each is asked about
  /// Tiles that hold kept elements, row by row: first column, first row, columns' end, rows' end.
  std::vector<std::array<int64_t, 4>> present;
  bool allPresent = true; ///< `present` has all of them

  void add(const TileCounts &other);
};

/// Of the matrix at the indices `outer`, by the rule. At most `mostPresent` tiles are listed.
TileCounts countTiles(const Rule &rule, llvm::ArrayRef<int64_t> outer, int64_t rows, int64_t columns,
                      llvm::ArrayRef<int64_t> symbols, TileSize tile, size_t mostPresent = 1024);

/// The same of all matrices of a tensor of these extents; nothing where that takes too long, as of strides over much.
std::optional<TileCounts> countAllTiles(const Rule &rule, llvm::ArrayRef<int64_t> extents,
                                        llvm::ArrayRef<int64_t> symbols, TileSize tile, size_t mostPresent = 1024);

/// The columns that a block of rows visits for a range that the rule gives: whole tiles, from a multiple of the pass
/// on, one at least.
std::pair<int64_t, int64_t> visitedColumns(int64_t first, int64_t last, int64_t columns, TileSize tile);

} // namespace dmxc::dmir
