//===- Help.cpp - what the command line says of the target ----------------===//
#include "dmxc/Target/TargetHelp.h"

namespace dmxc {
TargetHelp helpAieTarget() {
  return {
      "cols=N, rows=N (cores of the array, 1 to 4; 4 x 4 where nothing is said)",
      "bf16 (default): products of f32 and f16 as bf16 summed in f32; strict: those are the host's; bf16, i32 and "
      "bytes are what they are in both",
      {{"cols=1", "for an array of one column"}},
      /*defaultNumerics=*/"",
      /*aliases=*/{},
      /*bodyKeys=*/{"cycles", "l1", "library"},
      "an ELF object with a function that a core calls, with its cycles and, in l1, what of its operands the core has "
      "at once"};
}
} // namespace dmxc
