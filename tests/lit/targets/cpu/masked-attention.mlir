// Attention whose mask is a rule: keys that it leaves out are skipped, and the results are those of looking at all of them,
// to the bit; a text of any phase says which it is.
// REQUIRES: frontend-mlir
// RUN: dmxc %s -t cpu:x86-64-v2+x86-64-v3+host -o %t.on.bundle 2>&1 | FileCheck %s --check-prefix=LINE
// RUN: dmxc %s --sparsity off -t cpu:x86-64-v2+x86-64-v3+host -o %t.off.bundle 2>&1 | FileCheck %s --check-prefix=OFF
// RUN: bash %S/Inputs/same-bits.sh %t.on.bundle %t.off.bundle
// RUN: dmxc %s -t cpu --emit memory -o - | FileCheck %s --check-prefix=MEMORY
// RUN: dmxc %s -t cpu --emit schedule -o - | FileCheck %s --check-prefix=SCHEDULE

// LINE: masks: 6 of 6 masked attentions by rule, 30.6 % of their scores kept, masked keys skipped in 6
// OFF: masks: 6 of 6 masked attentions by rule, 30.6 % of their scores kept, masked keys skipped in 0
// MEMORY: #set = affine_set<(d0, d1, d2) : (d1 - d2 >= 0)>
// MEMORY-DAG: strategy = {algorithm = "attention-tiles"
// MEMORY-DAG: dmir.mask {{.*}}keep = [#set
// SCHEDULE: #set = affine_set<(d0, d1, d2) : (d1 - d2 >= 0)>
// SCHEDULE: dmir.mask {{.*}}keep = [#set

func.func @causal(%q: tensor<2x800x16xf32> {dmir.name = "q"}, %k: tensor<2x16x800xf32> {dmir.name = "k"}, %v: tensor<2x800x24xf32> {dmir.name = "v"}) -> (tensor<2x800x24xf32> {dmir.name = "r"}) {
  %zero = dmir.constant dense<0.0> : tensor<f32>
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<800x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x800xi64>
  %c = dmir.compare lt %i, %j : (tensor<800x1xi64>, tensor<1x800xi64>) -> tensor<800x800xi1>
  %b = dmir.select %c, %low, %zero : (tensor<800x800xi1>, tensor<f32>, tensor<f32>) -> tensor<800x800xf32>
  %s = dmir.matmul %q, %k : (tensor<2x800x16xf32>, tensor<2x16x800xf32>) -> tensor<2x800x800xf32>
  %m = dmir.add %s, %b : (tensor<2x800x800xf32>, tensor<800x800xf32>) -> tensor<2x800x800xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x800x800xf32>) -> tensor<2x800x800xf32>
  %r = dmir.matmul %p, %v : (tensor<2x800x800xf32>, tensor<2x800x24xf32>) -> tensor<2x800x24xf32>
  return %r : tensor<2x800x24xf32>
}

// Rows 300 on of 1000, a window of 64.
func.func @window(%q: tensor<2x700x16xf32> {dmir.name = "q"}, %k: tensor<2x16x1000xf32> {dmir.name = "k"}, %v: tensor<2x1000x24xf32> {dmir.name = "v"}) -> (tensor<2x700x24xf32> {dmir.name = "r"}) {
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %past = dmir.constant dense<300> : tensor<i64>
  %wide = dmir.constant dense<64> : tensor<i64>
  %n = dmir.iota {axis = 0 : i64} : () -> tensor<700x1xi64>
  %i = dmir.add %n, %past : (tensor<700x1xi64>, tensor<i64>) -> tensor<700x1xi64>
  %e = dmir.sub %i, %wide : (tensor<700x1xi64>, tensor<i64>) -> tensor<700x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x1000xi64>
  %c = dmir.compare le %j, %i : (tensor<1x1000xi64>, tensor<700x1xi64>) -> tensor<700x1000xi1>
  %d = dmir.compare gt %j, %e : (tensor<1x1000xi64>, tensor<700x1xi64>) -> tensor<700x1000xi1>
  %a = dmir.and %c, %d : (tensor<700x1000xi1>, tensor<700x1000xi1>) -> tensor<700x1000xi1>
  %s = dmir.matmul %q, %k : (tensor<2x700x16xf32>, tensor<2x16x1000xf32>) -> tensor<2x700x1000xf32>
  %m = dmir.select %a, %s, %low : (tensor<700x1000xi1>, tensor<2x700x1000xf32>, tensor<f32>) -> tensor<2x700x1000xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x700x1000xf32>) -> tensor<2x700x1000xf32>
  %r = dmir.matmul %p, %v : (tensor<2x700x1000xf32>, tensor<2x1000x24xf32>) -> tensor<2x700x24xf32>
  return %r : tensor<2x700x24xf32>
}

// The first hundred rows see no key: each of their weights is the same.
func.func @blind(%q: tensor<2x500x16xf32> {dmir.name = "q"}, %k: tensor<2x16x500xf32> {dmir.name = "k"}, %v: tensor<2x500x24xf32> {dmir.name = "v"}) -> (tensor<2x500x24xf32> {dmir.name = "r"}) {
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %far = dmir.constant dense<100> : tensor<i64>
  %n = dmir.iota {axis = 0 : i64} : () -> tensor<500x1xi64>
  %i = dmir.sub %n, %far : (tensor<500x1xi64>, tensor<i64>) -> tensor<500x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x500xi64>
  %c = dmir.compare le %j, %i : (tensor<1x500xi64>, tensor<500x1xi64>) -> tensor<500x500xi1>
  %s = dmir.matmul %q, %k : (tensor<2x500x16xf32>, tensor<2x16x500xf32>) -> tensor<2x500x500xf32>
  %m = dmir.select %c, %s, %low : (tensor<500x500xi1>, tensor<2x500x500xf32>, tensor<f32>) -> tensor<2x500x500xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x500x500xf32>) -> tensor<2x500x500xf32>
  %r = dmir.matmul %p, %v : (tensor<2x500x500xf32>, tensor<2x500x24xf32>) -> tensor<2x500x24xf32>
  return %r : tensor<2x500x24xf32>
}

