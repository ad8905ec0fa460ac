//===- MaskOps.td - elements that a rule of their index keeps ------*- tablegen -*-===//
//
// Beside DMIROps.td, as few files need it.
//
#ifndef DMXC_DIALECT_DMIR_MASK_OPS
#define DMXC_DIALECT_DMIR_MASK_OPS

include "dmxc/Dialect/DMIR/DMIRBase.td"

def DMIR_RuleAttr : TypedArrayAttrBase<IntegerSetAttr, "integer sets over an index">;

def DMIR_TileListsAttr : TypedArrayAttrBase<DenseI64ArrayAttr, "lists of tiles">;

def DMIR_MaskOp : DMIR_Op<"mask", [DMIR_Elementwise]> {
  let summary = "elements whose index a rule keeps, a number elsewhere";
  let description = [{
    `result[x] = keep(x) ? input[x] : fill`; with `adds`, `input[x] + fill` instead of `fill`. The rule says of scores what `select` says
    with a tensor of bools, or `add` with one of two numbers, and targets see which rows and columns are empty. It is an "or" of cases, each an integer set over the index, one dim an axis, and over symbols, which
    are the `dims` and after them the `values`: `keep = [affine_set<(b, h, i, j)[past] : (i + past - j >= 0)>], dims = #dmir.dims<"past">`.
    A value is an integer or a bool, 0 or 1, that the index picks: one for each matrix, as a caller's length of each batch entry, or for
    each row or column, as ids of documents, of which a rule keeps `id[i] == id[j]`, or for each element. What is beyond 2^40 counts as that.
    With `low` the result is the input, and what the rule does not keep of it is at most `fill`, as scores that a caller's padding was
    added to: targets may leave these out of rows that have a score clearly above.
    C1: 1 to 4 cases of at most 16 conditions, over as many dims as the operand has axes and as many symbols as there are `dims` and `values`.
    C2: floordiv and mod have a positive number on their right; ceildiv is not used. C3: numbers lie within 2^40, so that nothing
    leaves 64 bits. C4: fill has the element type.
    C5: values are i1, i32 or i64, and broadcast to the operand's dims.
    A mask that is no rule of few cases, as of random blocks, has a list of tiles beside its cases: `tile` says how many rows and columns
    one has, and `tiles` has for each row of tiles those that hold something kept, by their number from the left. All elements of others are
    not kept: `tile = array<i64: 64, 64>, tiles = [array<i64: 0, 2>, array<i64: 1>]` of 128 x 192.
    C6: the last two dims are known, there is a list for each row of tiles, numbers are ascending, none twice, and each is one of a tile
    that there is. C7: `adds` goes with a finite fill, elements of f32, and no `low`.
  }];
  let arguments = (ins DMIR_FloatTensor:$input, Variadic<RankedTensorOf<[I1, I32, I64]>>:$values, DMIR_RuleAttr:$keep, TypedAttrInterface:$fill, OptionalAttr<DMIR_DimsAttr>:$dims,
      OptionalAttr<DenseI64ArrayAttr>:$tile, OptionalAttr<DMIR_TileListsAttr>:$tiles, UnitAttr:$adds, UnitAttr:$low);
  let results = (outs DMIR_FloatTensor:$result);
}

#endif // DMXC_DIALECT_DMIR_MASK_OPS
