// What the machine has not is refused, on the op that asks for it.
// RUN: dmx-opt %s -corsair-encode -split-input-file -verify-diagnostics

dlir.device_program @capacity on "corsair" {
  // expected-error @+1 {{over capacity: 'w' is 20000000 bytes at 0, ST holds 12582912}}
  %w = dlir.memory "ST" "w" size 20000000 permanent
}

// -----

dlir.device_program @fixed on "corsair" {
  // expected-error @+1 {{over capacity: 'w' is 64 bytes at 16777216, GM holds 16777216}}
  %w = dlir.memory "GM" "w" size 64 at 16777216
}

// -----

// Both live as long as the graph runs.
dlir.device_program @together on "corsair" {
  %x = dlir.memory "DDR" "x" size 64
  %a = dlir.memory "GM" "a" size 10000000
  // expected-error @+1 {{over capacity: 'b' is 10000000 bytes at 10000000, GM holds 16777216}}
  %b = dlir.memory "GM" "b" size 10000000
  %d = dlir.descriptor "f16" unit 32 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        dlir.copy DDR -> GM %x[0] to %a[0] with %d
        dlir.copy DDR -> GM %x[0] to %b[0] with %d
      }
    }
    dlir.dispatch_queue "quad" "dispatch" 1 {
      dlir.task_group "b" {
        dlir.copy GM -> DDR %a[0] to %x[0] with %d
        dlir.copy GM -> DDR %b[0] to %x[0] with %d
      }
    }
  }
}

// -----

dlir.device_program @stride on "corsair" {
  %a = dlir.memory "GM" "a" size 4096
  // expected-error @+1 {{invalid stride: target step 3 of f16 is not a multiple of 2}}
  %d = dlir.descriptor "f16" unit 1 dims [4] source [2] target [3]
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        dlir.copy GM -> GM %a[0] to %a[1024] with %d
      }
    }
  }
}

// -----

dlir.device_program @tiles on "corsair" {
  %a = dlir.memory "GM" "a" size 4096
  // expected-error @+1 {{invalid stride: source step 4100 of bfp16r is not a multiple of 64}}
  %d = dlir.descriptor "bfp16r" unit 4160 dims [4] source [4100] target [4160]
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        dlir.copy GM -> GM %a[0] to %a[1024] with %d
      }
    }
  }
}

// -----

dlir.device_program @kind on "corsair" {
  %a = dlir.memory "GM" "a" size 4096
  %d = dlir.descriptor "f17" unit 1 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{names no element kind of the device: 'f17'}}
        dlir.copy GM -> GM %a[0] to %a[1024] with %d
      }
    }
  }
}

// -----

dlir.device_program @modulo on "corsair" {
  %a = dlir.memory "GM" "a" size 4096
  %d = dlir.descriptor "f16" unit 1 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{has a place that is no sum of multiples}}
        dlir.copy GM -> GM %a[%q mod 2] to %a[1024] with %d
      }
    }
  }
}

// -----

dlir.device_program @quads on "corsair" {
  // expected-error @+1 {{runs on 33 quads, the machine has 32}}
  dlir.scheduled_graph "main" units 33 (%q) {}
}

// -----

dlir.device_program @queues on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    // expected-error @+1 {{C2: there is no queue 4, dispatch has 4}}
    dlir.dispatch_queue "quad" "dispatch" 4 {}
  }
}

// -----

dlir.device_program @registers on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    // expected-error @+1 {{a quad has 16 registers}}
    %r = dlir.register 16 [0]
  }
}

// -----

dlir.device_program @function on "corsair" {
  %a = dlir.memory "GM" "a" size 4096
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{the vector device has no function 'twist'}}
        corsair.simd "twist" to %a[0] dims [4] to_kind "f16" to_strides [2]
      }
    }
  }
}

// -----

dlir.device_program @code on "corsair" {
  // expected-error @+1 {{line 'CPU_JUMP':}}
  corsair.cpu_function @f ["CPU_JUMP"]
}

// -----

dlir.device_program @host on "corsair" {
  // expected-error @+1 {{the host has no 'tensor<4xcomplex<f32>>', or the device no 'f16'}}
  dlir.argument input "x" : tensor<4xcomplex<f32>> as "f16"
}

