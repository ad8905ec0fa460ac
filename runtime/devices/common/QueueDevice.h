//===- QueueDevice.h - a device that runs programs of queues ----*- C++ -*-===//
//
// All of a device but its engines: a target gives a DeviceKind whose functions call these with its machine.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "QueueMachine.h"
#include "SimulatedDevice.h"

namespace dmxrt::sim {

/// "report" and "trace": files with what runs cost (Report.h, Trace.h).
inline constexpr SettingSpec kQueueSettings[] = {{"report", "FILE"}, {"trace", "FILE"}};

std::unique_ptr<Device> createQueueDevice(const DeviceKind &kind, const queues::Machine &machine,
                                          const Engines &engines, const DeviceOptions &options,
                                          std::span<const Setting> settings);
Result<std::shared_ptr<const CodeImage>> loadQueues(const queues::Machine &machine, std::span<const std::byte> bytes);

} // namespace dmxrt::sim
