//===- DMIRBase.td - dialect, types and op classes of DMIR ------*- tablegen -*-===//
#ifndef DMXC_DIALECT_DMIR_BASE
#define DMXC_DIALECT_DMIR_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def DMIR_Dialect : Dialect {
  let name = "dmir";
  let cppNamespace = "::dmxc::dmir";
  let summary = "Tensor-level graph IR, the meeting point of all frontends and targets";
  let description = [{
    Value semantics, one named op per meaning, numpy broadcasting in elementwise ops.
    Signless integers are signed (`i2` .. `i64`), `ui2` .. `ui64` unsigned, `i1` is bool. Shapes are
    logical: a physical layout is an encoding on the tensor type (`#dmir.blocked`) that no op's
    meaning depends on. Each op's description lists its constraints as C1, C2, ...; the verifier's
    messages cite them and so do the tests.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

//===--- Attributes -----------------------------------------------------------===//

class DMIR_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<DMIR_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def DMIR_BlockedAttr : DMIR_Attr<"Blocked", "blocked"> {
  let summary = "Layout: one axis is cut into blocks that become the innermost dimension";
  let description = [{
    `tensor<1x64x56x56xf32, #dmir.blocked<1, 16>>` is stored as `1x4x56x56x16`. The last block is padded;
    what the padding holds is undefined and no op may read it.
  }];
  let parameters = (ins "int64_t":$axis, "int64_t":$block);
  let assemblyFormat = "`<` $axis `,` $block `>`";
}

def DMIR_DimsAttr : DMIR_Attr<"Dims", "dims"> {
  let summary = "Sizes that are expressions over symbols";
  let description = [{
    As the encoding of a tensor type, what its `?` dims are, in their order: `tensor<?x?x64xf32, #dmir.dims<"batch",
    "2*seq + 1">>`; with a layout an array of both: `[#dmir.dims<"batch">, #dmir.blocked<1, 16>]`. As an attribute
    `dims` of an op, what the dynamic numbers of its other attributes are, in theirs.
    Symbols are the dims of the function's arguments and those that `dmir.define_dims` makes; include/dmxc/Support/Dim.h
    has the expressions.
  }];
  let parameters = (ins ArrayRefParameter<"::dmxc::Dim">:$dims);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    static DimsAttr get(::mlir::MLIRContext *context, ::dmxc::Dim dim) { return get(context, ::llvm::ArrayRef<::dmxc::Dim>(dim)); }
  }];
}

def DMIR_FileDataAttr : DMIR_Attr<"FileData", "file", [TypedAttrInterface]> {
  let summary = "Constant bytes that stay in a file: mapped, never copied into the IR";
  let description = [{
    `#dmir.file<"model.onnx", 4096, 9408> : tensor<64x3x7x7xf32>`: dense row-major little-endian
    bytes at `[offset, offset + size)` of the file. The path is as the user gave it.
  }];
  let parameters = (ins StringRefParameter<"path">:$path, "int64_t":$offset, "int64_t":$size,
                        AttributeSelfTypeParameter<"">:$type);
  let assemblyFormat = "`<` $path `,` $offset `,` $size `>`";
}

class DMIR_Enum<string name, string text, list<string> cases>
    : I32EnumAttr<name, text, !foreach(i, !range(!size(cases)),
          I32EnumAttrCase<cases[i], i, cases[i]>)> {
  let cppNamespace = "::dmxc::dmir";
  let genSpecializedAttr = 0;
}
class DMIR_EnumAttr<EnumAttrInfo info, string attrMnemonic> : EnumAttr<DMIR_Dialect, info, attrMnemonic>;

def DMIR_Compare : DMIR_Enum<"Compare", "comparison", ["eq", "ne", "lt", "le", "gt", "ge"]>;
def DMIR_CompareAttr : DMIR_EnumAttr<DMIR_Compare, "compare_kind">;
def DMIR_Reduction : DMIR_Enum<"Reduction", "reduction", ["sum", "mean", "prod", "max", "min"]>;
def DMIR_ReductionAttr : DMIR_EnumAttr<DMIR_Reduction, "reduction">;
def DMIR_Extremum : DMIR_Enum<"Extremum", "which extreme", ["max", "min"]>;
def DMIR_ExtremumAttr : DMIR_EnumAttr<DMIR_Extremum, "extremum">;
def DMIR_PadMode : DMIR_Enum<"PadMode", "what fills the padding", ["constant", "edge", "reflect", "wrap"]>;
def DMIR_PadModeAttr : DMIR_EnumAttr<DMIR_PadMode, "pad_mode">;
def DMIR_Pooling : DMIR_Enum<"Pooling", "pooling", ["max", "average", "sum"]>;
def DMIR_PoolingAttr : DMIR_EnumAttr<DMIR_Pooling, "pooling">;
def DMIR_Normalization : DMIR_Enum<"Normalization", "normalization", ["standard", "rms"]>;
def DMIR_NormalizationAttr : DMIR_EnumAttr<DMIR_Normalization, "normalization">;
def DMIR_ScatterMode : DMIR_Enum<"ScatterMode", "how an update meets the old value",
                                 ["replace", "add", "mul", "max", "min"]>;
def DMIR_ScatterModeAttr : DMIR_EnumAttr<DMIR_ScatterMode, "scatter_mode">;

