//===- Passes.td - passes of the memory phase -------------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def PlaceBuffers : Pass<"dmir-place-buffers", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createPlaceBuffersPass(context)";
  let summary = "Give each region result an output or an arena range by liveness, reusing dead operands in place";
  let description = [{
    Records `placement` on regions and `dmir.arenas` (an array of {size, lower_bound}) on the function, where lower_bound is
    the largest number of bytes that are live at any one time.
  }];
}
