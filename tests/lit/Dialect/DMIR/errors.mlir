// Each labelled constraint of each op (DMIROps.td), broken once.
// RUN: dmx-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.neg %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.abs %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.sign %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.ceil %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.floor %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.round %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.sqrt %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.reciprocal %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.log %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.log1p %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.expm1 %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.sin %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.cos %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.tan %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.asin %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.acos %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.atan %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.sinh %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.cosh %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.tanh %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.asinh %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.acosh %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.atanh %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.erf %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.sigmoid %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.relu %x : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xi1>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.not %x : (tensor<4xi1>) -> tensor<5xi1>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.is_nan %x : (tensor<4x8xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{are incompatible with return type}}
  %0 = dmir.is_inf %x : (tensor<4x8xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%x: tensor<4xi32>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of}}
  %0 = dmir.exp %x : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.add %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.sub %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.sub %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.mul %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.mul %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.div %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.div %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.mod %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.mod %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.fmod %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.fmod %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.pow %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.pow %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.max %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.max %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.min %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.min %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<4xi8>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.and %x, %y : (tensor<4xi32>, tensor<4xi8>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<3xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.and %x, %y : (tensor<4xi32>, tensor<3xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<4xi8>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.or %x, %y : (tensor<4xi32>, tensor<4xi8>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<3xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.or %x, %y : (tensor<4xi32>, tensor<3xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<4xi8>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.xor %x, %y : (tensor<4xi32>, tensor<4xi8>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<3xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.xor %x, %y : (tensor<4xi32>, tensor<3xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<4xi8>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.shl %x, %y : (tensor<4xi32>, tensor<4xi8>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<3xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.shl %x, %y : (tensor<4xi32>, tensor<3xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<4xi8>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.shr %x, %y : (tensor<4xi32>, tensor<4xi8>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>, %y: tensor<3xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.shr %x, %y : (tensor<4xi32>, tensor<3xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.compare lt %x, %y : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.compare eq %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.select %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%c: tensor<3xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: shapes}}
  %0 = dmir.select %c, %x, %y : (tensor<3xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: shapes differ}}
  %0 = dmir.cast %x : (tensor<4xf32>) -> tensor<3xi32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{C4: f8E8M0FNU is not cast}}
  %0 = dmir.cast %x : (tensor<4xf32>) -> tensor<4xf8E8M0FNU>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: shapes differ}}
  %0 = dmir.bitcast %x : (tensor<4xf32>) -> tensor<3xi32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{C2: elements differ in width: 'f32' and 'i16'}}
  %0 = dmir.bitcast %x : (tensor<4xf32>) -> tensor<4xi16>
  return
}

// -----

func.func @f(%x: tensor<4xi1>) {
  // expected-error @+1 {{operand #0 must be}}
  %0 = dmir.bitcast %x : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C1: axis 1 is not in}}
  %0 = dmir.iota {axis = 1 : i64} : () -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.reshape %x : (tensor<4x8xf32>) -> tensor<32xf16>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{C2: element counts differ}}
  %0 = dmir.reshape %x : (tensor<4x8xf32>) -> tensor<31xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{C1: element types differ}}
  %0 = dmir.broadcast %x : (tensor<4x8xf32>) -> tensor<2x4x8xf16>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{C2: }}
  %0 = dmir.broadcast %x : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: permutation}}
  %0 = dmir.transpose %x {permutation = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: needs one start}}
  %0 = dmir.slice %x {starts = array<i64: 0>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: axis 1}}
  %0 = dmir.slice %x {starts = array<i64: 0, 6>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 2>} : (tensor<4x8xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %s: tensor<f32>, %v: tensor<1xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: needs one low}}
  %0 = dmir.pad %x, %s {low = array<i64: 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %s: tensor<f32>, %v: tensor<1xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: negative padding}}
  %0 = dmir.pad %x, %s {low = array<i64: -1, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %s: tensor<f32>, %v: tensor<1xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: the value}}
  %0 = dmir.pad %x, %v {low = array<i64: 1, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<4x8xf32>, tensor<1xf32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %s: tensor<f32>, %v: tensor<1xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: axis 0}}
  %0 = dmir.pad %x, %s {low = array<i64: 4, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, mode = #dmir<pad_mode reflect>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: needs at least one operand}}
  %0 = dmir.concat {axis = 0 : i64} : () -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x7xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: }}
  %0 = dmir.concat %x, %y {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4x7xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: axis 2}}
  %0 = dmir.concat %x {axis = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi64>, %m: tensor<9x8xi64>, %u: tensor<9x8xf32>, %h: tensor<9x8xf16>, %w: tensor<2x3xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: axis 2}}
  %0 = dmir.gather %x, %i {axis = 2 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi64>, %m: tensor<9x8xi64>, %u: tensor<9x8xf32>, %h: tensor<9x8xf16>, %w: tensor<2x3xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: data}}
  %0 = dmir.gather_elements %x, %i {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi64>, %m: tensor<9x8xi64>, %u: tensor<9x8xf32>, %h: tensor<9x8xf16>, %w: tensor<2x3xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: indices}}
  %0 = dmir.gather_elements %x, %m {axis = 1 : i64} : (tensor<4x8xf32>, tensor<9x8xi64>) -> tensor<9x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi64>, %m: tensor<9x8xi64>, %u: tensor<9x8xf32>, %h: tensor<9x8xf16>, %w: tensor<2x3xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: batchDims 2}}
  %0 = dmir.gather_nd %x, %w {batchDims = 2 : i64} : (tensor<4x8xf32>, tensor<2x3xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi64>, %m: tensor<9x8xi64>, %u: tensor<9x8xf32>, %h: tensor<9x8xf16>, %w: tensor<2x3xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: index tuples}}
  %0 = dmir.gather_nd %x, %w : (tensor<4x8xf32>, tensor<2x3xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi64>, %m: tensor<9x8xi64>, %u: tensor<9x8xf32>, %h: tensor<9x8xf16>, %w: tensor<2x3xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: data}}
  %0 = dmir.scatter_elements %x, %i, %u {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4xi64>, tensor<9x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi64>, %m: tensor<9x8xi64>, %u: tensor<9x8xf32>, %h: tensor<9x8xf16>, %w: tensor<2x3xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: updates}}
  %0 = dmir.scatter_elements %x, %m, %x {axis = 0 : i64} : (tensor<4x8xf32>, tensor<9x8xi64>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi64>, %m: tensor<9x8xi64>, %u: tensor<9x8xf32>, %h: tensor<9x8xf16>, %w: tensor<2x3xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: updates}}
  %0 = dmir.scatter_elements %x, %m, %h {axis = 0 : i64} : (tensor<4x8xf32>, tensor<9x8xi64>, tensor<9x8xf16>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<2x3xi64>, %i: tensor<2x1xi64>, %u: tensor<2x8xf32>, %h: tensor<2x8xf16>, %v: tensor<3x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: index tuples}}
  %0 = dmir.scatter_nd %x, %w, %u : (tensor<4x8xf32>, tensor<2x3xi64>, tensor<2x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<2x3xi64>, %i: tensor<2x1xi64>, %u: tensor<2x8xf32>, %h: tensor<2x8xf16>, %v: tensor<3x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: updates}}
  %0 = dmir.scatter_nd %x, %i, %v : (tensor<4x8xf32>, tensor<2x1xi64>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<2x3xi64>, %i: tensor<2x1xi64>, %u: tensor<2x8xf32>, %h: tensor<2x8xf16>, %v: tensor<3x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: updates}}
  %0 = dmir.scatter_nd %x, %i, %h : (tensor<4x8xf32>, tensor<2x1xi64>, tensor<2x8xf16>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: axes}}
  %0 = dmir.reduce sum %x {axes = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: axis 2}}
  %0 = dmir.arg_reduce max %x {axis = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xi64>
  return
}

