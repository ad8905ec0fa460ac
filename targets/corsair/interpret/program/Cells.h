//===- Cells.h - the memories of a program of queues ------------*- C++ -*-===//
#pragma once

#include "../View.h"

#include "targets/corsair/dialect/Corsair/Corsair.h"

#include "schemas/blockfp/DotProduct.h"

#include <map>

namespace dmxc::corsair::stages {

/// Sums of what text may say: they are looked at before they are places.
using Wide = __int128;

/// A buffer in one unit of its memory: its bytes, and of what kind each is; Raw: nobody has written it.
struct Cell {
  Cell(dlir::MemoryOp memory, int64_t unit);

  std::byte *data() const { return bytes->data(); }
  int64_t size() const { return static_cast<int64_t>(bytes->size()); }
  /// "'ib' (IB 1)"
  std::string name() const;

  dlir::MemoryOp memory;
  int64_t unit;
  std::shared_ptr<std::vector<std::byte>> bytes;
  std::vector<hw::ElemKind> kinds;
};

/// Runs of `bytes` at `begin` and at all sums of multiples of the steps.
struct Area {
  struct Dim {
    int64_t count, step;
  };
  Wide begin = 0;
  int64_t bytes = 0;
  llvm::SmallVector<Dim, 5> dims;
};

/// What one task reads and writes. The first thing that is wrong is kept, and whoever finds it goes no further.
class Accesses {
public:
  /// Null where the bytes are not all in the buffer, written, and of that kind (Raw: of any).
  const std::byte *read(const Cell &cell, Wide at, int64_t size, hw::ElemKind kind);
  /// From then on they are of that kind; null where they are not all in the buffer.
  std::byte *write(Cell &cell, Wide at, int64_t size, hw::ElemKind kind);
  bool read(const Cell &cell, const Area &area, hw::ElemKind kind);
  bool write(Cell &cell, const Area &area, hw::ElemKind kind);
  /// Bytes with their kinds.
  bool copy(const Cell &from, Wide at, Cell &to, Wide target, int64_t size);
  /// Bytes that nobody has written any more.
  void discard(Cell &cell, int64_t at, int64_t size);
  /// A clause; gives false.
  bool fail(const std::string &why);
  /// Whether a place is a multiple of so many bytes.
  bool isAligned(const Cell &cell, Wide at, int64_t bytes);

  Status status() const { return wrong ? Status(modelError(*wrong)) : Status::ok(); }

private:
  bool isInside(const Cell &cell, Wide at, Wide size, const char *verb);

  std::optional<std::string> wrong;
};

/// All buffers of a program in all units of their memories.
class Card {
public:
  explicit Card(const hw::Machine &machine) : machine(machine) {}

  Cell &cell(mlir::Value buffer, int64_t unit);
  /// The buffer in a quad's unit of its memory, in one of its slices, or in a core of that.
  Cell &cellOf(mlir::Value buffer, int64_t quad, int64_t slice = 0, int64_t core = 0);
  /// What memories but DDR, GM and ST hold is gone when the next graph begins.
  void forget();

  const hw::Machine &machine;
  hw::TileMatmul engine;

private:
  std::map<std::pair<mlir::Operation *, int64_t>, Cell> cells;
};

} // namespace dmxc::corsair::stages
