//===- Channels.h - rules of a program's channels ---------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

namespace dmxc::dlir {

/// C6 of programs: what is put is got, and the other way round, element by element; and each put can move to each get.
mlir::LogicalResult verifyChannels(DeviceProgramOp program, const DeviceModel &model);
/// C4 of puts and gets, whose channel is there.
mlir::LogicalResult verifyElement(mlir::Operation *end, ChannelOp channel, mlir::AffineMapAttr element,
                                  mlir::ValueRange indices);

} // namespace dmxc::dlir
