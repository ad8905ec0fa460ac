// Every computational op of DMIR once, in its plainest form. dmxc --print-ops asks the verifier, the interpreter and the targets with it.
func.func @samples(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %i: tensor<4x8xi32>, %b: tensor<4x8xi1>, %index: tensor<4xi64>,
                   %pairs: tensor<4x2xi64>, %picks: tensor<4x8xi64>, %updates: tensor<4xf32>, %scalar: tensor<f32>, %image: tensor<1x8x16x16xf32>,
                   %matrix: tensor<8x16xf32>, %u: tensor<4x8xui8>,
                   %blocks: tensor<4x8x!dmir.block_fp<BFP16_64R>>) {
  %0 = dmir.neg %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dmir.abs %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = dmir.sign %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = dmir.ceil %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = dmir.floor %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = dmir.round %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = dmir.sqrt %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = dmir.reciprocal %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %8 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %9 = dmir.log %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %log2 = dmir.log2 %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %10 = dmir.log1p %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %11 = dmir.expm1 %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %12 = dmir.sin %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %13 = dmir.cos %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %14 = dmir.tan %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %15 = dmir.asin %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %16 = dmir.acos %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %17 = dmir.atan %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %18 = dmir.sinh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %19 = dmir.cosh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %20 = dmir.tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %21 = dmir.asinh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %22 = dmir.acosh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %23 = dmir.atanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %24 = dmir.erf %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %25 = dmir.sigmoid %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %silu = dmir.silu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %gelu = dmir.gelu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %gelu_tanh = dmir.gelu_tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %hard_swish = dmir.hard_swish %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %softplus = dmir.softplus %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %rsqrt = dmir.rsqrt %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %26 = dmir.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %27 = dmir.not %b : (tensor<4x8xi1>) -> tensor<4x8xi1>
  %28 = dmir.is_nan %x : (tensor<4x8xf32>) -> tensor<4x8xi1>
  %29 = dmir.is_inf %x : (tensor<4x8xf32>) -> tensor<4x8xi1>
  %30 = dmir.cast %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
  %bits = dmir.bitcast %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
  %31 = dmir.add %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %32 = dmir.sub %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %33 = dmir.mul %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %34 = dmir.div %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %35 = dmir.mod %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %36 = dmir.fmod %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %37 = dmir.pow %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %38 = dmir.max %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %39 = dmir.min %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %40 = dmir.and %b, %b : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  %41 = dmir.or %b, %b : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  %42 = dmir.xor %b, %b : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  %43 = dmir.shl %u, %u : (tensor<4x8xui8>, tensor<4x8xui8>) -> tensor<4x8xui8>
  %44 = dmir.shr %u, %u : (tensor<4x8xui8>, tensor<4x8xui8>) -> tensor<4x8xui8>
  %45 = dmir.compare lt %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %46 = dmir.select %b, %x, %y : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %mask = dmir.mask %x {keep = [affine_set<(i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %extern = dmir.extern "acme.relu"(%x) {bodies = [{abi = "plain", features = [], file = "/kernels/relu.o", sha256 = "0f", symbol = "relu", target = "cpu"}], counts = #dmir.dims<"4", "1", "0">, scalars = #dmir.dims<"8">} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %47 = dmir.iota {axis = 0 : i64} : () -> tensor<4x8xf32>
  %48 = dmir.reshape %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %49 = dmir.broadcast %scalar : (tensor<f32>) -> tensor<4x8xf32>
  %50 = dmir.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %51 = dmir.slice %x {starts = array<i64: 1, 0>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 2>} : (tensor<4x8xf32>) -> tensor<2x4xf32>
  %52 = dmir.pad %x, %scalar {low = array<i64: 1, 0>, high = array<i64: 0, 1>, interior = array<i64: 0, 0>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<5x9xf32>
  %53 = dmir.concat %x, %y {axis = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %54 = dmir.gather %x, %index {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %55 = dmir.gather_elements %x, %picks {axis = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xi64>) -> tensor<4x8xf32>
  %56 = dmir.gather_nd %x, %pairs : (tensor<4x8xf32>, tensor<4x2xi64>) -> tensor<4xf32>
  %57 = dmir.scatter_elements %x, %picks, %y {axis = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xi64>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %58 = dmir.scatter_nd %x, %pairs, %updates : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4xf32>) -> tensor<4x8xf32>
  %59 = dmir.reduce sum %x {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %60 = dmir.arg_reduce max %x {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x1xi64>
  %61 = dmir.cumsum %x {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %values, %indices = dmir.top_k %x {k = 3 : i64, axis = 1 : i64} : (tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
  %62 = dmir.matmul %x, %matrix : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %filters = dmir.constant dense<5.000000e-01> : tensor<16x8x3x3xf32>
  %63 = dmir.conv %image, %filters {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : (tensor<1x8x16x16xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x16x16xf32>
  %64 = dmir.pool max %image {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>, ceilExtra = array<i64: 0, 0>} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  %65 = dmir.arg_max_pool %image {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xi64>
  %66 = dmir.softmax %x {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %67 = dmir.normalize standard %x {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %68 = dmir.relayout %image : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32, #dmir.blocked<1, 8>>
  %69 = dmir.pad_blocks %blocks : (tensor<4x8x!dmir.block_fp<BFP16_64R>>) -> tensor<64x64x!dmir.block_fp<BFP16_64R>>
  %70 = dmir.dim_tensor {values = array<i64: 4, 8>} : tensor<2xi64>
  dmir.define_dims %70 {symbols = ["rows", "columns"], max = #dmir.dims<"4", "8">} : tensor<2xi64>
  %71 = dmir.reshape %b : (tensor<4x8xi1>) -> tensor<2x4x4xi1>
  %72 = dmir.slice %b {starts = array<i64: 0, 0>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 1>} : (tensor<4x8xi1>) -> tensor<2x4xi1>
  %73 = dmir.constant dense<3> : tensor<i64>
  %74 = dmir.greedy_select %72, %71, %73 : (tensor<2x4xi1>, tensor<2x4x4xi1>, tensor<i64>) -> tensor<2x4xi1>
  %75 = dmir.constant dense<true> : tensor<i1>
  %76 = dmir.if %75 then @branch else @branch (%x) : (tensor<i1>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %77 = dmir.loop @body trips %73 carries (%x) () : (tensor<i64>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %scales = dmir.constant dense<5.000000e-01> : tensor<4x2xf32>
  %nibbles = dmir.constant dense<16> : tensor<4x4xui8>
  %78 = dmir.dequantize %nibbles, %scales {bits = 4 : i64, axis = 1 : i64, block = 4 : i64, zero = 8 : i64} : (tensor<4x4xui8>, tensor<4x2xf32>) -> tensor<4x8xf32>
  %80 = dmir.round_blocks %x {block = 4 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %experts = dmir.constant dense<2.500000e-01> : tensor<2x8x16xf32>
  %ends = dmir.constant dense<[1, 3]> : tensor<2xi64>
  %79 = dmir.grouped_matmul %x, %experts, %ends : (tensor<4x8xf32>, tensor<2x8x16xf32>, tensor<2xi64>) -> tensor<4x16xf32>
  return
}

func.func private @branch(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}

func.func private @body(%i: tensor<i64>, %more: tensor<i1>, %x: tensor<4x8xf32>) -> (tensor<i1>, tensor<4x8xf32>) {
  return %more, %x : tensor<i1>, tensor<4x8xf32>
}
