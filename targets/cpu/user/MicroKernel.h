//===- MicroKernel.h - full tiles that a user's code computes ---*- C++ -*-===//
#pragma once

#include "UserCode.h"

namespace dmxc::cpu {

/// What a strategy says of a micro-kernel (strategy::kMicroKernel): code for the full register tiles of a product of
/// f32.
class MicroKernel {
public:
  /// Sizes that a tile may have: panels of 16 columns, and as many numbers as a kernel has room for.
  static constexpr int64_t kMostNumbers = 512, kPanel = 16;

  /// Fails, in a clause, for what is no micro-kernel.
  static Result<MicroKernel> of(mlir::Attribute written);

  mlir::DictionaryAttr attr() const { return written; }
  llvm::StringRef name() const;
  int64_t rows() const { return size(0); }
  int64_t columns() const { return size(1); }
  mlir::ArrayAttr bodies() const;
  /// The body that a level calls; null where it has none, and computes all tiles itself.
  mlir::DictionaryAttr bodyAt(const IsaLevel &isa) const { return bodyFor(bodies(), isa); }
  /// Fails, in a clause, where none of the levels has one.
  Status checkLevels(llvm::ArrayRef<IsaLevel> levels) const;

private:
  explicit MicroKernel(mlir::DictionaryAttr written) : written(written) {}
  int64_t size(size_t axis) const;

  mlir::DictionaryAttr written;
};

/// Those of a compile that products may call, and those of them that they shall call where they can.
struct MicroKernels {
  llvm::SmallVector<mlir::DictionaryAttr> all, preferred;

  static MicroKernels of(mlir::MLIRContext *context);
};

} // namespace dmxc::cpu
