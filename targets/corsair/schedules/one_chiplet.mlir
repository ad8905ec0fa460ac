// Graphs on the four quads of one chiplet: what they tell each other does not leave it, and the other chiplets are free
// for other work. More quads are often faster; these do more with the energy of each.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %graphs = transform.dmx.match {device = "corsair"} in %m expect any : !transform.any_op -> !transform.any_op
    transform.dmx.decide %graphs {quads = 4} : !transform.any_op
    transform.yield
  }
}
