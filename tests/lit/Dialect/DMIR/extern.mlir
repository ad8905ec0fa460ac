// RUN: dmx-opt %s -split-input-file -verify-diagnostics | dmx-opt -split-input-file | FileCheck %s

// CHECK: dmir.extern "acme.argmax"(%{{.*}}) {bodies = [{abi = "plain", features = [], file = "/k/argmax.o", sha256 = "0f", symbol = "argmax", target = "cpu"}], counts = #dmir.dims<"b", "1", "0">, scalars = #dmir.dims<"n">}
func.func @kernel(%x: tensor<?x?xf16, #dmir.dims<"b", "n">>) -> tensor<?xi64, #dmir.dims<"b">> {
  %0 = dmir.extern "acme.argmax"(%x) {bodies = [{abi = "plain", features = [], file = "/k/argmax.o", sha256 = "0f", symbol = "argmax", target = "cpu"}], counts = #dmir.dims<"b", "1", "0">, scalars = #dmir.dims<"n">} : (tensor<?x?xf16, #dmir.dims<"b", "n">>) -> tensor<?xi64, #dmir.dims<"b">>
  return %0 : tensor<?xi64, #dmir.dims<"b">>
}

// CHECK: reference = {file = "/k/k.mlir", functions = ["f"], numbers = {k = 3 : i64}, sha256 = "0f"}
func.func @reference(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dmir.extern "k"(%x) {bodies = [], counts = #dmir.dims<"1", "1", "0">, reference = {file = "/k/k.mlir", sha256 = "0f", functions = ["f"], numbers = {k = 3 : i64}}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @c1(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C1: each body must be {target, file, sha256, symbol, abi, features} of texts}}
  %0 = dmir.extern "k"(%x) {bodies = [{target = "cpu"}], counts = #dmir.dims<"1", "1", "0">} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @c2(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C2: counts must be the work items, the grain and the bytes of scratch}}
  %0 = dmir.extern "k"(%x) {bodies = [], counts = #dmir.dims<"1">} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @c3(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C3: no operand or result has the dim 'n'}}
  %0 = dmir.extern "k"(%x) {bodies = [], counts = #dmir.dims<"n", "1", "0">} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @c4(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C4: the reference must be {file, sha256, functions, numbers}: texts, and integers by names}}
  %0 = dmir.extern "k"(%x) {bodies = [], counts = #dmir.dims<"1", "1", "0">, reference = {file = "/k/k.mlir", sha256 = "0f", functions = ["f"], numbers = {k = true}}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: core = {cycles = 7 : i64, items = 2 : i64, library = "", names = ["x", "y"], rows = {axes = array<i64: 0, 0>, extent = 2 : i64}, scalars = #dmir.dims<>}
func.func @core(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dmir.extern "k"(%x) {bodies = [{target = "aie", file = "/k/k.o", sha256 = "0f", symbol = "k", abi = "plain", features = [], core = {cycles = 7 : i64, items = 2 : i64, library = "", names = ["x", "y"], scalars = #dmir.dims<>, rows = {axes = array<i64: 0, 0>, extent = 2 : i64}}}], counts = #dmir.dims<"1", "1", "0">} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @c1_core(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C1: each body must be}}
  %0 = dmir.extern "k"(%x) {bodies = [{target = "aie", file = "/k/k.o", sha256 = "0f", symbol = "k", abi = "plain", features = [], core = {cycles = 7 : i64}}], counts = #dmir.dims<"1", "1", "0">} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @c6(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C6: a core's cut has an axis, or -1, of each operand and result}}
  %0 = dmir.extern "k"(%x) {bodies = [{target = "aie", file = "/k/k.o", sha256 = "0f", symbol = "k", abi = "plain", features = [], core = {cycles = 7 : i64, items = 2 : i64, library = "", names = ["x", "y"], scalars = #dmir.dims<>, rows = {axes = array<i64: 0, 1>, extent = 2 : i64}}}], counts = #dmir.dims<"1", "1", "0">} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @c6_names(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C6: a core has 1 names of 2 operands and results}}
  %0 = dmir.extern "k"(%x) {bodies = [{target = "aie", file = "/k/k.o", sha256 = "0f", symbol = "k", abi = "plain", features = [], core = {cycles = 7 : i64, items = 2 : i64, library = "", names = ["x"], scalars = #dmir.dims<>}}], counts = #dmir.dims<"1", "1", "0">} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
