//===- DeviceTensor.h - where a tensor lies on a quad -----------*- C++ -*-===//
#pragma once

#include "../decide/Distribution.h"
#include "Program.h"

namespace dmxc::corsair {

/// Over how many dims an instruction of the vector device walks.
inline constexpr size_t kSimdDims = 4;

/// A strided view of a buffer in GM, or in DDR where it is a table that is only gathered from. Dims are the tensor's
/// own, in its own order; the order in memory is what the strides say (images lie channels last). Broadcast dims have
/// stride 0.
struct DeviceTensor {
  hw::ElemKind kind = hw::ElemKind::F16;
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<int64_t> strides; ///< bytes per dim
  Address address;

  /// Without gaps, its dims in memory in this order, the outermost first; its place is still to be given.
  static DeviceTensor dense(hw::ElemKind kind, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<unsigned> order);
  /// The part of each quad; of a folded dim there are two.
  DeviceTensor local(Split by) const;
  /// Halves of a share, and where they are in the whole: the parts of each quad of so many, from both ends.
  std::pair<DeviceTensor, DeviceTensor> halves(int dim) const;
  std::pair<DeviceTensor, DeviceTensor> folded(Split by) const;
  size_t rank() const { return shape.size(); }
  int64_t elements() const;
  int64_t elementSize() const { return hw::elementBytes(kind); }
  /// Dims by descending stride, in whichever direction, dims of one element last of equals: the order in memory.
  llvm::SmallVector<unsigned> order() const;
  /// Whether the elements fill a range without gaps, in some order of the dims.
  bool isDense() const;
  /// Whether they do in the order of the dims.
  bool isRowMajor() const;
  /// Whether elements lie alike in both, from the first one on.
  bool liesAs(const DeviceTensor &other) const;
  DeviceTensor transposed(llvm::ArrayRef<int64_t> permutation) const;
  /// Of a shape that this one is broadcast to; its split says no more.
  DeviceTensor broadcast(llvm::ArrayRef<int64_t> to) const;
  /// How many dims, joined where their elements go on, a walk over these axes in the order of memory takes.
  size_t dimsOfWalk(llvm::ArrayRef<int64_t> axes) const;
  /// The view with these dims instead; nullopt when it needs a copy. Equal element counts.
  std::optional<DeviceTensor> reshaped(llvm::ArrayRef<int64_t> to) const;
};

/// A dim of a copy: how often, and bytes at both ends.
struct CopyDim {
  int64_t extent, from, to;
};
/// Dims of a copy in the order of the source's memory, neighbours joined, the last one a run of bytes. Equal shapes.
llvm::SmallVector<CopyDim> copyDims(const DeviceTensor &from, const DeviceTensor &to);
/// Adds dims of a copy to a descriptor.
void addDims(DmaSpec &spec, llvm::ArrayRef<CopyDim> dims);

/// The piece that a whole tensor is, its dims in this order.
hw::Piece wholePiece(const DeviceTensor &tensor, llvm::ArrayRef<unsigned> order);

/// 0, 1, ...: dims in the order of the tensor.
llvm::SmallVector<unsigned> rowMajor(size_t rank);

/// 0, 2, .., 1: images with their channels side by side.
llvm::SmallVector<unsigned> channelsLast(size_t rank);

/// Byte strides of a dense tensor whose dims lie in memory in this order, the outermost first.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<unsigned> order,
                                        int64_t elementSize);

} // namespace dmxc::corsair
