module attributes {transform.with_named_sequence} {
  transform.named_sequence @interchange(%nest: !transform.any_op {transform.consumed}) -> !transform.any_op {
    transform.dmx.normalize %nest to "nest.perfect" : !transform.any_op
    %outer = transform.dmx.interchange %nest [1, 0] : !transform.any_op -> !transform.any_op
    transform.dmx.check %outer is "nest.perfect" ensured : !transform.any_op
    transform.yield %outer : !transform.any_op
  }

  transform.named_sequence @tiled(%module: !transform.any_op {transform.readonly}) attributes {dmx.at = "schedule.tiles"} {
    %nest = transform.dmx.match {kind = "nest"} in %module expect 1 : !transform.any_op -> !transform.any_op
    %product = transform.include @interchange failures(propagate) (%nest) : (!transform.any_op) -> !transform.any_op
    %columns = transform.dmx.param "columns" one_of [1, 2, 5] default 2 -> !transform.param<i64>
    %tiles, %points = transform.dmx.tile %product [2, %columns] : !transform.any_op, !transform.param<i64> -> !transform.any_op, !transform.any_op
    %left = transform.dmx.unroll %points full : !transform.any_op -> !transform.any_op
    transform.yield
  }
}
