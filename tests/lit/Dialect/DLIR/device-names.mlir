// Memories have their own names, descriptors those of their kinds, registers their numbers, and a token that of the first group that gives it,
// itself or by a barrier in it.
// REQUIRES: target-corsair
// RUN: dmx-opt %s | FileCheck %s
// RUN: dmx-opt %s | dmx-opt | FileCheck %s

// CHECK-LABEL: dlir.device_program @p
dlir.device_program @p on "corsair" {
  // CHECK: %conv1_Conv = dlir.memory "GM" "/conv1/Conv"
  %0 = dlir.memory "GM" "/conv1/Conv" size 4096
  // CHECK: %ib = dlir.memory "IB" "ib"
  %1 = dlir.memory "IB" "ib" size 73728
  // CHECK: %memory = dlir.memory "GM" ""
  %2 = dlir.memory "GM" "" size 4096
  // CHECK: %f16_to_bfp16r = dlir.descriptor "f16" to "bfp16r"
  %3 = dlir.descriptor "f16" to "bfp16r" unit 1 dims [8, 8] source [16, 2] target [8, 1] {tail = 1 : i64}
  // CHECK: %raw = dlir.descriptor "raw"
  %4 = dlir.descriptor "raw" unit 2048 dims [] source [] target []
  // CHECK: dlir.scheduled_graph "main" units 4 (%unit)
  dlir.scheduled_graph "main" units 4 (%5) {
    // CHECK: %r3 = dlir.register 3
    %6 = dlir.register 3 [1, 2, 4, 8]
    // CHECK: %fill = dlir.token
    %7 = dlir.token
    // CHECK: %use = dlir.token credits 1
    %8 = dlir.token credits 1
    // CHECK: %token = dlir.token credits 2
    %9 = dlir.token credits 2
    dlir.dispatch_queue "quad" "dispatch" 0 {
      // CHECK: dlir.loop %i times[3]
      dlir.loop %10 times[3] {
        // CHECK: dlir.task_group "fill" wait(%use, %token) signal(%fill)
        dlir.task_group "fill" wait(%8, %9) signal(%7) {
          // CHECK: dlir.loop %j times[2]
          dlir.loop %11 times[2] {
            // CHECK: dlir.copy GM -> GM %conv1_Conv[%j * 64 + %unit * 128] to %memory[0] with %raw
            dlir.copy GM -> GM %0[%11 * 64 + %5 * 128] to %2[0] with %4
          }
        }
      }
    }
    dlir.dispatch_queue "quad" "dispatch" 1 {
      dlir.loop %12 times[3] {
        dlir.task_group "use" wait(%7) {
          dlir.task_barrier signal(%8)
        }
        dlir.task_group "later" {
          dlir.task_barrier signal(%8)
        }
      }
    }
  }
}
