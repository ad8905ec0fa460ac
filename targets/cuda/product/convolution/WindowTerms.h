//===- WindowTerms.h - terms of a convolution's windows ---------*- C++ -*-===//
#pragma once

#include "targets/common/roots/Contraction.h"
#include "targets/cuda/code/CudaBuilder.h"

namespace dmxc::cuda {

/// Where a window of an image begins: of each axis the place of its first tap, which may be outside.
using Pixel = llvm::SmallVector<mlir::Value, 3>;
Pixel pixelOf(kernels::KernelBuilder &b, const kernels::Windows &windows, mlir::Value column);
/// The place of a term behind the image's first element, and whether it is one of the image.
std::pair<mlir::Value, mlir::Value> termOf(kernels::KernelBuilder &b, const kernels::Windows &windows,
                                           const Pixel &pixel, mlir::Value term);

/// The terms of windows as a table in a block's shared memory: for each how far it lies behind a window's first pixel,
/// in elements and along each axis. So that who copies terms divides nothing.
class TermTable {
public:
  using Value = mlir::Value;
  /// `at`: bytes, a multiple of 16.
  TermTable(CudaBuilder &b, const Windows &windows, Dim terms, int64_t at)
      : b(b), windows(windows), terms(terms), at(at) {}
  static int64_t entryBytes(const Windows &windows) { return windows.axes.size() > 2 ? 32 : 16; }

  /// By all `threads` of the block; it can be read when they have met.
  void fill(int64_t threads);
  /// What the table has of a term, for look(): asked for ahead nobody waits for it.
  llvm::SmallVector<Value, 2> entryOf(Value term);
  /// As termOf().
  std::pair<Value, Value> look(const Pixel &pixel, llvm::ArrayRef<Value> entry);
  std::pair<Value, Value> look(const Pixel &pixel, Value term) { return look(pixel, entryOf(term)); }
  /// Where a pixel lies behind the image's first element.
  Value placeOf(const Pixel &pixel);

private:
  Value wordAt(Value term, int64_t word);

  CudaBuilder &b;
  const Windows &windows;
  Dim terms;
  int64_t at;
};

} // namespace dmxc::cuda
