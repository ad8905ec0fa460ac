//===- KeyCopies.h - keys and values to slots in shared memory --*- C++ -*-===//
#pragma once

#include "KeyTiles.h"

#include "targets/cuda/code/Asynchronous.h"

namespace dmxc::cuda {

/// Slots that those who copy fill and those who multiply empty, each of 64 keys and their values.
class KeyCopies : protected KeyTiles {
protected:
  KeyCopies(CudaBuilder &b, const RegionBody &body, const CoreAttention &core) : KeyTiles(b, body, core), async(b) {}

  /// A slot and the parity of the phase that is waited for.
  struct Slot {
    Value number, parity;
    Carried all() const { return {number, parity}; }
  };
  /// A number of a tile in memory, at a row and a place along the terms of its product.
  using Source = llvm::function_ref<Value(Value row, Value term)>;

  /// By all threads of the block.
  void initBarriers();
  /// Keys from one on; the slot that follows.
  Slot fill(Value firstKey, Slot slot);
  Slot next(Slot slot);
  Value full(Value slot) { return barrier(slot, 0); }
  Value empty(Value slot) { return barrier(slot, core.stages * 8); }
  Value parity(int64_t value) { return b.constantInt(b.getI32Type(), value); }
  /// Where a slot's keys and values lie, and how.
  Value keysOf(Value slot) { return b.addC(b.mulC(slot, core.slotBytes()), core.slotsAt()); }
  Value valuesOf(Value slot) { return b.addC(keysOf(slot), core.keyBytes()); }
  bool keysAreKMajor() const { return !core.byMaps() || core.keys->right.isKMajor; }
  bool valuesAreKMajor() const { return !core.byMaps() || core.values->right.isKMajor; }

  /// A tile by the 128 threads of a warpgroup; neighbours have neighbouring terms, or rows. `atOnce`: pairs that a
  /// thread loads before it stores one.
  void put(Value to, Value thread, int64_t rows, int64_t terms, bool alongRows, int64_t atOnce, Source source);
  /// A term of a row in slabs, 0 behind the last one.
  Value whereTerm(Value term, llvm::function_ref<Value(Value)> read);
  /// Two numbers of f32 as a word of bf16.
  Value roundedPair(Value low, Value high);

  Asynchronous async;

private:
  Value barrier(Value slot, int64_t offset) {
    return async.shared(b.addC(b.mulC(slot, 8), core.barriersAt() + offset));
  }
  void copy(Value firstKey, Slot slot);
  void putKeys(Value firstKey, Value slot);
  Value pairOf(Value low, Value high);
  Value orZero(Value isThere, Value value);
  void store(Value pair, Value to, Value row, Value term);
};

} // namespace dmxc::cuda
