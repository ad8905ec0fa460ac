//===- Units.h - what queues of the array's units do with rings -*- C++ -*-===//
#pragma once

#include "targets/aie/dialect/Aie.h"
#include "targets/common/queues/ProgramWriter.h"

namespace dmxc::aie {

/// A tensor of the host lies in its form by the strides of the piece alone, in rows of a pitch (bytes).
inline void setBorder(dlir::PieceOp piece, size_t rank, int64_t pitch) {
  mlir::Builder b(piece.getContext());
  llvm::SmallVector<int64_t> none(rank, 0), one(rank, 1);
  piece->setAttr(kPieceBorder, b.getDictionaryAttr({b.getNamedAttr(kPitch, b.getI64IntegerAttr(pitch)),
                                                    b.getNamedAttr(kFirst, b.getDenseI64ArrayAttr(none)),
                                                    b.getNamedAttr(kSplit, b.getDenseI64ArrayAttr(one)),
                                                    b.getNamedAttr(kPhase, b.getDenseI64ArrayAttr(none))}));
}
/// A slot of a ring is filled from a channel, in the order of a walk.
inline void fill(ProgramWriter &w, mlir::Value ring, llvm::StringRef channel, llvm::ArrayRef<Sum> element,
                 mlir::Value walk) {
  w.fill(ring, [&] { w.get(channel, element).buffer(ring, 0).with(walk).create(); });
}
/// A slot of a ring is drained into a channel.
inline void drain(ProgramWriter &w, mlir::Value ring, llvm::StringRef channel, llvm::ArrayRef<Sum> element,
                  mlir::Value walk) {
  w.drain(ring, [&] { w.put(channel, element).buffer(ring, 0).with(walk).create(); });
}
/// A queue of so many units that does this for ever.
inline void forever(ProgramWriter &w, hw::TileKind unit, llvm::StringRef engine, int64_t number,
                    llvm::ArrayRef<int64_t> units, llvm::function_ref<void()> body) {
  w.queue(hw::nameOf(unit), engine, number, [&] { w.loop(kForever, [&](const Sum &) { body(); }); }, units);
}

} // namespace dmxc::aie
