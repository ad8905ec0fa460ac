//===- DeviceBundle.h - bundles of a device from assembly -------*- C++ -*-===//
#pragma once

#include <string>

namespace dmxc::tools::test {

/// A bundle's bytes for the simulated card: a task a kernel of the assembly, their buffers as the arguments say, the
/// constants filled with numbers. Arguments come as tasks have them: inputs, constants and scalars, then states and
/// outputs. Ends the program with a message when the text is wrong.
std::string deviceBundle(const std::string &assembly);

} // namespace dmxc::tools::test
