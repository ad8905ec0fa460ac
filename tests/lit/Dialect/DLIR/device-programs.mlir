// Each labelled rule of a device's program, broken once.
// REQUIRES: target-corsair
// RUN: dmx-opt %s -split-input-file -verify-diagnostics

dlir.device_program @twice on "corsair" {
  %a = dlir.memory "GM" "a" size 64
  // expected-error @+1 {{C2: a second memory named 'a'}}
  %b = dlir.memory "GM" "a" size 64
}

// -----

dlir.device_program @arguments on "corsair" {
  dlir.argument input "x" : tensor<4xf32> as "f16"
  // expected-error @+1 {{C2: a second argument named 'x'}}
  dlir.argument input "x" : tensor<4xf32> as "f16"
}

// -----

dlir.device_program @graphs on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {}
  // expected-error @+1 {{C3: a second graph "main"}}
  dlir.scheduled_graph "main" units 1 (%q) {}
}

// -----

// expected-note @+1 {{see existing symbol definition here}}
dlir.device_program @same on "corsair" {}
// expected-error @+1 {{redefinition of symbol named 'same'}}
dlir.device_program @same on "corsair" {}

// -----

dlir.device_program @overlap on "corsair" {
  %a = dlir.memory "ST" "a" size 128 at 0 permanent
  // expected-error @+1 {{C4: overlaps 'a'}}
  %b = dlir.memory "ST" "b" size 64 at 64 permanent
}

// -----

dlir.device_program @stray on "corsair" {
  // expected-error @+1 {{C1: does not stand in a dlir.device_program}}
  %c = arith.constant 1 : index
}

// -----

dlir.device_program @base on "corsair" {
  // expected-error @+1 {{C2: address 100 is not a multiple of 64}}
  %a = dlir.memory "ST" "a" size 128 at 100
}

// -----

dlir.device_program @empty on "corsair" {
  // expected-error @+1 {{C1: has 0 bytes}}
  %a = dlir.memory "ST" "a" size 0
}

// -----

dlir.device_program @scalar on "corsair" {
  // expected-error @+1 {{C1: a scalar, and nothing else, goes to a register}}
  dlir.argument scalar "n" : tensor<1xi64> as "i64"
}

// -----

dlir.device_program @data on "corsair" {
  // expected-error @+1 {{C2: only a constant has data}}
  dlir.argument input "n" : tensor<1xi64> as "i64" data(dense<0> : tensor<1xi64>)
}

// -----

dlir.device_program @piece on "corsair" {
  %a = dlir.memory "DDR" "a" size 64
  // expected-error @+1 {{C1: there is no argument 'x' that has pieces}}
  dlir.piece "x" unit 0 in %a offset 0 begin [0] extent [4] strides [2]
}

// -----

dlir.device_program @rank on "corsair" {
  dlir.argument input "x" : tensor<4x4xf32> as "f16"
  %a = dlir.memory "DDR" "a" size 64
  // expected-error @+1 {{C2: needs a begin and an extent for each of 2 dims}}
  dlir.piece "x" unit 0 in %a offset 0 begin [0] extent [4] strides [2]
}

// -----

dlir.device_program @outside on "corsair" {
  dlir.argument constant "w" : tensor<128xui8> as "bfp16c"
  %a = dlir.memory "DDR" "a" size 64
  // expected-error @+1 {{C3: leaves the 64 bytes of 'a'}}
  dlir.piece "w" unit 0 in %a offset 0 begin [0] extent [128] strides []
}

// -----

dlir.device_program @dims on "corsair" {
  // expected-error @+1 {{C1: has a negative dim}}
  %d = dlir.descriptor "f16" unit 1 dims [-1] source [2] target [2]
}

// -----

dlir.device_program @steps on "corsair" {
  // expected-error @+1 {{C2: needs a source and a target step for each of 2 dims}}
  %d = dlir.descriptor "f16" unit 1 dims [2, 2] source [2] target [2, 2]
}

// -----

dlir.device_program @padding on "corsair" {
  // expected-error @+1 {{C3: low 3 is above high 2}}
  %d = dlir.descriptor "f16" unit 1 dims [4] source [2] target [2] {low = array<i64: 3>, high = array<i64: 2>}
}

// -----

dlir.device_program @unit on "corsair" {
  // expected-error @+1 {{C4: a unit of 0}}
  %d = dlir.descriptor "f16" unit 0 dims [4] source [2] target [2]
}

// -----

dlir.device_program @graph on "corsair" {
  // expected-error @+1 {{C1: is "init" or "main", over one unit or more}}
  dlir.scheduled_graph "middle" units 1 (%q) {}
}

// -----

dlir.device_program @queues on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {}
    // expected-error @+1 {{C2: a second queue 0}}
    dlir.dispatch_queue "quad" "dispatch" 0 {}
  }
}

// -----

// A task in no queue.
dlir.device_program @unqueued on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    // expected-error @+1 {{stands in no queue}}
    dlir.task_group "t" {}
  }
}

// -----

// A task in two queues would be a queue in a queue.
dlir.device_program @nested on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      // expected-error @+1 {{expects parent op 'dlir.scheduled_graph'}}
      dlir.dispatch_queue "quad" "dispatch" 1 {}
    }
  }
}

// -----

dlir.device_program @group on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: stands in no queue}}
        dlir.task_group "b" {}
      }
    }
  }
}

// -----

dlir.device_program @never on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    // expected-error @+1 {{C3: is waited for, but nothing signals it}}
    %t = dlir.token
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" wait(%t) {}
    }
  }
}

