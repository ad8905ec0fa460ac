//===- KeyTiles.h - the tiles of keys that a block has ----------*- C++ -*-===//
#pragma once

#include "AttentionParts.h"
#include "CoreAttention.h"

namespace dmxc::cuda {

/// Where a block's rows lie, and which keys it looks at for them: those that copy and those that multiply go the same
/// way.
class KeyTiles : protected AttentionParts {
protected:
  KeyTiles(CudaBuilder &b, const RegionBody &body, const CoreAttention &core);

  /// Of rows of a group.
  struct Place {
    Value group, firstRow;
    Value first, last, firstFull, lastFull; ///< keys, whole tiles of them; or places in the list
  };
  using Carried = llvm::SmallVector<Value>;
  /// one(place, carried) for the block's rows, part after part.
  Carried forPlaces(mlir::ValueRange init, llvm::function_ref<Carried(const Place &, mlir::ValueRange)> one);
  /// Where a block may look at all keys a second time: whether it is that time (i1), and whether that is asked for.
  struct Again {
    Value isNow, isAsked;
  };
  struct Tile {
    Value firstKey, isFull, isLast; ///< `isFull`: all rows see all of its keys
  };
  using OneTile = llvm::function_ref<Carried(const Tile &tile, mlir::ValueRange carried)>;
  /// What is done before the first tile, if there is one (i1), to what is carried.
  using Begin = llvm::function_ref<void(Value hasTiles, Carried &carried)>;
  Carried forTiles(const Place &place, std::optional<Again> again, mlir::ValueRange init, Begin begin, OneTile one);

  const CoreAttention &core;

private:
  Place placeOf(Value group, Value part);
  void keepSome(Place &place);
  void useList(Place &place);
  struct Box {
    llvm::SmallVector<std::pair<Value, Value>> rows, symbols;
  };
  Box boxOf(const Place &place);
  std::string list() const;
  bool hasList() const;
  Value word(Value number);
  Value allTiles();

  bool listed = false;
  Value words; ///< of the list: where each part's tiles begin, then the tiles: twice their number, 1 more if full
};

} // namespace dmxc::cuda
