// {"kernels": [{"name": "acme.tile",
//   "operands": [{"name": "a", "dtype": "f16", "shape": [128, 64]}, {"name": "b", "dtype": "f16", "shape": [64, 128]}],
//   "results": [{"name": "d", "dtype": "f32", "shape": [128, 128]}],
//   "bodies": [{"target": "cuda", "symbol": "tile", "launch": {"grid": 1, "block": 128, "shared": 32768,
//     "maps": [{"tensor": "a", "box": [64, 128], "swizzle": 128}, {"tensor": "b", "box": [64, 64], "swizzle": 128}]}}]}]}

// d = a * b: tiles come by tensor maps, swizzled; a warpgroup multiplies them where they lie.
!shared = memref<?xi8, #gpu.address_space<workgroup>>
!rows = memref<128x64xf16, #gpu.address_space<workgroup>>
!box = memref<64x64xf16, #gpu.address_space<workgroup>>
!columns = memref<64x128xf16, #gpu.address_space<workgroup>>
!left = !nvgpu.tensormap.descriptor<tensor = !rows, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!right = !nvgpu.tensormap.descriptor<tensor = !box, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 1>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<128x128xf32>>

func.func @tile(%a: memref<128x64xf16>, %b: memref<64x128xf16>, %d: memref<128x128xf32>, %left: !left, %right: !right) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %behind = arith.constant 16384 : index
  %second = arith.constant 24576 : index
  %bytes = arith.constant 32768 : index
  %ticks = arith.constant 10000000 : index
  %even = arith.constant false
  %thread = gpu.thread_id x
  %first = arith.cmpi eq, %thread, %c0 : index
  %memory = gpu.dynamic_shared_memory : !shared
  %rows = memref.view %memory[%c0][] : !shared to !rows
  %columns = memref.view %memory[%behind][] : !shared to !columns
  %full = nvgpu.mbarrier.create -> !barrier
  scf.if %first {
    nvgpu.mbarrier.init %full[%c0], %c1 : !barrier
    nvvm.fence.mbarrier.init
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
  }
  gpu.barrier
  scf.if %first {
    %one = memref.view %memory[%behind][] : !shared to !box
    %other = memref.view %memory[%second][] : !shared to !box
    nvgpu.mbarrier.arrive.expect_tx %full[%c0], %bytes : !barrier
    nvgpu.tma.async.load %left[%c0, %c0], %full[%c0] to %rows : !left, !barrier -> !rows
    nvgpu.tma.async.load %right[%c0, %c0], %full[%c0] to %one : !right, !barrier -> !box
    nvgpu.tma.async.load %right[%c64, %c0], %full[%c0] to %other : !right, !barrier -> !box
  }
  nvgpu.mbarrier.try_wait.parity %full[%c0], %even, %ticks : !barrier
  %x = nvgpu.warpgroup.generate.descriptor %rows, %left : !rows, !left -> !nvgpu.warpgroup.descriptor<tensor = !rows>
  %y = nvgpu.warpgroup.generate.descriptor %columns, %right : !columns, !right -> !nvgpu.warpgroup.descriptor<tensor = !columns>
  %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
  %sums = nvgpu.warpgroup.mma %x, %y, %zero {transposeB, waitGroup = 0 : i64} : !nvgpu.warpgroup.descriptor<tensor = !rows>, !nvgpu.warpgroup.descriptor<tensor = !columns>, !sums -> !sums
  nvgpu.warpgroup.mma.store %sums, %d : !sums to memref<128x128xf32>
  return
}
