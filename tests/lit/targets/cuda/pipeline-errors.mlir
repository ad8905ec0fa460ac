// What a cuda.pipeline has not by itself, whatever its product is, is refused on the op: its own rules, and those of DLIR's rings by what a
// block of the machine has.
// RUN: dmx-opt %s -split-input-file -verify-diagnostics

dlir.kernel @roles on "cuda" attributes {strategy = {}} {
  cuda.pipeline tile 64 x 64 raster 8 {
    cuda.role "copy" warpgroups 1
    // expected-error @+1 {{C1: another one has the name 'copy'}}
    cuda.role "copy" warpgroups 1
    dlir.device_program @block on "cuda" {
      dlir.argument scalar "tiles" : i64 as "i64" register 0
      dlir.scheduled_graph "main" units 1 (%b) {
        %t = dlir.register 0 [0]
        %a = dlir.ring "shared" "a" slots 2 size 16384 on "block" from "copy" 0 to "multiply" 0
        dlir.dispatch_queue "block" "multiply" 0 {
          dlir.loop %i times[%t] {
            dlir.drain %a {}
          }
        }
        dlir.dispatch_queue "block" "copy" 0 {
          dlir.loop %i times[%t] {
            dlir.fill %a {}
          }
        }
      }
    }
  }
  dmir.yield
}

// -----

dlir.kernel @program on "cuda" attributes {strategy = {}} {
  // expected-error @+1 {{C1: holds 0 programs; it has one, a dlir.device_program}}
  cuda.pipeline tile 64 x 64 raster 8 {
    cuda.role "copy" warpgroups 1
  }
  dmir.yield
}

// -----

dlir.kernel @foreign on "cuda" attributes {strategy = {}} {
  cuda.pipeline tile 64 x 64 raster 8 {
    // expected-error @+1 {{C1: does not stand in a cuda.pipeline}}
    %c = dmir.constant dense<0.5> : tensor<4xf32>
    dlir.device_program @block on "cuda" {
      dlir.argument scalar "tiles" : i64 as "i64" register 0
      dlir.scheduled_graph "main" units 1 (%b) {
        %t = dlir.register 0 [0]
        %a = dlir.ring "shared" "a" slots 2 size 16384 on "block" from "copy" 0 to "multiply" 0
        dlir.dispatch_queue "block" "multiply" 0 {
          dlir.loop %i times[%t] {
            dlir.drain %a {}
          }
        }
        dlir.dispatch_queue "block" "copy" 0 {
          dlir.loop %i times[%t] {
            dlir.fill %a {}
          }
        }
      }
    }
  }
  dmir.yield
}

// -----

dlir.kernel @slots on "cuda" attributes {strategy = {}} {
  cuda.pipeline tile 64 x 64 raster 8 {
    dlir.device_program @block on "cuda" {
      dlir.argument scalar "tiles" : i64 as "i64" register 0
      dlir.scheduled_graph "main" units 1 (%b) {
        %t = dlir.register 0 [0]
        // expected-error @+1 {{C1: ring 'a' has `slots` 15, they are 1 to 14 of 16384 bytes in shared}}
        %a = dlir.ring "shared" "a" slots 15 size 16384 on "block" from "copy" 0 to "multiply" 0
        dlir.dispatch_queue "block" "multiply" 0 {
          dlir.loop %i times[%t] {
            dlir.drain %a {}
          }
        }
        dlir.dispatch_queue "block" "copy" 0 {
          dlir.loop %i times[%t] {
            dlir.fill %a {}
          }
        }
      }
    }
  }
  dmir.yield
}

// -----

dlir.kernel @fill on "cuda" attributes {strategy = {}} {
  cuda.pipeline tile 64 x 64 raster 8 {
    dlir.device_program @block on "cuda" {
      dlir.argument scalar "tiles" : i64 as "i64" register 0
      dlir.scheduled_graph "main" units 1 (%b) {
        %t = dlir.register 0 [0]
        // expected-error @+1 {{C5: ring 'a' is never filled by queue "copy" 0}}
        %a = dlir.ring "shared" "a" slots 2 size 16384 on "block" from "copy" 0 to "multiply" 0
        dlir.dispatch_queue "block" "multiply" 0 {
          dlir.loop %i times[%t] {
            dlir.drain %a {}
          }
        }
        dlir.dispatch_queue "block" "copy" 0 {
          dlir.loop %i times[%t] {
          }
        }
      }
    }
  }
  dmir.yield
}

// -----

dlir.kernel @more on "cuda" attributes {strategy = {}} {
  cuda.pipeline tile 64 x 64 raster 8 {
    dlir.device_program @block on "cuda" {
      dlir.argument scalar "tiles" : i64 as "i64" register 0
      dlir.scheduled_graph "main" units 1 (%b) {
        %t = dlir.register 0 [0]
        // expected-error @+1 {{C7: ring 'a' is filled 2 times where it is drained 1}}
        %a = dlir.ring "shared" "a" slots 2 size 16384 on "block" from "copy" 0 to "multiply" 0
        dlir.dispatch_queue "block" "multiply" 0 {
          dlir.loop %i times[%t] {
            dlir.drain %a {}
          }
        }
        dlir.dispatch_queue "block" "copy" 0 {
          dlir.loop %i times[%t] {
            dlir.fill %a {}
            dlir.fill %a {}
          }
        }
      }
    }
  }
  dmir.yield
}

// -----

dlir.kernel @rings on "cuda" attributes {strategy = {}} {
  cuda.pipeline tile 64 x 64 raster 8 {
    dlir.device_program @block on "cuda" {
      dlir.argument scalar "tiles" : i64 as "i64" register 0
      dlir.scheduled_graph "main" units 1 (%b) {
        %t = dlir.register 0 [0]
        %a = dlir.ring "shared" "a" slots 2 size 16384 on "block" from "copy" 0 to "multiply" 0
        // expected-error @+1 {{C5: ring 'b' is one too many: it takes two tokens, a block holds 2}}
        %c = dlir.ring "shared" "b" slots 2 size 16384 on "block" from "copy" 0 to "multiply" 0
        dlir.dispatch_queue "block" "multiply" 0 {
          dlir.loop %i times[%t] {
            dlir.drain %a {}
            dlir.drain %c {}
          }
        }
        dlir.dispatch_queue "block" "copy" 0 {
          dlir.loop %i times[%t] {
            dlir.fill %a {}
            dlir.fill %c {}
          }
        }
      }
    }
  }
  dmir.yield
}

// -----

dlir.kernel @parent on "cuda" attributes {strategy = {}} {
  // expected-error @+1 {{expects parent op 'dlir.task_group'}}
  cuda.write columns 64
  dmir.yield
}

// -----

dlir.kernel @ways on "cuda" attributes {strategy = {}} {
  cuda.pipeline tile 64 x 64 raster 8 {
    dlir.device_program @block on "cuda" {
      dlir.argument scalar "tiles" : i64 as "i64" register 0
      dlir.scheduled_graph "main" units 1 (%b) {
        %t = dlir.register 0 [0]
        %a = dlir.ring "shared" "a" slots 2 size 16384 on "block" from "copy" 0 to "multiply" 0
        dlir.dispatch_queue "block" "multiply" 0 {
          dlir.loop %i times[%t] {
            dlir.drain %a {}
          }
        }
        dlir.dispatch_queue "block" "copy" 0 {
          dlir.loop %i times[%t] {
            dlir.fill %a {
              // expected-error @+1 {{of the left operand is by a map or by threads, one of both}}
              cuda.copy "left"
            }
          }
        }
      }
    }
  }
  dmir.yield
}
