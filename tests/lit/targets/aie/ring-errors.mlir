// What the array does not have of rings, and what its programs have instead of memories and tokens; each rule broken once.
// RUN: dmx-opt %s -split-input-file -verify-diagnostics -aie-place

dlir.device_program @memory on "aie" attributes {aie.machine = "npu1"} {
  // expected-error @+1 {{'x' lies in L2, where tiles have rings (dlir.ring)}}
  %x = dlir.memory "L2" "x" size 64
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {}
}

// -----

dlir.device_program @token on "aie" attributes {aie.machine = "npu1"} {
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {
    // expected-error @+1 {{orders nothing on the array, whose locks are those of rings (dlir.ring)}}
    %t = dlir.token on "core"
  }
}

// -----

dlir.device_program @deep on "aie" attributes {aie.machine = "npu1"} {
  // expected-error @+1 {{@a has a `depth` of 2, streams of the array hold nothing: it is 1}}
  dlir.channel @a depth 2
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {}
}

// -----

dlir.device_program @none on "aie" attributes {aie.machine = "npu1"} {
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {
    // expected-error @+1 {{C1: ring 'a' has `slots` 0, they are 1 to 16 of 4096 bytes in L1}}
    %a = dlir.ring "L1" "a" slots 0 size 4096 on "core" from "S2MM" 0 to "compute" 0
  }
}

// -----

dlir.device_program @large on "aie" attributes {aie.machine = "npu1"} {
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {
    // expected-error @+1 {{C2: ring 'a' has a `size` of 65540 bytes, it is 1 to 65536 in L1}}
    %a = dlir.ring "L1" "a" slots 1 size 65540 on "core" from "S2MM" 0 to "compute" 0
  }
}

// -----

dlir.device_program @shim on "aie" attributes {aie.machine = "npu1"} {
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {
    // expected-error @+1 {{C3: ring 'a' is on "shim", of which the device has none, or which hold no tokens}}
    %a = dlir.ring "DDR" "a" slots 1 size 64 on "shim" from "S2MM" 0 to "MM2S" 0
  }
}

// -----

dlir.device_program @two on "aie" attributes {aie.machine = "npu1"} {
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {
    // expected-error @+1 {{'a' has 1 producers and 2 consumers, two locks order one of each}}
    %a = dlir.ring "L1" "a" slots 1 size 64 on "core" from "S2MM" 0 to "MM2S" 0, "compute" 0
    dlir.dispatch_queue "core" "S2MM" 0 {
      dlir.loop %i times[4294967295] {
        dlir.fill %a {}
      }
    }
    dlir.dispatch_queue "core" "MM2S" 0 {
      dlir.loop %i times[4294967295] {
        dlir.drain %a {}
      }
    }
    dlir.dispatch_queue "core" "compute" 0 {
      dlir.loop %i times[4294967295] {
        dlir.drain %a {}
      }
    }
  }
}

// -----

// Slots that a lock does not count, a kind of memory that is another tile's, and a name that is one of another ring's slots.
dlir.device_program @many on "aie" attributes {aie.machine = "npu1"} {
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {
    // expected-error @+1 {{'a' has `slots` 64 and `uses` 1, a lock counts to 63}}
    %a = dlir.ring "L2" "a" slots 64 size 64 on "memory" from "S2MM" 0 to "MM2S" 0
    dlir.dispatch_queue "memory" "S2MM" 0 units 1 (%x) {
      dlir.loop %i times[4294967295] {
        dlir.fill %a {}
      }
    }
    dlir.dispatch_queue "memory" "MM2S" 0 units 1 (%x) {
      dlir.loop %i times[4294967295] {
        dlir.drain %a {}
      }
    }
  }
}

// -----

dlir.device_program @elsewhere on "aie" attributes {aie.machine = "npu1"} {
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {
    // expected-error @+1 {{'a' lies in L1, a tile of class memory has L2}}
    %a = dlir.ring "L1" "a" slots 2 size 64 on "memory" from "S2MM" 0 to "MM2S" 0
    dlir.dispatch_queue "memory" "S2MM" 0 units 1 (%x) {
      dlir.loop %i times[4294967295] {
        dlir.fill %a {}
      }
    }
    dlir.dispatch_queue "memory" "MM2S" 0 units 1 (%x) {
      dlir.loop %i times[4294967295] {
        dlir.drain %a {}
      }
    }
  }
}

// -----

dlir.device_program @names on "aie" attributes {aie.machine = "npu1"} {
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {
    %a = dlir.ring "L2" "a0" slots 1 size 64 on "memory" from "S2MM" 0 to "MM2S" 0
    // expected-error @+1 {{'a0_' has a slot that is called as one of another ring, a0_0}}
    %b = dlir.ring "L2" "a0_" slots 1 size 64 on "memory" from "S2MM" 0 to "MM2S" 0
    dlir.dispatch_queue "memory" "S2MM" 0 units 1 (%x) {
      dlir.loop %i times[4294967295] {
        dlir.fill %a, %b {}
      }
    }
    dlir.dispatch_queue "memory" "MM2S" 0 units 1 (%x) {
      dlir.loop %i times[4294967295] {
        dlir.drain %a, %b {}
      }
    }
  }
}

// -----

dlir.device_program @unread on "aie" attributes {aie.machine = "npu1"} {
  dlir.scheduled_graph "main" units 1x1 (%c, %r) {
    // expected-error @+1 {{'a' is put and got by no queue and holds no product's sums, so that nobody knows what is in it}}
    %a = dlir.ring "L2" "a" slots 2 size 64 on "memory" from "S2MM" 0 to "MM2S" 0
    dlir.dispatch_queue "memory" "S2MM" 0 units 1 (%x) {
      dlir.loop %i times[4294967295] {
        dlir.fill %a {}
      }
    }
    dlir.dispatch_queue "memory" "MM2S" 0 units 1 (%x) {
      dlir.loop %i times[4294967295] {
        dlir.drain %a {}
      }
    }
  }
}
