//===- GemmProduct.h - a product as tensor cores compute it -----*- C++ -*-===//
#pragma once

#include "GemmTile.h"
#include "KeptSteps.h"
#include "convolution/TapForm.h"

#include "targets/common/roots/Contraction.h"
#include "targets/common/roots/Plans.h"

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include <span>

namespace dmxc::cuda {

using namespace kernels;

/// Rows of tiles that are computed together, where no text says otherwise.
inline constexpr int64_t kRaster = 8;

/// An operand in memory: `rows` (m of the left one, n of the right one) times k. Strides and the offset are elements.
struct GemmOperand {
  unsigned buffer = 0;
  Dim rows, k;
  Dim rowStride = 0, kStride = 1;
  Dim offset = 0;
  llvm::SmallVector<Dim> strides; ///< of each batch axis; 0 where it is broadcast
  /// Why no tensor map can read it: a clause; then threads copy it. "": one does.
  std::string byThreads = {};
  /// What it is read out of where its rows are windows of an image; then neither row nor term has a stride.
  const Windows *windows = nullptr;
  bool isKMajor = true; ///< in shared memory neighbours are neighbours along k, else along the rows

  /// Whether neighbours in memory are neighbours along k.
  bool hasKSideBySide() const { return kStride.is(1) || k.is(1); }
  /// From one row of memory to the next; of one row, what a tensor map may have.
  Dim pitch() const;
};

/// What a product of 16-bit floats is for kernels of tensor memory. Operands may point to its windows: it stays in
/// place.
struct GemmProduct : Contraction {
  GemmOperand left, right;
  std::shared_ptr<const NonZeros> held; ///< of a constant right operand that may lack steps, while that is asked
  bool packsRight = false;              ///< the right operand is a constant that `pack` has laid out
  std::optional<TapForm> taps;          ///< of weights that `pack` has laid out so
  std::optional<KeptSteps> kept;        ///< of the right operand, where it is packed without steps of zeros

  /// `constant(i)`: whether operand i of the region is a constant that may be packed.
  GemmProduct(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant);
  /// Of its right operand alone, where memory has that in bf16; of an attention, whose other ops are in the block.
  GemmProduct(dmir::MatMulOp op, mlir::Block *block);
  GemmProduct(const GemmProduct &) = delete;
  GemmProduct &operator=(const GemmProduct &) = delete;

  /// Whether threads copy windows tap by tap.
  bool copiesTaps() const { return taps && right.windows; }
  /// Groups that are one matrix.
  int64_t groupsTogether() const { return taps ? taps->together : 1; }
  /// The right operand is packed without the steps that are not kept.
  void keep(KeptSteps steps);
  /// Looks for zeros in the right operand, if it is packed and that is asked for.
  void look(mlir::ValueRange inputs);
  /// Whether it is made of such numbers at all.
  bool isHalf() const;
  /// Why it cannot be computed by tensor cores: a clause; "" where it can.
  const std::string &refusal() const { return why; }
  GemmSizes nominalSizes(mlir::Block *block) const;
  Dim tiles(const GemmTile &tile) const;
  /// Has threads copy an operand that a tensor map could read, too.
  static void copyByThreads(GemmOperand &operand);
  /// Tensor maps of the operands that have one, the left one first.
  std::vector<TensorMap> maps(const GemmTile &tile) const;
  /// Operands that threads copy, and why: a text; "" where there are none.
  std::string threadCopies() const;
  /// The tensor map of an operand that has one; its boxes have 64 terms of `rows` rows, or where rows are neighbours of
  /// 64 rows.
  TensorMap map(const GemmOperand &operand, int64_t rows) const;
  /// The batch axes that a map has behind the first two, the last one first.
  llvm::SmallVector<unsigned> mapAxes(const GemmOperand &operand) const;
  /// What `pack` reads; of a product that packs.
  mlir::DictionaryAttr packedForm(mlir::MLIRContext *context) const;

private:
  ConstantMatrix rightMatrix(const std::byte *data) const;
  std::string whyNot() const;
  void place(GemmOperand operand, GemmOperand &placed) const;
  GemmOperand rightOperand() const;
  std::string whyNoMap(const GemmOperand &operand) const;
  void placeAll(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant);
  void takeTaps(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant);
  bool termsMayLack(mlir::Block *block) const;
  bool mayPack(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant) const;
  std::string why;
  bool mayLackTerms = false;
};

/// A matrix of k rows and n columns in a constant, and elements from a packed column to the next: multiples of 16
/// bytes.
struct PackedColumns {
  int64_t k, n, offset, strideK, strideN, pitch;
};
mlir::DictionaryAttr columnsForm(mlir::MLIRContext *context, const PackedColumns &columns, int64_t elementBytes);
/// Writes a constant as `form` (columnsForm) says: each column's terms side by side, padded with zeros. An error where
/// the form is none of it, as text may have it.
Status packGemm(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out);

} // namespace dmxc::cuda
