// What queues do not wait for is refused before a program runs, by op, group and rule (include/dmxc/Dialect/DLIR/Order.h).
// RUN: dmx-opt %s -split-input-file -verify-diagnostics -corsair-encode=order=true

// A slot of two bytes' rows that one queue fills and another drains.
dlir.device_program @whole on "corsair" {
  %x = dlir.memory "DDR" "x" size 256
  dlir.argument input "x" : tensor<128xf16> as "f16"
  dlir.piece "x" unit 0 in %x offset 0 begin [0] extent [128] strides [2]
  %y = dlir.memory "DDR" "y" size 256
  dlir.argument output "y" : tensor<128xf16> as "f16"
  dlir.piece "y" unit 0 in %y offset 0 begin [0] extent [128] strides [2]
  %a = dlir.memory "GM" "a" size 64
  %d = dlir.descriptor "f16" unit 32 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    %free = dlir.token credits 1
    %full = dlir.token
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.loop %i times[4] {
        dlir.task_group "fill" wait(%free) signal(%full) {
          dlir.copy DDR -> GM %x[%i * 64] to %a[0] with %d
        }
      }
    }
    dlir.dispatch_queue "quad" "dispatch" 1 {
      dlir.loop %i times[4] {
        dlir.task_group "drain" wait(%full) signal(%free) {
          dlir.copy GM -> DDR %a[0] to %y[%i * 64] with %d
        }
      }
    }
  }
}

// -----

dlir.device_program @fewer on "corsair" {
  %x = dlir.memory "DDR" "x" size 256
  dlir.argument input "x" : tensor<128xf16> as "f16"
  dlir.piece "x" unit 0 in %x offset 0 begin [0] extent [128] strides [2]
  %a = dlir.memory "GM" "a" size 64
  %d = dlir.descriptor "f16" unit 32 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    %full = dlir.token
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.loop %i times[3] {
        dlir.task_group "fill" signal(%full) {
          dlir.copy DDR -> GM %x[%i * 64] to %a[0] with %d
        }
      }
    }
    dlir.dispatch_queue "quad" "dispatch" 1 {
      dlir.loop %i times[4] {
        // expected-error @+1 {{O1: group "drain" of queue 1 on quad 0 waits for a token that nothing signals any more}}
        dlir.task_group "drain" wait(%full) {
        }
      }
    }
  }
}

// -----

dlir.device_program @more on "corsair" {
  %x = dlir.memory "DDR" "x" size 256
  dlir.scheduled_graph "main" units 2 (%q) {
    // expected-error @+1 {{O1: is signalled 1 times more than it is waited for, on unit 1: group "fill" signals 1 and waits for 0}}
    %full = dlir.token
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.loop %i times[%q] {
        dlir.task_group "fill" signal(%full) {
        }
      }
    }
  }
}

// -----

dlir.device_program @race on "corsair" {
  %x = dlir.memory "DDR" "x" size 256
  dlir.argument input "x" : tensor<128xf16> as "f16"
  dlir.piece "x" unit 0 in %x offset 0 begin [0] extent [128] strides [2]
  %a = dlir.memory "GM" "a" size 64
  %b = dlir.memory "GM" "b" size 64
  %d = dlir.descriptor "f16" unit 32 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "fill" {
        dlir.copy DDR -> GM %x[0] to %a[0] with %d
      }
    }
    dlir.dispatch_queue "quad" "dispatch" 1 {
      dlir.task_group "use" {
        // expected-error @+1 {{O2: group "use" of queue 1 reads byte 0 of 'a' (GM 0), which dlir.copy in group "fill" of queue 0 writes}}
        dlir.copy GM -> GM %a[0] to %b[0] with %d
      }
    }
  }
}

// -----

dlir.device_program @nothing on "corsair" {
  %a = dlir.memory "GM" "a" size 64
  %b = dlir.memory "GM" "b" size 64
  %d = dlir.descriptor "f16" unit 32 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "use" {
        // expected-error @+1 {{O3: group "use" of queue 0 reads byte 0 of 'a' (GM 0), which nothing has written}}
        dlir.copy GM -> GM %a[0] to %b[0] with %d
      }
    }
  }
}

// -----

dlir.device_program @beyond on "corsair" {
  %x = dlir.memory "DDR" "x" size 256
  dlir.argument input "x" : tensor<128xf16> as "f16"
  dlir.piece "x" unit 0 in %x offset 0 begin [0] extent [128] strides [2]
  %a = dlir.memory "GM" "a" size 64
  %d = dlir.descriptor "f16" unit 32 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.loop %i times[5] {
        dlir.task_group "fill" {
          // expected-error @+1 {{O6: group "fill" of queue 0 reads bytes 256 to 319 of 'x', which has 256}}
          dlir.copy DDR -> GM %x[%i * 64] to %a[0] with %d
        }
      }
    }
  }
}