//===--- Types ----------------------------------------------------------------===//

def DMIR_Float : AnyTypeOf<[F16, BF16, F32, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1FN]>;
def DMIR_Int : AnyTypeOf<[SignlessIntOfWidths<[2, 4, 8, 16, 32, 64]>, UnsignedIntOfWidths<[2, 4, 8, 16, 32, 64]>]>;
def DMIR_Element : AnyTypeOf<[I1, DMIR_Int, DMIR_Float]>;

def DMIR_BlockFpType : TypeDef<DMIR_Dialect, "BlockFp", [MemRefElementTypeInterface]> {
  let mnemonic = "block_fp";
  let summary = "Block floating point: integers that share a scale a block";
  let description = [{
    `!dmir.block_fp<BFP16_64R>` is the element type of a tensor whose blocks of 64 run along its last dimension (R);
    `C` runs them along the second-last one. Every name and alias of the format family is read, a shorthand as a
    string (`<"BFP[8|8]{64}(SN)", R>`); the canonical name is printed. BFP32_1 has no blocks and no orientation: it
    is f32 with a 22-bit fraction.
    The data are the wire format: tiles of 64 runs, scale bytes before mantissas, padded with zeros (schemas/blockfp).
    A tensor of rank > 2 is its matrices one after the other. BFP32_1 is dense row-major f32.
  }];
  let parameters = (ins "unsigned":$id, "bool":$columns);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static BlockFpType get(::mlir::MLIRContext *context, const ::dmx::blockfp::BlockFormat &format, bool columns);
    /// BFP32_1.
    static BlockFpType getBfp32(::mlir::MLIRContext *context);
    ::dmx::blockfp::BlockFormat getFormat() const;
    /// BFP16_64R.
    std::string getName() const;
    /// False for BFP32_1, which has neither blocks nor orientation.
    bool hasBlocks() const;
    /// Elements of a block.
    int64_t getBlock() const;
    /// What the type becomes when the last two dimensions are exchanged.
    BlockFpType transposed() const;
  }];
}

def DMIR_Tensor : RankedTensorOf<[DMIR_Element]>;
def DMIR_BoolTensor : RankedTensorOf<[I1]>;
def DMIR_FloatTensor : RankedTensorOf<[DMIR_Float]>;
def DMIR_NumberTensor : RankedTensorOf<[DMIR_Int, DMIR_Float]>;
def DMIR_LogicTensor : RankedTensorOf<[I1, DMIR_Int]>;
def DMIR_Bfp32 : DialectType<DMIR_Dialect, CPred<"::dmxc::dmir::isBfp32($_self)">, "BFP32_1">;
def DMIR_SumTensor : RankedTensorOf<[DMIR_Int, DMIR_Float, DMIR_Bfp32]>;
/// What ops that know block floating point take. f8E8M0FNU is for scales: its bits are taken, nothing is computed.
def DMIR_AnyTensor : RankedTensorOf<[DMIR_Element, F8E8M0FNU, DMIR_BlockFpType]>;
def DMIR_NumberOrBlockTensor : RankedTensorOf<[DMIR_Int, DMIR_Float, DMIR_BlockFpType]>;
def DMIR_IndexTensor : RankedTensorOf<[I32, I64]>;

//===--- Op classes -----------------------------------------------------------===//

/// Marks ops whose result element depends on the operands' elements at the same (broadcast) index.
def DMIR_Elementwise : NativeOpTrait<"Elementwise"> { let cppNamespace = "::dmxc::dmir"; }
/// Marks ops that only move elements: each result element is one operand element, or a fill value.
def DMIR_DataMovement : NativeOpTrait<"DataMovement"> { let cppNamespace = "::dmxc::dmir"; }

class DMIR_BaseOp<string mnemonic, list<Trait> traits = []> : Op<DMIR_Dialect, mnemonic, traits>;

/// A pure op whose verifier compares against an inferred result type. The inference ignores encodings.
class DMIR_Op<string mnemonic, list<Trait> traits = []>
    : DMIR_BaseOp<mnemonic, !listconcat([Pure,
        InferTypeOpAdaptorWithIsCompatible], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

/// A pure op whose result type is given by its creator.
class DMIR_TypedOp<string mnemonic, list<Trait> traits = []> : DMIR_BaseOp<mnemonic, !listconcat([Pure], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

class DMIR_UnaryOp<string mnemonic, Type type, string formula, list<Trait> traits = []>
    : DMIR_Op<mnemonic, !listconcat([DMIR_Elementwise], traits)> {
  let summary = formula;
  let description = "Elementwise `" # formula # "`. C1: the result has the operand's shape and element type.";
  let arguments = (ins type:$input);
  let results = (outs type:$result);
  let extraClassDefinition = "DMIR_INFER($cppClass) { return inferSame(op.getInput(), results); }";
}

class DMIR_BinaryOp<string mnemonic, Type type, string formula, string note = "">
    : DMIR_Op<mnemonic, [DMIR_Elementwise]> {
  let summary = formula;
  let description = "Elementwise `" # formula # "`, numpy broadcasting. " # note #
                    " C1: equal element types. C2: shapes broadcast.";
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let extraClassDefinition = "DMIR_INFER($cppClass) { return inferBinary(loc, op.getLhs(), op.getRhs(), results); }";
}

#endif // DMXC_DIALECT_DMIR_BASE
