//===- AbacusOps.td - what the engine of the abacus does --------*- tablegen -*-===//
#ifndef ABACUS_OPS
#define ABACUS_OPS

include "dmxc/Dialect/DLIR/DeviceTask.td"

def Abacus_Dialect : Dialect {
  let name = "abacus";
  let cppNamespace = "::abacus";
  let summary = "The task of the engine of the abacus";
  let dependentDialects = ["::dmxc::dlir::DLIRDialect"];
}

def Abacus_MultiplyOp : DLIR_DeviceTask<Abacus_Dialect, "multiply", "multiplier", "0, 1, 2", "2",
                                        (ins AffineMapAttr:$accumulate)> {
  let summary = "one tile times another, added to a third or put in its place";
  let description = [{
    `abacus.multiply %a[0] x %b[0] to %c[0] accumulate[%k]`: tiles of 16 x 16 f32, row by row; where `accumulate` is 0, the
    result replaces what was in %c. C1: the three lie in SRAM.
  }];
}

#endif // ABACUS_OPS
