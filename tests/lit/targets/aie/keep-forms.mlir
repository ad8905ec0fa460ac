// What one product hands to the next alone is in the form that this reads, of which its type says how large it is; texts with another form or tiling are refused.
// REQUIRES: frontend-mlir
// RUN: dmxc -q %s -t aie --emit partition -o %t.mlir && FileCheck %s --input-file %t.mlir
// RUN: dmxc -q %t.mlir -t aie --from partition -o %t.bundle
// RUN: sed '0,/herd_columns = 4/s//herd_columns = 3/' %t.mlir > %t.columns.mlir
// RUN: not dmxc -q %t.columns.mlir -t aie --from partition -o %t.bundle 2>&1 | FileCheck %s --check-prefix=COLUMNS
// COLUMNS: node 'first': error: 'tiling.herd_columns' of its strategy is 3, but must be 4
// RUN: sed 's/pitch = 192/pitch = 191/g' %t.mlir > %t.pitch.mlir
// RUN: not dmxc -q %t.pitch.mlir -t aie --from partition -o %t.bundle 2>&1 | FileCheck %s --check-prefix=PITCH
// PITCH: node 'first': error: {{.*}}256 rows of 256 are its result, which has a form of 96 of 191
// RUN: sed 's/bytes = 36864/bytes = 3640/g' %t.mlir > %t.bytes.mlir
// RUN: not dmxc -q %t.bytes.mlir -t aie --from partition -o %t.bundle 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: nor a form with `bytes` for all of it
// RUN: sed '0,/dmir.region "aie"/s//dmir.region "cpu"/' %t.mlir > %t.host.mlir
// RUN: not dmxc -q %t.host.mlir -t aie --from partition -o %t.bundle 2>&1 | FileCheck %s --check-prefix=HOST
// HOST: node 'first': error: it reads or gives a tensor in a form that another target has for itself

// 130 columns are 192 with those of whole blocks of 4 x 16 or 64, 70 rows 96 with those of the second product's; a bf16 each, which that would round to: more than the 36,400 bytes of the f32.
// CHECK: %[[FIRST:.*]] = dmir.region "aie" {{.*}} -> (tensor<70x130xf32, {bytes = 36864 : i64, element = "bf16", pitch = 192 : i64, rows = 96 : i64}>)
// CHECK: dmir.relu {{.*}} -> tensor<70x130xf32, {bytes = 36864
// What two read, and what the function returns, is as the host has it.
// CHECK: dmir.region "aie" ({{.*}} = %[[FIRST]] : tensor<70x130xf32, {bytes = 36864 {{.*}} -> (tensor<70x50xf32>)
// CHECK: dmir.region "aie" {{.*}} -> (tensor<70x50xf32>)
func.func @main(%x: tensor<70x100xf32> {dmir.name = "x"}, %a: tensor<100x130xf32> {dmir.name = "a"}, %b: tensor<130x50xf32> {dmir.name = "b"},
                %c: tensor<50x50xf32> {dmir.name = "c"}) -> (tensor<70x50xf32> {dmir.name = "y"}, tensor<70x50xf32> {dmir.name = "z"}) {
  %0 = dmir.matmul %x, %a : (tensor<70x100xf32>, tensor<100x130xf32>) -> tensor<70x130xf32> loc("first")
  %1 = dmir.relu %0 : (tensor<70x130xf32>) -> tensor<70x130xf32>
  %2 = dmir.matmul %1, %b : (tensor<70x130xf32>, tensor<130x50xf32>) -> tensor<70x50xf32> loc("second")
  %3 = dmir.matmul %2, %c : (tensor<70x50xf32>, tensor<50x50xf32>) -> tensor<70x50xf32> loc("third")
  return %2, %3 : tensor<70x50xf32>, tensor<70x50xf32>
}