// -----

dlir.device_program @registers on "corsair" {
  dlir.scheduled_graph "main" units 3 (%q) {
    // expected-error @+1 {{C4: is the only one of register 0, with one value or 3}}
    %r = dlir.register 0 [1, 2]
  }
}

// -----

dlir.device_program @illegal on "corsair" {
  %x = dlir.memory "DDR" "x" size 4160
  %w = dlir.memory "WB" "w" size 4160
  %d = dlir.descriptor "bfp16c" unit 4160 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: the device does not move from DDR to WB; from DDR go GM, ST}}
        dlir.copy DDR -> WB %x[0] to %w[0] with %d
      }
    }
  }
}

// -----

dlir.device_program @mixed on "corsair" {
  %x = dlir.memory "DDR" "x" size 4160
  %w = dlir.memory "GM" "w" size 4160
  %d = dlir.descriptor "bfp16c" unit 4160 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: its buffers do not lie in DDR and ST}}
        dlir.copy DDR -> ST %x[0] to %w[0] with %d
      }
    }
  }
}

// -----

dlir.device_program @undescribed on "corsair" {
  %x = dlir.memory "DDR" "x" size 4160
  %w = dlir.memory "GM" "w" size 4160
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C3: needs a descriptor}}
        dlir.copy DDR -> GM %x[0] to %w[0]
      }
    }
  }
}

// -----

dlir.device_program @masks on "corsair" {
  %x = dlir.memory "DDR" "x" size 4160
  %w = dlir.memory "ST" "w" size 4160
  %d = dlir.descriptor "bfp16c" unit 4160 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C4: no copy from DDR to ST reaches other units of the graph}}
        dlir.copy DDR -> ST %x[0] to %w[0] with %d peers[3]
      }
    }
  }
}

// -----

dlir.device_program @barriers on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: neither waits nor signals nor meets}}
        dlir.task_barrier
      }
    }
  }
}

// -----

// expected-error @+1 {{C5: no target of this build is called 'toaster', or it has no programs}}
dlir.device_program @device on "toaster" {
}

// -----

dlir.device_program @memory on "corsair" {
  // expected-error @+1 {{C3: the device has no memory L2; it has DDR, GM, ST, OB, WB, IB, DRE, SIMD}}
  %a = dlir.memory "L2" "a" size 64
}

// -----

dlir.device_program @room on "corsair" {
  // expected-error @+1 {{C4: over capacity: 'w' is 20000000 bytes at 0, ST holds 12582912}}
  %w = dlir.memory "ST" "w" size 20000000 permanent
}

// -----

dlir.device_program @unit on "corsair" {
  dlir.argument input "x" : tensor<4xf32> as "f16"
  %a = dlir.memory "GM" "a" size 64
  // expected-error @+1 {{C4: there is no unit 32, the device has 32 of GM}}
  dlir.piece "x" unit 32 in %a offset 0 begin [0] extent [4] strides [2]
}

// -----

dlir.device_program @many on "corsair" {
  // expected-error @+1 {{C1: has 5 dims, the device's descriptors 4}}
  %d = dlir.descriptor "f16" unit 1 dims [1, 1, 1, 1, 1] source [2, 2, 2, 2, 2] target [2, 2, 2, 2, 2]
}

// -----

dlir.device_program @count on "corsair" {
  // expected-error @+1 {{C1: counts 2147483649 items, the device's descriptors 2147483648}}
  %d = dlir.descriptor "f16" unit 1 dims [2147483649] source [2] target [2]
}

// -----

dlir.device_program @step on "corsair" {
  // expected-error @+1 {{C2: has a step of -1099511627778, the device's descriptors at most 1099511627776}}
  %d = dlir.descriptor "f16" unit 1 dims [2] source [2] target [-1099511627778]
}

// -----

dlir.device_program @channel on "corsair" {
  // expected-error @+1 {{C1: the device has no channels}}
  dlir.channel @a
}

// -----

dlir.device_program @grid on "corsair" {
  // expected-error @+1 {{C1: has an index for each dim of its units}}
  dlir.scheduled_graph "main" units 2x2 (%q) {}
}

// -----

dlir.device_program @unitless on "corsair" {
  // expected-error @+1 {{C1: is "init" or "main", over one unit or more}}
  dlir.scheduled_graph "main" units 0 (%q) {}
}

// -----

dlir.device_program @scope on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C4: the device has no scope "world"; it has queues, quad, chiplet, card}}
        dlir.task_barrier over "world" queues [0]
      }
    }
  }
}

// -----

dlir.device_program @counts on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    %t = dlir.token credits 1
    dlir.dispatch_queue "quad" "dispatch" 0 {
      // expected-error @+1 {{C3: waits and signals count from 1, one number a token}}
      dlir.task_group "a" wait(%t >= 0) {}
    }
  }
}

// -----

dlir.device_program @subunits on "corsair" {
  %x = dlir.memory "GM" "x" size 4160
  %w = dlir.memory "IB" "w" size 4160
  %d = dlir.descriptor "bfp16r" unit 4160 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C4: IB has no subunits}}
        dlir.copy GM -> IB %x[0] to %w[0] with %d subunits 3
      }
    }
  }
}

// -----

dlir.device_program @ends on "corsair" {
  %x = dlir.memory "GM" "x" size 4160
  %d = dlir.descriptor "bfp16r" unit 4160 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: there is no channel @none}}
        dlir.put @none %x[0] with %d
      }
    }
  }
}
