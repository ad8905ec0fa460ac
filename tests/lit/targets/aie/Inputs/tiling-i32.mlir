module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %r = transform.dmx.match {op = "dmir.matmul"} in %m : !transform.any_op -> !transform.any_op
    transform.dmx.decide %r {herd_columns = 4, tile_m = 32, tile_n = 32, tile_k = 32} : !transform.any_op
    transform.yield
  }
}
