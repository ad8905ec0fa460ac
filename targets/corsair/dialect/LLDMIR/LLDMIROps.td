//===- LLDMIROps.td - ops of the array on tiles -----------------*- tablegen -*-===//
#ifndef DMXC_TARGETS_CORSAIR_LLDMIR_OPS
#define DMXC_TARGETS_CORSAIR_LLDMIR_OPS

include "targets/corsair/dialect/AffineExt/AffineExtBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def LLDMIR_Dialect : Dialect {
  let name = "lldmir";
  let cppNamespace = "::dmxc::lldmir";
  let summary = "What the units of an in-memory-computing slice do with tiles";
  let description = "Tiles are !affine_ext.vec_ext; each op is one instruction's worth of work, or a loop of one.";
  let dependentDialects = ["::dmxc::affine_ext::AffineExtDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The machine that ops are verified for and passes lower to: the built-in one, or that of the compile.
    const ::dmx::corsair::Machine &getMachine() const;
    void setMachine(::dmx::corsair::Machine machine);

  private:
    std::shared_ptr<const ::dmx::corsair::Machine> machine;

  public:
  }];
}

//===--- what is decided of the ops of a region -----------------------------------===//

def LLDMIR_DealAttr : AttrDef<LLDMIR_Dialect, "Deal"> {
  let mnemonic = "deal";
  let summary = "which part of a value each quad of a team has";
  let description = [{
    `lldmir.deal` of an op is that of its result. `#lldmir.deal<dim 1, quads 8>`: of the 8 parts of dim 1, in order, quad q has
    part q. `#lldmir.deal<whole, quads 8>`: all quads have everything. `#lldmir.deal<sums, quads 8>`, of a product: each quad
    multiplies by its part along K, and all add up the sums of all. `#lldmir.deal<dim 1, quads 8, folded>`: of 16 parts quad q has part q and,
    behind it, part 15 - q: under a mask that keeps the columns up to a diagonal all quads have as much to do.
  }];
  let parameters = (ins "int64_t":$dim, "int64_t":$quads, "bool":$folded);
  let builders = [AttrBuilder<(ins "int64_t":$dim, "int64_t":$quads), [{ return $_get($_ctxt, dim, quads, false); }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kWhole = -1, kSums = -2; ///< instead of a dim
    bool isWhole() const { return getDim() == kWhole; }
    bool isSums() const { return getDim() == kSums; }
  }];
}

