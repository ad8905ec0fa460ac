// Softmax of what a mask of each batch is added to, read through a transposition, on two columns of two cores: what shims walk over, which rings cores
// have and what they call, and texts that go on to the same words.
// REQUIRES: frontend-mlir
// RUN: rm -rf %t && mkdir -p %t
// RUN: dmxc %s -t aie:cols=2+rows=2 -o %t/m.bundle --save-temps %t/direct --placement-report %t/report.txt
// RUN: FileCheck %s --input-file=%t/report.txt --check-prefix=REPORT
// RUN: dmxc %s -t aie:cols=2+rows=2 --emit schedule -o %t/placed.mlir
// RUN: dmxc %s -t aie:cols=2+rows=2 --emit schedule.grid -o %t/grid.mlir
// RUN: bash %S/Inputs/same-words.sh %t cols=2+rows=2
// RUN: FileCheck %s --input-file=%t/dlir.mlir --check-prefix=DLIR

// 20 rows of 12 numbers of each of 3 heads of 2 batches: five rows a core, no row is padding.
// REPORT: dmir.transpose{{.*}}aie	0	rows of 12, 5 a core
// REPORT: dmir.softmax{{.*}}aie	0	rows of 12, 5 a core

// The last row ends at number 720 + 2 * 12 + 19 * 36 + 16 = 1444, in whole vectors at 1448. The result has 16 numbers a row.
// DLIR: dlir.memory "DDR" "x" size 5792
// DLIR: dlir.piece "c" unit 0 in %{{.*}} offset 0 begin [0, 0, 0, 0] extent [2, 3, 20, 12] strides [3840, 1280, 64, 4]
// A row begins 3 * 12 numbers behind the one before; the mask is one row for each batch, which all cores share.
// DLIR: %[[ROWS:.*]] = dlir.descriptor "f32" unit 16 dims [10] source [144] target [0]
// DLIR: dlir.register 0 [12]
// DLIR: dlir.ring "L1" "x" slots 2 size 320 on "core" from "S2MM" 0 to "compute" 0
// DLIR: dlir.ring "L1" "y1" slots 2 size 64 on "core" from "S2MM" 1 to "compute" 0
// DLIR: aie.call "copy_f32" %[[X:.*]][0] and %[[C:.*]][0]
// DLIR: aie.call "add_row_f32" %{{.*}}[0] and %[[C]][0]
// DLIR: aie.call "softmax_f32" %[[C]][0]
// DLIR: dlir.put @x_in[%[[UNIT:.*]]] %x[%i * 2880 + %j * 48 + %[[UNIT]] * 1440] with %[[ROWS]]
// DLIR: dlir.put @shared_in[%{{.*}}] %y1[%i * 48] with
// DLIR: dlir.get @c_out[%[[UNIT]]] to %c[%[[UNIT]] * 640 + %j * 1280 + %i * 3840] with

func.func @main(%x: tensor<2x20x3x12xf32> {dmir.name = "x"}, %m: tensor<2x1x1x12xf32> {dmir.name = "m"}) -> (tensor<2x3x20x12xf32> {dmir.name = "y"}) {
  %0 = dmir.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x20x3x12xf32>) -> tensor<2x3x20x12xf32>
  %1 = dmir.add %0, %m : (tensor<2x3x20x12xf32>, tensor<2x1x1x12xf32>) -> tensor<2x3x20x12xf32>
  %y = dmir.softmax %1 {axis = 3 : i64} : (tensor<2x3x20x12xf32>) -> tensor<2x3x20x12xf32>
  return %y : tensor<2x3x20x12xf32>
}
