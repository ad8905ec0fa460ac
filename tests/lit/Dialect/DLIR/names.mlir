// Values are called as what they are of, whatever that is called; a text with other names means the same.
// RUN: dmx-opt --mlir-print-debuginfo %s | FileCheck %s
// RUN: dmx-opt --mlir-print-debuginfo %s | dmx-opt --mlir-print-debuginfo | FileCheck %s

dlir.kernel @k0 on "cpu" attributes {strategy = {algorithm = "pointwise"}} {
// By the node, which has slashes and dots; what has none by what it is.
// CHECK: %encoder_layer_0_bias = dmir.constant
// CHECK: %constant = dmir.constant
^bb0(%a: tensor<1xf32>):
  %0 = dmir.constant dense<1.0> : tensor<1xf32> loc("/encoder/layer.0/bias")
  %1 = dmir.constant dense<2.0> : tensor<1xf32>
  %2 = dmir.add %a, %0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %3 = dmir.add %2, %1 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  dmir.yield %3 : tensor<1xf32>
}

// CHECK-LABEL: dlir.program @main
dlir.program @main attributes {inputs = [{name = "the \22first\22", type = tensor<1xf32>}, {name = "", type = tensor<1xf32>}],
                               outputs = [{name = "26", type = tensor<1xf32>}], arenas = [{size = 192, lower_bound = 192}]} {
  // CHECK: %the_first = dlir.buffer input "the \22first\22"
  %0 = dlir.buffer input "the \22first\22" : tensor<1xf32> {size = 4 : i64}
  // CHECK: %input = dlir.buffer input ""
  %1 = dlir.buffer input "" : tensor<1xf32> {index = 1 : i64, size = 4 : i64}
  // CHECK: %same = dlir.buffer arena "same"
  %2 = dlir.buffer arena "same" : tensor<1xf32> {size = 4 : i64}
  // CHECK: %[[OTHER:same_[0-9]+]] = dlir.buffer arena "same"
  %3 = dlir.buffer arena "same" : tensor<1xf32> {offset = 64 : i64, size = 4 : i64}
  // CHECK: %same_0{{.*}} = dlir.buffer arena "same.0"
  %4 = dlir.buffer arena "same.0" : tensor<1xf32> {offset = 128 : i64, size = 4 : i64}
  // CHECK: %output_26 = dlir.buffer output "26"
  %5 = dlir.buffer output "26" : tensor<1xf32> {size = 4 : i64}
  // CHECK: %conv_1_done = dlir.dispatch @k0(%the_first) -> (%same)
  %6 = dlir.dispatch @k0(%0) -> (%2) {nodes = ["/conv/1/", "/relu"], queue = "cpu", work = 1 : i64}
  // CHECK: %[[SECOND:conv_1_done_[0-9]+]] = dlir.dispatch @k0(%same) -> (%[[OTHER]]) after %conv_1_done
  %7 = dlir.dispatch @k0(%2) -> (%3) after %6 {nodes = ["/conv/1/"], queue = "cpu", work = 1 : i64}
  // CHECK: %copy_buffer_done = dlir.copy_buffer %[[OTHER]] to %output_26 after %[[SECOND]]
  %8 = dlir.copy_buffer %3 to %5 after %7 {nodes = [], queue = "cpu", size = 4 : i64}
}
