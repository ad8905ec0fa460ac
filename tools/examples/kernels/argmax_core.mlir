func.func @main(%x: !torch.vtensor<[4,8192],f32>) -> !torch.vtensor<[4],si64> {
  %0:2 = torch.operator "torch.acme.argmax"(%x) : (!torch.vtensor<[4,8192],f32>) -> (!torch.vtensor<[4],si64>, !torch.vtensor<[4],f32>)
  return %0#0 : !torch.vtensor<[4],si64>
}