// Many keys, which are looked at some at a time; each row sees the chunk that it is in.
func.func @chunks(%q: tensor<1x300x16xf32> {dmir.name = "q"}, %k: tensor<1x16x1400xf32> {dmir.name = "k"}, %v: tensor<1x1400x24xf32> {dmir.name = "v"}) -> (tensor<1x300x24xf32> {dmir.name = "r"}) {
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<300x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x1400xi64>
  %by = dmir.constant dense<96> : tensor<i64>
  %a = dmir.div %i, %by : (tensor<300x1xi64>, tensor<i64>) -> tensor<300x1xi64>
  %b = dmir.div %j, %by : (tensor<1x1400xi64>, tensor<i64>) -> tensor<1x1400xi64>
  %keep = dmir.compare eq %a, %b : (tensor<300x1xi64>, tensor<1x1400xi64>) -> tensor<300x1400xi1>
  %s = dmir.matmul %q, %k : (tensor<1x300x16xf32>, tensor<1x16x1400xf32>) -> tensor<1x300x1400xf32>
  %m = dmir.select %keep, %s, %low : (tensor<300x1400xi1>, tensor<1x300x1400xf32>, tensor<f32>) -> tensor<1x300x1400xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<1x300x1400xf32>) -> tensor<1x300x1400xf32>
  %r = dmir.matmul %p, %v : (tensor<1x300x1400xf32>, tensor<1x1400x24xf32>) -> tensor<1x300x24xf32>
  return %r : tensor<1x300x24xf32>
}

// Padding behind the last keys, rows behind 1100 others.
func.func @right(%q: tensor<1x300x16xf32> {dmir.name = "q"}, %k: tensor<1x16x1408xf32> {dmir.name = "k"}, %v: tensor<1x1408x24xf32> {dmir.name = "v"}) -> (tensor<1x300x24xf32> {dmir.name = "r"}) {
  %low = dmir.constant dense<0xFF800000> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<300x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x1408xi64>
  %past = dmir.constant dense<1100> : tensor<i64>
  %count = dmir.constant dense<1250> : tensor<i64>
  %n = dmir.add %i, %past : (tensor<300x1xi64>, tensor<i64>) -> tensor<300x1xi64>
  %a = dmir.compare le %j, %n : (tensor<1x1408xi64>, tensor<300x1xi64>) -> tensor<300x1408xi1>
  %b = dmir.compare lt %j, %count : (tensor<1x1408xi64>, tensor<i64>) -> tensor<1x1408xi1>
  %keep = dmir.and %a, %b : (tensor<300x1408xi1>, tensor<1x1408xi1>) -> tensor<300x1408xi1>
  %s = dmir.matmul %q, %k : (tensor<1x300x16xf32>, tensor<1x16x1408xf32>) -> tensor<1x300x1408xf32>
  %m = dmir.select %keep, %s, %low : (tensor<300x1408xi1>, tensor<1x300x1408xf32>, tensor<f32>) -> tensor<1x300x1408xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<1x300x1408xf32>) -> tensor<1x300x1408xf32>
  %r = dmir.matmul %p, %v : (tensor<1x300x1408xf32>, tensor<1x1408x24xf32>) -> tensor<1x300x24xf32>
  return %r : tensor<1x300x24xf32>
}

// Padding before the first keys: rows that see nothing give the mean of all values.
func.func @left(%q: tensor<1x1290x16xf32> {dmir.name = "q"}, %k: tensor<1x16x1290xf32> {dmir.name = "k"}, %v: tensor<1x1290x24xf32> {dmir.name = "v"}) -> (tensor<1x1290x24xf32> {dmir.name = "r"}) {
  %low = dmir.constant dense<-3.40282347E+38> : tensor<f32>
  %i = dmir.iota {axis = 0 : i64} : () -> tensor<1290x1xi64>
  %j = dmir.iota {axis = 1 : i64} : () -> tensor<1x1290xi64>
  %count = dmir.constant dense<333> : tensor<i64>
  %a = dmir.compare le %j, %i : (tensor<1x1290xi64>, tensor<1290x1xi64>) -> tensor<1290x1290xi1>
  %b = dmir.compare ge %j, %count : (tensor<1x1290xi64>, tensor<i64>) -> tensor<1x1290xi1>
  %keep = dmir.and %a, %b : (tensor<1290x1290xi1>, tensor<1x1290xi1>) -> tensor<1290x1290xi1>
  %s = dmir.matmul %q, %k : (tensor<1x1290x16xf32>, tensor<1x16x1290xf32>) -> tensor<1x1290x1290xf32>
  %m = dmir.select %keep, %s, %low : (tensor<1290x1290xi1>, tensor<1x1290x1290xf32>, tensor<f32>) -> tensor<1x1290x1290xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<1x1290x1290xf32>) -> tensor<1x1290x1290xf32>
  %r = dmir.matmul %p, %v : (tensor<1x1290x1290xf32>, tensor<1x1290x24xf32>) -> tensor<1x1290x24xf32>
  return %r : tensor<1x1290x24xf32>
}
