func.func @main(%a: tensor<?x256xf32, #dmir.dims<"rows">> {dmir.name = "a"}, %b: tensor<256x512xf32> {dmir.name = "b"}) -> (tensor<?x512xf32, #dmir.dims<"rows">> {dmir.name = "c"}) {
  %c = dmir.matmul %a, %b : (tensor<?x256xf32, #dmir.dims<"rows">>, tensor<256x512xf32>) -> tensor<?x512xf32, #dmir.dims<"rows">> loc("product")
  return %c : tensor<?x512xf32, #dmir.dims<"rows">>
}
