//===- Passes.td - loops, for schedules and dmx-opt -------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def AffinePermuteTrip : Pass<"affine-permute-trip", "::mlir::func::FuncOp"> {
  let summary = "Order the loops of perfect nests by trip count, the largest outermost, where dependences allow";
  let description = [{
    Only of loops with constant bounds whose bodies access memory by affine maps; loops of equal trips keep their order.
  }];
}

def AffinePromoteSingle : Pass<"affine-promote-single", "::mlir::func::FuncOp"> {
  let summary = "Replace innermost loops of one trip by their body";
  let description = [{
    Outer loops of one trip stay: they are what is dealt out, and what comes later counts on them.
  }];
}

def AffineNormalizeFuse : Pass<"affine-normalize-fuse", "::mlir::func::FuncOp"> {
  let summary = "Normalize loops to 0, 1, 2 .. and fuse producers with consumers";
  let description = [{
    Neighbouring loops of equal bounds are fused where each trip of the consumer needs trips of the producer that no other
    one needs, and all of them are needed: nothing is computed twice.
  }];
  let options = [Option<"normalize", "normalize", "bool", "true", "Normalize before fusing">];
}

def AffineTileScalrep : Pass<"affine-tile-scalrep", "::mlir::func::FuncOp"> {
  let summary = "Store-to-load forwarding, redundant loads, dead stores";
  let description = [{
    The rules are MLIR's, which ask the effects of every op between; ops on memrefs of tiles tell theirs.
  }];
}