// -----

func.func @f(%x: tensor<0x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: axis 0}}
  %0 = dmir.arg_reduce min %x {axis = 0 : i64} : (tensor<0x8xf32>) -> tensor<1x8xi64>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: axis -1}}
  %0 = dmir.cumsum %x {axis = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: axis 2}}
  %0:2 = dmir.top_k %x {k = 1 : i64, axis = 2 : i64} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi64>)
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: k = 9}}
  %0:2 = dmir.top_k %x {k = 9 : i64, axis = 1 : i64} : (tensor<4x8xf32>) -> (tensor<4x9xf32>, tensor<4x9xi64>)
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %h: tensor<8x2xf16>, %m: tensor<7x2xf32>, %a: tensor<2x4x8xf32>, %b: tensor<3x8x2xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: both operands}}
  %0 = dmir.matmul %x, %v : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %h: tensor<8x2xf16>, %m: tensor<7x2xf32>, %a: tensor<2x4x8xf32>, %b: tensor<3x8x2xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: element types differ}}
  %0 = dmir.matmul %x, %h : (tensor<4x8xf32>, tensor<8x2xf16>) -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %h: tensor<8x2xf16>, %m: tensor<7x2xf32>, %a: tensor<2x4x8xf32>, %b: tensor<3x8x2xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: the inner dims}}
  %0 = dmir.matmul %x, %m : (tensor<4x8xf32>, tensor<7x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %h: tensor<8x2xf16>, %m: tensor<7x2xf32>, %a: tensor<2x4x8xf32>, %b: tensor<3x8x2xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C4: the leading dims}}
  %0 = dmir.matmul %a, %b : (tensor<2x4x8xf32>, tensor<3x8x2xf32>) -> tensor<2x4x2xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8x9x9xf32>, %w: tensor<4x8x3x3xf32>, %r: tensor<4x8x3xf32>, %g: tensor<4x3x3x3xf32>, %h: tensor<4x8x3x3xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: input and weights}}
  %0 = dmir.conv %x, %r {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x8x9x9xf32>, tensor<4x8x3xf32>) -> tensor<1x4x7x7xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8x9x9xf32>, %w: tensor<4x8x3x3xf32>, %r: tensor<4x8x3xf32>, %g: tensor<4x3x3x3xf32>, %h: tensor<4x8x3x3xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: needs a positive stride}}
  %0 = dmir.conv %x, %w {strides = array<i64: 0, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x8x9x9xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x7x7xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8x9x9xf32>, %w: tensor<4x8x3x3xf32>, %r: tensor<4x8x3xf32>, %g: tensor<4x3x3x3xf32>, %h: tensor<4x8x3x3xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: 8 input channels}}
  %0 = dmir.conv %x, %g {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x8x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x7x7xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8x9x9xf32>, %w: tensor<4x8x3x3xf32>, %r: tensor<4x8x3xf32>, %g: tensor<4x3x3x3xf32>, %h: tensor<4x8x3x3xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C4: element types differ}}
  %0 = dmir.conv %x, %h {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x8x9x9xf32>, tensor<4x8x3x3xf16>) -> tensor<1x4x7x7xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8x9x9xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: needs rank 3}}
  %0 = dmir.pool max %x {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0>, high = array<i64: 0, 0>, ceilExtra = array<i64: 0, 0>} : (tensor<1x8x9x9xf32>) -> tensor<1x8x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8x9x9xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: needs a ceilExtra}}
  %0 = dmir.pool max %x {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>, ceilExtra = array<i64: 0>} : (tensor<1x8x9x9xf32>) -> tensor<1x8x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8x9x9xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: window}}
  %0 = dmir.pool max %x {window = array<i64: 2, 2>, strides = array<i64: 0, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>, ceilExtra = array<i64: 0, 0>} : (tensor<1x8x9x9xf32>) -> tensor<1x8x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8x9x9xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: needs rank 3}}
  %0 = dmir.arg_max_pool %x {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0>, high = array<i64: 0, 0>} : (tensor<1x8x9x9xf32>) -> tensor<1x8x4x4xi64>
  return
}

