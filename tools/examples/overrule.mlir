module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %first = transform.dmx.match {op = "dmir.conv", nth = 0} in %m expect 2 : !transform.any_op -> !transform.any_op
    transform.dmx.decide %first {grain = 200} : !transform.any_op
    %product = transform.dmx.match {algorithm = "matmul*", node = "/hidden/*"} in %m expect 1 : !transform.any_op -> !transform.any_op
    transform.dmx.decide %product {algorithm = "matmul"} : !transform.any_op
    transform.yield
  }
}
