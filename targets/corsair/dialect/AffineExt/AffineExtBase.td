//===- AffineExtBase.td - dialect and tile type -----------------*- tablegen -*-===//
#ifndef DMXC_TARGETS_CORSAIR_AFFINEEXT_BASE
#define DMXC_TARGETS_CORSAIR_AFFINEEXT_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def AffineExt_Dialect : Dialect {
  let name = "affine_ext";
  let cppNamespace = "::dmxc::affine_ext";
  let summary = "Tiles of tensors as elements of memrefs, for affine loops over whole tiles";
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
  let useDefaultTypePrinterParser = 1;
}

def AffineExt_VecExtType : TypeDef<AffineExt_Dialect, "VecExt", [MemRefElementTypeInterface]> {
  let mnemonic = "vec_ext";
  let summary = "a tile: a small dense array that is loaded, stored and computed on as one";
  let description = [{
    `!affine_ext.vec_ext<64x64x!dmir.block_fp<BFP16_64R>>` is a tile of 64x64 elements,
    `!affine_ext.vec_ext<1x8x!affine_ext.vec_ext<64x64xf16>>` a row of eight of them.
    Elements are integers, floats, block_fp or tiles. All dimensions are positive.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    /// True for an array of tiles.
    bool isNested() const { return ::mlir::isa<VecExtType>(getElementType()); }
  }];
}

def AffineExt_MemRef : MemRefOf<[AffineExt_VecExtType]>;

#endif // DMXC_TARGETS_CORSAIR_AFFINEEXT_BASE
