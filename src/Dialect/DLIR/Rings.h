//===- Rings.h - rules of a program's rings ---------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

#include "mlir/IR/OpImplementation.h"

namespace dmxc::dlir {

/// The rings that a fill or drain names; none of another op.
mlir::ValueRange ringsOf(mlir::Operation *op);
/// Whether an op stands where tasks do: in a group, a fill or a drain.
bool isAmongTasks(mlir::Operation *op);
/// Whether it may stand there.
bool isTask(mlir::Operation *op);
/// "ring 'a'"
std::string nameOf(RingOp ring);

/// Whether a task's slots are held around it, and those that are drained not written.
mlir::LogicalResult verifySlots(mlir::Operation *task, mlir::ValueRange buffers);
/// C5 and C6 of rings, and of loops what is known of whose turn it is.
mlir::LogicalResult verifyRings(ScheduledGraphOp graph);
/// C7 of programs, of a graph whose rings are sound.
mlir::LogicalResult verifyBalance(ScheduledGraphOp graph);

/// `"S2MM" 0, "compute" 1`: queues by engine and number.
mlir::ParseResult parseQueues(mlir::OpAsmParser &parser, mlir::ArrayAttr &engines, mlir::DenseI64ArrayAttr &numbers);
void printQueues(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::ArrayAttr engines,
                 mlir::DenseI64ArrayAttr numbers);

} // namespace dmxc::dlir
