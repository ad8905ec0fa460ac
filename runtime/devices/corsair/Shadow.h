//===- Shadow.h - the card's bytes and queues in the shared shadow --------===//
#pragma once

#include "Fault.h"
#include "runtime/devices/common/Shadow.h"

#include "schemas/corsair/Isa.h"

namespace dmxrt::corsair {

namespace isa = dmx::corsair;
using isa::ElemKind;
using isa::Memory;
using sim::Actor;
using sim::Epoch;
using sim::kHostThread;
using sim::Problem;
using sim::Shadow;
using sim::VectorClock;

/// A thread of the shadow is a queue of a quad: 32 quads of 4 queues.
constexpr uint16_t kQueues = 4, kThreads = 32 * kQueues;
constexpr uint16_t threadOf(uint32_t quad, uint32_t queue) { return static_cast<uint16_t>(quad * kQueues + queue); }

/// Kinds of bytes are element kinds; Raw accepts them all.
constexpr sim::ByteKind byteKind(ElemKind kind) { return static_cast<sim::ByteKind>(kind); }
static_assert(byteKind(ElemKind::Raw) == sim::kAnyKind && isa::kElemKinds <= sim::kUndefined);
inline ElemKind kindFound(const Problem &problem) { return static_cast<ElemKind>(problem.found); }

constexpr FaultKind faultOf(const Problem &problem) {
  return problem.why == Problem::Undefined   ? FaultKind::PoisonRead
         : problem.why == Problem::OtherKind ? FaultKind::FormatMismatch
                                             : FaultKind::Race;
}

} // namespace dmxrt::corsair
