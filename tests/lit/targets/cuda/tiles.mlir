// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cuda --emit partition -o %t.mlir --explain-decisions | FileCheck %s --check-prefix=FREE
// RUN: FileCheck %s --input-file %t.mlir
// RUN: dmxc %t.mlir --from partition -t cuda -o %t.bundle
// RUN: sed 's/tiles = {columns = 64/tiles = {columns = 32/' %t.mlir > %t.columns.mlir
// RUN: not dmxc %t.columns.mlir --from partition -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: dmxc %s -t cuda --emit schedule -o %t.schedule.mlir
// RUN: sed 's/"matmul-plain"/"matmul-by-tiles"/' %t.schedule.mlir > %t.half.mlir
// RUN: not dmxc %t.half.mlir --from schedule -t cuda -o %t.bundle 2>&1 | FileCheck %s --check-prefix=HALF

// Products and convolutions of f32 by tiles in shared memory; a product of f16 for four rows has a thread an element.
// CHECK-LABEL: func.func @main
// CHECK: algorithm = "matmul-by-tiles"
// CHECK-SAME: tiles = {columns = 64 : i64, rows = {{[0-9]+}} : i64}
// CHECK: algorithm = "conv-by-tiles"
// CHECK: algorithm = "matmul-plain"

// FREE: node 'product': cuda, matmul-by-tiles
// FREE-NEXT: algorithm = "matmul-by-tiles"  (default)  of "matmul-by-tiles", "matmul-plain"; by tiles in shared memory, or an element a thread; changes results by order
// FREE-NEXT: rows = {{[0-9]+}}  (default)  of 8, 16, 32, 64, 128; rows of a block's part of the result; changes no bits
// FREE-NEXT: columns = 64  (default)  of 64, 128; columns of a block's part of the result; changes no bits
// FREE-NEXT: {{[0-9]+}} clocks expected

// COLUMNS: node 'product'{{.*}}'tiles.columns' of its strategy is 32 : i64, but must be 64 : i64
// HALF: node 'half': its strategy has the algorithm matmul-by-tiles, but it is no product of f32 whose operands are views of memory with a known number of terms
func.func @main(%a: tensor<128x128xf32> {dmir.name = "a"}, %b: tensor<128x128xf32> {dmir.name = "b"}, %i: tensor<1x64x56x56xf32> {dmir.name = "i"},
                %f: tensor<4x80xf16> {dmir.name = "f"}, %g: tensor<80x16xf16> {dmir.name = "g"})
    -> (tensor<128x128xf32> {dmir.name = "x"}, tensor<1x256x56x56xf32> {dmir.name = "y"}, tensor<4x16xf32> {dmir.name = "z"}) {
  %w = dmir.constant dense<0.5> : tensor<256x64x1x1xf32>
  %0 = dmir.matmul %a, %b : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32> loc("product")
  %1 = dmir.conv %i, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>}
      : (tensor<1x64x56x56xf32>, tensor<256x64x1x1xf32>) -> tensor<1x256x56x56xf32> loc("pixels")
  %2 = dmir.matmul %f, %g : (tensor<4x80xf16>, tensor<80x16xf16>) -> tensor<4x16xf32> loc("half")
  return %0, %1, %2 : tensor<128x128xf32>, tensor<1x256x56x56xf32>, tensor<4x16xf32>
}
