// What a run adds to scores, a matrix, is asked for a tile before it is read; scores alone need nothing of the kind.
// REQUIRES: frontend-mlir
// RUN: rm -rf %t.temps && dmxc %s -t cpu:x86-64-v3 -o %t.bundle --save-temps %t.temps 2>/dev/null
// RUN: cat %t.temps/x86-64-v3/k*_attention_tiles.ll | FileCheck %s --check-prefix=MATRIX
// RUN: cat %t.temps/x86-64-v3/k*_attention.ll | FileCheck %s --check-prefix=NONE

// Of 128 keys, the 512 bytes of a row are 8 lines.
// MATRIX-COUNT-8: call void @llvm.prefetch{{.*}}i32 0, i32 2, i32 1
// NONE: define
// NONE-NOT: call void @llvm.prefetch

func.func @added(%q: tensor<2x1280x16xf32> {dmir.name = "q"}, %k: tensor<2x16x1280xf32> {dmir.name = "k"}, %v: tensor<2x1280x24xf32> {dmir.name = "v"}, %mask: tensor<1280x1280xf32> {dmir.name = "mask"}) -> (tensor<2x1280x24xf32> {dmir.name = "r"}) {
  %s = dmir.matmul %q, %k : (tensor<2x1280x16xf32>, tensor<2x16x1280xf32>) -> tensor<2x1280x1280xf32>
  %m = dmir.add %s, %mask : (tensor<2x1280x1280xf32>, tensor<1280x1280xf32>) -> tensor<2x1280x1280xf32>
  %p = dmir.softmax %m {axis = 2 : i64} : (tensor<2x1280x1280xf32>) -> tensor<2x1280x1280xf32>
  %r = dmir.matmul %p, %v : (tensor<2x1280x1280xf32>, tensor<2x1280x24xf32>) -> tensor<2x1280x24xf32>
  return %r : tensor<2x1280x24xf32>
}

func.func @alone(%q: tensor<2x1280x16xf32> {dmir.name = "q"}, %k: tensor<2x16x1280xf32> {dmir.name = "k"}, %v: tensor<2x1280x24xf32> {dmir.name = "v"}) -> (tensor<2x1280x24xf32> {dmir.name = "r"}) {
  %s = dmir.matmul %q, %k : (tensor<2x1280x16xf32>, tensor<2x16x1280xf32>) -> tensor<2x1280x1280xf32>
  %p = dmir.softmax %s {axis = 2 : i64} : (tensor<2x1280x1280xf32>) -> tensor<2x1280x1280xf32>
  %r = dmir.matmul %p, %v : (tensor<2x1280x1280xf32>, tensor<2x1280x24xf32>) -> tensor<2x1280x24xf32>
  return %r : tensor<2x1280x24xf32>
}
