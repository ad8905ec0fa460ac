module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %r = transform.dmx.match {op = "dmir.conv", nth = 0} in %m expect 2 : !transform.any_op -> !transform.any_op
    %rows = transform.dmx.dim %r[0] : !transform.any_op -> !transform.param<i64>
    %items = transform.dmx.param "items" divides %rows default 8 -> !transform.param<i64>
    %grain = transform.dmx.param "grain" range 1 to %items step 3 -> !transform.param<i64>
    transform.dmx.decide %r with grain = %grain : !transform.any_op, !transform.param<i64>
    transform.yield
  }
}
