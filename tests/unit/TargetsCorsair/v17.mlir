// The golden vector V17 of the numerics, 64 x 512 x 64, as a program by hand: one quad, one slice, eight cores.
dlir.device_program @v17 on "corsair" {
  dlir.argument input "a" : tensor<64x512xf32> as "bfp16r"
  dlir.argument input "b" : tensor<512x64xf32> as "bfp16c"
  dlir.argument output "sums" : tensor<64x64xf32> as "bfp32"
  dlir.argument output "halves" : tensor<64x64xf16> as "f16"
  %a = dlir.memory "DDR" "a" size 33280
  %b = dlir.memory "DDR" "b" size 33280
  %c = dlir.memory "DDR" "sums" size 16384
  %h = dlir.memory "DDR" "halves" size 8192
  dlir.piece "a" unit 0 in %a offset 0 begin [0, 0] extent [64, 512] strides [33280, 4160]
  dlir.piece "b" unit 0 in %b offset 0 begin [0, 0] extent [512, 64] strides [33280, 4160]
  dlir.piece "sums" unit 0 in %c offset 0 begin [0, 0] extent [64, 64] strides [256, 4]
  dlir.piece "halves" unit 0 in %h offset 0 begin [0, 0] extent [64, 64] strides [128, 2]
  %gm = dlir.memory "GM" "activations" size 33280
  %gc = dlir.memory "GM" "result" size 16384
  %gh = dlir.memory "GM" "result halves" size 8192
  %st = dlir.memory "ST" "weights" size 33280
  %ib = dlir.memory "IB" "ib" size 33280
  %wb = dlir.memory "WB" "wb" size 4160
  %ob = dlir.memory "OB" "ob" size 16384
  %tilesA = dlir.descriptor "bfp16r" unit 33280 dims [] source [] target []
  %tilesB = dlir.descriptor "bfp16c" unit 33280 dims [] source [] target []
  %tile = dlir.descriptor "bfp16c" unit 4160 dims [] source [] target [] {source_subunit_step = 4160 : i64}
  %all = dlir.descriptor "bfp32" unit 4096 dims [] source [] target []
  %round = dlir.descriptor "bfp32" to "f16" unit 4096 dims [] source [] target []
  %halves = dlir.descriptor "f16" unit 4096 dims [] source [] target []
  dlir.scheduled_graph "main" units 1 (%q) {
    %acts = dlir.token
    %cols = dlir.token
    %done = dlir.token
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "activations" signal(%acts) {
        dlir.copy DDR -> GM %a[0] to %gm[0] with %tilesA
        dlir.copy GM -> IB %gm[0] to %ib[0] with %tilesA units 1
      }
      dlir.task_group "store" wait(%done) {
        dlir.copy GM -> DDR %gc[0] to %c[0] with %all
        dlir.copy GM -> DDR %gh[0] to %h[0] with %halves
      }
    }
    dlir.dispatch_queue "quad" "dispatch" 1 {
      dlir.task_group "weights" signal(%cols) {
        dlir.copy DDR -> ST %b[0] to %st[0] with %tilesB units 1
        dlir.copy ST -> WB %st[0] to %wb[0] with %tile units 1 subunits 255
      }
    }
    dlir.dispatch_queue "quad" "dispatch" 2 {
      dlir.task_group "product" wait(%acts, %cols) signal(%done) {
        corsair.matmul %ib[0] x %wb[0] to %ob[0] num_imc 8 ppr_mode 3 slices 1 activation_kind "bfp16r" weight_kind "bfp16c" rows[64]
        dlir.copy OB -> GM %ob[0] to %gc[0] with %all units 1
        dlir.copy OB -> GM %ob[0] to %gh[0] with %round units 1
      }
    }
  }
}
