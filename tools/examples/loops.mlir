module attributes {transform.with_named_sequence} {
  transform.named_sequence @loops(%m: !transform.any_op {transform.readonly}) attributes {dmx.at = "schedule.tiles"} {
    %first = transform.dmx.match {kind = "nest", nth = 0} in %m : !transform.any_op -> !transform.any_op
    %tiles, %points = transform.dmx.tile %first [3, 2] : !transform.any_op -> !transform.any_op, !transform.any_op
    %other = transform.dmx.interchange %tiles [1, 0] : !transform.any_op -> !transform.any_op
    transform.yield
  }
}
