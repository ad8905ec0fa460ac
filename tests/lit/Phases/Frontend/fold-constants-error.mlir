// RUN: dmx-opt %s -pass-pipeline='builtin.module(func.func(dmir-fold-constants))' -verify-diagnostics

func.func @zero() -> tensor<1xi32> {
  %one = dmir.constant dense<1> : tensor<1xi32>
  %zero = dmir.constant dense<0> : tensor<1xi32>
  // expected-error @+1 {{zero}}
  %0 = dmir.div %one, %zero : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  return %0 : tensor<1xi32>
}