// -----

dlir.device_program @bytes on "corsair" {
  // expected-error @+1 {{a constant is a tensor of its bytes, ui8}}
  dlir.argument constant "x" : tensor<4xf32> as "f16"
}

// -----

dlir.device_program @fleeting on "corsair" {
  dlir.argument constant "x" : tensor<64xui8> as "f16"
  %x = dlir.memory "DDR" "x" size 64
  // expected-error @+1 {{of a constant or state lies in 'x', which is not permanent}}
  dlir.piece "x" unit 0 in %x offset 0 begin [0] extent [64] strides []
}

// -----

// What is left is for the verifier of images.
// expected-error @+1 {{the device refuses the program: stream 'cores_main_q0' at 2 (MATMUL): core + groups * imc is 24, a slice has 16 cores}}
dlir.device_program @cores on "corsair" {
  %i = dlir.memory "IB" "i" size 33280
  %w = dlir.memory "WB" "w" size 4160
  %o = dlir.memory "OB" "o" size 49152
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        corsair.matmul %i[0] x %w[0] to %o[0] num_imc 8 ppr_mode 3 groups 3 activation_kind "bfp16r" weight_kind "bfp16c"
      }
    }
  }
}

// -----

// expected-error @+1 {{has no dlir.device_program to encode}}
module {}

// -----

dlir.device_program @grid on "corsair" {
  // expected-error @+1 {{has units in 2 dims, quads are in one}}
  dlir.scheduled_graph "main" units 2x2 (%x, %y) {}
}

// -----

dlir.device_program @counts on "corsair" {
  dlir.scheduled_graph "main" units 1 (%q) {
    %t = dlir.token credits 1
    dlir.dispatch_queue "quad" "dispatch" 0 {
      // expected-error @+1 {{counts 65536 of a token, the device at most 65535}}
      dlir.task_group "a" wait(%t >= 65536) {}
    }
  }
}

// -----

dlir.device_program @between on "corsair" {
  %a = dlir.memory "GM" "a" size 4096
  %d = dlir.descriptor "f32" unit 4 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.loop %i times[4] {
        dlir.task_group "a" {
          // expected-error @+1 {{has a place that is no multiple of 4 bytes}}
          dlir.copy GM -> GM %a[%i * 18] to %a[1024] with %d
        }
      }
    }
  }
}

// -----

dlir.device_program @sums on "corsair" {
  %a = dlir.memory "IB" "a" size 8320
  %w = dlir.memory "WB" "w" size 4160
  %o = dlir.memory "OB" "o" size 16384
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{has activation_chunk 4161, which is no multiple of 64}}
        corsair.matmul %a[0] x %w[0] to %o[0] num_imc 2 ppr_mode 1 activation_kind "bfp16r" weight_kind "bfp16c" activation_chunk 4161
      }
    }
  }
}

// -----

dlir.device_program @before on "corsair" {
  %a = dlir.memory "IB" "a" size 8320
  %w = dlir.memory "WB" "w" size 4160
  %o = dlir.memory "OB" "o" size 16384
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C5: rows 1 to 64 are not those of tiles of 64}}
        corsair.matmul %a[0] x %w[0] to %o[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" rows[64] row[1]
      }
    }
  }
}

// -----

dlir.device_program @pixel on "corsair" {
  %a = dlir.memory "GM" "a" size 8320
  %w = dlir.memory "WB" "w" size 4160
  %o = dlir.memory "OB" "o" size 16384
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C5: there is no pixel -1}}
        corsair.conv %a[0] x %w[0] to %o[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" rows[64] pixel[-1] window {}
      }
    }
  }
}

// -----

dlir.device_program @depth on "corsair" {
  %a = dlir.memory "IB" "a" size 8320
  %w = dlir.memory "WB" "w" size 4160
  %o = dlir.memory "OB" "o" size 16384
  dlir.scheduled_graph "main" units 1 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C6: k0 is not negative, as -1 is}}
        corsair.matmul %a[0] x %w[0] to %o[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" k0[-1]
      }
    }
  }
}