// -----

func.func @f(%x: tensor<1x8x9x9xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: window}}
  %0 = dmir.arg_max_pool %x {window = array<i64: 0, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<1x8x9x9xf32>) -> tensor<1x8x4x4xi64>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: axis 2}}
  %0 = dmir.softmax %x {axis = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: axes}}
  %0 = dmir.normalize standard %x {axes = array<i64: 0, 0>, epsilon = 1.0e-5 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{C1: operand and result differ}}
  %0 = dmir.relayout %x : (tensor<4x8xf32>) -> tensor<4x8xf16>
  return
}

// -----

func.func @region(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C2: the body must end in dmir.yield of the result types}}
  %0 = dmir.region "cpu" (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
    %e = dmir.cast %a : (tensor<4xf32>) -> tensor<4xf16>
    dmir.yield %e : tensor<4xf16>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @region(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C1: the body's argument types must be the operands' types}}
  %0 = "dmir.region"(%x) <{device = "cpu"}> ({
  ^bb0(%a: tensor<5xf32>):
    dmir.yield %a : tensor<5xf32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @region(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{C3: a region may not hold 'dmir.region'}}
  %0 = dmir.region "cpu" (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
    %1 = dmir.region "cpu" (%b = %a : tensor<4xf32>) -> (tensor<4xf32>) {
      dmir.yield %b : tensor<4xf32>
    }
    dmir.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @constant() {
  // expected-error @+1 {{failed to verify that all of {value, result} have same type}}
  %0 = "dmir.constant"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<3xf32>
  return
}

// -----

func.func @matmul_bytes_result(%x: tensor<2x3xui8>, %y: tensor<3x4xi8>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{incompatible with return type(s)}}
  %0 = "dmir.matmul"(%x, %y) : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi8>
  return
}

// -----

func.func @conv_bytes_result(%x: tensor<1x3x4xi8>, %y: tensor<2x3x1xi8>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{incompatible with return type(s)}}
  %0 = "dmir.conv"(%x, %y) {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>} : (tensor<1x3x4xi8>, tensor<2x3x1xi8>) -> tensor<1x2x4xi64>
  return
}

// -----

func.func @conv_bytes_and_words(%x: tensor<1x3x4xui8>, %y: tensor<2x3x1xi16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C4: element types differ}}
  %0 = "dmir.conv"(%x, %y) {strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 0>, high = array<i64: 0>} : (tensor<1x3x4xui8>, tensor<2x3x1xi16>) -> tensor<1x2x4xi32>
  return
}

