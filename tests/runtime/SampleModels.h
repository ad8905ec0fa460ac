//===- SampleModels.h - models that use all of the format -------*- C++ -*-===//
#pragma once

#include "BundleBuilder.h"

namespace dmxtest {

/// With every kind of buffer, dispatched and copying tasks, given and computed dims.
TestBundle everyBuffer();
/// With returned dims, constraints, a branch and a loop.
TestBundle everyControl();

} // namespace dmxtest
