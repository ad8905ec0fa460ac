//===- LLDMIR.h - ops of the array on tiles ---------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/AffineExt/AffineExt.h"

#include "dmxc/Dialect/LLDMIR/LLDMIRDialect.h.inc"
#define GET_OP_CLASSES
#include "dmxc/Dialect/LLDMIR/LLDMIROps.h.inc"