// -----

func.func @f(%x: tensor<4x4xui8>, %s: tensor<4x2xf32>) {
  // expected-error @+1 {{C1: 3 bits an element of 'tensor<4x8xf32>' do not lie in 'tensor<4x4xui8>'}}
  %0 = dmir.dequantize %x, %s {bits = 3 : i64, axis = 1 : i64, block = 4 : i64} : (tensor<4x4xui8>, tensor<4x2xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xui8>, %s: tensor<4x2xf32>) {
  // expected-error @+1 {{C1: 4 bits an element of 'tensor<4x10xf32>'}}
  %0 = dmir.dequantize %x, %s {bits = 4 : i64, axis = 1 : i64, block = 4 : i64} : (tensor<4x4xui8>, tensor<4x2xf32>) -> tensor<4x10xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xui8>, %s: tensor<4x2xf32>) {
  // expected-error @+1 {{C2: blocks of 0 along axis 1}}
  %0 = dmir.dequantize %x, %s {bits = 4 : i64, axis = 1 : i64, block = 0 : i64} : (tensor<4x4xui8>, tensor<4x2xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xui8>, %s: tensor<4x3xf32>) {
  // expected-error @+1 {{C2: a scale of 'tensor<4x3xf32>' for blocks of 4 along axis 1}}
  %0 = dmir.dequantize %x, %s {bits = 4 : i64, axis = 1 : i64, block = 4 : i64} : (tensor<4x4xui8>, tensor<4x3xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xui8>, %s: tensor<4x2xf64>) {
  // expected-error @+1 {{C2: a scale of 'tensor<4x2xf64>'}}
  %0 = dmir.dequantize %x, %s {bits = 4 : i64, axis = 1 : i64, block = 4 : i64} : (tensor<4x4xui8>, tensor<4x2xf64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xui8>, %s: tensor<4x2xf32>, %z: tensor<4x2xui8>) {
  // expected-error @+1 {{C3: zero points of 'tensor<4x2xui8>' for a scale of 'tensor<4x2xf32>'}}
  %0 = dmir.dequantize %x, %s, %z {bits = 4 : i64, axis = 1 : i64, block = 4 : i64} : (tensor<4x4xui8>, tensor<4x2xf32>, tensor<4x2xui8>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x5xf32>, %e: tensor<2xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: needs lhs [m, k], rhs [groups, k, n] and ends [groups]}}
  %0 = dmir.grouped_matmul %x, %w, %e : (tensor<4x8xf32>, tensor<8x5xf32>, tensor<2xi64>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<0x8x5xf32>, %e: tensor<0xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: needs lhs [m, k]}}
  %0 = dmir.grouped_matmul %x, %w, %e : (tensor<4x8xf32>, tensor<0x8x5xf32>, tensor<0xi64>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<2x8x5xf16>, %e: tensor<2xi64>) {
  // expected-error @+1 {{C2: element types differ}}
  %0 = dmir.grouped_matmul %x, %w, %e : (tensor<4x8xf32>, tensor<2x8x5xf16>, tensor<2xi64>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<2x7x5xf32>, %e: tensor<2xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: the sizes of k}}
  %0 = dmir.grouped_matmul %x, %w, %e : (tensor<4x8xf32>, tensor<2x7x5xf32>, tensor<2xi64>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<2x8x5xf32>, %e: tensor<3xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: the sizes of k or the numbers of groups differ}}
  %0 = dmir.grouped_matmul %x, %w, %e : (tensor<4x8xf32>, tensor<2x8x5xf32>, tensor<3xi64>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%c: tensor<2x4xi1>, %e: tensor<2x4x5xi1>, %l: tensor<i64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: needs candidates [b, n], excludes [b, n, n] and a scalar limit}}
  %0 = dmir.greedy_select %c, %e, %l : (tensor<2x4xi1>, tensor<2x4x5xi1>, tensor<i64>) -> tensor<2x4xi1>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: a case has 2 dims, 0 symbols and 1 conditions; the operand has 3 axes}}
  %0 = dmir.mask %x {keep = [affine_set<(i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: a case has 3 dims, 1 symbols and 1 conditions; the operand has 3 axes, there are 0 dims and values}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j)[s] : (i + s - j >= 0)>], fill = 0xFF800000 : f32} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: a rule has 1 to 4 cases, not 0}}
  %0 = dmir.mask %x {keep = [], fill = 0xFF800000 : f32} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: a rule divides by something else than a positive number}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i floordiv 0 - j >= 0)>], fill = 0xFF800000 : f32} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: a number lies outside of 2^40}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j * 4611686018427387904 >= 0)>], fill = 0xFF800000 : f32} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C4: fill is no number of type}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0.0 : f64} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %n: tensor<2x5x1xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C5: a value does not broadcast to the operand's dims: 'tensor<2x5x1xi64>'}}
  %0 = dmir.mask %x, %n {keep = [affine_set<(b, i, j)[s] : (s - j >= 0)>], fill = 0.0 : f32} : (tensor<2x4x8xf32>, tensor<2x5x1xi64>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x128x192xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: list 1 of 'tiles' has tile 3, and there are 3}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32, tile = array<i64: 64, 64>, tiles = [array<i64: 0>, array<i64: 1, 3>]} : (tensor<2x128x192xf32>) -> tensor<2x128x192xf32>
  return
}

