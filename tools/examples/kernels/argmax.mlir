func.func @argmax(%x: tensor<?x?xf16, #dmir.dims<"b", "n">>) -> tensor<?xi64, #dmir.dims<"b">> {
  %y = dmir.arg_reduce max %x {axis = 1 : i64, keepDims = false} : (tensor<?x?xf16, #dmir.dims<"b", "n">>) -> tensor<?xi64, #dmir.dims<"b">>
  return %y : tensor<?xi64, #dmir.dims<"b">>
}
