// Each labelled rule of the engines' tasks, broken once.
// RUN: dmx-opt %s -split-input-file -verify-diagnostics

// A task in no group of a queue.
dlir.device_program @ungrouped on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      // expected-error @+1 {{stands in no group of a queue}}
      corsair.nop
    }
  }
}

// -----

dlir.device_program @operands on "corsair" {
  %i = dlir.memory "IB" "i" size 4160
  %w = dlir.memory "WB" "w" size 4160
  %o = dlir.memory "GM" "o" size 16384
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: activations lie in IB, weights in WB, the result in OB, a stash in ST}}
        corsair.matmul %i[0] x %w[0] to %o[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c"
      }
    }
  }
}

// -----

dlir.device_program @cores on "corsair" {
  %i = dlir.memory "IB" "i" size 4160
  %w = dlir.memory "WB" "w" size 4160
  %o = dlir.memory "OB" "o" size 16384
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: 1 <= num_imc 9 <= 2^ppr_mode 3 does not hold}}
        corsair.matmul %i[0] x %w[0] to %o[0] num_imc 9 ppr_mode 3 activation_kind "bfp16r" weight_kind "bfp16c"
      }
    }
  }
}

// -----

dlir.device_program @rows on "corsair" {
  %i = dlir.memory "IB" "i" size 4160
  %w = dlir.memory "WB" "w" size 4160
  %o = dlir.memory "OB" "o" size 16384
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C4: rows is 1 to 64, not 65}}
        corsair.matmul %i[0] x %w[0] to %o[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" rows[65]
      }
    }
  }
}

// -----

dlir.device_program @image on "corsair" {
  %i = dlir.memory "DRE" "i" size 4160
  %w = dlir.memory "WB" "w" size 4160
  %o = dlir.memory "OB" "o" size 16384
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: an image lies in GM or IB}}
        corsair.conv %i[0] x %w[0] to %o[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" pixel[0] window {}
      }
    }
  }
}

// -----

dlir.device_program @vectors on "corsair" {
  %a = dlir.memory "GM" "a" size 64
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C3: an operand that is there has kind and steps, another none}}
        corsair.simd "relu" to %a[0] a %a[0] dims [4] to_kind "f16" to_strides [2]
      }
    }
  }
}

// -----

dlir.device_program @dimensions on "corsair" {
  %a = dlir.memory "GM" "a" size 64
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: has one to four dims and a step of each operand for each}}
        corsair.simd "fill" to %a[0] dims [4, 4] to_kind "f16" to_strides [2]
      }
    }
  }
}

// -----

dlir.device_program @far on "corsair" {
  %a = dlir.memory "ST" "a" size 64
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: operands lie in GM, SIMD or OB}}
        corsair.simd "fill" to %a[0] dims [4] to_kind "f16" to_strides [2]
      }
    }
  }
}

// -----

dlir.device_program @shapes on "corsair" {
  %a = dlir.memory "GM" "a" size 64
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: the function is extract, insert or transpose, not "twist"}}
        corsair.reshape "twist" %a[0] to %a[0]
      }
    }
  }
}

// -----

dlir.device_program @transposed on "corsair" {
  %a = dlir.memory "GM" "a" size 64
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: extract and insert have a descriptor, transpose rows}}
        corsair.reshape "transpose" %a[0] to %a[0]
      }
    }
  }
}

// -----

dlir.device_program @rules on "corsair" {
  %a = dlir.memory "GM" "a" size 64
  %d = dlir.descriptor "f16" unit 1 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C3: insert has no rule "window"}}
        corsair.reshape "insert" %a[0] to %a[0] with %d rule "window"
      }
    }
  }
}

// -----

dlir.device_program @functions on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: there is no CPU function @none}}
        corsair.cpu @none
      }
    }
  }
}

// -----

dlir.device_program @clauses on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{clause 'clocks' stands twice}}
        corsair.nop clocks 3 clocks 4
      }
    }
  }
}

// -----

// Declared behind its use, so that the use is looked at first.
dlir.device_program @behind on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{has a buffer in L2, which is no memory of the device}}
        corsair.simd "fill" to %a[0] dims [4] to_kind "f16" to_strides [2]
      }
    }
  }
  %a = dlir.memory "L2" "a" size 64
}
