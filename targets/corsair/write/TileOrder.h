//===- TileOrder.h - in which order the tiles of a product come -------*- C++ -*-===//
//
// Whatever loops a product was written with, what they do is a list of tiles of its result, each a sum over blocks
// along K. The list becomes boxes of neighbouring tiles, whose operands stay in the arrays' memories as long as the
// order lets them, and equal boxes at equal distances become loops of the program: its size does not follow the trip
// counts.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../decide/Spread.h"

#include <vector>

namespace dmxc::corsair {

/// Products of blocks along K that a slice's cores add up at once: those of weights from `first` on, each with one of
/// the activations.
struct Addition {
  int64_t first = 0;
  int imc = 1, ppr = 0;                   ///< num_imc, ppr_mode
  llvm::SmallVector<int64_t> activations; ///< a block a core; more for several additions in a row

  auto count() const { return static_cast<int64_t>(activations.size()); }
  bool operator==(const Addition &) const = default;
};

/// What the halves of IB hold one after the other, of a tile of the result.
using Segments = std::vector<std::vector<Addition>>;

/// Neighbouring blocks of the activations that a half of IB holds, and in which of its places.
struct BlockRun {
  int64_t block, count, slot;
};
llvm::SmallVector<BlockRun, 1> runsOf(llvm::ArrayRef<Addition> segment);

/// All that is added up to a tile of the result, in this order.
struct TileTerms {
  std::vector<Addition> additions;
  bool biased = false;
  int epilogue = -1; ///< what becomes of them then, by number; -1: nothing

  bool operator==(const TileTerms &) const = default;
  /// In the order of K, as many at once as the plan says.
  static TileTerms of(const Spread &plan, bool biased);
  /// The additions whose activations half of IB holds at the same time, for so many blocks; those that one instruction
  /// does are one.
  Segments segments(int64_t blocks, int64_t kChunks) const;
};

/// A tile of the result, and the rows and columns of tiles that it is made of; or how far these are apart.
struct TilePlace {
  int64_t row = 0, column = 0, activations = 0, weights = 0, bias = 0;

  TilePlace plus(const TilePlace &step, int64_t times = 1) const;
  TilePlace minus(const TilePlace &other) const { return plus(other, -1); }
  bool operator==(const TilePlace &) const = default;
};

/// What of a product decides which tiles may be computed together.
struct OrderRules {
  int64_t rows = 0, columns = 0; ///< of the result, in elements
  int64_t period = 1;            ///< tiles of columns after which the weights begin at the same slice and group again
  int64_t rowSlices = 1, kChunks = 0;
};

/// The tiles of a product in the order in which they are computed.
class TileOrder {
public:
  struct Box {
    int64_t rows = 0, columns = 0;
    bool columnsOutside = false;
    size_t terms = 0; ///< number
    /// What boxes have in common that one loop may compute: their first column's number in a period, and whether they
    /// end with the last, ragged tiles.
    int64_t phase = 0;
    bool lastRow = false, lastColumn = false;
    bool operator==(const Box &) const = default;
  };
  /// A box, or a loop over nodes, whose places are those of the first trip.
  struct Node {
    TilePlace at;
    Box box;
    int64_t trips = 0; ///< 0: a box
    TilePlace step;
    std::vector<Node> body;
    /// It is `trips` rows of tiles, the body boxes beside each other that a row has.
    bool bands = false;
  };
  struct Tile {
    TilePlace at;
    size_t terms;
  };

  /// All tiles of a product, its rows or its columns outside.
  static TileOrder whole(const Spread &plan, bool biased);
  /// `deepest`: how many loops may be in each other.
  TileOrder(std::vector<TileTerms> terms, llvm::ArrayRef<Tile> tiles, const OrderRules &rules, int deepest);

  /// Whether it is all of the product in one box: its rows may be any number.
  bool isWhole() const { return nodes.size() == 1 && all; }
  /// Whether weights are to stay while rows pass: each round's, one tile a core.
  bool isStationary(int64_t kChunks) const;
  size_t boxes() const;

  std::vector<TileTerms> terms;
  std::vector<Node> nodes;

private:
  explicit TileOrder() = default;
  bool all = false;
};

} // namespace dmxc::corsair
