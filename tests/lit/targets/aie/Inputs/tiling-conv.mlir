module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %r = transform.dmx.match {op = "dmir.conv"} in %m : !transform.any_op -> !transform.any_op
    transform.dmx.decide %r {tile_m = 64, tile_n = 64, tile_k = 32, stays = 0} : !transform.any_op
    transform.yield
  }
}
