//===- Help.cpp - what the command line says of the target ----------------===//
#include "dmxc/Target/TargetHelp.h"

namespace dmxc {
TargetHelp helpCorsairTarget() {
  return {"quads=N (a team of N, of fewer where that is faster), MACHINE.json, performance, capacity (weights fetched "
          "in every run)",
          "basic: f16, products of BFP16_64",
          {{"quads=4", "for a team of up to four, what it does not compute on the host"}},
          "basic"};
}
} // namespace dmxc
