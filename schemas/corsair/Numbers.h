//===- Numbers.h - the target's numbers -------------------------*- C++ -*-===//
//
// Corsair computes in block floating point (schemas/blockfp): its names are part of this namespace.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/blockfp/BlockFloat.h"

namespace dmx::corsair {
using namespace blockfp;
} // namespace dmx::corsair
