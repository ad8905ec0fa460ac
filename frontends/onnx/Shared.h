//===- Shared.h - what all frontends share ----------------------*- C++ -*-===//
#pragma once

#include "frontends/common/Emitter.h"

namespace dmxc::onnxfe {

using namespace frontend;

} // namespace dmxc::onnxfe
