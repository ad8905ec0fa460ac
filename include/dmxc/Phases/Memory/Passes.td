//===- Passes.td - passes of the memory phase -------------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def CheckPlacement : Pass<"dmir-check-placement", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createCheckPlacementPass(context)";
  let summary = "Refuse placements by which a result would not have bytes of its own while it is needed";
  let description = [{
    Of texts, whose placements are anybody's: each result has the bytes that its type takes, in the output that it is, or in an
    arena at an offset where nothing lies that is read later. A region writes over an operand only where its strategy says `in_place`.
  }];
}

def PlaceBuffers : Pass<"dmir-place-buffers", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createPlaceBuffersPass(context)";
  let summary = "Give each region result an output or an arena range by liveness, reusing dead operands in place";
  let description = [{
    Records `placement` on regions and `dmir.arenas` (an array of {size, lower_bound}) on the function, where lower_bound is
    the largest number of bytes that are live at any one time.
  }];
}
