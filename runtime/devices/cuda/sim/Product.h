//===- Product.h - wgmma ----------------------------------------*- C++ -*-===//
//
// A warp's share of wgmma.mma_async: 16 of the 64 rows. What it reads is checked when it is issued; it is computed as
// late as the warp's wait_group allows, from what shared memory and registers have then.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Program.h"

#include <deque>

namespace dmxrt::cuda {

class Block;

/// A matrix in shared memory, as its 64-bit descriptor has it (PTX ISA, matrix descriptor of wgmma).
struct MatrixDescriptor {
  uint64_t begin = 0, leading = 0, stride = 0; ///< bytes
  uint32_t span = 0;                           ///< of the swizzle: 0, 32, 64, 128
  uint32_t baseOffset = 0;

  explicit MatrixDescriptor(uint64_t bits);
  /// Where 16 bytes of the matrix begin, before they are swizzled: `chunk` counts them along the axis that lies side by
  /// side, `line` the elements of the other axis.
  uint64_t chunkAt(bool isMnMajor, uint32_t line, uint32_t chunk) const;
};

/// The wgmma of all warps of a block.
class ProductUnit {
public:
  void reset(Block &block);
  /// Takes one; false: w.fault says what is wrong with it.
  bool issue(Warp &w, const ProductForm &form, uint64_t a, uint64_t b, bool adds);
  void commit(uint32_t warp) { ++queues[warp].open; }
  /// Computes all but the last `left` committed groups.
  bool wait(Warp &w, uint32_t left);
  bool isBusy(uint32_t warp) const { return !queues[warp].waiting.empty(); }

private:
  struct Pending {
    const ProductForm *form;
    uint64_t a, b;
    bool adds;
    uint32_t group;
  };
  struct Queue {
    std::deque<Pending> waiting;
    uint32_t open = 0; ///< the group that is not committed
  };
  bool maySumInto(const Warp &w, const ProductForm &form) const;
  bool checkRegisters(Warp &w, const ProductForm &form) const;
  bool checkMatrix(Warp &w, const ProductForm &form, uint64_t bits, bool isA);
  void compute(Warp &w, const Pending &pending);
  void loadA(Warp &w, const Pending &pending);
  void loadB(const ProductForm &form, uint64_t bits);
  /// An accumulator out of its registers: [column][16 rows].
  struct Tile {
    const ProductForm *form = nullptr;
    alignas(32) float d[256 * 16];
  };
  Tile &tileOf(Warp &w, const ProductForm &form);
  void putBack(Warp &w);
  void loadD(Warp &w, const ProductForm &form, Tile &tile);
  void storeD(Warp &w, const Tile &tile);
  void mark(Warp &w, const ProductForm &form, bool flies) const;

  Block *block = nullptr;
  std::vector<Queue> queues; ///< by warp
  /// a: [k][16 rows]; b: [column][k].
  alignas(32) float a[16 * 16];
  alignas(32) float b[256 * 16];
  Tile tiles[2];
};

/// d[column][row] += a[k][row] * b[column][k], in ascending k, each product exact, each sum rounded to f32.
void multiplyTile(float *d, const float *a, const float *b, uint32_t columns, uint32_t depth);

} // namespace dmxrt::cuda
