// Each labelled rule of a device's program, broken once.
// RUN: dmx-opt %s -split-input-file -verify-diagnostics

dlir.dmmq @twice {
  %a = dlir.memory GM "a" size 64
  // expected-error @+1 {{C2: a second memory named 'a'}}
  %b = dlir.memory GM "a" size 64
}

// -----

dlir.dmmq @arguments {
  dlir.argument input "x" : tensor<4xf32> as "f16"
  // expected-error @+1 {{C2: a second argument named 'x'}}
  dlir.argument input "x" : tensor<4xf32> as "f16"
}

// -----

dlir.dmmq @graphs {
  dlir.scheduled_graph "main" quads 1 (%q) {}
  // expected-error @+1 {{C3: a second graph "main"}}
  dlir.scheduled_graph "main" quads 1 (%q) {}
}

// -----

// expected-note @+1 {{see existing symbol definition here}}
dlir.dmmq @same {}
// expected-error @+1 {{redefinition of symbol named 'same'}}
dlir.dmmq @same {}

// -----

dlir.dmmq @overlap {
  %a = dlir.memory ST "a" size 128 at 0 permanent
  // expected-error @+1 {{C4: overlaps 'a'}}
  %b = dlir.memory ST "b" size 64 at 64 permanent
}

// -----

dlir.dmmq @stray {
  // expected-error @+1 {{C1: does not stand in a dlir.dmmq}}
  %c = arith.constant 1 : index
}

// -----

dlir.dmmq @base {
  // expected-error @+1 {{C2: address 100 is not a multiple of 64}}
  %a = dlir.memory ST "a" size 128 at 100
}

// -----

dlir.dmmq @empty {
  // expected-error @+1 {{C1: has 0 bytes}}
  %a = dlir.memory ST "a" size 0
}

// -----

dlir.dmmq @scalar {
  // expected-error @+1 {{C1: a scalar, and nothing else, goes to a register}}
  dlir.argument scalar "n" : tensor<1xi64> as "i64"
}

// -----

dlir.dmmq @data {
  // expected-error @+1 {{C2: only a constant has data}}
  dlir.argument input "n" : tensor<1xi64> as "i64" data(dense<0> : tensor<1xi64>)
}

// -----

dlir.dmmq @piece {
  %a = dlir.memory DDR "a" size 64
  // expected-error @+1 {{C1: there is no argument 'x' that has pieces}}
  dlir.piece "x" unit 0 in %a offset 0 begin [0] extent [4] strides [2]
}

// -----

dlir.dmmq @rank {
  dlir.argument input "x" : tensor<4x4xf32> as "f16"
  %a = dlir.memory DDR "a" size 64
  // expected-error @+1 {{C2: needs a begin and an extent for each of 2 dims}}
  dlir.piece "x" unit 0 in %a offset 0 begin [0] extent [4] strides [2]
}

// -----

dlir.dmmq @outside {
  dlir.argument constant "w" : tensor<128xui8> as "bfp16c"
  %a = dlir.memory DDR "a" size 64
  // expected-error @+1 {{C3: leaves the 64 bytes of 'a'}}
  dlir.piece "w" unit 0 in %a offset 0 begin [0] extent [128] strides []
}

// -----

dlir.dmmq @dims {
  // expected-error @+1 {{C1: has at most four dims, none negative}}
  %d = dlir.dma_config "f16" unit 1 dims [-1] source [2] target [2]
}

// -----

dlir.dmmq @steps {
  // expected-error @+1 {{C2: needs a source and a target step for each of 2 dims}}
  %d = dlir.dma_config "f16" unit 1 dims [2, 2] source [2] target [2, 2]
}

// -----

dlir.dmmq @padding {
  // expected-error @+1 {{C3: low 3 is above high 2}}
  %d = dlir.dma_config "f16" unit 1 dims [4] source [2] target [2] {low = array<i64: 3>, high = array<i64: 2>}
}

// -----

dlir.dmmq @unit {
  // expected-error @+1 {{C4: a unit of 0}}
  %d = dlir.dma_config "f16" unit 0 dims [4] source [2] target [2]
}

// -----

dlir.dmmq @graph {
  // expected-error @+1 {{C1: is "init" or "main", over one quad or more}}
  dlir.scheduled_graph "middle" quads 1 (%q) {}
}

// -----

dlir.dmmq @queues {
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {}
    // expected-error @+1 {{C2: a second queue 0}}
    dlir.dispatch_queue 0 {}
  }
}

// -----

// A task in no queue.
dlir.dmmq @unqueued {
  dlir.scheduled_graph "main" quads 1 (%q) {
    // expected-error @+1 {{stands in no queue}}
    dlir.task_group "t" {}
  }
}

// -----

// A task in no group of a queue.
dlir.dmmq @ungrouped {
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      // expected-error @+1 {{stands in no group of a queue}}
      dlir.nop
    }
  }
}

// -----

// A task in two queues would be a queue in a queue.
dlir.dmmq @nested {
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      // expected-error @+1 {{expects parent op 'dlir.scheduled_graph'}}
      dlir.dispatch_queue 1 {}
    }
  }
}

// -----

dlir.dmmq @group {
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: stands in no queue}}
        dlir.task_group "b" {}
      }
    }
  }
}

// -----

dlir.dmmq @never {
  dlir.scheduled_graph "main" quads 1 (%q) {
    // expected-error @+1 {{C3: is waited for, but nothing signals it}}
    %t = dlir.token
    dlir.dispatch_queue 0 {
      dlir.task_group "a" wait(%t) {}
    }
  }
}