// -----

dlir.device_program @result on "corsair" {
  %y = dlir.memory "DDR" "y" size 256
  dlir.argument output "y" : tensor<128xf16> as "f16"
  // expected-error @+1 {{O5: nothing writes byte 0 of the result 'y'}}
  dlir.piece "y" unit 0 in %y offset 0 begin [0] extent [128] strides [2]
}

// -----

// What quads write to each other is looked at in all of them: quad 5 leaves out quad 4.
dlir.device_program @exchange on "corsair" {
  %x = dlir.memory "GM" "x" size 64 permanent
  dlir.argument state "x" : tensor<32xf16> as "f16"
  dlir.piece "x" unit 0 in %x offset 0 begin [0] extent [32] strides [2]
  dlir.piece "x" unit 1 in %x offset 0 begin [0] extent [32] strides [2]
  dlir.piece "x" unit 2 in %x offset 0 begin [0] extent [32] strides [2]
  dlir.piece "x" unit 3 in %x offset 0 begin [0] extent [32] strides [2]
  dlir.piece "x" unit 4 in %x offset 0 begin [0] extent [32] strides [2]
  dlir.piece "x" unit 5 in %x offset 0 begin [0] extent [32] strides [2]
  dlir.piece "x" unit 6 in %x offset 0 begin [0] extent [32] strides [2]
  dlir.piece "x" unit 7 in %x offset 0 begin [0] extent [32] strides [2]
  %a = dlir.memory "GM" "a" size 512
  %b = dlir.memory "GM" "b" size 512
  %d = dlir.descriptor "f16" unit 32 dims [] source [] target []
  %e = dlir.descriptor "f16" unit 256 dims [] source [] target []
  dlir.scheduled_graph "main" units 8 (%q) {
    %peers = dlir.register 0 [255, 255, 255, 255, 255, 239, 255, 255]
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "give" {
        dlir.copy GM -> GM %x[0] to %a[%q * 64] with %d peers[%peers]
        dlir.task_barrier over "card" id 0 queues [0]
        // expected-error @+1 {{O3: group "give" of queue 0 reads byte 320 of 'a' (GM 4), which nothing has written}}
        dlir.copy GM -> GM %a[0] to %b[0] with %e
      }
    }
  }
}

// -----

// The host writes the piece, no more.
dlir.device_program @piece on "corsair" {
  %x = dlir.memory "DDR" "x" size 256
  dlir.argument input "x" : tensor<128xf16> as "f16"
  dlir.piece "x" unit 0 in %x offset 0 begin [0] extent [64] strides [2]
  %a = dlir.memory "GM" "a" size 256
  %d = dlir.descriptor "f16" unit 128 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "fetch" {
        // expected-error @+1 {{O3: group "fetch" of queue 0 reads byte 128 of 'x' (DDR 0), which nothing has written}}
        dlir.copy DDR -> GM %x[0] to %a[0] with %d
      }
    }
  }
}

// -----

dlir.device_program @beyond on "corsair" {
  %x = dlir.memory "DDR" "x" size 256
  dlir.argument input "x" : tensor<2x64xf16> as "f16"
  // expected-error @+1 {{O6: has bytes 0 to 319 of 'x', which has 256}}
  dlir.piece "x" unit 0 in %x offset 0 begin [0, 0] extent [2, 64] strides [192, 2]
  dlir.scheduled_graph "main" units 1 (%q) {
  }
}

// -----

// Who meets names the same queues, itself among them; in which order and how often does not matter.
dlir.device_program @others on "corsair" {
  dlir.scheduled_graph "main" units 2 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        dlir.task_barrier over "card" id 0 queues [0, 1]
        // expected-error @+1 {{O1: group "a" of queue 0 on quad 0 meets a queue that names others}}
        dlir.task_barrier over "card" id 1 queues [0, 1]
      }
    }
    dlir.dispatch_queue "quad" "dispatch" 1 {
      dlir.task_group "b" {
        dlir.task_barrier over "card" id 0 queues [1, 0, 1]
        dlir.task_barrier over "card" id 1 queues [1]
      }
    }
  }
}

// -----

dlir.device_program @itself on "corsair" {
  dlir.scheduled_graph "main" units 2 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{O1: group "a" of queue 0 on quad 0 meets others without being named itself}}
        dlir.task_barrier over "card" id 0 queues [1]
      }
    }
    dlir.dispatch_queue "quad" "dispatch" 1 {
      dlir.task_group "b" {
        dlir.task_barrier over "card" id 0 queues [1]
      }
    }
  }
}
