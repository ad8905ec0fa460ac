//===- AffineExtOps.td - ops on memrefs of tiles ----------------*- tablegen -*-===//
#ifndef DMXC_TARGETS_CORSAIR_AFFINEEXT_OPS
#define DMXC_TARGETS_CORSAIR_AFFINEEXT_OPS

include "targets/corsair/dialect/AffineExt/AffineExtBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class AffineExt_Op<string mnemonic, list<Trait> traits = []> : Op<AffineExt_Dialect, mnemonic, traits>;

def AffineExt_LoadOp : AffineExt_Op<"load"> {
  let summary = "several neighbouring tiles of a memref";
  let description = [{
    `affine_ext.load %m[%i, 0] : memref<8x8x!T>, !affine_ext.vec_ext<1x8x!T>` reads the tiles from index (%i, 0) on, as
    many along each dimension as the result has. The map of the indices is affine; one tile is read by affine.load.
    C1: the result is an array of the memref's tiles, of the memref's rank. C2: one index a dimension. C3: it is no larger than the memref.
  }];
  let arguments = (ins Arg<AffineExt_MemRef, "", [MemRead]>:$memref, Variadic<Index>:$mapOperands, AffineMapAttr:$map);
  let results = (outs AffineExt_VecExtType:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def AffineExt_MatMulOp : AffineExt_Op<"matmul", [Pure]> {
  let summary = "a row of tiles times a column of tiles";
  let description = [{
    The array's product of one result tile: dmir.matmul on the tensors whose tiles these are, in chunks of
    increasing k.
    C1: 1xK tiles by Kx1 tiles, with more dimensions of 1 before them or not. C2: tiles of m x d and d x 64, block_fp R and C of equal p and block. C3: the result is a
    tile of m x 64 BFP32_1. C4: `rows`, how many rows matter, is from 1 to m.
  }];
  let arguments = (ins AffineExt_VecExtType:$lhs, AffineExt_VecExtType:$rhs, OptionalAttr<I64Attr>:$rows);
  let results = (outs AffineExt_VecExtType:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def AffineExt_TilesOp : AffineExt_Op<"tiles", [Pure]> {
  let summary = "a buffer as a grid of tiles";
  let description = [{
    A view: `affine_ext.tiles %m : memref<100x80xf16, "GM"> to memref<2x2x!affine_ext.vec_ext<64x64xf16>, "GM">`. What lies
    beyond a ragged edge reads as zero, and writes to it are dropped. The buffer's elements are numbers, or
    `!affine_ext.vec_ext<1x..>` of numbers that no memref holds. C1: the grid is that of the buffer.
  }];
  let arguments = (ins AnyMemRef:$buffer);
  let results = (outs AffineExt_MemRef:$result);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer) `to` type($result)";
  let hasVerifier = 1;
}

def AffineExt_CastOp : AffineExt_Op<"cast", [Pure]> {
  let summary = "dmir.cast of a tile, or of each of an array";
  let description = "C1: equal shapes, of the array and of its tiles.";
  let arguments = (ins AffineExt_VecExtType:$input);
  let results = (outs AffineExt_VecExtType:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // DMXC_TARGETS_CORSAIR_AFFINEEXT_OPS
