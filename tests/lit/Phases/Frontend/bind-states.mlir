// RUN: dmx-opt --state=past=present --state=h=next %s -pass-pipeline='builtin.module(func.func(dmir-bind-states))' | FileCheck %s
// RUN: not dmx-opt --state=past=gone %s -pass-pipeline='builtin.module(func.func(dmir-bind-states))' 2>&1 | FileCheck %s --check-prefix=GONE
// RUN: not dmx-opt --state=x=present %s -pass-pipeline='builtin.module(func.func(dmir-bind-states))' 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not dmx-opt --state=h=next --state=h=present %s -pass-pipeline='builtin.module(func.func(dmir-bind-states))' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not dmx-opt --state=past %s -pass-pipeline='builtin.module(func.func(dmir-bind-states))' 2>&1 | FileCheck %s --check-prefix=WORD

// A state of one type keeps it. One that grows by a row is a cache of all rows, written where the counter says, and the softmax over it
// sees the rows that are there.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[PAST:[a-z0-9]+]]: tensor<1x4x8xf32> {dmir.name = "past", dmir.state = "past"}
// CHECK-SAME: dmir.name = "h", dmir.state = "h"
// CHECK-SAME: %[[COUNT:[a-z0-9]+]]: tensor<1xi64> {dmir.name = "rows", dmir.state = "rows"}
// CHECK: dmir.add %[[COUNT]]
// CHECK: %[[INDEX:.*]] = dmir.broadcast %[[COUNT]]
// CHECK: %[[CACHE:.*]] = dmir.scatter_elements {{.*}}%[[PAST]], %[[INDEX]]
// CHECK-NOT: dmir.concat
// CHECK: %[[THERE:.*]] = dmir.compare{{.*}}%[[COUNT]]
// CHECK: %[[KEPT:.*]] = dmir.select %[[THERE]]
// CHECK: dmir.softmax %[[KEPT]]
// CHECK: return %[[CACHE]],
// GONE: the model has no output 'gone'
// OTHER: the output is {{.*}}tensor<1x4x8xf32>{{.*}} and the input {{.*}}tensor<1x1x8xf32>{{.*}}; they must be equal, or the output the input and one row behind it
// TWICE: one of them is a state already
// WORD: --state past: expected INPUT=OUTPUT
func.func @main(%past: tensor<1x3x8xf32> {dmir.name = "past"}, %x: tensor<1x1x8xf32> {dmir.name = "x"}, %h: tensor<8xf32> {dmir.name = "h"})
    -> (tensor<1x4x8xf32> {dmir.name = "present"}, tensor<8xf32> {dmir.name = "next"}, tensor<1x1x8xf32> {dmir.name = "y"}) {
  %present = dmir.concat %past, %x {axis = 1 : i64} : (tensor<1x3x8xf32>, tensor<1x1x8xf32>) -> tensor<1x4x8xf32>
  %next = dmir.exp %h : (tensor<8xf32>) -> tensor<8xf32>
  %keys = dmir.transpose %present {permutation = array<i64: 0, 2, 1>} : (tensor<1x4x8xf32>) -> tensor<1x8x4xf32>
  %scores = dmir.matmul %x, %keys : (tensor<1x1x8xf32>, tensor<1x8x4xf32>) -> tensor<1x1x4xf32>
  %weights = dmir.softmax %scores {axis = 2 : i64} : (tensor<1x1x4xf32>) -> tensor<1x1x4xf32>
  %y = dmir.matmul %weights, %present : (tensor<1x1x4xf32>, tensor<1x4x8xf32>) -> tensor<1x1x8xf32>
  return %present, %next, %y : tensor<1x4x8xf32>, tensor<8xf32>, tensor<1x1x8xf32>
}
