//===- HelpTopics.h - what --help of dmxc says beside its options ---------===//
#pragma once

#include "dmxc/Tools/Help.h"

namespace dmxc::driver {

/// Usage, examples and topics; targets have their own words in them.
tools::HelpPage helpPage();

} // namespace dmxc::driver
