//===- TileKernelPortable.cpp - the tile product, plain C++ ---------------===//

#include "TileKernel.h"

#include <bit>

namespace dmx::blockfp {
namespace {
#define DMX_NO_PAIRS
#include "TileKernelBody.inc"
} // namespace

void tileKernelPortable(const TileOperands &operands) { multiplyTile<4>(operands); }

} // namespace dmx::blockfp
