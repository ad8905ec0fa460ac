//===- ProductFacts.h - what is known of products, and used -----*- C++ -*-===//
#pragma once

#include "targets/corsair/decide/Distribution.h"

namespace dmxc::corsair {

/// Says of each product of which something is known, in dmir.product, what the kernel leaves out and why not the rest.
/// What attention leaves out is said of its masks. `computesZeros`: as the user asked.
void noteFacts(mlir::Block *body, const Distribution &deal, bool computesZeros);

} // namespace dmxc::corsair
