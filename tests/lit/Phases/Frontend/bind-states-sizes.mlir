// RUN: not dmx-opt --state=past=present %s -pass-pipeline='builtin.module(func.func(dmir-bind-states))' 2>&1 | FileCheck %s --check-prefix=GROWS
// RUN: not dmx-opt --state=h=next %s -pass-pipeline='builtin.module(func.func(dmir-bind-states))' 2>&1 | FileCheck %s --check-prefix=EQUAL

// A session holds its states from the first run on: their sizes cannot be what a run brings.
// GROWS: --state past=present: the state has 'past' rows, none at first; say for how many there is to be room: --dim past=0..N
// EQUAL: --state h=next: the input is {{.*}}, and a session holds states of fixed sizes; fix --dim b=N --dim n=N (
func.func @main(%past: tensor<1x?x8xf32, #dmir.dims<"past">> {dmir.name = "past"}, %x: tensor<1x1x8xf32> {dmir.name = "x"},
                %h: tensor<?x?xf32, #dmir.dims<"b", "b + n">> {dmir.name = "h"})
    -> (tensor<1x?x8xf32, #dmir.dims<"past + 1">> {dmir.name = "present"}, tensor<?x?xf32, #dmir.dims<"b", "b + n">> {dmir.name = "next"}) {
  %present = dmir.concat %past, %x {axis = 1 : i64} : (tensor<1x?x8xf32, #dmir.dims<"past">>, tensor<1x1x8xf32>) -> tensor<1x?x8xf32, #dmir.dims<"past + 1">>
  %next = dmir.exp %h : (tensor<?x?xf32, #dmir.dims<"b", "b + n">>) -> tensor<?x?xf32, #dmir.dims<"b", "b + n">>
  return %present, %next : tensor<1x?x8xf32, #dmir.dims<"past + 1">>, tensor<?x?xf32, #dmir.dims<"b", "b + n">>
}
