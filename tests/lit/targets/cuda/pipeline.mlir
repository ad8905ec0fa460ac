// REQUIRES: frontend-mlir
// RUN: dmx-opt %s -cuda-pipelines | FileCheck %s
// RUN: sed 's/columns = 128/columns = 100/' %s > %t.columns.mlir
// RUN: not dmx-opt %t.columns.mlir -cuda-pipelines 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: sed 's/columns = 128/column = 128/' %s > %t.field.mlir
// RUN: not dmx-opt %t.field.mlir -cuda-pipelines 2>&1 | FileCheck %s --check-prefix=FIELD
// RUN: sed 's/columns = 128 : i64, rows/rows/' %s > %t.missing.mlir
// RUN: not dmx-opt %t.missing.mlir -cuda-pipelines 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: sed -E 's/product = \{[^}]*\}/product = 3 : i64/' %s > %t.number.mlir
// RUN: not dmx-opt %t.number.mlir -cuda-pipelines 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: sed 's/stages = 3/stages = 9/' %s > %t.stages.mlir
// RUN: not dmx-opt %t.stages.mlir -cuda-pipelines 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: sed 's/xbf16/xf32/g' %s > %t.f32.mlir
// RUN: not dmx-opt %t.f32.mlir -cuda-pipelines 2>&1 | FileCheck %s --check-prefix=F32

// A left operand by a map, a right one of odd rows by threads; two warpgroups that multiply. What the pipeline says is no longer in the strategy.
// CHECK-LABEL: dlir.kernel @k
// CHECK-NOT: product
// CHECK: cuda.pipeline tile 128 x 128 raster 8 {
// CHECK-NEXT: cuda.role "multiply" warpgroups 2 registers 224
// CHECK-NEXT: cuda.role "copy" warpgroups 1 registers 56
// CHECK-NEXT: dlir.device_program @block on "cuda" {
// CHECK-NEXT: dlir.argument scalar "tiles" : i64 as "i64" register 0
// CHECK-NEXT: dlir.scheduled_graph "main" units 1 (%{{.*}}) {
// CHECK-NEXT: %[[TILES:.*]] = dlir.register 0 [0]
// CHECK-NEXT: %[[RING:.*]] = dlir.ring "shared" "operands" slots 3 size 32768 on "block" from "copy" 0 to "multiply" 0
// CHECK-NEXT: dlir.dispatch_queue "block" "multiply" 0 {
// CHECK-NEXT: dlir.loop %{{.*}} times[%[[TILES]]] {
// CHECK-NEXT: dlir.loop %{{.*}} times[2] {
// CHECK-NEXT: dlir.drain %[[RING]] {
// CHECK-NEXT: cuda.multiply 64 x 128 x 16 behind 1
// CHECK: dlir.task_group "sums" {
// CHECK-NEXT: cuda.write columns 64
// CHECK: dlir.dispatch_queue "block" "copy" 0 {
// CHECK-NEXT: dlir.loop %{{.*}} times[%[[TILES]]] {
// CHECK-NEXT: dlir.loop %{{.*}} times[2] {
// CHECK-NEXT: dlir.fill %[[RING]] {
// CHECK-NEXT: cuda.copy "left" map of <"80", "rows"> strides <"160"> box [64, 128]
// CHECK-NEXT: cuda.copy "right" threads 8 because "its rows are 34 bytes apart, no multiple of 16"
// CHECK: dmir.matmul

// COLUMNS: node 'p': 'product.columns' of its strategy is 100; its values are 64, 128, 256
// FIELD: node 'p': 'product.column' of its strategy is no field of it; it has columns, rows, stages; did you mean 'columns'?
// MISSING: node 'p': 'product.columns' of its strategy is missing; its values are 64, 128, 256
// NUMBER: node 'p': 'product' of its strategy is 3, but must be a dictionary of columns, rows, stages
// STAGES: node 'p': 'product.stages' of its strategy is 9; its values are 2 to 7
// F32: node 'p': its strategy has the algorithm matmul-specialised, but its operands are no floats of 16 bits
dlir.kernel @k on "cuda" attributes {strategy = {algorithm = "matmul-specialised", product = {columns = 128 : i64, rows = 128 : i64, stages = 3 : i64},
                                                 thread_copies = "right: its rows are 34 bytes apart, no multiple of 16"}} {
^bb0(%x: tensor<?x80xbf16, #dmir.dims<"rows">>, %o: tensor<80x17xbf16>):
  %p = dmir.matmul %x, %o : (tensor<?x80xbf16, #dmir.dims<"rows">>, tensor<80x17xbf16>) -> tensor<?x17xf32, #dmir.dims<"rows">> loc("p")
  dmir.yield %p : tensor<?x17xf32, #dmir.dims<"rows">>
}
