//===- Check.h - whether a bundle is sound ----------------------*- C++ -*-===//
#pragma once

#include "dmxc/Bundle/Validate.h"

namespace dmxc::tools {

/// What dmx-inspect --check (with `everything` --verify) asks of a bundle: the rules of FORMAT.md, that the runtime
/// opens it, and that the runtime can lay out runs of every entry point at the smallest, usual and largest dims. The
/// last are left out where the dims' bounds do not allow them, or no machine has the memory. Computes nothing. Empty
/// when it is sound. ErrorKind::IO when it cannot be read.
Result<std::vector<bundle::Problem>> checkBundle(const bundle::Bundle &bundle, bool everything);

} // namespace dmxc::tools
