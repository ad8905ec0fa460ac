//===- Help.cpp - what the command line says of the target ----------------===//
#include "dmxc/Target/TargetHelp.h"

namespace dmxc {
TargetHelp helpAieTarget() {
  return {"cols=N, rows=N (cores of the array, 1 to 4; 4 x 4 where nothing is said)",
          "bf16: products of f32 as bf16 summed in f32; i32 and bytes stay",
          {{"cols=1", "for an array of one column"}}};
}
} // namespace dmxc
