//===- Interpret.h - schedules on texts, for dmx-opt ------------*- C++ -*-===//
#pragma once

namespace dmxc {

/// Registers --transform-interpreter: what `dmxc --schedule` does of a script, on the text that the script stands in.
void registerInterpreterPass();

} // namespace dmxc
