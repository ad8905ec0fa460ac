//===- Tasks.h - tasks of queues, one at a time -----------------*- C++ -*-===//
//
// What a task of a dlir.device_program does to the memories of the card, by schemas/corsair/ISA.md: the text alone, by
// neither the encoder nor the simulated card.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Indices.h"
#include "Cells.h"

#include "schemas/corsair/simd/SimdJob.h"

namespace dmxc::corsair::stages {

/// Where a task runs: a quad, and what counters and registers are.
struct TaskSite {
  Card &card;
  int64_t quad;
  const Indices &indices;

  const hw::Machine &machine() const { return card.machine; }
};

Status runTask(dlir::DmaCopyOp op, const TaskSite &site);
Status runTask(engine::MatmulOp op, const TaskSite &site);
Status runTask(engine::ConvOp op, const TaskSite &site);
Status runTask(engine::SimdOp op, const TaskSite &site);
Status runTask(engine::ReshapeOp op, const TaskSite &site);

/// The affine numbers of a task. Where one is not known, or beyond all that the machine counts, the task fails.
class TaskNumbers {
public:
  template <typename OpTy>
  TaskNumbers(OpTy op, const TaskSite &site, Accesses &access)
      : indices(site.indices), operands(op.getIndices()), places(op.getPlaces()), access(access) {}

  /// Where a buffer is touched, in bytes from its begin.
  int64_t place(unsigned buffer) const { return of(mlir::cast<mlir::AffineMapAttr>(places[buffer]).getValue(), 0); }
  int64_t of(std::optional<mlir::AffineMap> map, int64_t otherwise, unsigned result = 0) const;

private:
  const Indices &indices;
  mlir::ValueRange operands;
  mlir::ArrayAttr places;
  Accesses &access;
};

/// What a field of an instruction, or a key of its descriptor, is where the text has none.
int64_t otherwiseOf(hw::Opcode opcode, llvm::StringRef field);
int64_t otherwiseOf(hw::ConfigKey key);
template <typename Owner> int64_t given(std::optional<uint64_t> value, Owner owner) {
  return value ? static_cast<int64_t>(*value) : otherwiseOf(owner);
}
inline int64_t given(std::optional<uint64_t> value, hw::Opcode opcode, llvm::StringRef field) {
  return value ? static_cast<int64_t>(*value) : otherwiseOf(opcode, field);
}

/// The slices of a mask in order: (slice, how many before it). Stops at false.
template <typename Visit> bool eachOf(int64_t mask, int64_t count, Visit visit) {
  int64_t rank = 0;
  for (int64_t slice = 0; slice < count; ++slice)
    if ((mask >> slice & 1) && !visit(slice, rank++))
      return false;
  return true;
}

/// A mask of those there are, at least one.
bool isMaskOf(int64_t mask, int64_t count, const char *what, Accesses &access);

/// The kind of that name.
bool readKind(llvm::StringRef name, hw::ElemKind &kind, Accesses &access);
/// The window of a task or descriptor, whose keys have no "win_" there.
bool readWindow(std::optional<mlir::DictionaryAttr> text, hw::Window &window, Accesses &access,
                int64_t *channels = nullptr);

/// What a copy walks over.
struct Walked {
  hw::ElemKind kind = hw::ElemKind::Raw, to = hw::ElemKind::Raw;
  bool retype = false, sourceRows = false, targetRows = false;
  int64_t unit = 1, tail = 0, n[4], s[4], t[4], low[4], high[4];
  int64_t sourceBand = 0, targetBand = 0, sourceUnit = 0, targetUnit = 0, sourceSubunit = 0, elementStride = 0;
  hw::ElemKind indexKind = hw::ElemKind::I32;
  int64_t indexPitch = 0, indexRange = 0, channels = 1;
  hw::Window window;

  bool read(dlir::DescriptorOp op, Accesses &access);
  /// A count that replaces the outermost dim; -1: its own.
  bool replaceCount(int64_t count, Accesses &access);
};

/// Bytes of an element, of what is made of tiles one byte.
inline int64_t unitBytes(hw::ElemKind kind) { return std::max(hw::elementBytes(kind), 1); }

/// Visits the items of a descriptor, the last dim fastest; stops at false.
template <typename Visit> bool eachItem(const int64_t (&n)[4], Visit visit) {
  int64_t i[4];
  for (i[0] = 0; i[0] < n[0]; ++i[0])
    for (i[1] = 0; i[1] < n[1]; ++i[1])
      for (i[2] = 0; i[2] < n[2]; ++i[2])
        for (i[3] = 0; i[3] < n[3]; ++i[3])
          if (!visit(i))
            return false;
  return true;
}
inline Wide dot(const int64_t (&index)[4], const int64_t (&step)[4]) {
  return Wide(index[0]) * step[0] + Wide(index[1]) * step[1] + Wide(index[2]) * step[2] + Wide(index[3]) * step[3];
}

} // namespace dmxc::corsair::stages
