// RUN: dmx-opt %s -corsair-encode="text=%t.s file=%t.dmxisa" | dmx-opt -corsair-encode=file=%t.again.dmxisa -o /dev/null
// RUN: cmp %t.dmxisa %t.again.dmxisa
// RUN: FileCheck %s --input-file=%t.s
// RUN: dmx-opt %s -corsair-encode="text=%t.full.s keep-configs=true" -o /dev/null
// RUN: FileCheck %s --input-file=%t.full.s --check-prefix=FULL
// RUN: not dmx-opt %s -corsair-encode=file=%t/none/x -o /dev/null 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: cannot write '{{.*}}none/x'

// Functions of the CPU are named after their program.
// CHECK: .function slots.step
// CHECK-NEXT: CPU_ADDI
dlir.device_program @slots on "corsair" {
  corsair.cpu_function @step ["CPU_ADDI rd=0 ra=0 imm=1", "CPU_RET"]
  %x = dlir.memory "GM" "x" size 4096
  %y = dlir.memory "GM" "y" size 4096
  %z = dlir.memory "GM" "z" size 4096
  %u = dlir.memory "GM" "u" size 2048
  %b = dlir.memory "OB" "b" size 1024
  %d = dlir.descriptor "f16" unit 64 dims [2, 3, 4] source [128, 256, 512] target [128, 256, 512] {low = array<i64: 0, 1, 0>, high = array<i64: 2, 3, 4>, tail = 7 : i64}
  %e = dlir.descriptor "f16" unit 64 dims [] source [] target []
  %g = dlir.descriptor "f16" unit 1 dims [4] source [2] target [2] {index_kind = "i64", index_pitch = 8 : i64, index_range = 10 : i64}
  dlir.scheduled_graph "main" units 2 (%q) {
    %t = dlir.token credits 2
    %r = dlir.register 3 [5, 6]
    dlir.dispatch_queue "quad" "dispatch" 0 {
      // What a loop needs is configured before it, once.
      // CHECK-LABEL: .stream slots_main_q0
      // CHECK-NEXT: SIGNAL n=2
      // CHECK-NEXT: CONFIG_GM kind=f16 unit=64{{$}}
      // CHECK-NEXT: CONFIG_GM slot=1 kind=f16 unit=64 n0=2 n1=3 n2=4 s0=128 s1=256 s2=512 t0=128 t1=256 t2=512 tail=7 lo1=1 hi0=2 hi1=3 hi2=4
      // CHECK-NEXT: LOOP n=0+R3
      // CHECK-NEXT: WAIT
      // CHECK-NEXT: MARK label="a"
      // CHECK-NEXT: MOVE_GM2GM saddr=0x40+L0*128+Q*2 daddr=0x1000
      // CHECK-NEXT: LOOP n=1+L0
      // CHECK-NEXT: MOVE_GM2GM slot=1 saddr=0x0+L0*128+L1*64 daddr=0x1000 n=0+L1
      // CHECK-NEXT: MOVE_GM2GM daddr=0x1000
      // CHECK-NEXT: ENDLOOP
      // CHECK-NEXT: SIGNAL
      // CHECK-NEXT: ENDLOOP
      // CHECK-NEXT: MARK label="b"
      // CHECK-NEXT: EXEC_CPU fn=@slots.step
      // FULL-LABEL: .stream slots_main_q0
      // FULL: LOOP n=0+R3
      // FULL: CONFIG_GM kind=f16 unit=64
      // FULL-NEXT: MOVE_GM2GM saddr=0x40+L0*128+Q*2 daddr=0x1000
      // FULL: CONFIG_GM
      // FULL-NEXT: MOVE_GM2GM
      // FULL-NEXT: CONFIG_GM
      // FULL-NEXT: MOVE_GM2GM
      dlir.loop %i times[%r] {
        dlir.task_group "a" wait(%t) signal(%t) {
          dlir.copy GM -> GM %x[%i * 128 + %q * 2 + 64] to %y[0] with %e
          dlir.loop %k times[%i + 1] {
            dlir.copy GM -> GM %x[%i * 128 + %k * 64] to %y[0] with %d count[%k]
            dlir.copy GM -> GM %x[0] to %y[0] with %e
          }
        }
      }
      dlir.task_group "b" {
        corsair.cpu @step
        // CHECK: EXEC_SIMD fn=add slices=0x1 b=0x1000 imm0=0.5
        corsair.simd "add" to %b[0] a %b[0] b %y[0] dims [64] to_kind "bfp32" to_strides [4] a_kind "bfp32" a_strides [4] b_kind "f16" b_strides [2] slices 1 imm0 0.5
        // CHECK: EXTRACT rule=gather slot=2 daddr=0x1000 iaddr=0x40
        corsair.reshape "extract" %x[0] to %y[0] indices %x[64] with %g rule "gather"
        // CHECK: TRANSPOSE daddr=0x1000 rows=32 cols=16
        corsair.reshape "transpose" %x[0] to %y[0] rows[32] columns[16] element 2 source_pitch 32 target_pitch 64
        // CHECK: SIGNALR quads=0x2+Q*-1 id=1
        corsair.signal_remote token 1 quads[2 - %q]
        // CHECK: WAITR quad=1+Q*-1 id=1
        corsair.wait_remote token 1 quad[1 - %q]
        // CHECK: SEND quad=1+Q*-1 reg=2
        corsair.send quad[1 - %q] first 2
        // CHECK: RECV quad=1+Q*-1 reg=4
        corsair.receive quad[1 - %q] first 4
        // CHECK: RESET slices=0x1 units=0x4
        corsair.reset units 4 slices 1
        // CHECK: NOP n=3
        corsair.nop clocks 3
        // CHECK: WAIT n=2
        // CHECK-NEXT: SIGNAL n=3
        dlir.task_barrier wait(%t >= 2) signal(%t += 3)
      }
    }
    // Buffers of one queue that are not live at the same time share room.
    dlir.dispatch_queue "quad" "dispatch" 1 {
      // CHECK-LABEL: .stream slots_main_q1
      // CHECK: MOVE_GM2GM saddr=0x400 daddr=0x2000
      // CHECK: MOVE_GM2GM saddr=0x400 daddr=0x2000
      dlir.task_group "c" {
        dlir.copy GM -> GM %x[1024] to %z[0] with %e
      }
      dlir.task_group "d" {
        dlir.copy GM -> GM %x[1024] to %u[0] with %e
      }
    }
  }
}
