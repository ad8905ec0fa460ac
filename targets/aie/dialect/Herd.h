//===- Herd.h - a product on cores, before it has tiles ---------*- C++ -*-===//
#pragma once

#include "targets/aie/dialect/Aie.h"

namespace dmxc::herd {
using aie::BDDimLayoutAttr; // as the generated accessors call it
} // namespace dmxc::herd

#include "targets/aie/dialect/HerdDialect.h.inc"
#define GET_OP_CLASSES
#include "targets/aie/dialect/HerdOps.h.inc"