// -----

func.func @f(%x: tensor<2x128x192xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: list 0 of 'tiles' has tile -1, and there are 3}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32, tile = array<i64: 64, 64>, tiles = [array<i64: -1>, array<i64>]} : (tensor<2x128x192xf32>) -> tensor<2x128x192xf32>
  return
}

// -----

func.func @f(%x: tensor<2x128x192xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: list 0 of 'tiles' is not ascending: 0 is behind 2}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32, tile = array<i64: 64, 64>, tiles = [array<i64: 2, 0>, array<i64>]} : (tensor<2x128x192xf32>) -> tensor<2x128x192xf32>
  return
}

// -----

func.func @f(%x: tensor<2x128x192xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: list 1 of 'tiles' has tile 1 twice}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32, tile = array<i64: 64, 64>, tiles = [array<i64: 0>, array<i64: 1, 1>]} : (tensor<2x128x192xf32>) -> tensor<2x128x192xf32>
  return
}

// -----

func.func @f(%x: tensor<2x128x192xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: there are 2 rows of tiles, and 'tiles' has 1 lists}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32, tile = array<i64: 64, 64>, tiles = [array<i64: 0>]} : (tensor<2x128x192xf32>) -> tensor<2x128x192xf32>
  return
}

// -----

func.func @f(%x: tensor<2x128x192xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: 'tile' has two positive numbers, and goes with 'tiles'}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32, tile = array<i64: 64, 0>, tiles = [array<i64: 0>]} : (tensor<2x128x192xf32>) -> tensor<2x128x192xf32>
  return
}

