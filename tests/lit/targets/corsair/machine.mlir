// Verifiers and passes ask the machine of the compile: here one with eight slices of eight cores where the built-in one has four of 16.
// RUN: sed -e 's/"slices": {"value": 4/"slices": {"value": 8/' -e 's/"cores": {"value": 16/"cores": {"value": 8/' -e 's/"max_ppr_mode": {"value": 4/"max_ppr_mode": {"value": 3/' -e 's/12582912/6291456/' -e 's/{"value": 1024, "mark": "derived"/{"value": 512, "mark": "derived"/' %repo/schemas/corsair/corsair-like.json > %t.json
// RUN: dmx-opt %s -o /dev/null
// RUN: not dmx-opt %s --target=corsair:%t.json 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: C2: num_imc 1 <= 2^ppr_mode 4 <= 8 cores of a slice does not hold
// RUN: not dmx-opt %s --target=toaster 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: dmx-opt: error: {{.*}}toaster
// RUN: not dmx-opt %s --target=corsair:%t.none.json 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: dmx-opt: error: target 'corsair': {{.*}}none.json

!R = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>
!C = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64C>>
!P = !affine_ext.vec_ext<64x64x!dmir.block_fp<BFP32_1>>
func.func @sixteen(%a: !R, %w: !C) {
  %p = lldmir.matmul [%a] x [%w] num_imc 1 ppr_mode 4 : !R x !C -> !P
  return
}
