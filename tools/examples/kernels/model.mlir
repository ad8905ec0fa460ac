func.func @main(%x: !torch.vtensor<[?,?],f16>) -> !torch.vtensor<[?],si64> {
  %0 = torch.operator "torch.acme.argmax"(%x) : (!torch.vtensor<[?,?],f16>) -> !torch.vtensor<[?],si64>
  return %0 : !torch.vtensor<[?],si64>
}
