// REQUIRES: target-cpu
// RUN: dmxc %s --state 'past.*=present.*' --emit frontend -o %t.frontend
// RUN: FileCheck %s < %t.frontend
// RUN: not dmxc %s --state 'past.*=present' -o %t.x 2>&1 | FileCheck %s --check-prefix=STARS
// RUN: not dmxc %s --state 'past.*=present.*.*' -o %t.x 2>&1 | FileCheck %s --check-prefix=STARS
// RUN: dmxc %s -t cpu:x86-64-v2 --state 'past.*=present.*' --emit schedule -o %t.whole
// RUN: FileCheck %s --check-prefix=SCHEDULE < %t.whole
// RUN: dmxc %t.frontend --from frontend -t cpu:x86-64-v2 --emit partition -o %t.partition
// RUN: dmxc %t.partition --from partition -t cpu:x86-64-v2 --emit memory -o %t.memory
// RUN: dmxc %t.memory --from memory -t cpu:x86-64-v2 --emit schedule -o %t.parts
// RUN: sed 's/ loc(.*//' %t.whole > %t.whole.text
// RUN: sed 's/ loc(.*//' %t.parts > %t.parts.text
// RUN: diff %t.whole.text %t.parts.text

// The argument has room for all rows, a result that and the run's rows between those that are there and the rest.
// CHECK: func.func @main
// CHECK-SAME: %[[PAST:[a-z0-9]+]]: tensor<1x16x8xf32> {dmir.length = ["past", 1], dmir.name = "past.0", dmir.state = "past.0"}
// CHECK-SAME: dmir.lengths = {{\[\[}}"past", #dmir.dims<"n + past">]]
// CHECK-DAG: %[[BEFORE:.*]] = dmir.slice %[[PAST]] {dims = #dmir.dims<"past">{{.*}} starts = array<i64: 0, 0, 0>
// CHECK-DAG: %[[BEHIND:.*]] = dmir.slice %[[PAST]] {dims = #dmir.dims<"n + past", "-n - past + 16">
// CHECK: %[[WHOLE:.*]] = dmir.concat %[[BEFORE]], %{{.*}}, %[[BEHIND]] {axis = 1 : i64}
// CHECK: %[[SEEN:.*]] = dmir.slice %[[WHOLE]] {dims = #dmir.dims<"n + past">
// CHECK: dmir.transpose %[[SEEN]]
// CHECK: return %{{.*}}, %[[WHOLE]]
// STARS: both names need as many '*', as what one stands for in the input stands in the output [state-pair]
// SCHEDULE: dlir.program @main attributes
// SCHEDULE-SAME: dmir.lengths = {{\[\[}}"past", #dmir.dims<"n + past">]]
// SCHEDULE: dlir.buffer state "past.0" : tensor<1x16x8xf32> {dmir.length = ["past", 1]
// SCHEDULE: dlir.kernel @[[KERNEL:.*]]_append on "cpu"
// SCHEDULE-SAME: algorithm = "append"
module attributes {dmir.dims = {n = array<i64: 1, 16>, past = array<i64: 0, 16>}} {
  func.func @main(%past: tensor<1x?x8xf32, #dmir.dims<"past">> {dmir.name = "past.0"}, %x: tensor<1x?x8xf32, #dmir.dims<"n">> {dmir.name = "x"})
      -> (tensor<1x?x8xf32, #dmir.dims<"n">> {dmir.name = "y"}, tensor<1x?x8xf32, #dmir.dims<"n + past">> {dmir.name = "present.0"}) {
    %rows = dmir.exp %x : (tensor<1x?x8xf32, #dmir.dims<"n">>) -> tensor<1x?x8xf32, #dmir.dims<"n">>
    %present = dmir.concat %past, %rows {axis = 1 : i64} : (tensor<1x?x8xf32, #dmir.dims<"past">>, tensor<1x?x8xf32, #dmir.dims<"n">>) -> tensor<1x?x8xf32, #dmir.dims<"n + past">>
    %keys = dmir.transpose %present {permutation = array<i64: 0, 2, 1>} : (tensor<1x?x8xf32, #dmir.dims<"n + past">>) -> tensor<1x8x?xf32, #dmir.dims<"n + past">>
    %scores = dmir.matmul %x, %keys : (tensor<1x?x8xf32, #dmir.dims<"n">>, tensor<1x8x?xf32, #dmir.dims<"n + past">>) -> tensor<1x?x?xf32, #dmir.dims<"n", "n + past">>
    %weights = dmir.softmax %scores {axis = 2 : i64} : (tensor<1x?x?xf32, #dmir.dims<"n", "n + past">>) -> tensor<1x?x?xf32, #dmir.dims<"n", "n + past">>
    %y = dmir.matmul %weights, %present : (tensor<1x?x?xf32, #dmir.dims<"n", "n + past">>, tensor<1x?x8xf32, #dmir.dims<"n + past">>) -> tensor<1x?x8xf32, #dmir.dims<"n">>
    return %y, %present : tensor<1x?x8xf32, #dmir.dims<"n">>, tensor<1x?x8xf32, #dmir.dims<"n + past">>
  }
}