def LLDMIR_SpreadAttr : AttrDef<LLDMIR_Dialect, "Spread"> {
  let mnemonic = "spread";
  let summary = "how the tiles of a product are spread over the slices of a quad and what is fetched for them at once";
  let description = [{
    `#lldmir.spread<groups 2, slices 4, share columns, segment 8>`: `groups` tiles of 64 columns side by side, each a sum of cores of its own.
    `slices` take part; each has columns, rows or products (`batch`) of its own. `segment` blocks of 64 along K lie in half of IB at once,
    fewer where it has no room for them.
  }];
  let parameters = (ins "int64_t":$groups, "int64_t":$slices, StringRefParameter<"columns, rows or batch">:$share, "int64_t":$segment);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def LLDMIR_PlanAttr : AttrDef<LLDMIR_Dialect, "Plan"> {
  let mnemonic = "plan";
  let summary = "how a product is spread over the slices of a quad and the cores of a slice";
  let description = [{
    `lldmir.plan` of a product or a convolution has all that decides its bits and its clocks:
    `#lldmir.plan<num_imc 8, ppr_mode 3, groups 2, slices 4, share columns, segment 8>`. The sums of `num_imc` cores are added up by a tree of
    `ppr_mode` levels; the rest is `#lldmir.spread`. Loops over tiles are made by it; what is computed by them, and in which order, is then
    what they and their `lldmir.matmul` say, which have no plan. A convolution is no loop, and keeps it. With `windows` behind the
    segment K has a convolution's whole windows, their rows, columns and channels side by side, 64 to a block; without it each place of a window
    has blocks of its own, of 64 channels each.
  }];
  let parameters = (ins "int64_t":$numImc, "int64_t":$pprMode, "SpreadAttr":$spread, "bool":$windows);
  let builders = [AttrBuilder<(ins "int64_t":$numImc, "int64_t":$pprMode, "SpreadAttr":$spread), [{
    return $_get($_ctxt, numImc, pprMode, spread, false);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===--- ops ------------------------------------------------------------------------===//

class LLDMIR_Op<string mnemonic, list<Trait> traits = []> : Op<LLDMIR_Dialect, mnemonic, traits>;

def LLDMIR_MatMulOp : LLDMIR_Op<"matmul", [Pure, AttrSizedOperandSegments]> {
  let summary = "one product of a row of activation tiles and a column of weight tiles, a core each";
  let description = [{
    Core i multiplies activation tile i by weight tile i; the partial products are reduced by a balanced tree of
    `ppr_mode` levels and written to the output buffer, or added to the tile `accumulate` names. `rows` is how many rows
    of the activation tiles are computed (default all). All that decides the result's bits is here, and with `spread` (default: one tile by
    one slice) which tiles of its loops are computed together: the products of one matrix have the same. Where weights are packed it is as they are.

    `lldmir.matmul [%a0, %a1] x [%w0, %w1] num_imc 2 ppr_mode 1 spread <groups 2, slices 4, share columns, segment 8> accumulate %ob : !A x !W -> !P`

    C1: num_imc activation tiles and as many weight tiles. C2: num_imc <= 2^ppr_mode <= cores of a slice; groups is 1 to 4, of num_imc
    cores each, and slices are those of a quad.
    C3: activation tiles are m x d of block_fp R, weight tiles d x 64 of C, of equal p and block. C4: the result, and
    what it is added to, are tiles of m x 64 BFP32_1. C5: rows is from 1 to m.
  }];
  let arguments = (ins Variadic<AffineExt_VecExtType>:$activations, Variadic<AffineExt_VecExtType>:$weights,
                       I64Attr:$num_imc, I64Attr:$ppr_mode, OptionalAttr<LLDMIR_SpreadAttr>:$spread,
                       Optional<AffineExt_VecExtType>:$init, OptionalAttr<I64Attr>:$rows);
  let results = (outs AffineExt_VecExtType:$result);
  let assemblyFormat = [{
    ` ` `[` $activations `]` `x` ` ` `[` $weights `]` `num_imc` $num_imc `ppr_mode` $ppr_mode (`spread` $spread^)?
    (`accumulate` $init^)? attr-dict
    `:` custom<OneType>(ref($activations), type($activations)) `x` custom<OneType>(ref($weights), type($weights)) `->`
    custom<ResultType>(ref($init), type($init), type($result))
  }];
  let hasVerifier = 1;
}

def LLDMIR_TileOrMemRef : AnyTypeOf<[AffineExt_VecExtType, AnyMemRef]>;

class LLDMIR_UnitOp<string mnemonic> : LLDMIR_Op<mnemonic, [AttrSizedOperandSegments,
                                                             DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins StrAttr:$function, Variadic<LLDMIR_TileOrMemRef>:$inputs, Variadic<AnyMemRef>:$outs,
                       OptionalAttr<DictionaryAttr>:$parameters);
  let results = (outs Variadic<AffineExt_VecExtType>:$results);
  let assemblyFormat = [{
    $function `(` ($inputs^ `:` type($inputs))? `)` (`outs` `(` $outs^ `:` type($outs) `)`)? ($parameters^)? attr-dict
    (`->` type($results)^)?
  }];
  let hasVerifier = 1;
}

def LLDMIR_SimdOp : LLDMIR_UnitOp<"simd"> {
  let arguments = (ins StrAttr:$function, Variadic<LLDMIR_TileOrMemRef>:$inputs, Variadic<AnyMemRef>:$outs,
                       OptionalAttr<DictionaryAttr>:$parameters, Optional<Index>:$row);
  let assemblyFormat = [{
    $function `(` ($inputs^ `:` type($inputs))? `)` (`row` $row^)? (`outs` `(` $outs^ `:` type($outs) `)`)? ($parameters^)? attr-dict
    (`->` type($results)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::llvm::StringRef":$function, "::mlir::ValueRange":$inputs,
                                 "::mlir::ValueRange":$outs, "::mlir::DictionaryAttr":$parameters), [{
    build($_builder, $_state, results, function, inputs, outs, parameters, ::mlir::Value());
  }]>];
  let extraClassDeclaration = [{
    /// The bound of columns less rows in its parameters, `upper` or `lower`; null: none.
    ::mlir::IntegerAttr getBound(::llvm::StringRef which) {
      return getParametersAttr() ? getParametersAttr().getAs<::mlir::IntegerAttr>(which) : ::mlir::IntegerAttr();
    }
    bool masks() { return getBound("upper") || getBound("lower"); }
  }];
  let summary = "a function of the SIMD unit on tiles, or on whole memrefs of tiles";
  let description = [{
    On tiles: `%h = lldmir.simd "cast"(%p : !P) -> !H`. On memrefs, where a row may span tiles:
    `lldmir.simd "softmax"(%x : memref<..>) outs(%y : memref<..>) {axis = 1}`. The function is named as the DMIR op, with
    the op's attributes as parameters, or as the vector device's own, with `imm0`, `imm1` and the `axes` of rows; `types` in them are the tensors' types, which say what part of the tiles matters.
    "softmax" and "causal_mask" may have the diagonals that a mask keeps, of columns less rows: `upper` or `lower`; `row` is which row of all the first
    one of the buffer is (default 0). With `folded`, of a buffer of 2 n rows, the rows from the middle on are those from `folded` - n - `row` on.
    C1: either results, from tiles, or outs. C2: the function has a name. C3: one bound at most, and a row with one alone.
  }];
}

def LLDMIR_ReshapeOp : LLDMIR_UnitOp<"reshape"> {
  let summary = "movement of elements by the reshape engine: transpose, slice, concat, pad, gather ...";
  let description = [{
    As lldmir.simd, for the ops of DMIR that only move elements; "retype" is the transpose of block_fp, whose bytes stay
    what they are. C1, C2 as there.
  }];
}

def LLDMIR_ExternOp : LLDMIR_UnitOp<"extern"> {
  let summary = "a kernel that a user wrote in assembly";
  let description = [{
    `lldmir.extern "acme.argmax"(%x : memref<..>) outs(%y : memref<..>) {kernel = .., body = .., scalars = array<i64: 8192>}`: all quads run
    the text that the body names (dmir.extern), each on its own buffers, which are whole and lie row by row. C1, C2 as of lldmir.simd.
  }];
}

def LLDMIR_ConvOp : LLDMIR_Op<"conv", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a convolution by packed weights";
  let description = [{
    The image is quantised to tiles of 64 pixels by 64 channels (BFP16_64R), from which the array controller takes the window
    of each output pixel; weights are tiles in the order in which it walks over a window. By a plan with `windows` the windows of 64 output
    pixels are quantised instead, whole ones along K. Its sums, from the bias on, become f16.
    The attributes are dmir.conv's; `lldmir.plan` says how the slices and cores share it, `lldmir.deal` what of the result each
    quad computes: images (dim 0), channels (1) or rows (2).

    `%y = lldmir.conv %x, %w bias %b {..} : (tensor<1x64x56x56xf16>, ..) -> tensor<1x64x56x56xf16>`, on buffers
    `lldmir.conv %x, %w bias %b outs %y {..}`.

    On buffers `epilogue` has functions of elements of the sums as f16, the last of which makes the result: each with a `function` and its `parameters` as
    lldmir.simd has them, the `node` that it is reported as, and `inputs`, a function before it by number, -1 the sums, -2, -3 .. what lies `beside`, buffers of the result's layout:

    `lldmir.conv %x, %w beside(%r : memref<..>) outs %y {epilogue = [{function = "add", inputs = array<i64: -1, -2>, parameters = {}}], ..}`.

    C1: a result of tensors, or a buffer that is filled. C3: an epilogue, of a buffer, is made of such functions. C2: image and result have equal ranks, 3 or 4; one stride, dilation, low
    and kernel extent a spatial axis, all but low positive.
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, AnyMemRef]>:$image, AnyTypeOf<[AnyRankedTensor, AnyMemRef]>:$weights,
                       Optional<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$bias, Variadic<AnyMemRef>:$beside, Optional<AnyMemRef>:$out,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$low, I64Attr:$groups, OptionalAttr<ArrayAttr>:$epilogue);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $image `,` $weights (`bias` $bias^)? (`beside` `(` $beside^ `:` type($beside) `)`)? (`outs` $out^)? attr-dict `:` type($image) `,` type($weights) (`,` type($bias)^)?
    (`outs` type($out)^)? (`->` type($result)^)?
  }];
  let hasVerifier = 1;
}

def LLDMIR_GatherOp : LLDMIR_Op<"gather", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "all parts of values to all quads";
  let description = [{
    Each quad has a part of each value, as `deals` say; after it every quad has all of them. Of tensors the results are the
    whole values. Of buffers each quad has a share, and `outs` are filled: each quad sends its share to its place in
    everybody's whole.

    `lldmir.gather %x outs %w {deals = [#lldmir.deal<dim 1, quads 8>]} : memref<4x64xf16, "GM"> outs memref<4x512xf16, "GM">`

    C1: a deal for each value, by a dim of it. C2: results of the values' types for tensors, a buffer to fill for each
    buffer. C3: the shares of all quads, side by side along the deal's dim, are the whole.
  }];
  let arguments = (ins Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$parts, Variadic<AnyMemRef>:$outs, ArrayAttr:$deals);
  let results = (outs Variadic<AnyRankedTensor>:$wholes);
  let assemblyFormat = "$parts (`outs` $outs^)? attr-dict `:` type($parts) (`outs` type($outs)^)? (`->` type($wholes)^)?";
  let hasVerifier = 1;
}

def LLDMIR_SumOp : LLDMIR_Op<"sum", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "the sum of the parts that quads made of a product along K";
  let description = [{
    The parts are added in the order of the quads, in f32; the last sum is rounded to f16.
    `%y = lldmir.sum %parts : tensor<8x4x512xf32> -> tensor<4x512xf16>`, on buffers `lldmir.sum %parts outs %y : ..`.

    C1: the result, or the buffer that is filled, has the parts' dims but the first, which is 2 or more.
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, AnyMemRef]>:$parts, Optional<AnyMemRef>:$out);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = "$parts (`outs` $out^)? attr-dict `:` type($parts) (`outs` type($out)^)? (`->` type($result)^)?";
  let hasVerifier = 1;
}

#endif // DMXC_TARGETS_CORSAIR_LLDMIR_OPS