// -----

func.func @f(%x: tensor<2x128x192xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: 'tile' has two positive numbers, and goes with 'tiles'}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32, tile = array<i64: 64, 64>} : (tensor<2x128x192xf32>) -> tensor<2x128x192xf32>
  return
}

// -----

func.func @f(%x: tensor<2x128x192xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C7: 'adds' goes with a finite fill, elements of f32, and no 'low'}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32, adds} : (tensor<2x128x192xf32>) -> tensor<2x128x192xf32>
  return
}

// -----

func.func @f(%x: tensor<2x128x192xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C7: 'adds' goes with a finite fill, elements of f32, and no 'low'}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = -1.0e38 : f32, adds, low} : (tensor<2x128x192xf32>) -> tensor<2x128x192xf32>
  return
}

// -----

func.func @f(%x: tensor<2x?x192xf32, #dmir.dims<"n">>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C6: lists of tiles are of known rows and columns}}
  %0 = dmir.mask %x {keep = [affine_set<(b, i, j) : (i - j >= 0)>], fill = 0xFF800000 : f32, tile = array<i64: 64, 64>, tiles = [array<i64: 0>]} : (tensor<2x?x192xf32, #dmir.dims<"n">>) -> tensor<2x?x192xf32, #dmir.dims<"n">>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %n: tensor<2x1x1xi16>) {
  // expected-error @+1 {{operand #1 must be variadic of}}
  %0 = dmir.mask %x, %n {keep = [affine_set<(b, i, j)[s] : (s - j >= 0)>], fill = 0.0 : f32} : (tensor<2x4x8xf32>, tensor<2x1x1xi16>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf16>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: no rows of f32 in 'tensor<4x8xf16>'}}
  %0 = "dmir.round_blocks"(%x) {block = 4 : i64} : (tensor<4x8xf16>) -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: blocks of 0}}
  %0 = "dmir.round_blocks"(%x) {block = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
