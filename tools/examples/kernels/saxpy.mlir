// {"kernels": [{"name": "acme.saxpy",
//   "operands": [{"name": "x", "dtype": "f32", "shape": ["n"]}, {"name": "y", "dtype": "f32", "shape": ["n"]}],
//   "results": [{"name": "z", "dtype": "f32", "shape": ["n"]}], "scalars": [{"value": "n"}],
//   "bodies": [{"target": "cuda", "symbol": "saxpy", "launch": {"grid": "floordiv(n + 127, 128)", "block": 128}}]}]}

// z = 2 * x + y, an element a thread.
func.func @saxpy(%x: !llvm.ptr, %y: !llvm.ptr, %z: !llvm.ptr, %n: i64) {
  %two = arith.constant 2.0 : f32
  %block = gpu.block_id x
  %threads = gpu.block_dim x
  %thread = gpu.thread_id x
  %before = arith.muli %block, %threads : index
  %own = arith.addi %before, %thread : index
  %i = arith.index_cast %own : index to i64
  %inside = arith.cmpi slt, %i, %n : i64
  scf.if %inside {
    %from = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %beside = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %to = llvm.getelementptr %z[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %a = llvm.load %from : !llvm.ptr -> f32
    %b = llvm.load %beside : !llvm.ptr -> f32
    %c = math.fma %two, %a, %b : f32
    llvm.store %c, %to : f32, !llvm.ptr
  }
  return
}