// -----

dlir.dmmq @registers {
  dlir.scheduled_graph "main" quads 3 (%q) {
    // expected-error @+1 {{C4: is the only one of register 0, with one value or 3}}
    %r = dlir.register 0 [1, 2]
  }
}

// -----

dlir.dmmq @illegal {
  %x = dlir.memory DDR "x" size 4160
  %w = dlir.memory WB "w" size 4160
  %d = dlir.dma_config "bfp16c" unit 4160 dims [] source [] target []
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: the device does not move from DDR to WB; from DDR go GM, ST}}
        dlir.copy DDR2WB %x[0] to %w[0] with %d
      }
    }
  }
}

// -----

dlir.dmmq @mixed {
  %x = dlir.memory DDR "x" size 4160
  %w = dlir.memory GM "w" size 4160
  %d = dlir.dma_config "bfp16c" unit 4160 dims [] source [] target []
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: its buffers do not lie in DDR and ST}}
        dlir.copy DDR2ST %x[0] to %w[0] with %d
      }
    }
  }
}

// -----

dlir.dmmq @undescribed {
  %x = dlir.memory DDR "x" size 4160
  %w = dlir.memory GM "w" size 4160
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C3: needs a descriptor}}
        dlir.copy DDR2GM %x[0] to %w[0]
      }
    }
  }
}

// -----

dlir.dmmq @masks {
  %x = dlir.memory DDR "x" size 4160
  %w = dlir.memory ST "w" size 4160
  %d = dlir.dma_config "bfp16c" unit 4160 dims [] source [] target []
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C4: only copies from DDR or GM to GM reach other quads}}
        dlir.copy DDR2ST %x[0] to %w[0] with %d quads[3]
      }
    }
  }
}

// -----

dlir.dmmq @operands {
  %i = dlir.memory IB "i" size 4160
  %w = dlir.memory WB "w" size 4160
  %o = dlir.memory GM "o" size 16384
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: activations lie in IB, weights in WB, the result in OB, a stash in ST}}
        dlir.matmul %i[0] x %w[0] to %o[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c"
      }
    }
  }
}

// -----

dlir.dmmq @cores {
  %i = dlir.memory IB "i" size 4160
  %w = dlir.memory WB "w" size 4160
  %o = dlir.memory OB "o" size 16384
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: 1 <= num_imc 9 <= 2^ppr_mode 3 does not hold}}
        dlir.matmul %i[0] x %w[0] to %o[0] num_imc 9 ppr_mode 3 activation_kind "bfp16r" weight_kind "bfp16c"
      }
    }
  }
}

// -----

dlir.dmmq @rows {
  %i = dlir.memory IB "i" size 4160
  %w = dlir.memory WB "w" size 4160
  %o = dlir.memory OB "o" size 16384
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C4: rows is 1 to 64, not 65}}
        dlir.matmul %i[0] x %w[0] to %o[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" rows[65]
      }
    }
  }
}

// -----

dlir.dmmq @image {
  %i = dlir.memory DRE "i" size 4160
  %w = dlir.memory WB "w" size 4160
  %o = dlir.memory OB "o" size 16384
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: an image lies in GM or IB}}
        dlir.conv %i[0] x %w[0] to %o[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" pixel[0] window {}
      }
    }
  }
}

// -----

dlir.dmmq @vectors {
  %a = dlir.memory GM "a" size 64
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C3: an operand that is there has kind and steps, another none}}
        dlir.simd "relu" to %a[0] a %a[0] dims [4] to_kind "f16" to_strides [2]
      }
    }
  }
}

// -----

dlir.dmmq @dimensions {
  %a = dlir.memory GM "a" size 64
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: has one to four dims and a step of each operand for each}}
        dlir.simd "fill" to %a[0] dims [4, 4] to_kind "f16" to_strides [2]
      }
    }
  }
}

// -----

dlir.dmmq @far {
  %a = dlir.memory ST "a" size 64
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: operands lie in GM, SIMD or OB}}
        dlir.simd "fill" to %a[0] dims [4] to_kind "f16" to_strides [2]
      }
    }
  }
}

// -----

dlir.dmmq @shapes {
  %a = dlir.memory GM "a" size 64
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: the function is extract, insert or transpose, not "twist"}}
        dlir.reshape "twist" %a[0] to %a[0]
      }
    }
  }
}

// -----

dlir.dmmq @transposed {
  %a = dlir.memory GM "a" size 64
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: extract and insert have a descriptor, transpose rows}}
        dlir.reshape "transpose" %a[0] to %a[0]
      }
    }
  }
}

// -----

dlir.dmmq @rules {
  %a = dlir.memory GM "a" size 64
  %d = dlir.dma_config "f16" unit 1 dims [] source [] target []
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C3: insert has no rule "window"}}
        dlir.reshape "insert" %a[0] to %a[0] with %d rule "window"
      }
    }
  }
}

// -----

dlir.dmmq @functions {
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C1: there is no CPU function @none}}
        dlir.cpu @none
      }
    }
  }
}

// -----

dlir.dmmq @barriers {
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{C2: neither waits nor signals nor meets}}
        dlir.task_barrier
      }
    }
  }
}

// -----

dlir.dmmq @clauses {
  dlir.scheduled_graph "main" quads 1 (%q) {
    dlir.dispatch_queue 0 {
      dlir.task_group "a" {
        // expected-error @+1 {{clause 'clocks' stands twice}}
        dlir.nop clocks 3 clocks 4
      }
    }
  }
}
