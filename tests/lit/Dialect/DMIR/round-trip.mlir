// Every op of DMIR, its attributes and its types survive printing and parsing.
// RUN: dmx-opt %s > %t.once
// RUN: dmx-opt %t.once > %t.twice
// RUN: diff %t.once %t.twice
// RUN: FileCheck %s < %t.once
// RUN: dmx-opt %s --mlir-print-op-generic | dmx-opt | diff - %t.once
// CHECK: #set = affine_set<(d0, d1) : (d0 - d1 >= 0)>
// CHECK: #set1 = affine_set<(d0, d1) : (-d1 + 1 >= 0)>

func.func @samples(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %i: tensor<4x8xi32>, %b: tensor<4x8xi1>, %index: tensor<4xi64>,
                   %pairs: tensor<4x2xi64>, %picks: tensor<4x8xi64>, %updates: tensor<4xf32>, %scalar: tensor<f32>, %image: tensor<1x8x16x16xf32>,
                   %weights: tensor<16x8x3x3xf32>, %matrix: tensor<8x16xf32>, %u: tensor<4x8xui8>, %grouped: tensor<8x2x3x3xf32>,
                   %nibbles: tensor<4x4xui8>, %steps: tensor<4x2xf32>, %points: tensor<4x1xui8>) {
  // CHECK: dmir.neg {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = dmir.neg %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.abs {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.abs %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.sign {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = dmir.sign %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.ceil {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = dmir.ceil %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.floor {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = dmir.floor %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.round {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = dmir.round %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.sqrt {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = dmir.sqrt %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.reciprocal {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = dmir.reciprocal %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.exp {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %8 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.log {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %9 = dmir.log %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.log2 {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %log2 = dmir.log2 %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.log1p {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %10 = dmir.log1p %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.expm1 {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %11 = dmir.expm1 %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.sin {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %12 = dmir.sin %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.cos {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %13 = dmir.cos %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.tan {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %14 = dmir.tan %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.asin {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %15 = dmir.asin %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.acos {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %16 = dmir.acos %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.atan {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %17 = dmir.atan %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.sinh {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %18 = dmir.sinh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.cosh {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %19 = dmir.cosh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.tanh {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %20 = dmir.tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.asinh {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %21 = dmir.asinh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.acosh {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %22 = dmir.acosh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.atanh {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %23 = dmir.atanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.erf {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %24 = dmir.erf %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.sigmoid {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %25 = dmir.sigmoid %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.relu {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %26 = dmir.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.not {{.*}}: (tensor<4x8xi1>) -> tensor<4x8xi1>
  %27 = dmir.not %b : (tensor<4x8xi1>) -> tensor<4x8xi1>
  // CHECK: dmir.is_nan {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xi1>
  %28 = dmir.is_nan %x : (tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: dmir.is_inf {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xi1>
  %29 = dmir.is_inf %x : (tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: dmir.cast {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xi32>
  %30 = dmir.cast %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
  // CHECK: dmir.add {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %31 = dmir.add %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.sub {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %32 = dmir.sub %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.mul {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %33 = dmir.mul %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.div {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %34 = dmir.div %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.mod {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %35 = dmir.mod %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.fmod {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %36 = dmir.fmod %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.pow {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %37 = dmir.pow %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.max {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %38 = dmir.max %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.min {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %39 = dmir.min %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.and {{.*}}: (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  %40 = dmir.and %b, %b : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  // CHECK: dmir.or {{.*}}: (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  %41 = dmir.or %b, %b : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  // CHECK: dmir.xor {{.*}}: (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  %42 = dmir.xor %b, %b : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  // CHECK: dmir.shl {{.*}}: (tensor<4x8xui8>, tensor<4x8xui8>) -> tensor<4x8xui8>
  %43 = dmir.shl %u, %u : (tensor<4x8xui8>, tensor<4x8xui8>) -> tensor<4x8xui8>
  // CHECK: dmir.shr {{.*}}: (tensor<4x8xui8>, tensor<4x8xui8>) -> tensor<4x8xui8>
  %44 = dmir.shr %u, %u : (tensor<4x8xui8>, tensor<4x8xui8>) -> tensor<4x8xui8>
  // CHECK: dmir.compare lt {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %45 = dmir.compare lt %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: dmir.select {{.*}}: (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %46 = dmir.select %b, %x, %y : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.mask %{{.*}} {fill = 0xFF800000 : f32, keep = [#set, #set1]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %mask = dmir.mask %x {keep = [affine_set<(i, j) : (i - j >= 0)>, affine_set<(i, j) : (1 - j >= 0)>], fill = 0xFF800000 : f32} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.mask %{{.*}}, %{{.*}}, %{{.*}} {fill = -9.99999968E+37 : f32, keep = [#{{.*}}], low} : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xi1>) -> tensor<4x8xf32>
  %low = dmir.mask %x, %i, %b {keep = [affine_set<(i, j)[id, known] : (id - j == 0, known - 1 >= 0)>], fill = -1.0e38 : f32, low} : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xi1>) -> tensor<4x8xf32>
  // CHECK: dmir.mask %{{.*}} {adds, fill = -1.000000e+04 : f32, keep = [#set], tile = array<i64: 2, 4>, tiles = [array<i64: 0, 1>, array<i64>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %listed = dmir.mask %x {keep = [affine_set<(i, j) : (i - j >= 0)>], fill = -1.0e4 : f32, tile = array<i64: 2, 4>, tiles = [array<i64: 0, 1>, array<i64>], adds} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.iota {{.*}}: () -> tensor<4x8xf32>
  %47 = dmir.iota {axis = 0 : i64} : () -> tensor<4x8xf32>
  // CHECK: dmir.reshape {{.*}}: (tensor<4x8xf32>) -> tensor<8x4xf32>
  %48 = dmir.reshape %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK: dmir.broadcast {{.*}}: (tensor<f32>) -> tensor<4x8xf32>
  %49 = dmir.broadcast %scalar : (tensor<f32>) -> tensor<4x8xf32>
  // CHECK: dmir.transpose {{.*}}: (tensor<4x8xf32>) -> tensor<8x4xf32>
  %50 = dmir.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK: dmir.slice {{.*}}: (tensor<4x8xf32>) -> tensor<2x4xf32>
  %51 = dmir.slice %x {starts = array<i64: 1, 0>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 2>} : (tensor<4x8xf32>) -> tensor<2x4xf32>
  // CHECK: dmir.pad {{.*}}: (tensor<4x8xf32>, tensor<f32>) -> tensor<5x9xf32>
  %52 = dmir.pad %x, %scalar {low = array<i64: 1, 0>, high = array<i64: 0, 1>, interior = array<i64: 0, 0>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<5x9xf32>
  // CHECK: dmir.concat {{.*}}: (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %53 = dmir.concat %x, %y {axis = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  // CHECK: dmir.gather {{.*}}: (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %54 = dmir.gather %x, %index {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  // CHECK: dmir.gather_elements {{.*}}: (tensor<4x8xf32>, tensor<4x8xi64>) -> tensor<4x8xf32>
  %55 = dmir.gather_elements %x, %picks {axis = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xi64>) -> tensor<4x8xf32>
  // CHECK: dmir.gather_nd {{.*}}: (tensor<4x8xf32>, tensor<4x2xi64>) -> tensor<4xf32>
  %56 = dmir.gather_nd %x, %pairs : (tensor<4x8xf32>, tensor<4x2xi64>) -> tensor<4xf32>
  // CHECK: dmir.dequantize {{.*}} {axis = 1 : i64, bits = 4 : i64, block = 4 : i64, zero = 8 : i64} : (tensor<4x4xui8>, tensor<4x2xf32>) -> tensor<4x8xf32>
  %dq0 = dmir.dequantize %nibbles, %steps {bits = 4 : i64, axis = 1 : i64, block = 4 : i64, zero = 8 : i64} : (tensor<4x4xui8>, tensor<4x2xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.dequantize {{.*}} : (tensor<4x4xui8>, tensor<4x2xf32>, tensor<4x1xui8>) -> tensor<4x8xf32>
  %dq1 = dmir.dequantize %nibbles, %steps, %points {bits = 4 : i64, axis = 1 : i64, block = 4 : i64} : (tensor<4x4xui8>, tensor<4x2xf32>, tensor<4x1xui8>) -> tensor<4x8xf32>
  // CHECK: dmir.round_blocks {{.*}} {block = 4 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %rb0 = dmir.round_blocks %x {block = 4 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.scatter_elements {{.*}}: (tensor<4x8xf32>, tensor<4x8xi64>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %57 = dmir.scatter_elements %x, %picks, %y {axis = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xi64>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.scatter_nd {{.*}}: (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4xf32>) -> tensor<4x8xf32>
  %58 = dmir.scatter_nd %x, %pairs, %updates : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.reduce sum {{.*}}: (tensor<4x8xf32>) -> tensor<4x1xf32>
  %59 = dmir.reduce sum %x {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  // CHECK: dmir.arg_reduce max {{.*}}: (tensor<4x8xf32>) -> tensor<4x1xi64>
  %60 = dmir.arg_reduce max %x {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x1xi64>
  // CHECK: dmir.cumsum {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %61 = dmir.cumsum %x {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.grouped_matmul {{.*}}: (tensor<4x8xf32>, tensor<2x8x5xf32>, tensor<2xi64>) -> tensor<4x5xf32>
  %experts = dmir.constant dense<1.000000e+00> : tensor<2x8x5xf32>
  %ends = dmir.constant dense<[1, 4]> : tensor<2xi64>
  %sorted = dmir.grouped_matmul %x, %experts, %ends : (tensor<4x8xf32>, tensor<2x8x5xf32>, tensor<2xi64>) -> tensor<4x5xf32>
  // CHECK: dmir.top_k {{.*}}: (tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
  %values, %indices = dmir.top_k %x {k = 3 : i64, axis = 1 : i64} : (tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
  // CHECK: dmir.matmul {{.*}}: (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %62 = dmir.matmul %x, %matrix : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  // CHECK: dmir.conv {{.*}}: (tensor<1x8x16x16xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x16x16xf32>
  %63 = dmir.conv %image, %weights {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x8x16x16xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x16x16xf32>
  // CHECK: dmir.pool max {{.*}}: (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  %64 = dmir.pool max %image {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>, ceilExtra = array<i64: 0, 0>} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  // CHECK: dmir.arg_max_pool {{.*}}: (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xi64>
  %65 = dmir.arg_max_pool %image {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xi64>
  // CHECK: dmir.softmax {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %66 = dmir.softmax %x {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.normalize standard {{.*}}: (tensor<4x8xf32>) -> tensor<4x8xf32>
  %67 = dmir.normalize standard %x {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.relayout {{.*}}: (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32, #dmir.blocked<1, 8>>
  %68 = dmir.relayout %image : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32, #dmir.blocked<1, 8>>
  // CHECK: dmir.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %c0 = dmir.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // CHECK: dmir.constant dense_resource<blob> : tensor<3xi32>
  %c1 = dmir.constant dense_resource<blob> : tensor<3xi32>
  // CHECK: dmir.constant #dmir.file<"weights.bin", 64, 16> : tensor<4xf32>
  %c2 = dmir.constant #dmir.file<"weights.bin", 64, 16> : tensor<4xf32>
  // CHECK: dmir.cast {{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf8E4M3FN>
  %c3 = dmir.cast %x {saturate = false} : (tensor<4x8xf32>) -> tensor<4x8xf8E4M3FN>
  // CHECK: dmir.bitcast {{.*}} : (tensor<4x8xf32>) -> tensor<4x8xi32>
  %bits = dmir.bitcast %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
  // CHECK: dmir.constant dense<[1.000000e+00, 5.877470e-39]> : tensor<2xf8E8M0FNU>
  %scales = dmir.constant dense<[1.0, 5.8774717541114375e-39]> : tensor<2xf8E8M0FNU>
  // CHECK: dmir.constant dense<[-2, 1]> : tensor<2xi2>
  %two = dmir.constant dense<[-2, 1]> : tensor<2xi2>
  // CHECK: dmir.pad {{.*}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<6x10xf32>
  %c4 = dmir.pad %x, %scalar {low = array<i64: 1, 1>, high = array<i64: 1, 1>, interior = array<i64: 0, 0>, mode = #dmir<pad_mode reflect>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<6x10xf32>
  // CHECK: dmir.scatter_nd {{.*}} : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4xf32>) -> tensor<4x8xf32>
  %c5 = dmir.scatter_nd %x, %pairs, %updates {mode = #dmir<scatter_mode add>} : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.reduce mean {{.*}} : (tensor<4x8xf32>) -> tensor<f32>
  %c6 = dmir.reduce mean %x {axes = array<i64: 0, 1>, keepDims = false} : (tensor<4x8xf32>) -> tensor<f32>
  // CHECK: dmir.normalize rms {{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %c7 = dmir.normalize rms %x {axes = array<i64: 1>, epsilon = 1.0e-6 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dmir.pool average {{.*}} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  %c8 = dmir.pool average %image {window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 1, 1>, ceilExtra = array<i64: 1, 1>, countPadding = true} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  // CHECK: dmir.conv {{.*}} : (tensor<1x8x16x16xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x8x13xf32>
  %c9 = dmir.conv %image, %grouped {strides = array<i64: 2, 1>, dilations = array<i64: 1, 2>, low = array<i64: 0, 1>, high = array<i64: 1, 0>, groups = 4 : i64} : (tensor<1x8x16x16xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x8x13xf32>
  // CHECK: dmir.region "cpu" (%{{.*}} = %{{.*}} : tensor<4x8xf32>) -> (tensor<4x8xf32>) attributes {strategy = {work = 4 : i64}} {
  %r = dmir.region "cpu" (%a = %x : tensor<4x8xf32>) -> (tensor<4x8xf32>) attributes {strategy = {work = 4 : i64}} {
    // CHECK-NEXT: dmir.exp
    %e = dmir.exp %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK-NEXT: dmir.yield %{{.*}} : tensor<4x8xf32>
    dmir.yield %e : tensor<4x8xf32>
  }
  return
}

// CHECK: dmir.add {{.*}} : (tensor<?x4xf16>, tensor<4xf16>) -> tensor<?x4xf16>
func.func @dynamic(%x: tensor<?x4xf16>, %y: tensor<4xf16>) -> tensor<?x4xf16> {
  %0 = dmir.add %x, %y : (tensor<?x4xf16>, tensor<4xf16>) -> tensor<?x4xf16>
  return %0 : tensor<?x4xf16>
}

{-#
  dialect_resources: {
    builtin: {
      blob: "0x04000000010000000200000003000000"
    }
  }
#-}
