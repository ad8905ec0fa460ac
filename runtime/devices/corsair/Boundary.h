//===- Boundary.h - tensors between host and card ---------------*- C++ -*-===//
#pragma once

#include "Storage.h"

#include "schemas/corsair/Image.h"

#include <optional>

namespace dmxrt::corsair {

/// Converts and copies the pieces of a kernel's arguments (ISA.md section 9). The
/// host's accesses lie before and after all others.
class Boundary {
public:
  Boundary(Storage &storage, bool hazards) : storage(storage), hazards(hazards) {}

  /// Host to card: Input and Const arguments.
  void write(const isa::Argument &argument, const std::byte *host);
  /// Card to host: Output arguments. A fault when the program left bytes unwritten
  /// or of another kind.
  std::optional<Fault> read(const isa::Argument &argument, std::byte *host);
  /// Zeros: State arguments at first and after a reset.
  void clear(const isa::Argument &argument);
  /// Elements of an Input argument that its form, f16, cannot hold. Not the negative ones: those are fills of masks.
  static uint64_t saturated(const isa::Argument &argument, const std::byte *host);
  /// The integer of a Scalar argument.
  static int64_t scalar(const isa::Argument &argument, const std::byte *host);

private:
  Storage &storage;
  const bool hazards;

  void mark(const isa::Piece &piece, uint64_t address, uint64_t size, ElemKind kind);
  bool check(const isa::Piece &piece, uint64_t address, uint64_t size, ElemKind kind, Problem &problem);
  template <typename Visit> bool plainRuns(const isa::Argument &argument, const isa::Piece &piece, Visit visit);
  template <typename Visit> bool tiles(const isa::Argument &argument, const isa::Piece &piece, Visit visit);
  void writePlain(const isa::Argument &argument, const isa::Piece &piece, const std::byte *host);
  void writeTiles(const isa::Argument &argument, const isa::Piece &piece, const std::byte *host);
  void readPlain(const isa::Argument &argument, const isa::Piece &piece, std::byte *host);
  void readTiles(const isa::Argument &argument, const isa::Piece &piece, std::byte *host);
};

} // namespace dmxrt::corsair
