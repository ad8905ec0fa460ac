//===- View.h - numbers in a quad's memory ----------------------*- C++ -*-===//
#pragma once

#include "schemas/corsair/Isa.h"

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <optional>
#include <vector>

namespace dmxc::corsair::stages {

namespace hw = dmx::corsair;
using Dims = llvm::SmallVector<int64_t>;

/// Elements of bytes that views of it share. Of block_fp that is not yet in the arrays the numbers are f32: a product
/// quantises what it multiplies, by the same blocks.
struct View {
  hw::ElemKind kind = hw::ElemKind::F16;
  Dims shape, steps; ///< elements, and bytes from one to the next, of each dim
  int64_t offset = 0;
  std::shared_ptr<std::vector<std::byte>> memory;

  /// Zeros, row by row.
  static View zeros(hw::ElemKind kind, llvm::ArrayRef<int64_t> shape);
  /// Zeros, as a memref with these steps of elements has them.
  static View strided(hw::ElemKind kind, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> steps);

  size_t rank() const { return shape.size(); }
  int64_t elements() const { return elementCount(shape); }
  std::byte *data() const { return memory->data() + offset; }
  /// Whether all elements lie in the memory: text may look at any.
  bool isInside() const;
  bool isRowMajor() const;

  /// Elements `offsets` + i * `strides`; they are not checked.
  View part(llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides) const;
  /// `size` elements of one dim from `first` on.
  View slice(size_t dim, int64_t first, int64_t size) const;
  View transposed(llvm::ArrayRef<int64_t> permutation) const;
  /// Aligned right; dims of one element, and those that are missing, are repeated.
  View broadcast(llvm::ArrayRef<int64_t> to) const;
  /// Dims of equal element count: of a copy where the elements do not lie row by row.
  View reshaped(llvm::ArrayRef<int64_t> to) const;
  /// Its own elements, row by row, of another kind where one is given.
  View copy(std::optional<hw::ElemKind> as = std::nullopt) const;
};

/// Copies elements, rounded where the kinds differ. Shapes are equal.
void copyInto(const View &from, const View &to);

/// Of an element type of a text: of block_fp F32, or Bfp32; nullopt for what the device has none of.
std::optional<hw::ElemKind> kindOf(mlir::Type element);
/// Where a type's floats are the host's they have the device's kind.
std::optional<hw::ElemKind> deviceKindOf(mlir::Type element);

/// A host's tensor as a value of that kind, which the device's boundary makes of it.
View fromHost(const Tensor &tensor, hw::ElemKind kind);
Tensor toHost(const View &view, DType type);

} // namespace dmxc::corsair::stages
