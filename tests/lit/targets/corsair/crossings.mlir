// REQUIRES: frontend-mlir
// RUN: dmxc %s -q -t corsair:quads=1 --emit schedule.bands -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: dmxc %s -q -t corsair:quads=1 --emit schedule -o - | FileCheck %s --check-prefix=DLIR
// RUN: sed 's/affine.for %arg5 loc("mm") = 0 to 3/affine.for_ %arg6 loc("mm") = 0 to 20/; s/affine.for %arg6 loc("mm") = 0 to 20/affine.for %arg5 loc("mm") = 0 to 3/; s/for_/for/' %t.mlir > %t.turned.mlir
// RUN: not dmxc %t.turned.mlir --from schedule.bands -q -t corsair:quads=1 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=TURNED
// RUN: sed 's/{lldmir.type = tensor<130x600xf32>})/{lldmir.bands, lldmir.type = tensor<130x600xf32>})/' %t.mlir > %t.result.mlir
// RUN: not dmxc %t.result.mlir --from schedule.bands -q -t corsair:quads=1 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=RESULT
// RUN: sed 's/%arg2: memref<130x600xf16, "GM"> {/&lldmir.bands, /' %t.mlir > %t.argument.mlir
// RUN: not dmxc %t.argument.mlir --from schedule.bands -q -t corsair:quads=1 -o %t.bundle 2>&1 | FileCheck %s --check-prefix=ARGUMENT

// A matrix that a product alone reads comes from the host a band of rows after the other, and what the product fills goes there so.

// CHECK: func.func @{{.*}}(%arg0: memref<3x10x{{.*}}"GM"> {lldmir.bands, {{.*}}%arg2: memref<130x600xf16, "GM"> {lldmir.type = {{.*}} -> (memref<130x1280xf16, "GM"> {lldmir.bands, lldmir.type = tensor<130x1280xf32>}, memref<130x600xf16, "GM"> {lldmir.type = tensor<130x600xf32>})
// A band of 10 tiles of 4,160 bytes comes before it is loaded, by another queue; one of 64 rows of 1,280 numbers of f16 goes.
// DLIR: dlir.task_barrier wait(%[[COME:mm]])
// DLIR: dlir.copy GM -> IB
// DLIR: dlir.copy DDR -> GM %arg0[0] to
// DLIR-NEXT: dlir.task_barrier signal(%[[COME]])
// DLIR: dlir.copy DDR -> GM %arg0[41600] to
// DLIR-NEXT: dlir.task_barrier signal(%[[COME]])
// DLIR: dlir.copy DDR -> GM %arg0[83200] to
// DLIR-NEXT: dlir.task_barrier signal(%[[COME]])
// DLIR-NOT: DDR -> GM %arg0
// DLIR: dlir.copy GM -> DDR {{.*}} to %result0[0]
// DLIR: dlir.copy GM -> DDR {{.*}} to %result0[163840]
// DLIR: dlir.copy GM -> DDR {{.*}} to %result0[327680]
// TURNED: node 'mm': 'affine.for' has rows of result 0 that depend on each other, and 'lldmir.bands' lets them cross band after band: others are begun before all columns of a band are there
// RESULT: has 'lldmir.bands' of result 1, whose rows no loops over tiles fill
// ARGUMENT: node 'sm': 'lldmir.simd' needs all rows of argument 2, which 'lldmir.bands' lets cross with the loops that read them
func.func @main(%x: tensor<130x640xf32> {dmir.name = "x"}, %z: tensor<130x600xf32> {dmir.name = "z"})
    -> (tensor<130x1280xf32> {dmir.name = "y"}, tensor<130x600xf32> {dmir.name = "s"}) {
  %w = dmir.constant dense<0.25> : tensor<640x1280xf32>
  %y = dmir.matmul %x, %w : (tensor<130x640xf32>, tensor<640x1280xf32>) -> tensor<130x1280xf32> loc("mm")
  %s = dmir.softmax %z {axis = 1 : i64} : (tensor<130x600xf32>) -> tensor<130x600xf32> loc("sm")
  return %y, %s : tensor<130x1280xf32>, tensor<130x600xf32>
}
