//===- DlirWriter.h - building programs of the quads' queues ----*- C++ -*-===//
#pragma once

#include "targets/common/queues/ProgramWriter.h"
#include "targets/corsair/dialect/Corsair/Corsair.h"

namespace dmxc {

namespace hw = dmx::corsair;

/// A descriptor to be, with what those of this machine have besides.
struct DmaSpec : DescriptorSpec {
  explicit DmaSpec(llvm::StringRef kind = "raw", llvm::StringRef to = {}, int64_t unit = 1)
      : DescriptorSpec{kind, to, unit} {}

  /// The target is rows of tiles: four dims, the last along K, all of them kept.
  bool toRows = false;
  int64_t tail = 0;          ///< elements of the last block along K that exist; 0: all
  int64_t targetBand = 0;    ///< bytes from 64 rows of tiles to the next
  int64_t elementStride = 0; ///< bytes from element to element of the source; 0: contiguous

  /// Of gather and scatter, whose dims are all kept.
  llvm::StringRef indexKind;
  int64_t indexPitch = 0, indexRange = 0; ///< along the first dim
};

/// A program under construction: its units are quads, whose queues take tasks of all engines.
class DlirWriter : public ProgramWriter {
public:
  DlirWriter(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name)
      : ProgramWriter(builder, loc, name, "corsair") {}

  dlir::MemoryOp memory(hw::Memory kind, llvm::StringRef name, int64_t size, bool permanent = false) {
    return ProgramWriter::memory(hw::nameOf(kind), name, size, permanent);
  }
  mlir::Value descriptor(const DmaSpec &spec);
  void queue(int64_t number, llvm::function_ref<void()> body) {
    ProgramWriter::queue(corsair::kUnit, corsair::kEngine, number, body);
  }
  TaskWriter copy(hw::Memory from, hw::Memory to) { return ProgramWriter::copy(hw::nameOf(from), hw::nameOf(to)); }
};

} // namespace dmxc
