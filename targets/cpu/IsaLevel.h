//===- IsaLevel.h - x86-64 levels the CPU target compiles for ---*- C++ -*-===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace dmxc::cpu {

/// What the emitters ask about an instruction-set level. The levels are those
/// of the x86-64 psABI (v2: SSE4.2, v3: AVX2+FMA+F16C, v4: AVX-512
/// F/BW/CD/DQ/VL); "host" is this machine.
struct IsaLevel {
  std::string name;         ///< "x86-64-v3", as in the manifest
  std::string cpu;          ///< LLVM CPU name
  std::string features;     ///< LLVM feature string beyond the CPU's
  unsigned vectorBytes;     ///< widest vector register: 16, 32, 64
  unsigned vectorRegisters; ///< architectural vector registers: 16 or 32
  bool hasFma, hasF16C;
  bool hasVnni = false; ///< u8 x s8 dot products of full vectors (AVX512-VNNI, AVX-VNNI)
  /// Feature names the runtime checks at load (manifest "features").
  llvm::SmallVector<std::string> required;

  /// Lanes of a full register for an element of `bits` bits.
  int64_t lanes(unsigned bits) const { return vectorBytes * 8 / bits; }

  /// Level by name ("x86-64-v2", "-v3", "-v4", "host"); nullopt for an unknown
  /// name.
  static std::optional<IsaLevel> byName(llvm::StringRef name);
  /// The most bytes that a buffer of tiles takes at any level; it is planned before one is chosen.
  static int64_t mostBytes(llvm::function_ref<int64_t(const IsaLevel &)> bytesAt);
  /// Names byName knows, best first.
  static llvm::ArrayRef<llvm::StringRef> names();
  /// Whether this machine has every required feature.
  bool runsHere() const;
};

} // namespace dmxc::cpu
