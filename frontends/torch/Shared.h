//===- Shared.h - what all frontends share ----------------------*- C++ -*-===//
#pragma once

#include "frontends/common/Emitter.h"

namespace dmxc::torchfe {

using namespace frontend;

} // namespace dmxc::torchfe
