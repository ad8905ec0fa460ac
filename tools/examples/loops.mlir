module attributes {transform.with_named_sequence} {
  transform.named_sequence @loops(%m: !transform.any_op {transform.readonly}) attributes {dmx.at = "schedule.array"} {
    %f = transform.structured.match ops{["func.func"]} in %m : (!transform.any_op) -> !transform.any_op
    %g = transform.apply_registered_pass "affine-permute-trip" to %f : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
