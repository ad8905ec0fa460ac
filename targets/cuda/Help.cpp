//===- Help.cpp - what the command line says of the target ----------------===//
#include "dmxc/Target/TargetHelp.h"

namespace dmxc {
TargetHelp helpCudaTarget() {
  return {
      "sm_90a (default): NVIDIA H100 and H200; MACHINE.json",
      "strict (default); bf16 rounds the operands of products and convolutions of more than four rows to bf16 and sums "
      "in "
      "f32, by tensor cores",
      {{"sm_90a", "PTX, which a GPU's driver compiles when the bundle is loaded; without a GPU a simulator runs it"}},
      /*defaultNumerics=*/"",
      {"gpu", "nvidia"},
      /*bodyKeys=*/{"launch"},
      "a text in PTX or MLIR, with its launch: grid, block, shared memory and tensor maps"};
}
} // namespace dmxc
