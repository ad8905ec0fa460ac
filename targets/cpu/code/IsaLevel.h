//===- IsaLevel.h - x86-64 levels the CPU target compiles for ---*- C++ -*-===//
#pragma once

#include "targets/common/code/Processor.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace dmxc::cpu {

// Kernels of this target are made of what targets/common has.
using namespace kernels;

/// What kernels take of a core's caches, in bytes: for the smallest of today's cores (32 KiB L1, 512 KiB to 1 MiB L2),
/// and only a matter of speed.
struct CacheShares {
  // Of a panel of a product's B, read once a register tile: tall tiles read little of it and may stream it from L2,
  // flat ones want it in L1.
  int64_t tallPanel = 128 << 10, flatPanel = 24 << 10;
  int64_t block = 512 << 10;         ///< of A, read once a group of columns
  int64_t nearWeights = 64 << 10;    ///< products of few rows do not wait for so many
  int64_t scores = 256 << 10;        ///< of a block of an attention's rows
  int64_t filteredInput = 704 << 10; ///< transformed, of a block; leaves room for weights
  int64_t spanInput = 400 << 10;     ///< of a span of pixels; leaves room for weights
  int64_t rowWeights = 600 << 10;    ///< read again for every row of pixels
  int64_t copiedInput = 4 << 20;     ///< of a convolution, in scratch

  /// Whether products of few rows do not wait for k x n weights of f32.
  bool isNear(int64_t k, int64_t n) const { return k * n < nearWeights / 4; }
};

/// Units for short numbers that levels beyond the psABI's have, and that products may be planned for.
struct Units {
  bool dots = false;  ///< IsaLevel::hasDots
  bool tiles = false; ///< IsaLevel::hasTiles

  bool any() const { return dots || tiles; }
};

/// Level v4 and AVX512-VNNI.
constexpr llvm::StringLiteral kVnniLevel = "x86-64-v4-vnni";
/// v4 of processors with units for products of bf16, by LLVM's names of the first that had them. AMD's, whose vdpbf16ps
/// does twice the work of f32's instructions (Intel's does half, so code of this level needs what only AMD has); and
/// Intel's with AMX.
constexpr llvm::StringLiteral kDotsLevel = "znver4", kTileLevel = "sapphirerapids";

/// An instruction-set level. The levels are those of the x86-64 psABI (v2: SSE4.2, v3: AVX2+FMA+F16C, v4: AVX-512
/// F/BW/CD/DQ/VL), kVnniLevel, kDotsLevel and kTileLevel; "host" is this machine. `name` is as in the manifest:
/// "x86-64-v3".
struct IsaLevel : Processor {
  std::string cpu;      ///< LLVM CPU name
  std::string features; ///< LLVM feature string beyond the CPU's
  bool hasF16C = false;
  bool hasVnni = false;  ///< u8 x s8 dot products of full vectors (AVX512-VNNI, AVX-VNNI)
  bool hasDots = false;  ///< dot products of pairs of bf16 (AVX512-BF16) that are faster than f32
  bool hasTiles = false; ///< products of tiles of bf16 and of bytes (AMX)
  CacheShares caches;
  /// Feature names the runtime checks at load (manifest "features").
  llvm::SmallVector<std::string> required;

  mlir::Value scale(mlir::ImplicitLocOpBuilder &b, mlir::Value m, mlir::Value n) const override;
  bool scales(mlir::Type type) const override;
  bool hasTables() const override { return vectorBytes == 64; }
  mlir::Value lookUp(mlir::ImplicitLocOpBuilder &b, mlir::Value table, mlir::Value lanes) const override;
  mlir::Value within(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value limit) const override;
  std::unique_ptr<KernelBuilder> makeBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name,
                                             unsigned buffers, unsigned dims,
                                             llvm::ArrayRef<bool> noalias = {}) const override;

  /// Level by name; nullopt for an unknown one.
  static std::optional<IsaLevel> byName(llvm::StringRef name);
  /// The known name that a user may have meant: a processor's or an instruction set's, or a near one. "": none.
  static std::string meantBy(llvm::StringRef name);
  /// The level that plans are made for.
  static const IsaLevel &nominal();
  /// The most bytes that a buffer of tiles takes at any level, this one included; it is planned before one is chosen.
  int64_t mostBytes(llvm::function_ref<int64_t(const IsaLevel &)> bytesAt) const;
  /// Names byName knows, best first.
  static llvm::ArrayRef<llvm::StringRef> names();
  /// What this machine lacks of it: required features, or Linux' permission to use tiles.
  llvm::SmallVector<std::string> lackedHere() const;
  bool runsHere() const { return lackedHere().empty(); }
};

} // namespace dmxc::cpu
