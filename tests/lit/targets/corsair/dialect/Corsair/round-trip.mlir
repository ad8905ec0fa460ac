// Every op of a device's program, parsed, printed, parsed again.
// RUN: dmx-opt %s -o %t.once.mlir
// RUN: dmx-opt %t.once.mlir | diff - %t.once.mlir
// RUN: dmx-opt -mlir-print-op-generic %s | dmx-opt | diff - %t.once.mlir
// RUN: FileCheck %s --input-file=%t.once.mlir

// CHECK: dlir.device_program @all on "corsair" attributes {dim_registers = array<i64: 3>} {
dlir.device_program @all on "corsair" attributes {dim_registers = array<i64: 3>} {
  // CHECK-NEXT: dlir.argument input "x" : tensor<64x64xf32> as "bfp16r"
  dlir.argument input "x" : tensor<64x64xf32> as "bfp16r"
  // CHECK-NEXT: dlir.argument constant "w" : tensor<4160xui8> as "bfp16c" data(dense<0> : tensor<4160xui8>)
  dlir.argument constant "w" : tensor<4160xui8> as "bfp16c" data(dense<0> : tensor<4160xui8>)
  // CHECK-NEXT: dlir.argument scalar "n" : tensor<1xi64> as "i64" register 2
  dlir.argument scalar "n" : tensor<1xi64> as "i64" register 2
  // CHECK-NEXT: dlir.argument output "y" : tensor<64x64xf32> as "f16" perm [1, 0]
  dlir.argument output "y" : tensor<64x64xf32> as "f16" perm [1, 0]
  // CHECK-NEXT: %[[X:.*]] = dlir.memory "DDR" "x" size 4160 at 64 permanent
  %x = dlir.memory "DDR" "x" size 4160 at 64 permanent
  %gm = dlir.memory "GM" "gm" size 8320
  %ib = dlir.memory "IB" "ib" size 4160
  %wb = dlir.memory "WB" "wb" size 8448
  %ob = dlir.memory "OB" "ob" size 16384
  %st = dlir.memory "ST" "st" size 4160 permanent
  %dre = dlir.memory "DRE" "dre" size 8192
  // CHECK: dlir.piece "x" unit 0 in %[[X]] offset 0 begin [0, 0] extent [64, 64] strides [4160, 4160]
  dlir.piece "x" unit 0 in %x offset 0 begin [0, 0] extent [64, 64] strides [4160, 4160]
  // CHECK: %[[D:.*]] = dlir.descriptor "bfp16r" unit 4160 dims [] source [] target []
  %d = dlir.descriptor "bfp16r" unit 4160 dims [] source [] target []
  // CHECK: dlir.descriptor "bfp32" to "f16" unit 64 dims [2, 64] source [16384, 256] target [128, 8192] {high = array<i64: 2, 60>, low = array<i64: 0, 0>, tail = 3 : i64, target_unit_step = 128 : i64}
  %s = dlir.descriptor "bfp32" to "f16" unit 64 dims [2, 64] source [16384, 256] target [128, 8192] {target_unit_step = 128 : i64, low = array<i64: 0, 0>, high = array<i64: 2, 60>, tail = 3 : i64}
  // CHECK: corsair.cpu_function @step ["CPU_ADDI rd=0 ra=0 imm=1", "CPU_RET"]
  corsair.cpu_function @step ["CPU_ADDI rd=0 ra=0 imm=1", "CPU_RET"]
  // CHECK: dlir.scheduled_graph "init" units 1 (%{{.*}}) {
  dlir.scheduled_graph "init" units 1 (%q) {
  }
  // CHECK: dlir.scheduled_graph "main" units 2 (%[[Q:.*]]) {
  dlir.scheduled_graph "main" units 2 (%q) {
    // CHECK-NEXT: %[[T:.*]] = dlir.token{{$}}
    %t = dlir.token
    // CHECK-NEXT: %[[F:.*]] = dlir.token credits 2
    %f = dlir.token credits 2
    // CHECK-NEXT: %[[R:.*]] = dlir.register 1 [4, 3]
    %r = dlir.register 1 [4, 3]
    // CHECK-NEXT: dlir.dispatch_queue "quad" "dispatch" 0 {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      // CHECK-NEXT: dlir.loop %[[I:.*]] times[%[[R]] + 1] {
      dlir.loop %i times[%r + 1] {
        // CHECK-NEXT: dlir.task_group "load" wait(%[[F]]) signal(%[[T]]) {
        dlir.task_group "load" wait(%f) signal(%t) {
          // CHECK-NEXT: dlir.copy DDR -> GM %[[X]][%[[Q]] * 2080 + %[[I]] * 64] to %{{.*}}[0] with %[[D]] peers[%[[R]]]
          dlir.copy DDR -> GM %x[%q * 2080 + %i * 64] to %gm[0] with %d peers[%r]
          // CHECK-NEXT: dlir.copy GM -> IB %{{.*}}[%[[I]] * 64 + %[[Q]]] to %{{.*}}[128] with %[[D]] units 15 rows[%[[I]], 0] count[%[[R]]]
          dlir.copy GM -> IB %gm[%i * 64 + %q] to %ib[128] with %d units 15 rows[%i, 0] count[%r]
          // CHECK-NEXT: dlir.copy ST -> WB %{{.*}}[0] to %{{.*}}[0] with %[[D]] units 1 subunits 255
          dlir.copy ST -> WB %st[0] to %wb[0] with %d units 1 subunits 255
        }
      }
    }
    // CHECK: dlir.dispatch_queue "quad" "dispatch" 1 {
    dlir.dispatch_queue "quad" "dispatch" 1 {
      // CHECK-NEXT: dlir.task_group "compute" wait(%[[T]]) signal(%[[F]]) {
      dlir.task_group "compute" wait(%t) signal(%f) {
        // CHECK-NEXT: dlir.task_barrier over "chiplet" id 3 queues [0, 1]
        dlir.task_barrier over "chiplet" id 3 queues [0, 1]
        // CHECK-NEXT: dlir.task_barrier wait(%[[T]], %[[F]] >= 2) signal(%[[F]] += 3, %[[T]])
        dlir.task_barrier wait(%t, %f >= 2) signal(%f += 3, %t)
        // CHECK-NEXT: dlir.loop %[[K:.*]] times[2] {
        dlir.loop %k times[2] {
          // CHECK-NEXT: corsair.matmul %{{.*}}[0] x %{{.*}}[0] to %{{.*}}[0] num_imc 8 ppr_mode 3 groups 2 slices 15 activation_kind "bfp16r" weight_kind "bfp16c" rows[64] accumulate[%[[K]]] result_row 256
          corsair.matmul %ib[0] x %wb[0] to %ob[0] num_imc 8 ppr_mode 3 groups 2 slices 15 activation_kind "bfp16r" weight_kind "bfp16c" rows[64] accumulate[%k] result_row 256
        }
        // CHECK: corsair.matmul %{{.*}} from %{{.*}}[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" steps[4] accumulate_steps stash_step 4160
        corsair.matmul %ib[0] x %wb[0] to %ob[0] from %st[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" steps[4] accumulate_steps stash_step 4160
        // CHECK-NEXT: corsair.conv %{{.*}}[0] x %{{.*}}[0] to %{{.*}}[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" pixel[0] image_blocks 1 window {h = 8 : i64, w = 8 : i64}
        corsair.conv %gm[0] x %wb[0] to %ob[0] num_imc 1 ppr_mode 0 activation_kind "bfp16r" weight_kind "bfp16c" pixel[0] image_blocks 1 window {h = 8 : i64, w = 8 : i64}
        // CHECK-NEXT: corsair.simd "add" to %{{.*}}[0] a %{{.*}}[0] b %{{.*}}[4160] dims [64] to_kind "bfp32" to_strides [4] a_kind "bfp32" a_strides [4] b_kind "f16" b_strides [2] slices 1 imm0 1.500000e+00
        corsair.simd "add" to %ob[0] a %ob[0] b %gm[4160] dims [64] to_kind "bfp32" to_strides [4] a_kind "bfp32" a_strides [4] b_kind "f16" b_strides [2] slices 1 imm0 1.5
        // CHECK-NEXT: corsair.reshape "extract" %{{.*}}[0] to %{{.*}}[0] indices %{{.*}}[64] with %[[D]] rule "gather" slice 0 count[3]
        corsair.reshape "extract" %gm[0] to %gm[0] indices %gm[64] with %d rule "gather" slice 0 count[3]
        // CHECK-NEXT: corsair.reshape "transpose" %{{.*}}[0] to %{{.*}}[0] rows[64] columns[64] element 2 source_pitch 128 target_pitch 128
        corsair.reshape "transpose" %dre[0] to %gm[0] rows[64] columns[64] element 2 source_pitch 128 target_pitch 128
        // CHECK-NEXT: corsair.cpu @step
        corsair.cpu @step
        // CHECK-NEXT: corsair.signal_remote token 1 quads[%[[Q]] + 1] amount 2
        corsair.signal_remote token 1 quads[%q + 1] amount 2
        // CHECK-NEXT: corsair.wait_remote token 1 quad[0]
        corsair.wait_remote token 1 quad[0]
        // CHECK-NEXT: corsair.send quad[1] first 2 amount 1
        corsair.send quad[1] first 2 amount 1
        // CHECK-NEXT: corsair.receive quad[1] first 2
        corsair.receive quad[1] first 2
        // CHECK-NEXT: corsair.reset units 4 slices 15
        corsair.reset units 4 slices 15
        // CHECK-NEXT: corsair.nop clocks 3
        corsair.nop clocks 3
        // CHECK-NEXT: dlir.copy OB -> GM %{{.*}}[0] to %{{.*}}[0] with %
        dlir.copy OB -> GM %ob[0] to %gm[0] with %s
      }
    }
  }
}
