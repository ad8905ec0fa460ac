// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cuda --require-target cuda:100 -o %t.bundle
// RUN: dmx-inspect %t.bundle --what kernels --json | FileCheck %s
// RUN: sed 's/array<i64: 2, /array<i64: 0, /' %s > %t.none.mlir
// RUN: dmxc %t.none.mlir -t cuda --require-target cuda:100 -o %t.none.bundle
// RUN: dmx-inspect %t.none.bundle --what kernels --json | FileCheck %s --check-prefix=NONE

// A tensor map reads an operand with an open number of terms only where there is a term in every run: kernels know the bounds that the module has.
// CHECK: "sizes": [
// CHECK-NEXT: 40,
// CHECK-NEXT: "t"
// NONE-NOT: "sizes"
module attributes {dmir.dims = {t = array<i64: 2, 9223372036854775807>}} {
  func.func @main(%a: tensor<70x?xbf16, #dmir.dims<"t">> {dmir.name = "a"}, %b: tensor<?x40xbf16, #dmir.dims<"t">> {dmir.name = "b"})
      -> (tensor<70x40xf32> {dmir.name = "y"}) {
    %y = dmir.matmul %a, %b : (tensor<70x?xbf16, #dmir.dims<"t">>, tensor<?x40xbf16, #dmir.dims<"t">>) -> tensor<70x40xf32> loc("product")
    return %y : tensor<70x40xf32>
  }
}
