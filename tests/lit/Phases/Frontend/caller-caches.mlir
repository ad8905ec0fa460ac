// RUN: dmxc %s -t cpu:x86-64-v2 --emit frontend -o - | FileCheck %s
// RUN: dmxc %s -t cpu:x86-64-v2 --emit schedule -o - | FileCheck %s --check-prefix=TASKS

// What is an input and an output with rows behind it, and is read, is one tensor with room for more; what is only given back
// (@main's second pair) is copied by a task as it is.
// CHECK: func.func @main(%[[PAST:[a-z0-9]+]]: tensor<?x2x?x8xf32, #dmir.dims<"b", "past_room">> {dmir.cache = "past", dmir.name = "past", dmir.room = ["past_room", 2, #dmir.dims<"past">]}
// CHECK-SAME: tensor<?x2x?x8xf32, #dmir.dims<"b", "past">> {dmir.name = "other"}
// CHECK-SAME: -> ({{.*}}tensor<?x2x?x8xf32, #dmir.dims<"b", "past_room">> {dmir.cache = "past", dmir.name = "present", dmir.room = ["past_room", 2, #dmir.dims<"n + past">]}
// CHECK: %[[BEFORE:[a-z0-9_]+]] = dmir.slice %[[PAST]]
// CHECK: %[[WHOLE:[a-z0-9_]+]] = dmir.concat %[[BEFORE]], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {axis = 2 : i64}
// CHECK: dmir.slice %[[WHOLE]]

// The kernel writes its rows into the output, which it also takes.
// TASKS: dlir.buffer input "past"
// TASKS: dlir.buffer output "present"
// TASKS: append
func.func @main(%past: tensor<?x2x?x8xf32, #dmir.dims<"b", "past">> {dmir.name = "past"},
                %other: tensor<?x2x?x8xf32, #dmir.dims<"b", "past">> {dmir.name = "other"},
                %rows: tensor<?x2x?x8xf32, #dmir.dims<"b", "n">> {dmir.name = "rows"})
    -> (tensor<?x2x?x?xf32, #dmir.dims<"b", "n", "n + past">> {dmir.name = "y"},
        tensor<?x2x?x8xf32, #dmir.dims<"b", "n + past">> {dmir.name = "present"},
        tensor<?x2x?x8xf32, #dmir.dims<"b", "n + past">> {dmir.name = "longer"}) {
  %present = dmir.concat %past, %rows {axis = 2 : i64} : (tensor<?x2x?x8xf32, #dmir.dims<"b", "past">>, tensor<?x2x?x8xf32, #dmir.dims<"b", "n">>) -> tensor<?x2x?x8xf32, #dmir.dims<"b", "n + past">>
  %longer = dmir.concat %other, %rows {axis = 2 : i64} : (tensor<?x2x?x8xf32, #dmir.dims<"b", "past">>, tensor<?x2x?x8xf32, #dmir.dims<"b", "n">>) -> tensor<?x2x?x8xf32, #dmir.dims<"b", "n + past">>
  %turned = dmir.transpose %present {permutation = array<i64: 0, 1, 3, 2>} : (tensor<?x2x?x8xf32, #dmir.dims<"b", "n + past">>) -> tensor<?x2x8x?xf32, #dmir.dims<"b", "n + past">>
  %y = dmir.matmul %rows, %turned : (tensor<?x2x?x8xf32, #dmir.dims<"b", "n">>, tensor<?x2x8x?xf32, #dmir.dims<"b", "n + past">>) -> tensor<?x2x?x?xf32, #dmir.dims<"b", "n", "n + past">>
  return %y, %present, %longer : tensor<?x2x?x?xf32, #dmir.dims<"b", "n", "n + past">>, tensor<?x2x?x8xf32, #dmir.dims<"b", "n + past">>, tensor<?x2x?x8xf32, #dmir.dims<"b", "n + past">>
}
